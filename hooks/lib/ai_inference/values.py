# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A placed order → the Helm values of its workload (`aiInference.internal.order`), ready and total.

Everything the templates print is computed here: names, arguments, environment, images, labels. Nothing is decided here:
what to run, where and how large comes from the plan; the class adds authentication and the update strategy.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from lib.ai_inference import names
from lib.ai_inference.world import Order, Platform, ServiceClass, Workload

GATE_PORT: Final = 8080
"""What the Service leads to: the allow-list of the contract, with the token checked."""
PROBE_PORT: Final = 8081
"""What the kubelet and Prometheus ask, through the gate: /health and /metrics of the runtime and nothing else."""
RUNTIME_PORT: Final = 8000
"""On the loopback interface only: `VLLM_API_KEY` protects a part of the runtime's paths (facts: vLLM, 1.4)."""

TAINT_KEYS: Final = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com", "gpu.deckhouse.io")
"""Taints of accelerator nodes. The planner counts a node as usable exactly when these or the driver's name admit it."""

# A stop takes preStop (routes forget the replica), then draining, then a margin: grace is greater than the sum.
PRE_STOP_SECONDS: Final = 15
DRAIN_SECONDS: Final = 60
GRACE_SECONDS: Final = 90

STARTUP_PERIOD_SECONDS: Final = 10
STARTUP_FAILURES: Final = 240
"""40 minutes: the time users already allow a rollout; very large models from a slow volume need half an hour."""

TOKEN_KEYS: Final = ("token", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
"""Under which keys of the Secret of an order the token for Hugging Face may stand."""

CACHE: Final = "/cache"
MODEL: Final = "/data"

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

_NOT_RENDERED: Final = frozenset({"observedGeneration", "message", "reason", "preemption"})
"""What a plan says and no value is made from."""


def digest(content: object) -> str:
    """Sixteen hex digits of the canonical JSON of `content`."""
    return hashlib.sha256(_canonical(content).encode()).hexdigest()[:16]


def flag(name: str) -> str:
    """The runtime's option for a camelCase parameter: `maxModelLen` → `--max-model-len`."""
    return "--" + _CAMEL.sub("-", name).lower()


def options(parameters: Mapping[str, str]) -> list[str]:
    """Arguments of the runtime, each option once; booleans as `--x` and `--no-x`, everything else as one value."""
    arguments: list[str] = []
    for name, value in parameters.items():
        if value == "true":
            arguments.append(flag(name))
        elif value == "false":
            arguments.append("--no-" + flag(name)[2:])
        else:
            arguments += [flag(name), value]
    return arguments


def release(plan: Mapping[str, Any]) -> str:
    return str((plan.get("recipe") or {}).get("release") or "unknown")


def placement(plan: Mapping[str, Any]) -> str:
    """The placement in a few words, as the event `PlanChanged` names it: `2 × h100, WholeDevice, Shared 20Gi 40%`."""
    share = plan.get("share") or {}
    sharing = " ".join(
        str(part)
        for part in (
            plan.get("sharingMode"),
            share.get("memory"),
            f"{share['computePercent']}%" if share.get("computePercent") else None,
        )
        if part
    )
    return f"{plan.get('acceleratorCount', 1)} × {plan.get('deviceClassName')}, {plan.get('placementType')}, {sharing}"


def strategy(wanted: ServiceClass, edit: str, pod: str, standing: Workload | None, outdated: bool) -> str:
    """How replicas follow the new template.

    The class's strategy when the order, its class or its placement changed; `OnDelete` when anything else did (the
    module's release, the nodes it may use) and as long as replicas of the older template serve. `outdated` says whether
    there are any.
    """
    if standing is None or standing.edit != edit:
        return wanted.strategy
    if standing.pod != pod or (standing.strategy == "OnDelete" and outdated):
        return "OnDelete"
    return wanted.strategy


def of(
    order: Order,
    plan: Mapping[str, Any],
    service_class: ServiceClass,
    platform: Platform,
    standing: Workload | None = None,
    outdated: bool = False,
) -> dict[str, Any]:
    """Values of the order's workload. `plan` must place it; `standing` is its StatefulSet, None before birth.

    Raises KeyError when a placed plan lacks what its contract promises: the caller makes that the order's condition.
    """
    token = f"{order.name}-token" if service_class.authentication == "Token" else None
    claim = _claim(order, plan)
    source = _source(order, plan)
    storage = _storage(order, plan, standing)
    pod: dict[str, Any] = {
        "labels": {**names.selector(order.name), names.RELEASE: release(plan)},
        "tolerations": _tolerations(plan),
        "affinity": _affinity(plan),
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "sharedMemory": str(plan["hostResources"]["sharedMemory"]),
        "claimTemplateName": claim["name"],
        "claimRequest": names.CLAIM_REQUEST,
        "probePort": PROBE_PORT,
        "preStopSeconds": PRE_STOP_SECONDS,
        "startupPeriodSeconds": STARTUP_PERIOD_SECONDS,
        "startupFailures": STARTUP_FAILURES,
        "runtime": {
            "image": platform.image("requestRuntime"),
            "args": _arguments(source["path"], plan),
            "env": _runtime_environment(token),
            "cpu": str(plan["hostResources"]["cpu"]),
            "memory": str(plan["hostResources"]["memory"]),
        },
        "gate": {
            "image": platform.image("requestGate"),
            "env": _gate_environment(plan, service_class, token),
            "port": GATE_PORT,
        },
        "fetcher": _fetcher(order, plan, platform),
    }
    edit = digest(
        {
            "order": order.generation, "class": [service_class.name, service_class.generation],
            "device": [plan["deviceClassName"], plan["placementType"], plan["sharingMode"], plan.get("share"),
                       plan["acceleratorCount"], plan["deviceRequest"]],
            # Whether there is one, and not which: the volume of a set that stands is kept, and is read back with the
            # defaults that the API server gave it.
            "volume": bool(storage),
        }
    )  # fmt: skip
    pod_hash = digest(pod)
    order_values: dict[str, Any] = {
        "name": order.name,
        "namespace": order.namespace,
        "labels": names.labels(order.name),
        "annotations": {names.ORDER_UID: order.uid},
        "ownerReference": owner_reference(order),
        "claimTemplate": claim,
        "service": {"selector": names.selector(order.name), "targetPort": GATE_PORT},
        "budget": {"maxUnavailable": 1} if plan["replicas"]["bound"] > 1 else {},
        "token": {"secretName": token} if token else {},
        "workload": {
            "annotations": {
                names.EDIT: edit, names.POD: pod_hash, names.PLACEMENT: placement(plan), **source["annotations"],
            },
            "selector": names.selector(order.name),
            "updateStrategy": strategy(service_class, edit, pod_hash, standing, outdated),
        },
        "storage": storage,
        "pod": pod,
    }  # fmt: skip
    return order_values


def stamped(order_values: Mapping[str, Any], templates: str, inputs: str) -> dict[str, Any]:
    """The values with their hash (and that of the templates, `templates`) among the annotations of every object."""
    annotations = {**order_values["annotations"], names.HASH: digest([order_values, templates])}
    workload = order_values["workload"]
    noted = f"{inputs}.{len(contained(order_values))}"
    return {
        **order_values,
        "annotations": annotations,
        "workload": {**workload, "annotations": {**workload["annotations"], names.INPUTS: noted}},
    }


def contained(order_values: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Kind and name of everything the values make stand."""
    name = order_values["name"]
    found = {
        ("StatefulSet", name),
        ("Service", name),
        ("ResourceClaimTemplate", order_values["claimTemplate"]["name"]),
    }
    if order_values["budget"]:
        found.add(("PodDisruptionBudget", name))
    if order_values["token"]:
        found.add(("Secret", order_values["token"]["secretName"]))
    return frozenset(found)


def inputs(
    order: Order, plan: Mapping[str, Any], service_class: ServiceClass, platform: Platform, templates: str
) -> str:
    """A digest of everything that `of` reads, the standing workload apart: equal digests give equal values."""
    told = {key: part for key, part in plan.items() if key not in _NOT_RENDERED}
    facts = [order.uid, order.generation, service_class.name, service_class.generation, service_class.authentication]
    supplied = [platform.registry, sorted(platform.digests.items()), templates]
    return digest([facts, service_class.strategy, order.spec["model"], told, supplied])


def credentials(order: Order) -> str | None:
    """The Secret that the order names for access to Hugging Face; None: it names none."""
    model = order.spec["model"]
    if model["src"] != "HuggingFace":
        return None
    return (model["ref"].get("authSecretRef") or {}).get("name") or None


def owner_reference(order: Order) -> dict[str, Any]:
    return {
        "apiVersion": "ai.deckhouse.io/v1alpha1", "kind": "InferenceService", "name": order.name, "uid": order.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def _claim(order: Order, plan: Mapping[str, Any]) -> dict[str, Any]:
    """The order's claim template. It is immutable, so its name carries a hash of what it says."""
    request = plan["deviceRequest"]
    exactly: dict[str, Any] = {
        "deviceClassName": plan["deviceClassName"],
        "allocationMode": "ExactCount",
        "count": plan["acceleratorCount"],
    }
    if request.get("selectors"):
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in request["selectors"]]
    if request.get("capacity"):
        exactly["capacity"] = {"requests": {name: str(quantity) for name, quantity in request["capacity"].items()}}
    if request.get("tolerations"):
        exactly["tolerations"] = [dict(toleration) for toleration in request["tolerations"]]
    devices: dict[str, Any] = {"requests": [{"name": names.CLAIM_REQUEST, "exactly": exactly}]}
    if request.get("config"):
        devices["config"] = [
            {
                "requests": [names.CLAIM_REQUEST],
                "opaque": {"driver": entry["driver"], "parameters": entry["parameters"]},
            }
            for entry in request["config"]
        ]
    return {
        "name": f"{order.name}-{digest(devices)[:8]}",
        "claimLabels": names.selector(order.name),
        "devices": devices,
    }


def _source(order: Order, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Where the runtime finds the weights, and what tells ai-models to bring them."""
    model = order.spec["model"]
    reference = model["ref"]
    if model["src"] == "HuggingFace":
        return {"path": MODEL, "annotations": {}}
    key = names.CLUSTER_MODEL if reference.get("kind") == "ClusterModel" else names.MODEL
    # ai-models puts the variable into the pod; the kubelet expands it then. Until that the pod is held by its gate.
    return {"path": f"$(AI_MODELS_MODELS_DIR)/{reference['name']}", "annotations": {key: reference["name"]}}


def _storage(order: Order, plan: Mapping[str, Any], standing: Workload | None) -> dict[str, Any]:
    """The claim template of the model volume; empty for a catalog model.

    Claim templates of a set are immutable, so one that stands is kept to the letter (`SettledRegionKept`). It names the
    order as the owner: the weights outlive the set (disabling the module) and go with the order.
    """
    volume = plan.get("volume")
    if not volume:
        return {}
    if standing is not None and standing.storage is not None:
        return dict(standing.storage)
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": str(volume["size"])}},
    }
    if volume.get("storageClassName"):
        spec["storageClassName"] = volume["storageClassName"]
    metadata = {
        "name": names.VOLUME,
        "labels": names.selector(order.name),
        "ownerReferences": [owner_reference(order)],
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _tolerations(plan: Mapping[str, Any]) -> list[dict[str, str]]:
    drivers = sorted({device["driver"] for device in plan.get("devices") or ()})
    keys = dict.fromkeys((*TAINT_KEYS, *drivers))
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


def _affinity(plan: Mapping[str, Any]) -> dict[str, Any]:
    nodes = plan.get("nodes") or ()
    if not nodes:
        return {}
    # By name and not by the host name label, which may differ; one term a node: a field takes one value.
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in sorted(nodes)]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _arguments(path: str, plan: Mapping[str, Any]) -> list[str]:
    """The runtime's command line: ours, then the recipe's by name; of an option that both name the recipe's stays."""
    base = {
        "host": "127.0.0.1",
        "port": str(RUNTIME_PORT),
        "servedModelName": plan["servedName"],
        "shutdownTimeout": str(DRAIN_SECONDS),
        "disableFastapiDocs": "true",
        "disableAccessLogForEndpoints": "/health,/metrics",
    }
    recipe: Mapping[str, str] = (plan.get("recipe") or {}).get("parameters") or {}
    kept = {name: value for name, value in base.items() if name not in recipe}
    return ["serve", path, *options(kept), *options(dict(sorted(recipe.items())))]


def _plain(**pairs: str) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in pairs.items()]


def _secret(variable: str, secret: str, key: str, optional: bool = False) -> dict[str, Any]:
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": optional}}}


def _runtime_environment(token: str | None) -> list[dict[str, Any]]:
    environment = _plain(
        # The root file system is read-only; the runtime does not start without a writable home and temporary folder.
        HOME=CACHE, TMPDIR="/tmp", XDG_CACHE_HOME=CACHE, HF_HOME=f"{CACHE}/huggingface",
        VLLM_CACHE_ROOT=f"{CACHE}/vllm", TRITON_CACHE_DIR=f"{CACHE}/triton",
        TORCHINDUCTOR_CACHE_DIR=f"{CACHE}/inductor",
        # Weights are on the disk already: nothing is fetched, nothing is reported to anybody.
        HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1",
        VLLM_MAX_N_SEQUENCES="64",
    )  # fmt: skip
    if token:
        environment.append(_secret("VLLM_API_KEY", token, "token"))
    return environment


def _gate_environment(plan: Mapping[str, Any], service_class: ServiceClass, token: str | None) -> list[dict[str, Any]]:
    environment = _plain(
        GATE_LISTEN=f"0.0.0.0:{GATE_PORT}",
        GATE_PROBE_LISTEN=f"0.0.0.0:{PROBE_PORT}",
        GATE_UPSTREAM=f"http://127.0.0.1:{RUNTIME_PORT}",
        GATE_ENDPOINT_TYPE=plan["endpointType"],
        GATE_AUTHENTICATION=service_class.authentication,
    )
    if token:
        environment.append(_secret("GATE_TOKEN", token, "token"))
    return environment


def _fetcher(order: Order, plan: Mapping[str, Any], platform: Platform) -> dict[str, Any]:
    """The container that downloads from Hugging Face into the model volume; empty for a catalog model."""
    model = order.spec["model"]
    if model["src"] != "HuggingFace":
        return {}
    reference = model["ref"]
    environment = _plain(
        TARGET_PATH=MODEL,
        MODEL_ID=reference["name"],
        EXPECTED_MODEL=reference["name"],
        MODEL_REVISION=plan.get("modelRevision") or reference.get("revision") or "",
        COMPLETE_MARKER=".download-complete",
        MAX_DOWNLOAD_ATTEMPTS="3",
        RETRY_DELAY_SECONDS="30",
        HF_HOME=f"{MODEL}/.hf",
        TMPDIR="/tmp",
    )
    secret = credentials(order)
    if secret is not None:
        # Any of three keys may hold the token; an optional key that is absent leaves its variable unset.
        environment += [
            _secret("HF_TOKEN", secret, "HF_TOKEN", optional=True),
            _secret("HUGGING_FACE_HUB_TOKEN", secret, "HUGGING_FACE_HUB_TOKEN", optional=True),
            _secret("MODEL_TOKEN", secret, "token", optional=True),
        ]
    return {"image": platform.image("modelFetcher"), "env": environment}
