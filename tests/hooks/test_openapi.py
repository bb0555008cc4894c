# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`openapi/`: the cases beside the schemas hold, and the Russian file describes what the English one describes."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
import yaml

from tests.hooks.bindings import ROOT

OPENAPI = ROOT / "openapi"


def read(name: str) -> Any:
    return yaml.safe_load((OPENAPI / name).read_text())


def closed(schema: Any) -> Any:
    """The schema as addon-operator reads it: what `properties` do not name is refused, unless said otherwise."""
    schema = copy.deepcopy(schema)

    def close(part: Any) -> None:
        if "properties" in part:
            part.setdefault("additionalProperties", False)
            for child in part["properties"].values():
                close(child)
        if isinstance(part.get("items"), dict):
            close(part["items"])

    close(schema)
    return schema


def schemas() -> dict[str, Any]:
    settings, values = read("config-values.yaml"), read("values.yaml")
    merged = {**values, "properties": {**settings["properties"], **values["properties"]}}
    return {"configValues": closed(settings), "values": closed(merged)}


CASES = [
    (expected, kind, case)
    for expected, kinds in read("openapi-case-tests.yaml").items()
    for kind, cases in kinds.items()
    for case in cases
]


@pytest.mark.parametrize(("expected", "kind", "case"), CASES, ids=str)
def test_cases(expected: str, kind: str, case: Any) -> None:
    assert jsonschema.Draft7Validator(schemas()[kind]).is_valid(case) is (expected == "positive")


def described(part: Any, path: str = "") -> set[str]:
    found = {path} if isinstance(part, dict) and "description" in part else set()
    for name, child in (part.get("properties") or {}).items():
        found |= described(child, f"{path}.{name}")
    return found


def test_both_languages_describe_the_same_settings() -> None:
    assert described(read("config-values.yaml")) == described(read("doc-ru-config-values.yaml"))


def test_the_catalog_mode_is_the_only_setting() -> None:
    assert {name: list(part["properties"]) for name, part in read("config-values.yaml")["properties"].items()} == {
        "catalog": ["mode"]
    }
