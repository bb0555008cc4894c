# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What the real API server says to manifests of both kinds: the good are accepted, the bad are told field and remedy.

Every manifest is sent as `kubectl apply --dry-run=server` sends it: created without being stored, under strict field
validation. The rest of the module is not needed: two CRDs, the admission policy, and the bundled class as a manifest.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import helm_python
import pytest
import yaml
from testbed.cluster import Cluster
from testbed.process import until

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "tests" / "fixtures" / "manifests"
GOOD: dict[str, dict[str, Any]] = yaml.safe_load((MANIFESTS / "good.yaml").read_text())
STATUS: dict[str, Any] = yaml.safe_load((MANIFESTS / "full-status.yaml").read_text())
PLURALS = {"InferenceService": "inferenceservices", "InferenceServiceClass": "inferenceserviceclasses"}
APPLY = "application/apply-patch+yaml"
GONE = object()

pytestmark = pytest.mark.testbed


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server answered: the object as it stands or would stand, or a Status with the refusal."""

    code: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Server:
    """The API server without kubectl in between: nothing is checked or completed before it is sent."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._client = cluster.client()

    def send(self, method: str, path: str, body: object = None, kind: str = "application/json", **query: str) -> Answer:
        """One request to a path below the group's version. A refusal is an answer, not an exception."""
        response = self._client.rest_client.pool_manager.request(
            method,
            f"{self._client.configuration.host}/apis/ai.deckhouse.io/v1alpha1/{path}?{urlencode(query)}",
            body=None if body is None else json.dumps(body),
            headers={"Content-Type": kind, "Accept": "application/json"},
        )
        return Answer(response.status, json.loads(response.data))

    def create(self, manifest: dict[str, Any], **query: str) -> Answer:
        return self.send("POST", where(manifest), manifest, fieldValidation="Strict", **query)

    def try_out(self, manifest: dict[str, Any]) -> Answer:
        """Create it strictly and leave nothing behind."""
        return self.create(manifest, dryRun="All")


def where(manifest: dict[str, Any]) -> str:
    """The path of the collection that a manifest is created in."""
    plural = PLURALS[manifest["kind"]]
    namespace = manifest["metadata"].get("namespace")
    return f"namespaces/{namespace}/{plural}" if namespace else plural


def edited(manifest: dict[str, Any], edits: dict[str, Any]) -> dict[str, Any]:
    """A copy with the value at each dotted path replaced, or removed where it is GONE."""
    manifest = copy.deepcopy(manifest)
    for path, value in edits.items():
        *parents, last = path.split(".")
        place = manifest
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return manifest


def order(edits: dict[str, Any] | None = None) -> dict[str, Any]:
    """An order of a catalog model with every field that such an order may have."""
    base = {
        "apiVersion": "ai.deckhouse.io/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "drafts", "namespace": "team-a"},
        "spec": {
            "inferenceServiceClassName": "default-llm",
            "launchStrategy": "Throughput",
            "model": {"src": "ai-models", "ref": {"kind": "Model", "name": "chat-4b", "namespace": "team-a"}},
            "resources": {"accelerator": {"deviceClasses": ["h100", "a30-mig"]}},
        },
    }
    return edited(base, edits or {})


def hugging_face(edits: dict[str, Any] | None = None) -> dict[str, Any]:
    """An order of a Hugging Face repository with every field that such an order may have."""
    model = {
        "src": "HuggingFace",
        "ref": {"name": "Qwen/Qwen3-8B", "revision": "v1.0", "authSecretRef": {"name": "hugging-face"}},
    }
    return edited(order({"spec.model": model}), edits or {})


def service_class(edits: dict[str, Any] | None = None) -> dict[str, Any]:
    """A class with every field, its certificate from cert-manager."""
    return edited(GOOD["a class with every field, and its certificate from cert-manager"], edits or {})


CLASS, MODEL, REF = "spec.inferenceServiceClassName", "spec.model", "spec.model.ref"
DEVICES = "spec.resources.accelerator.deviceClasses"
EXPOSURE, HTTPS = "spec.exposurePolicy", "spec.exposurePolicy.https"
NAMESPACES = "spec.admissionPolicy.allowedNamespaces"
CONTRACTS, SIZE = "spec.modelPolicy.allowedEndpointTypes", "spec.modelPolicy.maxModelSize"
SCALING, ACCELERATOR = "spec.scalingPolicy", "spec.acceleratorPolicy"
SHARING, PLACEMENT = f"{ACCELERATOR}.allowedSharingModes", f"{ACCELERATOR}.allowedPlacementTypes"
COUNT, CLASSES = f"{ACCELERATOR}.maxAcceleratorCount", f"{ACCELERATOR}.deviceClassNames"
SELECTOR, BOUNDS = f"{ACCELERATOR}.deviceSelector", f"{ACCELERATOR}.shareBounds"
FOREIGN = order({f"{REF}.namespace": "rag"})

# What is wrong: the manifest, then what the message must hold: the field, and what to do.
BAD: dict[str, tuple[dict[str, Any], *tuple[str, ...]]] = {
    # The name of an order.
    "an order's name of 53 characters": (
        order({"metadata.name": "a" * 53}),
        "metadata.name becomes the name of a Service and of pods",
        "at most 52 characters",
    ),
    "an order's name that starts with a digit": (
        order({"metadata.name": "3b"}),
        "metadata.name",
        "start with a letter",
    ),
    "an order's name with a dot": (order({"metadata.name": "qwen3.5"}), "metadata.name", "lower-case letters, digits"),
    "an order's name with capitals": (order({"metadata.name": "Drafts"}), "metadata.name", "lower case alphanumeric"),
    "an order's name that ends with a dash": (order({"metadata.name": "drafts-"}), "metadata.name", "end with an"),
    # The spec as a whole.
    "an order without a spec": (order({"spec": GONE}), "spec: Required value"),
    "an order whose spec is a list": (order({"spec": []}), "spec: Invalid value", 'must be of type object: "array"'),
    "an order with replicas": (order({"spec.replicas": 2}), 'unknown field "spec.replicas"'),
    "an order with a recipe": (order({"spec.recipeName": "tp2"}), 'unknown field "spec.recipeName"'),
    "an order with engine flags": (order({"spec.vllm": {"maxModelLen": 8192}}), 'unknown field "spec.vllm"'),
    "an order with a field beside the spec": (order({"sepc": {}}), 'unknown field "sepc"'),
    # The class.
    "an order without a class": (order({CLASS: GONE}), f"{CLASS}: Required value"),
    "an order whose class is null": (order({CLASS: None}), f"{CLASS}: Required value"),
    "an order whose class is empty": (order({CLASS: ""}), f"{CLASS}: Invalid value", "name one InferenceServiceClass"),
    "an order whose class is no name": (
        order({CLASS: "Default LLM"}),
        f"{CLASS}: Invalid value",
        "example default-llm",
    ),
    "an order whose class is a number": (order({CLASS: 3}), f"{CLASS}: Invalid value", 'type string: "integer"'),
    "an order whose class is too long": (order({CLASS: "a" * 254}), f"{CLASS}: Too long", "more than 253"),
    # The model.
    "an order without a model": (order({MODEL: GONE}), f"{MODEL}: Required value"),
    "an order whose model is a string": (
        order({MODEL: "chat-4b"}),
        f"{MODEL}: Invalid value",
        "must be of type object",
    ),
    "an order whose model is empty": (
        order({MODEL: {}}),
        f"{MODEL}.src: Required value",
        f"{REF}: Required value",
    ),
    "a model without a source": (order({f"{MODEL}.src": GONE}), f"{MODEL}.src: Required value"),
    "a source in another spelling": (
        order({f"{MODEL}.src": "huggingface"}),
        f'{MODEL}.src: Unsupported value: "huggingface"',
        'supported values: "ai-models", "HuggingFace"',
    ),
    "a source that is a number": (order({f"{MODEL}.src": 1}), f"{MODEL}.src", 'must be of type string: "integer"'),
    "a model without a ref": (order({REF: GONE}), f"{REF}: Required value"),
    "a ref that is a string": (order({REF: "chat-4b"}), f"{REF}: Invalid value", 'must be of type object: "string"'),
    "a model with a size": (order({f"{MODEL}.size": "4b"}), 'unknown field "spec.model.size"'),
    "a ref without a name": (order({f"{REF}.name": GONE}), f"{REF}.name: Required value"),
    "a ref whose name is a number": (order({f"{REF}.name": 7}), f"{REF}.name", 'must be of type string: "integer"'),
    "a ref with an unknown field": (order({f"{REF}.apiGroup": "x"}), 'unknown field "spec.model.ref.apiGroup"'),
    # A catalog model.
    "a catalog model without a kind": (
        order({f"{REF}.kind": GONE, f"{REF}.namespace": GONE}),
        f"{REF}.kind: Required value",
        "write Model for a model of this namespace or ClusterModel",
    ),
    "a catalog model whose kind is null": (
        order({f"{REF}.kind": None, f"{REF}.namespace": GONE}),
        f"{REF}.kind: Required value",
        "write Model for a model of this namespace or ClusterModel",
    ),
    "a catalog model of an unknown kind": (
        order({f"{REF}.kind": "model"}),
        f"{REF}.kind: Invalid value",  # 1.34 puts the type there, 1.37 the value
        "write Model for a model of this namespace or ClusterModel",
    ),
    "a catalog model whose kind is a list": (
        order({f"{REF}.kind": ["Model"]}),
        f"{REF}.kind",
        "must be of type string",
    ),
    "a catalog model with an empty name": (
        order({f"{REF}.name": ""}),
        f"{REF}.name: Invalid value",
        "write the name of the catalog object",
    ),
    "a catalog model named like a repository": (
        order({f"{REF}.name": "Qwen/Qwen3-8B"}),
        f"{REF}.name: Invalid value",
        "set spec.model.src to HuggingFace",
    ),
    "a catalog model whose name is too long": (order({f"{REF}.name": "a" * 254}), f"{REF}.name: Too long", "253"),
    "a ClusterModel with a namespace": (
        order({f"{REF}.kind": "ClusterModel"}),
        f"{REF}.namespace: Forbidden",
        "only a reference of kind Model has a namespace",
        "remove spec.model.ref.namespace",
    ),
    "a Model of another namespace": (
        FOREIGN,
        f'{REF}.namespace: "rag" is not the namespace of the order, "team-a"',
        "remove the field, or use a ClusterModel",
    ),
    "a Model whose namespace is empty": (
        order({f"{REF}.namespace": ""}),
        f"{REF}.namespace: Invalid value",
        "write the order's own namespace or remove",
    ),
    "a Model whose namespace is a number": (order({f"{REF}.namespace": 1}), f"{REF}.namespace", "of type string"),
    "a Model whose namespace is too long": (order({f"{REF}.namespace": "a" * 64}), f"{REF}.namespace: Too long", "63"),
    "a catalog model with a revision": (
        order({f"{REF}.revision": "v1"}),
        f"{REF}.revision: Forbidden",
        "only src HuggingFace takes a revision: remove it",
    ),
    "a catalog model with a token": (
        order({f"{REF}.authSecretRef": {"name": "x"}}),
        f"{REF}.authSecretRef: Forbidden",
        "only src HuggingFace takes authSecretRef: remove it",
    ),
    # A Hugging Face repository.
    "a repository with a kind": (
        hugging_face({f"{REF}.kind": "Model"}),
        f"{REF}.kind: Forbidden",
        "src HuggingFace takes no kind: remove it",
    ),
    "a repository with a namespace": (
        hugging_face({f"{REF}.namespace": "team-a"}),
        f"{REF}.namespace: Forbidden",
        "remove spec.model.ref.namespace",
    ),
    "a repository without an owner": (
        hugging_face({f"{REF}.name": "gpt2"}),
        f"{REF}.name: Invalid value",
        "write the repository with its owner, owner/name: for example openai-community/gpt2",
    ),
    "a repository with an empty name": (
        hugging_face({f"{REF}.name": ""}),
        f"{REF}.name: Invalid value",
        "with its owner",
    ),
    **{
        f"a repository {what}": (
            hugging_face({f"{REF}.name": name}),
            f"{REF}.name: Invalid value",
            "write a repository id owner/name",
        )
        for what, name in {
            "with an address": "https://huggingface.co/Qwen/Qwen3-8B",
            "with three parts": "Qwen/Qwen3/8B",
            "with an empty owner": "/Qwen3-8B",
            "with an empty part after its owner": "Qwen/",
            "with two dashes in a row": "Qwen/Qwen3--8B",
            "with two dots in a row": "Qwen/Qwen3..8B",
            "whose part starts with a dot": "Qwen/.Qwen3",
            "with a space": "Qwen/Qwen3 8B",
            "with a line break at its end": "Qwen/Qwen3-8B\n",
            "with a letter outside ASCII": "Qwen/Qwеn3-8B",
            "of 97 characters": "owner/" + "n" * 91,
        }.items()
    },
    "a revision that is empty": (
        hugging_face({f"{REF}.revision": ""}),
        f"{REF}.revision: Invalid value",
        "write a commit",
    ),
    "a revision that climbs": (hugging_face({f"{REF}.revision": "a/../b"}), f"{REF}.revision", "write a commit"),
    "a revision that is an option": (hugging_face({f"{REF}.revision": "--help"}), f"{REF}.revision", "write a commit"),
    "a revision that is a number": (hugging_face({f"{REF}.revision": 1.0}), f"{REF}.revision", "of type string"),
    "a revision that is too long": (hugging_face({f"{REF}.revision": "a" * 201}), f"{REF}.revision: Too long", "200"),
    "a token that is not a reference": (hugging_face({f"{REF}.authSecretRef": "hf"}), f"{REF}.authSecretRef", "object"),
    "a token without a name": (hugging_face({f"{REF}.authSecretRef": {}}), f"{REF}.authSecretRef.name: Required value"),
    "a token with a key": (
        hugging_face({f"{REF}.authSecretRef.key": "token"}),
        'unknown field "spec.model.ref.authSecretRef.key"',
    ),
    "a token whose name is empty": (
        hugging_face({f"{REF}.authSecretRef.name": ""}),
        f"{REF}.authSecretRef.name: Invalid value",
        "name a Secret of the order's namespace",
    ),
    "a token whose name is a path": (
        hugging_face({f"{REF}.authSecretRef.name": "other/secret"}),
        f"{REF}.authSecretRef.name: Invalid value",
        "name a Secret of the order's namespace",
    ),
    # Strategy and device classes.
    "an unknown strategy": (
        order({"spec.launchStrategy": "Fast"}),
        'spec.launchStrategy: Unsupported value: "Fast"',
        'supported values: "Throughput", "Latency"',
    ),
    "an empty strategy": (order({"spec.launchStrategy": ""}), "spec.launchStrategy: Unsupported value", '"Latency"'),
    "a strategy that is a number": (order({"spec.launchStrategy": 1}), "spec.launchStrategy", "must be of type string"),
    "resources that are a list": (order({"spec.resources": []}), "spec.resources: Invalid value", "of type object"),
    "resources of a pod": (order({"spec.resources": {"limits": {"cpu": 1}}}), 'unknown field "spec.resources.limits"'),
    "an accelerator that is a string": (
        order({"spec.resources.accelerator": "h100"}),
        "spec.resources.accelerator",
        "object",
    ),
    "an accelerator with a count": (
        order({"spec.resources.accelerator.count": 2}),
        'unknown field "spec.resources.accelerator.count"',
    ),
    "no device class at all": (
        order({DEVICES: []}),
        f"{DEVICES}: Invalid value",
        f"name at least one device class or remove {DEVICES}",
    ),
    "a device class twice": (
        order({DEVICES: ["h100", "a30", "h100"]}),
        f"{DEVICES}: Invalid value",
        "keep each name once",
    ),
    "a device class that is not in a list": (
        order({DEVICES: "h100"}),
        f"{DEVICES}: Invalid value",
        'type array: "string"',
    ),
    "a device class without a name": (
        order({DEVICES: ["h100", ""]}),
        f"{DEVICES}[1]: Invalid value",
        "name a DeviceClass",
    ),
    "a device class that is null": (order({DEVICES: [None]}), f"{DEVICES}[0]", 'must be of type string: "null"'),
    "a device class that is a number": (order({DEVICES: [100]}), f"{DEVICES}[0]", 'must be of type string: "integer"'),
    "a device class that is no name": (
        order({DEVICES: ["H100"]}),
        f"{DEVICES}[0]: Invalid value",
        "name a DeviceClass",
    ),
    "a device class that is too long": (order({DEVICES: ["a" * 254]}), f"{DEVICES}[0]: Too long", "253"),
    "33 device classes": (
        order({DEVICES: [f"gpu-{n}" for n in range(33)]}),
        f"{DEVICES}: Too many",
        "at most 32 items",
    ),
    # A class as a whole.
    "a class without a spec": (service_class({"spec": GONE}), "spec: Required value"),
    "a class with an unknown field": (service_class({"spec.models": []}), 'unknown field "spec.models"'),
    # Exposure.
    "an exposure that is a string": (
        service_class({EXPOSURE: "Internal"}),
        f"{EXPOSURE}: Invalid value",
        "of type object",
    ),
    "an exposure with a host name": (
        service_class({f"{EXPOSURE}.host": "a.b"}),
        'unknown field "spec.exposurePolicy.host"',
    ),
    "an unknown exposure": (
        service_class({EXPOSURE: {"type": "Public"}}),
        f'{EXPOSURE}.type: Unsupported value: "Public"',
        'supported values: "Internal", "External"',
    ),
    "an unknown authentication": (
        service_class({f"{EXPOSURE}.authentication": "Basic"}),
        f"{EXPOSURE}.authentication: Unsupported value",
        'supported values: "Token", "None"',
    ),
    "an authentication that is a boolean": (
        service_class({f"{EXPOSURE}.authentication": False}),
        f"{EXPOSURE}.authentication",
        'must be of type string: "boolean"',
    ),
    "https of an internal class": (
        service_class({f"{EXPOSURE}.type": "Internal"}),
        f"{HTTPS}: Forbidden",
        "set spec.exposurePolicy.type to External or remove spec.exposurePolicy.https",
    ),
    "https of a class that is internal by default": (
        service_class({EXPOSURE: {"https": {"mode": "Disabled"}}}),
        f"{HTTPS}: Forbidden",
        "set spec.exposurePolicy.type to External",
    ),
    "an unknown https mode": (
        service_class({HTTPS: {"mode": "Redirect"}}),
        f"{HTTPS}.mode: Unsupported value",
        '"CertManager", "CustomCertificate", "OnlyInURI", "Disabled"',
    ),
    "https that is a boolean": (service_class({HTTPS: True}), f"{HTTPS}: Invalid value", 'of type object: "boolean"'),
    "an issuer under another mode": (
        service_class({f"{HTTPS}.mode": "OnlyInURI"}),
        f"{HTTPS}.certManager: Forbidden",
        "set spec.exposurePolicy.https.mode to CertManager or remove spec.exposurePolicy.https.certManager",
    ),
    "an issuer without a mode": (
        service_class({f"{HTTPS}.mode": GONE}),
        f"{HTTPS}.certManager: Forbidden",
        "set spec.exposurePolicy.https.mode to CertManager",
    ),
    "a certificate under another mode": (
        service_class({f"{HTTPS}.customCertificate": {"secretName": "tls"}}),
        f"{HTTPS}.customCertificate: Forbidden",
        "set spec.exposurePolicy.https.mode to CustomCertificate or remove",
    ),
    "cert-manager without an issuer": (
        service_class({f"{HTTPS}.certManager": {}}),
        f"{HTTPS}.certManager.clusterIssuerName: Required value",
    ),
    "an issuer that is no name": (
        service_class({f"{HTTPS}.certManager.clusterIssuerName": "Let's Encrypt"}),
        f"{HTTPS}.certManager.clusterIssuerName: Invalid value",
        "name a ClusterIssuer",
    ),
    "an issuer that is empty": (
        service_class({f"{HTTPS}.certManager.clusterIssuerName": ""}),
        f"{HTTPS}.certManager.clusterIssuerName: Invalid value",
        "name a ClusterIssuer",
    ),
    "an issuer of a namespace": (
        service_class({f"{HTTPS}.certManager.issuerName": "x"}),
        'unknown field "spec.exposurePolicy.https.certManager.issuerName"',
    ),
    "a custom certificate without a Secret": (
        service_class({HTTPS: {"mode": "CustomCertificate", "customCertificate": {}}}),
        f"{HTTPS}.customCertificate.secretName: Required value",
    ),
    "a custom certificate whose Secret is no name": (
        service_class({HTTPS: {"mode": "CustomCertificate", "customCertificate": {"secretName": "d8-system/tls"}}}),
        f"{HTTPS}.customCertificate.secretName: Invalid value",
        "name a Secret of d8-system",
    ),
    # Admission.
    "no namespace at all": (
        service_class({NAMESPACES: []}),
        f"{NAMESPACES}: Invalid value",
        "name at least one namespace",
    ),
    "a namespace twice": (
        service_class({NAMESPACES: ["a", "a"]}),
        f"{NAMESPACES}: Invalid value",
        "keep each name once",
    ),
    "a namespace with a wildcard": (
        service_class({NAMESPACES: ["team-*"]}),
        f"{NAMESPACES}[0]: Invalid",
        "no wildcards",
    ),
    "a namespace without a name": (service_class({NAMESPACES: [""]}), f"{NAMESPACES}[0]: Invalid", "name a namespace"),
    "a namespace that is too long": (service_class({NAMESPACES: ["a" * 64]}), f"{NAMESPACES}[0]: Too long", "63"),
    "namespaces that are a string": (service_class({NAMESPACES: "team-a"}), f"{NAMESPACES}: Invalid", "of type array"),
    "513 namespaces": (
        service_class({NAMESPACES: [f"n{n}" for n in range(513)]}),
        f"{NAMESPACES}: Too many",
        "at most 512",
    ),
    "admission by label": (
        service_class({"spec.admissionPolicy.selector": {}}),
        'unknown field "spec.admissionPolicy.selector"',
    ),
    # Models.
    "a class without a model policy": (service_class({"spec.modelPolicy": GONE}), "spec.modelPolicy: Required value"),
    "a class without contracts": (service_class({CONTRACTS: GONE}), f"{CONTRACTS}: Required value"),
    "a class whose contracts are null": (service_class({CONTRACTS: None}), f"{CONTRACTS}: Required value"),
    "a class with an empty list of contracts": (
        service_class({CONTRACTS: []}),
        f"{CONTRACTS}: Invalid value",
        "list at least one contract, the preferred one first: Chat, Embeddings, Rerank, SpeechToText",
    ),
    "a contract twice": (service_class({CONTRACTS: ["Chat", "Chat"]}), f"{CONTRACTS}: Invalid value", "keep each once"),
    "an unknown contract": (
        service_class({CONTRACTS: ["Chat", "TextGeneration"]}),
        f'{CONTRACTS}[1]: Unsupported value: "TextGeneration"',
        'supported values: "Chat", "Embeddings", "Rerank", "SpeechToText"',
    ),
    "a contract that is not in a list": (
        service_class({CONTRACTS: "Chat"}),
        f"{CONTRACTS}: Invalid",
        "must be of type array",
    ),
    **{
        f"a largest model of {what}": (
            service_class({SIZE: size}),
            f"{SIZE}: Invalid value",
            "give a positive number of bytes, not of parameters, for example 20Gi",
        )
        for what, size in {
            "no bytes": 0,
            "zero as text": "0Gi",
            "a negative number": -1,
            "a negative quantity": "-20Gi",
            "half a byte": "500m",
            "parameters": "6B",
            "an empty text": "",
        }.items()
    },
    "a largest model that is a list": (service_class({SIZE: ["20Gi"]}), SIZE, "Invalid value"),
    "a largest model that is a fraction": (service_class({SIZE: 1.5}), SIZE, "Invalid value"),
    "models by name": (
        service_class({"spec.modelPolicy.allowedModels": ["x"]}),
        'unknown field "spec.modelPolicy.allowedModels"',
    ),
    # Replicas.
    "only a lower bound of replicas": (
        service_class({SCALING: {"minReplicas": 1}}),
        f"{SCALING}.maxReplicas: Required value",
    ),
    "only an upper bound of replicas": (
        service_class({SCALING: {"maxReplicas": 1}}),
        f"{SCALING}.minReplicas: Required value",
    ),
    "no bound of replicas": (
        service_class({SCALING: {}}),
        f"{SCALING}.minReplicas: Required",
        f"{SCALING}.maxReplicas: Required",
    ),
    "bounds of replicas that cross": (
        service_class({SCALING: {"minReplicas": 3, "maxReplicas": 2}}),
        f"{SCALING}.minReplicas: Invalid value",
        "lower spec.scalingPolicy.minReplicas or raise spec.scalingPolicy.maxReplicas",
    ),
    "no replica": (
        service_class({f"{SCALING}.minReplicas": 0}),
        f"{SCALING}.minReplicas",
        "greater than or equal to 1",
    ),
    "1001 replicas": (
        service_class({f"{SCALING}.maxReplicas": 1001}),
        f"{SCALING}.maxReplicas",
        "less than or equal to 1000",
    ),
    "replicas as text": (service_class({f"{SCALING}.maxReplicas": "2"}), f"{SCALING}.maxReplicas", "of type integer"),
    "half a replica": (service_class({f"{SCALING}.maxReplicas": 2.5}), f"{SCALING}.maxReplicas", "of type integer"),
    "scaling by a metric": (service_class({f"{SCALING}.metric": "x"}), 'unknown field "spec.scalingPolicy.metric"'),
    # Accelerators.
    "an accelerator policy that is a list": (
        service_class({ACCELERATOR: []}),
        f"{ACCELERATOR}: Invalid value",
        "of type object",
    ),
    "an accelerator policy with a vendor": (
        service_class({f"{ACCELERATOR}.vendor": "x"}),
        'unknown field "spec.acceleratorPolicy.vendor"',
    ),
    "no sharing mode": (
        service_class({SHARING: []}),
        f"{SHARING}: Invalid value",
        "list Shared, Dedicated or both, or remove",
    ),
    "a sharing mode twice": (service_class({SHARING: ["Shared"] * 2}), f"{SHARING}: Invalid value", "keep each once"),
    "an unknown sharing mode": (
        service_class({SHARING: ["MPS"]}),
        f'{SHARING}[0]: Unsupported value: "MPS"',
        'supported values: "Shared", "Dedicated"',
    ),
    "three sharing modes": (service_class({SHARING: ["Shared"] * 3}), f"{SHARING}: Too many", "at most 2 items"),
    "no placement type": (
        service_class({PLACEMENT: []}),
        f"{PLACEMENT}: Invalid value",
        "list WholeDevice, Partition or both",
    ),
    "a placement type twice": (
        service_class({PLACEMENT: ["Partition"] * 2}),
        f"{PLACEMENT}: Invalid",
        "keep each once",
    ),
    "an unknown placement type": (
        service_class({PLACEMENT: ["MIG"]}),
        f'{PLACEMENT}[0]: Unsupported value: "MIG"',
        'supported values: "WholeDevice", "Partition"',
    ),
    "no accelerator": (service_class({COUNT: 0}), f"{COUNT}: Invalid value", "greater than or equal to 1"),
    "33 accelerators": (service_class({COUNT: 33}), f"{COUNT}: Invalid value", "less than or equal to 32"),
    "accelerators as text": (service_class({COUNT: "1"}), f"{COUNT}: Invalid value", "must be of type integer"),
    "no device class of a class": (
        service_class({CLASSES: []}),
        f"{CLASSES}: Invalid value",
        "name at least one device class",
    ),
    "a device class of a class twice": (
        service_class({CLASSES: ["a", "a"]}),
        f"{CLASSES}: Invalid value",
        "keep each name once",
    ),
    "a device class of a class that is no name": (
        service_class({CLASSES: ["a_b"]}),
        f"{CLASSES}[0]: Invalid",
        "name a DeviceClass",
    ),
    "65 device classes": (service_class({CLASSES: [f"c{n}" for n in range(65)]}), f"{CLASSES}: Too many", "at most 64"),
    "a selector that is a boolean": (service_class({SELECTOR: True}), f"{SELECTOR}: Invalid", "of type string"),
    "an empty selector": (
        service_class({SELECTOR: ""}),
        f"{SELECTOR}: Invalid value",
        "write a CEL expression over device or remove",
    ),
    "a selector of blanks": (
        service_class({SELECTOR: " \n\t"}),
        f"{SELECTOR}: Invalid value",
        "write a CEL expression",
    ),
    "a selector longer than DRA takes": (service_class({SELECTOR: "x" * 10241}), f"{SELECTOR}: Too long", "10240"),
    "a selector as in a DRA request": (
        service_class({SELECTOR: {"cel": {"expression": "true"}}}),
        'unknown field "spec.acceleratorPolicy.deviceSelector.cel"',
    ),
    **{
        f"a {side} share of {what}": (
            service_class({f"{BOUNDS}.{side}": size}),
            f"{BOUNDS}.{side}: Invalid value",
            "give a positive number of bytes",
        )
        for side, what, size in [
            ("minMemory", "nothing", 0),
            ("minMemory", "a negative quantity", "-1Gi"),
            ("maxMemory", "a percentage", "50%"),
            ("maxMemory", "thousandths", "100m"),
        ]
    },
    "bounds of a share that cross": (
        service_class({BOUNDS: {"minMemory": "25Gi", "maxMemory": 25000000000}}),
        f"{BOUNDS}.minMemory: Invalid value",
        f"lower {BOUNDS}.minMemory or raise {BOUNDS}.maxMemory",
    ),
    "a share with compute": (
        service_class({f"{BOUNDS}.minCompute": 10}),
        'unknown field "spec.acceleratorPolicy.shareBounds.minCompute"',
    ),
    # Updates and volumes.
    "an unknown update strategy": (
        service_class({"spec.updatePolicy.strategy": "Recreate"}),
        'spec.updatePolicy.strategy: Unsupported value: "Recreate"',
        'supported values: "RollingUpdate", "OnDelete"',
    ),
    "an update policy that is a string": (
        service_class({"spec.updatePolicy": "OnDelete"}),
        "spec.updatePolicy",
        "of type object",
    ),
    "an update policy with a partition": (
        service_class({"spec.updatePolicy.partition": 1}),
        'unknown field "spec.updatePolicy.partition"',
    ),
    "an empty storage class": (
        service_class({"spec.modelStorageClassName": ""}),
        "spec.modelStorageClassName: Invalid",
        "name a StorageClass",
    ),
    "a storage class that is no name": (
        service_class({"spec.modelStorageClassName": "Fast SSD"}),
        "spec.modelStorageClassName: Invalid",
        "name a StorageClass",
    ),
    "a storage class that is a boolean": (
        service_class({"spec.modelStorageClassName": True}),
        "spec.modelStorageClassName",
        "of type string",
    ),
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The admission policy and the bundled class as the Helm engine renders them, by the template's name."""
    chart = tmp_path_factory.mktemp("chart")
    (chart / "templates").mkdir()
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: module\nversion: 0.0.1\n")
    for template in ["admission-policy.yaml", "classes/default-llm.yaml"]:
        (chart / "templates" / Path(template).name).write_text((ROOT / "templates" / template).read_text())
    loaded = helm_python.Chart.load(chart)
    of_an_order = loaded.render({"aiInference": {"internal": {"order": {"name": "drafts"}}}})
    assert [text.strip() for text in of_an_order.values()] == ["", ""]
    of_the_module = loaded.render({"aiInference": {"internal": {}}})
    return {Path(path).stem: [*yaml.safe_load_all(text)] for path, text in of_the_module.items()}


@pytest.fixture(scope="module", params=["1.37", "1.34"])
def server(request: pytest.FixtureRequest, release: dict[str, list[dict[str, Any]]]) -> Iterator[Server]:
    """An API server with both kinds, two namespaces, and the admission policy in force: the newest and the floor.

    A control plane of its own, because the module must not answer to the orders that are stored here.
    """
    crds = [(ROOT / "crds" / f"{name}.yaml").read_text() for name in ("inferenceservice", "inferenceserviceclass")]
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("team-a", "rag")]
    with Cluster(kubernetes=request.param, kwok=False) as cluster:
        cluster.apply(*crds, *namespaces, *release["admission-policy"])
        for plural in PLURALS.values():
            cluster.wait(f"crd/{plural}.ai.deckhouse.io", "--for=condition=Established")
        server = Server(cluster)
        until("the admission policy to be in force", lambda: server.try_out(FOREIGN).code == 422 or None)
        yield server


@pytest.mark.parametrize("manifest", GOOD.values(), ids=GOOD)
def test_accepted(server: Server, manifest: dict[str, Any]) -> None:
    answer = server.try_out(manifest)
    assert (answer.code, answer.message) == (201, "")


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_refused_with_the_field_and_the_remedy(server: Server, case: tuple[dict[str, Any], *tuple[str, ...]]) -> None:
    manifest, *fragments = case
    answer = server.try_out(manifest)
    assert answer.code in (400, 422), answer
    assert [fragment for fragment in fragments if fragment not in answer.message] == [], answer.message


def test_the_manifests_that_the_bad_ones_are_edited_from_are_good(server: Server) -> None:
    assert [server.try_out(manifest).code for manifest in (order(), hugging_face(), service_class())] == [201] * 3


def test_an_order_is_stored_with_its_strategy_and_with_no_null_outside_its_ref(server: Server) -> None:
    manifest = GOOD["an explicit null is read as absent"]
    assert server.try_out(manifest).body["spec"] == {
        "inferenceServiceClassName": "chat-pair",
        "launchStrategy": "Throughput",
        "model": manifest["spec"]["model"],
    }


def test_a_class_is_stored_with_its_defaults_and_absent_policies_stay_absent(server: Server) -> None:
    total = {
        "exposurePolicy": {"type": "Internal", "authentication": "Token"},
        "modelPolicy": {"allowedEndpointTypes": ["Embeddings"]},
        "updatePolicy": {"strategy": "RollingUpdate"},
    }
    smallest = GOOD["the smallest class: one contract"]
    assert server.try_out(smallest).body["spec"] == total
    given = server.try_out(edited(smallest, {"spec.acceleratorPolicy": {}}))
    assert given.body["spec"] == total | {
        "acceleratorPolicy": {
            "allowedSharingModes": ["Dedicated"],
            "allowedPlacementTypes": ["WholeDevice"],
            "maxAcceleratorCount": 1,
        }
    }


def test_the_bundled_class_is_accepted_as_it_is_written(
    server: Server, release: dict[str, list[dict[str, Any]]]
) -> None:
    [bundled] = release["default-llm"]
    answer = server.try_out(bundled)
    assert answer.code == 201, answer
    assert answer.body["spec"] == bundled["spec"] | {"updatePolicy": {"strategy": "RollingUpdate"}}


@pytest.fixture
def standing(server: Server) -> Iterator[dict[str, Any]]:
    """An order that is stored, and removed again."""
    manifest = order({"metadata.name": "standing"})
    created = server.create(manifest)
    assert created.code == 201, created
    yield manifest
    server.send("DELETE", f"{where(manifest)}/standing")


def write(server: Server, manager: str, manifest: dict[str, Any], status: dict[str, Any]) -> Answer:
    """Server-side apply of a status, as its writers do it."""
    name = manifest["metadata"]["name"]
    applied = {key: manifest[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": name}, "status": status}
    path = f"{where(manifest)}/{name}/status"
    return server.send("PATCH", path, applied, APPLY, fieldManager=manager, force="true", fieldValidation="Strict")


def test_a_full_status_of_two_writers_comes_back_without_losing_a_field(
    server: Server, standing: dict[str, Any]
) -> None:
    rest = {key: value for key, value in STATUS.items() if key != "plan"}
    assert write(server, "ai-inference-planner", standing, {"plan": STATUS["plan"]}).code == 200
    assert write(server, "ai-inference-status", standing, rest).code == 200
    read = server.send("GET", f"{where(standing)}/standing").body
    assert read["status"] == STATUS
    owned = {entry["manager"]: entry["fieldsV1"] for entry in read["metadata"]["managedFields"]}
    assert owned["ai-inference-planner"] == {"f:status": {"f:plan": {}}}


def test_a_new_plan_leaves_nothing_of_the_old_one(server: Server, standing: dict[str, Any]) -> None:
    refused = {"observedGeneration": 4, "decision": "Refused", "reason": "ResourceClaimExhausted", "message": "none"}
    write(server, "ai-inference-planner", standing, {"plan": STATUS["plan"]})
    assert write(server, "ai-inference-planner", standing, {"plan": refused}).body["status"] == {"plan": refused}


def test_a_plan_that_the_schema_does_not_know_is_refused_strictly(server: Server, standing: dict[str, Any]) -> None:
    odd = {"decision": "Maybe", "shares": []}
    answer = write(server, "ai-inference-planner", standing, {"plan": odd})
    assert answer.code in (400, 422, 500), answer
    answer = write(server, "ai-inference-planner", standing, {"plan": {"decision": "Maybe"}})
    assert (answer.code, 'status.plan.decision: Unsupported value: "Maybe"' in answer.message) == (422, True)


def test_an_order_may_be_edited_in_every_field(server: Server, standing: dict[str, Any]) -> None:
    changed = hugging_face(
        {"metadata.name": "standing", CLASS: "other", "spec.launchStrategy": "Latency", DEVICES: ["x"]}
    )
    whole = server.send("GET", f"{where(standing)}/standing").body | {"spec": changed["spec"]}
    answer = server.send("PUT", f"{where(standing)}/standing", whole, fieldValidation="Strict")
    assert (answer.code, answer.body["spec"]) == (200, changed["spec"])


def test_an_order_stored_before_the_policy_can_still_be_edited_elsewhere(server: Server) -> None:
    """Its finalizers above all: an order that nobody may update is an order that nobody can delete."""
    manifest = order({"metadata.name": "old", f"{REF}.namespace": "rag", "metadata.finalizers": ["example.com/wait"]})
    name = "d8-ai-inference-model-namespace"
    binding = server.cluster.get("validatingadmissionpolicybinding", name)
    server.cluster.kubectl("delete", "validatingadmissionpolicybinding", name)
    until("an order to slip by", lambda: server.create(manifest).code == 201 or None)
    server.cluster.apply(
        {key: binding[key] for key in ("apiVersion", "kind", "spec")}
        | {"metadata": {"name": name, "labels": binding["metadata"]["labels"]}}
    )
    until("the policy to be back", lambda: server.try_out(FOREIGN).code == 422 or None)
    path = f"{where(manifest)}/old"
    merge = "application/merge-patch+json"
    assert server.send("PATCH", path, {"spec": {"launchStrategy": "Latency"}}, merge).code == 200
    other = server.send("PATCH", path, {"spec": {"model": {"ref": {"namespace": "default"}}}}, merge)
    assert (other.code, '"default" is not the namespace of the order' in other.message) == (422, True)
    assert server.send("DELETE", path).code == 200
    assert server.send("PATCH", path, {"metadata": {"finalizers": None}}, merge).code == 200
    assert server.send("GET", path).code == 404


def test_unknown_fields_are_dropped_where_validation_is_not_strict(server: Server) -> None:
    answer = server.send("POST", where(order()), order({"spec.replicas": 2}), dryRun="All", fieldValidation="Warn")
    assert (answer.code, answer.body["spec"]) == (201, order()["spec"])


def test_kubectl_refuses_with_the_same_words(server: Server) -> None:
    manifest = hugging_face({f"{REF}.name": "gpt2"})
    done = server.cluster.kubectl_process("apply", "--dry-run=server", "-f", "-", input=manifest)
    assert done.returncode == 1
    assert done.stderr.startswith('The InferenceService "drafts" is invalid: spec.model.ref.name: Invalid value: ')
    assert "write the repository with its owner, owner/name" in done.stderr


def test_kubectl_lists_orders_with_what_their_users_ask_for(server: Server, standing: dict[str, Any]) -> None:
    write(server, "ai-inference-planner", standing, {"plan": STATUS["plan"]})
    write(server, "ai-inference-status", standing, {key: value for key, value in STATUS.items() if key != "plan"})

    def listed(*flags: str) -> list[list[str]]:
        lines = server.cluster.kubectl("get", "infsvc", "-n", "team-a", *flags).splitlines()
        return [[cell for cell in line.split("  ") if cell] for line in lines]

    header, row = listed()
    assert [name.strip() for name in header] == ["NAME", "CLASS", "MODEL", "CONTRACT", "PHASE", "READY", "AGE"]
    assert [cell.strip() for cell in row[:-1]] == ["standing", "default-llm", "chat-4b", "Chat", "Degraded", "True"]
    header, row = listed("-o", "wide")
    wide = ["DEVICE CLASS", "PLACEMENT", "SHARE", "RECIPE", "RELEASE", "URL", "AGE"]
    assert [name.strip() for name in header[6:]] == wide
    values = ["h100-shared", "WholeDevice", "8Gi", "generic-chat", "0.33.0-1", "https://drafts-team-a.example.com"]
    assert [cell.strip() for cell in row[6:-1]] == values


def test_kubectl_lists_classes_with_their_policy(server: Server) -> None:
    manifest = service_class({"metadata.name": "listed"})
    assert server.create(manifest).code == 201
    condition = {"status": "True", "lastTransitionTime": "2026-11-30T09:00:00Z", "reason": "x", "message": ""}
    conditions = [{"type": "Validated"} | condition, {"type": "Ready"} | condition | {"status": "False"}]
    assert write(server, "ai-inference-status", manifest, {"conditions": conditions}).code == 200
    header, row = server.cluster.kubectl("get", "infsvcclass", "listed").splitlines()
    server.send("DELETE", "inferenceserviceclasses/listed")
    assert [name.strip() for name in header.split("  ") if name] == [
        *("NAME", "VALIDATED", "READY", "ENDPOINT TYPES", "SHARING", "AGE")
    ]
    assert [cell.strip() for cell in row.split("  ") if cell][:-1] == [
        *("listed", "True", "False", '["Rerank","Chat","SpeechToText","Embeddings"]', '["Shared","Dedicated"]')
    ]


@pytest.mark.parametrize(
    ("field", "says"),
    {
        "infsvc": "An order of inference",
        "infsvc.spec.model.ref.revision": "Pin a commit",
        "infsvc.spec.resources.accelerator.deviceClasses": "never widens it",
        "infsvc.status.plan.deviceRequest.config.parameters": "The driver's own object",
        "infsvc.status.plan.preemption.donors.replicas": "Replicas it gives up",
        "infsvcclass.spec.acceleratorPolicy.shareBounds.minMemory": "Smallest share, in bytes per device",
        "infsvcclass.spec.exposurePolicy.https.certManager.clusterIssuerName": "Name of the ClusterIssuer",
    }.items(),
)
def test_kubectl_explains(server: Server, field: str, says: str) -> None:
    assert says in " ".join(server.cluster.kubectl("explain", field).split())


@pytest.mark.parametrize("flags", [(), ("--server-side",)], ids=["by the client", "by the server"])
def test_kubectl_applies_nulls_of_a_ref_again_and_again(server: Server, flags: tuple[str, ...]) -> None:
    ref = {"kind": None, "namespace": None, "name": "Qwen/Qwen3-8B", "revision": None, "authSecretRef": None}
    manifest = order({"metadata.name": "nulls", MODEL: {"src": "HuggingFace", "ref": ref}})
    for _ in range(2):
        server.cluster.kubectl("apply", *flags, "-f", "-", input=manifest)
    stored = server.send("GET", f"{where(manifest)}/nulls").body["spec"]
    server.send("DELETE", f"{where(manifest)}/nulls")
    given = {key: value for key, value in stored["model"]["ref"].items() if value is not None}
    assert given == {"name": "Qwen/Qwen3-8B"}
