# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What shell-operator does for a hook, over given or live objects: snapshots by the hook's own bindings and filters.

A hook is run through `hook.testrun` of the SDK, on contexts that look as the operator's do.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import jq
import yaml
from deckhouse import hook
from lib.ai_inference.api import Api

ROOT: Final = Path(__file__).resolve().parents[2]
Snapshots = dict[str, list[dict[str, Any]]]


@functools.cache
def _program(text: str) -> Any:
    return jq.compile(text)


def filtered(text: str, item: Mapping[str, Any]) -> Any:
    """The result of a binding's filter. Raises when it fails: the operator would drop the event."""
    return json.loads(_program(text).input_value(item).text())


def snapshots(config: Mapping[str, Any], objects: Iterable[Mapping[str, Any]]) -> Snapshots:
    """The snapshots of all bindings of a hook over these objects, sorted by namespace and name as the operator does."""
    ordered = sorted(objects, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))
    return {
        binding["name"]: [
            {"filterResult": filtered(binding["jqFilter"], item)} for item in ordered if _selected(binding, item)
        ]
        for binding in config["kubernetes"]
    }


def _selected(binding: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    if (item["apiVersion"], item["kind"]) != (binding["apiVersion"], binding["kind"]):
        return False
    metadata = item["metadata"]
    wanted = binding.get("labelSelector", {}).get("matchLabels", {})
    if any(metadata.get("labels", {}).get(name) != value for name, value in wanted.items()):
        return False
    for term in binding.get("fieldSelector", {}).get("matchExpressions", []):
        value: Any = item
        for part in term["field"].split("."):
            value = (value or {}).get(part)
        if value != term["value"]:
            return False
    if metadata["name"] not in binding.get("nameSelector", {}).get("matchNames", [metadata["name"]]):
        return False
    namespaces = binding.get("namespace", {}).get("nameSelector", {}).get("matchNames")
    return namespaces is None or metadata.get("namespace") in namespaces


def values() -> dict[str, Any]:
    """Values as a stock addon-operator has them: `modules-values.yaml` and the module's section."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "modules-values.yaml").read_text())
    return {**found, "aiInference": {"catalog": {"mode": "Enabled"}, "internal": {}}}


def run(
    main: Callable[[Any], None],
    found: Snapshots | None = None,
    *,
    binding: str = "group",
    initial: Mapping[str, Any] | None = None,
) -> Any:
    """One run of a hook; the SDK's output: `values`, `values_patches.data`, `metrics.data`."""
    context = {"binding": binding, "type": "Group", "groupName": binding, "snapshots": found or {}}
    return hook.testrun(main, [context], {}, dict(values() if initial is None else initial))


def live(config: Mapping[str, Any], api: Api) -> Snapshots:
    """The snapshots of a hook over a real API server, as the operator's informers would hold them."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for binding in config["kubernetes"]:
        version, kind = binding["apiVersion"], binding["kind"]
        if (version, kind) not in found:
            prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
            items = api.request("GET", f"{prefix}/{_plural(kind)}")["items"]
            found[version, kind] = [{"apiVersion": version, "kind": kind, **item} for item in items]
    return snapshots(config, [item for items in found.values() for item in items])


def _plural(kind: str) -> str:
    return kind.lower() + ("es" if kind.endswith("s") else "s")
