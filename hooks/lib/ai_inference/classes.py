# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A service class, the planner's verdict on it and what stands in the cluster → the class's conditions. Pure.

Whether an expression can be judged is known to the planner alone, which publishes a verdict per class in the ConfigMap
`resource-planner-classes` (key `<class>.json`: observedGeneration; validated and ready, each with status, reason and
message). What merely has to exist is looked up here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lib.ai_inference import conditions, kinds, names
from lib.ai_inference.conditions import Verdict

VERDICTS: Final = kinds.Bound(
    name="verdicts", api_version="v1", kind="ConfigMap", namespace=names.NAMESPACE, names=("resource-planner-classes",),
    jq="{data: (.data // {})}",
)  # fmt: skip
_NAME: Final = "{name: .metadata.name}"
DEVICE_CLASSES: Final = kinds.Bound(
    name="deviceclasses", api_version="resource.k8s.io/v1", kind="DeviceClass", jq=_NAME
)
STORAGE_CLASSES: Final = kinds.Bound(
    name="storageclasses", api_version="storage.k8s.io/v1", kind="StorageClass", jq=_NAME
)
BOUND: Final = (kinds.CLASSES, VERDICTS, DEVICE_CLASSES, STORAGE_CLASSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassStatus:
    """The status of one class as it is to be published."""

    name: str
    uid: str
    status: Mapping[str, Any]


def statuses(snapshots: Mapping[str, Sequence[Mapping[str, Any]]], now: str) -> tuple[ClassStatus, ...]:
    """Statuses that differ from the published ones. `now` (RFC 3339) is used where a condition's status has changed."""
    verdicts: dict[str, str] = {}
    for item in _items(snapshots, VERDICTS):
        verdicts.update(item["data"])
    devices = {item["name"] for item in _items(snapshots, DEVICE_CLASSES)}
    storage = {item["name"] for item in _items(snapshots, STORAGE_CLASSES)}
    found: list[ClassStatus] = []
    for item in sorted(_items(snapshots, kinds.CLASSES), key=lambda item: str(item["name"])):
        if item["deleting"]:
            continue
        verdict = _verdict(verdicts.get(f"{item['name']}.json"), item["generation"])
        validated = _published(verdict, "validated")
        ready = _missing(item["spec"], devices, storage) or _published(verdict, "ready")
        if validated.status != "True" and ready.status == "True":
            ready = Verdict(status=validated.status, reason=validated.reason, message=validated.message)
        before = {entry.get("type"): entry for entry in item["status"].get("conditions") or ()}
        status = {
            "observedGeneration": item["generation"],
            "conditions": [
                conditions.condition(name, judged, item["generation"], before.get(name), now)
                for name, judged in (("Validated", validated), ("Ready", ready))
            ],
        }
        if status != item["status"]:
            found.append(ClassStatus(name=item["name"], uid=item["uid"], status=status))
    return tuple(found)


def _items(snapshots: Mapping[str, Sequence[Mapping[str, Any]]], bound: kinds.Bound) -> list[Mapping[str, Any]]:
    return [entry["filterResult"] for entry in snapshots.get(bound.name, ()) if entry.get("filterResult")]


def _verdict(text: str | None, generation: int) -> Mapping[str, Any]:
    """The planner's verdict on this generation of the class; empty when there is none yet or it cannot be read."""
    try:
        verdict = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(verdict, dict) or verdict.get("observedGeneration") != generation:
        return {}
    return verdict


def _published(verdict: Mapping[str, Any], part: str) -> Verdict:
    found = verdict.get(part)
    if not isinstance(found, dict) or found.get("status") not in ("True", "False", "Unknown"):
        return Verdict(status="Unknown", reason="PlanPending", message="the planner has not judged this generation yet")
    return Verdict(
        status=found["status"],
        reason=str(found.get("reason") or part.capitalize()),
        message=str(found.get("message") or ""),
    )


def _missing(spec: Mapping[str, Any], devices: set[str], storage: set[str]) -> Verdict | None:
    """What the class names and the cluster does not have; None: everything it names is there."""
    wanted = (spec.get("acceleratorPolicy") or {}).get("deviceClassNames") or []
    absent = sorted(set(wanted) - devices)
    if wanted and len(absent) == len(set(wanted)):
        text = f"spec.acceleratorPolicy.deviceClassNames: no DeviceClass {', '.join(absent)} in the cluster"
        return Verdict(status="False", reason="DeviceClassNotFound", message=text)
    storage_class = spec.get("modelStorageClassName")
    if storage_class and storage_class not in storage:
        text = f"spec.modelStorageClassName: no StorageClass {storage_class} in the cluster"
        return Verdict(status="False", reason="StorageClassNotFound", message=text)
    return None
