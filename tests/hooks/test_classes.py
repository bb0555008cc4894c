# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Conditions of service classes, from the planner's verdicts and from what stands in the cluster."""

from __future__ import annotations

import json
from typing import Any

import classes
import pytest
from lib.ai_inference import classes as rules

from tests.hooks import bindings
from tests.hooks.objects import service_class

NOW = "2026-11-30T12:00:00Z"
Objects = list[dict[str, Any]]


def verdicts(name: str = "default", generation: int = 1, **parts: Any) -> dict[str, Any]:
    good = {"status": "True", "reason": "Validated", "message": "ok"}
    verdict = {"observedGeneration": generation, "validated": good, "ready": {**good, "reason": "Ready"}, **parts}
    return {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "resource-planner-classes", "namespace": "d8-ai-inference"},
        "data": {f"{name}.json": json.dumps(verdict)},
    }  # fmt: skip


def device_class(name: str) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}


def row(objects: Objects) -> list[tuple[str, str]]:
    (found,) = rules.statuses(bindings.snapshots(classes.CONFIG, objects), NOW)
    return [(entry["status"], entry["reason"]) for entry in found.status["conditions"]]


BROKEN = {"status": "False", "reason": "DeviceSelectorInvalid", "message": "spec.acceleratorPolicy.deviceSelector: …"}
ABSENT = {"status": "False", "reason": "DeviceClassNotFound", "message": "Device class a30 does not exist."}
NAMED = {"deviceClassNames": ["a30", "h100"]}
CASES: dict[str, tuple[Objects, list[tuple[str, str]]]] = {
    "before the planner's verdict": ([service_class()], [("Unknown", "PlanPending")] * 2),
    "the verdict is on an earlier generation": (
        [service_class(generation=2), verdicts()],
        [("Unknown", "PlanPending")] * 2,
    ),
    "a verdict that cannot be read": (
        [service_class(), {**verdicts(), "data": {"default.json": "{"}}],
        [("Unknown", "PlanPending")] * 2,
    ),
    "the verdict of another class": ([service_class(), verdicts("other")], [("Unknown", "PlanPending")] * 2),
    "a good class": ([service_class(), verdicts()], [("True", "Validated"), ("True", "Ready")]),
    "a selector that cannot be judged": (
        [service_class(), verdicts(validated=BROKEN)],
        [("False", "DeviceSelectorInvalid"), ("False", "DeviceSelectorInvalid")],
    ),
    "none of its device classes exists": (
        [service_class(acceleratorPolicy=NAMED), verdicts(), device_class("other")],
        [("True", "Validated"), ("False", "DeviceClassNotFound")],
    ),
    "the planner's word on those that are absent is passed on": (
        [service_class(acceleratorPolicy=NAMED), verdicts(ready=ABSENT), device_class("h100")],
        [("True", "Validated"), ("False", "DeviceClassNotFound")],
    ),
    "one of its device classes exists": (
        [service_class(acceleratorPolicy=NAMED), verdicts(), device_class("h100")],
        [("True", "Validated"), ("True", "Ready")],
    ),
    "its storage class does not exist": (
        [service_class(modelStorageClassName="fast"), verdicts()],
        [("True", "Validated"), ("False", "StorageClassNotFound")],
    ),
}


@pytest.mark.parametrize(("objects", "want"), CASES.values(), ids=CASES)
def test_conditions_of_a_class(objects: Objects, want: list[tuple[str, str]]) -> None:
    assert row(objects) == want


def test_a_published_status_is_not_written_again() -> None:
    made = service_class()
    (found,) = rules.statuses(bindings.snapshots(classes.CONFIG, [made, verdicts()]), NOW)
    published = {**made, "status": found.status}
    assert rules.statuses(bindings.snapshots(classes.CONFIG, [published, verdicts()]), "2027-01-01T00:00:00Z") == ()


def test_a_configmap_of_another_namespace_is_no_verdict() -> None:
    elsewhere = verdicts()
    elsewhere["metadata"]["namespace"] = "team-a"
    assert row([service_class(), elsewhere]) == [("Unknown", "PlanPending")] * 2


def test_the_hook_without_classes_writes_nothing() -> None:
    out = bindings.run(classes.main, bindings.snapshots(classes.CONFIG, []))
    assert out.values_patches.data == out.kube_operations.data == []
