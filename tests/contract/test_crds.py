# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The schemas of both kinds, read as files: what users read there is complete, in both languages, and within bounds.

Whether the API server takes them, and what it says to bad manifests, is in tests/e2e/test_bad_manifests.py.
"""

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

CRDS = Path(__file__).parents[2] / "crds"
MANIFESTS = Path(__file__).parents[1] / "fixtures" / "manifests"
KINDS = ["inferenceservice", "inferenceserviceclass"]
NAME_RULE = "size(self.metadata.name) <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"

Schema = Mapping[str, Any]


@functools.cache
def read(name: str) -> dict[str, Any]:
    """One file of `crds/`, parsed."""
    document = yaml.safe_load((CRDS / f"{name}.yaml").read_text())
    assert isinstance(document, dict)
    return document


def schema(name: str) -> Schema:
    """The schema of the one version of a kind; the same path in a Russian file."""
    [version] = read(name)["spec"]["versions"]
    assert version["name"] == "v1alpha1"
    found: Schema = version["schema"]["openAPIV3Schema"]
    return found


def nodes(node: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema of a tree with its path: `spec.model.ref`, `status.conditions[].type`, `….parameters{}`."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}".lstrip("."))
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from nodes(node["additionalProperties"], f"{path}{{}}")


def described(node: Schema) -> dict[str, str]:
    return {path: child["description"] for path, child in nodes(node) if "description" in child}


def rules(node: Schema) -> Iterator[tuple[str, Schema]]:
    for path, child in nodes(node):
        for rule in child.get("x-kubernetes-validations", []):
            yield path, rule


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described(kind: str) -> None:
    silent = [
        path
        for path, child in nodes(schema(kind))
        if not path.endswith(("[]", "{}"))
        and path != "metadata"  # the API server takes no description there
        and not child.get("description", "").strip()
    ]
    assert silent == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_russian_file_describes_the_same_fields_and_says_nothing_else(kind: str) -> None:
    english, russian = schema(kind), schema(f"doc-ru-{kind}")
    assert list(described(russian)) == list(described(english))
    keys = {key for _, child in nodes(russian) for key in child}
    assert keys == {"description", "properties", "items"}
    assert read(f"doc-ru-{kind}").keys() == {"spec"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_description_is_written_in_its_language(kind: str) -> None:
    def cyrillic(text: str) -> bool:
        return any("а" <= letter <= "я" for letter in text.lower())

    english, russian = described(schema(kind)), described(schema(f"doc-ru-{kind}"))
    assert [path for path, text in english.items() if cyrillic(text)] == []
    assert [path for path, text in russian.items() if not cyrillic(text)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_names_in_backticks_are_the_same_in_both_languages(kind: str) -> None:
    def names(text: str) -> set[str]:
        return {name for name in text.split("`")[1::2] if name.isascii()}

    english, russian = described(schema(kind)), described(schema(f"doc-ru-{kind}"))
    bearer = "Authorization: Bearer <token>"  # its placeholder is translated
    differing = {path for path in english if names(english[path]) - {bearer} != names(russian[path])}
    assert differing == set()


@pytest.mark.parametrize("kind", KINDS)
def test_both_languages_have_the_same_paragraphs_and_bullets(kind: str) -> None:
    def shape(text: str) -> list[str]:
        return [line[:1] if line[:1] == "*" else "text" * bool(line) for line in text.split("\n")]

    english, russian = described(schema(kind)), described(schema(f"doc-ru-{kind}"))
    assert [path for path in english if shape(english[path]) != shape(russian[path])] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_description_names_the_values_a_field_may_have(kind: str) -> None:
    missing = [
        (path, value)
        for path, child in nodes(schema(kind))
        for value in child.get("enum", child.get("items", {}).get("enum", []))
        if path.startswith("spec") and not path.endswith("[]") and f"`{value}`" not in child["description"]
    ]
    assert missing == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_says_what_to_do_in_words(kind: str) -> None:
    for path, rule in rules(schema(kind)):
        assert len(rule["message"]) > 30, (path, rule)
        assert "\n" not in rule["message"], (path, rule)


def test_only_the_name_of_an_order_is_judged_at_the_root() -> None:
    root = {kind: [rule["rule"] for path, rule in rules(schema(kind)) if not path] for kind in KINDS}
    assert root == {"inferenceservice": [NAME_RULE], "inferenceserviceclass": []}
    elsewhere = {path.split(".")[0] for kind in KINDS for path, _ in rules(schema(kind)) if path}
    assert elsewhere == {"spec"}


@pytest.mark.parametrize("kind", KINDS)
def test_everything_users_write_is_bounded(kind: str) -> None:
    unbounded = []
    for path, child in nodes(schema(kind)["properties"]["spec"], "spec"):
        match child.get("type"):
            case "string" if "maxLength" not in child and "enum" not in child:
                unbounded.append(path)
            case "array" if not {"minItems", "maxItems"} <= child.keys():
                unbounded.append(path)
            case "integer" if not {"minimum", "maximum"} <= child.keys():
                unbounded.append(path)
            case "object" if "additionalProperties" in child or "x-kubernetes-preserve-unknown-fields" in child:
                unbounded.append(path)
    assert unbounded == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_list_users_write_refuses_emptiness_and_repetition_with_a_remedy(kind: str) -> None:
    lists = {path for path, child in nodes(schema(kind)["properties"]["spec"], "spec") if child.get("type") == "array"}
    judged: dict[str, set[str]] = {"self.size() > 0": set(), "self.all(x, self.exists_one(y, x == y))": set()}
    for path, rule in rules(schema(kind)):
        judged.get(rule["rule"], set()).add(path)
    assert list(judged.values()) == [lists, lists]


def test_defaults_are_these_and_no_others() -> None:
    found = {
        f"{kind} {path}": child["default"]
        for kind in KINDS
        for path, child in nodes(schema(kind))
        if "default" in child
    }
    assert found == {
        "inferenceservice spec.launchStrategy": "Throughput",
        "inferenceserviceclass spec.exposurePolicy": {},
        "inferenceserviceclass spec.exposurePolicy.type": "Internal",
        "inferenceserviceclass spec.exposurePolicy.authentication": "Token",
        # The policy itself has none: absent means a whole accelerator of any device class.
        "inferenceserviceclass spec.acceleratorPolicy.allowedSharingModes": ["Dedicated"],
        "inferenceserviceclass spec.acceleratorPolicy.allowedPlacementTypes": ["WholeDevice"],
        "inferenceserviceclass spec.acceleratorPolicy.maxAcceleratorCount": 1,
        "inferenceserviceclass spec.updatePolicy": {},
        "inferenceserviceclass spec.updatePolicy.strategy": "RollingUpdate",
    }


def test_the_fields_of_both_specs_are_these_and_no_others() -> None:
    found = {
        kind: [path for path, _ in nodes(schema(kind)["properties"]["spec"]) if path and not path.endswith("[]")]
        for kind in KINDS
    }
    assert found == {
        "inferenceservice": [
            "inferenceServiceClassName",
            "model",
            "model.src",
            "model.ref",
            "model.ref.name",
            "model.ref.kind",
            "model.ref.namespace",
            "model.ref.revision",
            "model.ref.authSecretRef",
            "model.ref.authSecretRef.name",
            "launchStrategy",
            "resources",
            "resources.accelerator",
            "resources.accelerator.deviceClasses",
        ],
        "inferenceserviceclass": [
            "exposurePolicy",
            "exposurePolicy.type",
            "exposurePolicy.authentication",
            "exposurePolicy.https",
            "exposurePolicy.https.mode",
            "exposurePolicy.https.certManager",
            "exposurePolicy.https.certManager.clusterIssuerName",
            "exposurePolicy.https.customCertificate",
            "exposurePolicy.https.customCertificate.secretName",
            "admissionPolicy",
            "admissionPolicy.allowedNamespaces",
            "modelPolicy",
            "modelPolicy.allowedEndpointTypes",
            "modelPolicy.maxModelSize",
            "scalingPolicy",
            "scalingPolicy.minReplicas",
            "scalingPolicy.maxReplicas",
            "acceleratorPolicy",
            "acceleratorPolicy.allowedSharingModes",
            "acceleratorPolicy.allowedPlacementTypes",
            "acceleratorPolicy.maxAcceleratorCount",
            "acceleratorPolicy.deviceClassNames",
            "acceleratorPolicy.deviceSelector",
            "acceleratorPolicy.shareBounds",
            "acceleratorPolicy.shareBounds.minMemory",
            "acceleratorPolicy.shareBounds.maxMemory",
            "updatePolicy",
            "updatePolicy.strategy",
            "modelStorageClassName",
        ],
    }


def test_the_full_status_of_the_fixtures_has_every_field_of_the_schema() -> None:
    def leaves(value: object, path: str = "") -> Iterator[str]:
        match value:
            case dict():
                yield path
                for name, child in value.items():
                    yield from leaves(child, f"{path}.{name}".lstrip("."))
            case list():
                yield path
                for child in value:
                    yield from leaves(child, f"{path}[]")
            case _:
                yield path

    status = yaml.safe_load((MANIFESTS / "full-status.yaml").read_text())
    wanted = {path for path, _ in nodes(schema("inferenceservice")["properties"]["status"]) if not path.endswith("{}")}
    assert wanted - set(leaves(status)) == set()


def test_both_kinds_are_named_and_labelled_as_the_module_promises() -> None:
    found = {}
    for kind in KINDS:
        crd = read(kind)
        [version] = crd["spec"]["versions"]
        found[crd["metadata"]["name"]] = {
            "labels": crd["metadata"]["labels"],
            "scope": crd["spec"]["scope"],
            "kind": crd["spec"]["names"]["kind"],
            "short": crd["spec"]["names"]["shortNames"],
            "subresources": version["subresources"],
            "columns": [(c["name"], c.get("priority", 0)) for c in version["additionalPrinterColumns"]],
        }
    labels = {"heritage": "deckhouse", "module": "ai-inference"}
    assert found == {
        "inferenceservices.ai.deckhouse.io": {
            "labels": labels,
            "scope": "Namespaced",
            "kind": "InferenceService",
            "short": ["infsvc"],
            "subresources": {"status": {}},
            "columns": [
                *((name, 0) for name in ["Class", "Model", "Contract", "Phase", "Ready"]),
                *((name, 1) for name in ["Device Class", "Placement", "Share", "Recipe", "Release", "URL"]),
                ("Age", 0),
            ],
        },
        "inferenceserviceclasses.ai.deckhouse.io": {
            "labels": labels,
            "scope": "Cluster",
            "kind": "InferenceServiceClass",
            "short": ["infsvcclass"],
            "subresources": {"status": {}},
            "columns": [(name, 0) for name in ["Validated", "Ready", "Endpoint Types", "Sharing", "Age"]],
        },
    }
