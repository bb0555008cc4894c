# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What an order's user reads: the six conditions, the phase and the rest of the status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orders
import pytest
from lib.ai_inference import conditions, decide, names, render, world
from lib.ai_inference.conditions import Outcome

from tests.hooks import bindings
from tests.hooks.objects import event, only, order, plan, pod, refused, service_class, stood

NOW = "2026-11-30T12:00:00Z"
Objects = list[dict[str, Any]]


def status(objects: Objects, outcome: Outcome | None = None) -> dict[str, Any]:
    """The status that a run would write for the only order."""
    seen = world.read(bindings.snapshots(orders.CONFIG, objects), bindings.values())
    due = decide.work(seen, render.templates_digest())
    (found,) = seen.orders
    view = decide.view(seen, found, due.wanted.get(found.key), due.unfit.get(found.key) or outcome)
    return conditions.status(view, NOW)


def row(objects: Objects, outcome: Outcome | None = None) -> dict[str, str]:
    """Phase, and each condition as `True` or its status and reason."""
    found = status(objects, outcome)
    words = {
        entry["type"]: "True" if entry["reason"] == entry["type"] else f"{entry['status']} {entry['reason']}"
        for entry in found["conditions"]
    }
    return {"phase": found["phase"], **words}


def want(phase: str, *words: str) -> dict[str, str]:
    return {"phase": phase, **dict(zip(conditions.TYPES, words, strict=True))}


PLACED = "True LaunchPlanCalculated"
EXHAUSTED = "False ResourceClaimExhausted"


def standing(*, ready: bool = True, replicas: int = 1, planned: dict[str, Any] | None = None) -> Objects:
    return stood(order(planned=planned or plan()), service_class(), ready=ready, replicas=replicas)


def with_plan(objects: Objects, planned: dict[str, Any], generation: int = 1) -> Objects:
    found = only(objects, "InferenceService")
    found["metadata"]["generation"] = generation
    found["status"] = {**found.get("status", {}), "plan": planned}
    return objects


def with_pod(objects: Objects, **changes: Any) -> Objects:
    made = pod(only(objects, "StatefulSet"), **changes)
    return [*[item for item in objects if item["kind"] != "Pod"], made]


def with_workload(objects: Objects, **changes: Any) -> Objects:
    only(objects, "StatefulSet")["status"].update(changes)
    return objects


def with_condition(objects: Objects, reason: str, message: str, name: str = "WorkloadReady") -> Objects:
    entry = {"type": name, "status": "False", "reason": reason, "message": message}
    entry["lastTransitionTime"] = "2026-11-30T11:00:00Z"
    found = only(objects, "InferenceService")
    found["status"] = {**found.get("status", {}), "conditions": [entry]}
    return objects


def blocked(objects: Objects) -> Objects:
    annotations = only(objects, "StatefulSet")["metadata"]["annotations"]
    annotations[names.DELIVERY_BLOCKED_REASON] = "InsufficientNodeCacheCapacity"
    return objects


def terminating(name: str) -> dict[str, Any]:
    metadata = {"name": name, "deletionTimestamp": "2026-11-30T10:00:00Z"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


UNJUDGED = ("Unknown PlanPending",) * 3
NOTHING = ("Unknown WorkloadProgressing", "Unknown WorkloadRebuilding")


TWO = with_workload(standing(replicas=2, planned=plan(replicas={"min": 1, "max": 2, "bound": 2})), readyReplicas=1)


WITHOUT_TOKEN = Outcome(reason="CredentialsMissing", message="no Secret hf in the namespace team-a")
LARGER = plan(share={"memory": "9Gi", "computePercent": 40})


@dataclass(frozen=True)
class Case:
    given: Objects
    want: dict[str, str]
    outcome: Outcome | None = None


CASES = {
    "before the planner's answer nothing is judged": Case(
        [order(), service_class()], want("Pending", *UNJUDGED, *NOTHING, "False PlanPending")
    ),
    "a class that is not there": Case(
        [order(planned=refused("ClassNotFound"))],
        want("Failed", "False ClassNotFound", *UNJUDGED[:2], *NOTHING, "False ClassNotFound"),
    ),
    "a namespace that the class does not admit": Case(
        [order(planned=refused("NamespaceNotAllowed")), service_class()],
        want("Failed", "False NamespaceNotAllowed", *UNJUDGED[:2], *NOTHING, "False NamespaceNotAllowed"),
    ),
    "a model that the catalog does not know": Case(
        [order(planned=refused("ModelNotFound")), service_class()],
        want("Failed", "True", "False ModelNotFound", UNJUDGED[0], *NOTHING, "False ModelNotFound"),
    ),
    "a model that is still being published": Case(
        [order(planned=refused("ModelNotReady")), service_class()],
        want("Pending", "True", "False ModelNotReady", UNJUDGED[0], *NOTHING, "False ModelNotReady"),
    ),
    "no capacity": Case(
        [order(planned=refused("ResourceClaimExhausted")), service_class()],
        want("Pending", "True", "True", "False ResourceClaimExhausted", *NOTHING, "False ResourceClaimExhausted"),
    ),
    "a selector that cannot be judged": Case(
        [order(planned={**refused("PlacementUndecidable"), "decision": "Undecidable"}), service_class()],
        want("Failed", "True", "True", "False PlacementUndecidable", *NOTHING, "False PlacementUndecidable"),
    ),
    "placed, and just applied": Case(
        [order(planned=plan()), service_class()],
        want("Pending", "True", "True", PLACED, "False WorkloadProgressing", "True", "False WorkloadProgressing"),
        Outcome(),
    ),
    "everything ready": Case(standing(), want("Ready", "True", "True", PLACED, "True", "True", "True")),
    "its replica waits for a node": Case(
        with_pod(standing(ready=False), ready=False, served=False, unschedulable="0/1 nodes are available"),
        want("Pending", "True", "True", PLACED, "False WorkloadProgressing", "True", "False WorkloadProgressing"),
    ),
    "the catalog still brings the model": Case(
        with_pod(standing(ready=False), ready=False, served=False, gates=(names.DELIVERY_GATE,)),
        want("Pending", "True", "True", PLACED, "False ModelDeliveryPending", "True", "False ModelDeliveryPending"),
    ),
    "the catalog refuses to bring the model": Case(
        blocked(standing(ready=False)),
        want("Failed", "True", "True", PLACED, "False ModelDeliveryBlocked", "True", "False ModelDeliveryBlocked"),
    ),
    "the API server refuses an object": Case(
        [order(planned=plan()), service_class()],
        want("Failed", "True", "True", PLACED, "False WorkloadRefused", "True", "False WorkloadRefused"),
        Outcome(reason="WorkloadRefused", message="Service chat: exceeded quota"),
    ),
    "a refusal stays until an attempt ends otherwise": Case(
        with_condition([order(planned=plan()), service_class()], "NameConflict", "Service chat exists"),
        want("Failed", "True", "True", PLACED, "False NameConflict", "True", "False NameConflict"),
    ),
    "a refusal of an update leaves what serves": Case(
        with_plan(standing(), plan(share={"memory": "9Gi", "computePercent": 40})),
        want("Degraded", "True", "True", PLACED, "False WorkloadRefused", "True", "False WorkloadRefused"),
        Outcome(reason="WorkloadRefused", message="StatefulSet chat: denied by a policy"),
    ),
    "the Secret with the token is missing": Case(
        [order(planned=plan()), service_class()],
        want("Failed", "True", "False CredentialsMissing", PLACED, NOTHING[0], "True", "False CredentialsMissing"),
        WITHOUT_TOKEN,
    ),
    "the missing Secret is told until an attempt ends otherwise": Case(
        with_condition([order(planned=plan()), service_class()], "CredentialsMissing", "no Secret", "ModelResolved"),
        want("Failed", "True", "False CredentialsMissing", PLACED, NOTHING[0], "True", "False CredentialsMissing"),
    ),
    "the Secret has come, and the workload is just applied": Case(
        with_condition([order(planned=plan()), service_class()], "CredentialsMissing", "no Secret", "ModelResolved"),
        want("Pending", "True", "True", PLACED, "False WorkloadProgressing", "True", "False WorkloadProgressing"),
        Outcome(),
    ),
    "a missing Secret leaves what serves": Case(
        with_plan(standing(), LARGER),
        want("Degraded", "True", "False CredentialsMissing", PLACED, "True", "True", "False CredentialsMissing"),
        WITHOUT_TOKEN,
    ),
    "a Secret that was missing is no matter once the workload stands as it should": Case(
        with_condition(standing(), "CredentialsMissing", "no Secret", "ModelResolved"),
        want("Ready", "True", "True", PLACED, "True", "True", "True"),
    ),
    "pods refused by a quota": Case(
        [
            *[item for item in with_workload(standing(ready=False), replicas=0) if item["kind"] != "Pod"],
            event(only(standing(), "StatefulSet"), "FailedCreate", "exceeded quota: pods"),
        ],
        want("Failed", "True", "True", PLACED, "False ReplicasRefused", "True", "False ReplicasRefused"),
    ),
    "pods were refused once and stand now": Case(
        [*standing(), event(only(standing(), "StatefulSet"), "FailedCreate", "exceeded quota: pods")],
        want("Ready", "True", "True", PLACED, "True", "True", "True"),
    ),
    "a namespace in deletion": Case(
        [order(planned=plan()), service_class(), terminating("team-a")],
        want("Failed", "True", "True", PLACED, "False NamespaceTerminating", "True", "False NamespaceTerminating"),
    ),
    "a plan that refuses what serves": Case(
        with_plan(standing(), refused("ResourceClaimExhausted")),
        want("Degraded", "True", "True", EXHAUSTED, "True", "True", EXHAUSTED),
    ),
    "a replica on the release before": Case(
        with_pod(standing(), release="0.9"),
        want(
            "Ready", "True", "True", PLACED, "True", "False ReplicasHeldOnPreviousRuntime",
            "True ReplicasHeldOnPreviousRuntime",
        ),
    ),
    "a replica that an edit is about to replace": Case(
        with_pod(standing(), revision="r0"),
        want("Ready", "True", "True", PLACED, "True", "False WorkloadRebuilding", "True WorkloadRebuilding"),
    ),
    "it answers and cannot grow": Case(
        with_pod(TWO, ordinal=1, ready=False, served=False, unschedulable="no device"),
        want("Degraded", "True", "True", PLACED, "True", "True", "True ScaleUpBlocked"),
    ),
    "a second replica that starts is no trouble": Case(
        TWO, want("Ready", "True", "True", PLACED, "True", "True", "True")
    ),
    "a plan that cannot be read": Case(
        [order(planned=plan(hostResources=None)), service_class()],
        want("Failed", "True", "True", PLACED, "False WorkloadRefused", "True", "False WorkloadRefused"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_conditions(case: Case) -> None:
    assert row(case.given, case.outcome) == case.want


def test_the_whole_status_of_a_serving_order() -> None:
    found = status(standing())
    assert {name: part for name, part in found.items() if name != "conditions"} == {
        "observedGeneration": 1,
        "phase": "Ready",
        "model": {"endpointType": "Chat", "servedName": "qwen3"},
        "endpoint": {
            "url": "http://chat.team-a.svc.cluster.local:80",
            "internalURL": "http://chat.team-a.svc.cluster.local:80",
            "authentication": "Token",
            "tokenSecretName": "chat-token",
        },
        "replicas": {"ready": 1, "current": 1, "desired": 1, "min": 1, "max": 1, "bound": 1},
        "runtime": {"shippedRelease": "1.0", "replicasOnShipped": 1},
    }
    assert found["conditions"] == [
        {
            "type": name, "status": "True", "reason": reason, "message": message, "observedGeneration": 1,
            "lastTransitionTime": NOW,
        }
        for name, reason, message in (
            ("ClassResolved", "ClassResolved", "the class default admits the order"),
            ("ModelResolved", "ModelResolved", "serves qwen3 as Chat"),
            ("Planned", "LaunchPlanCalculated", "1 × a30, WholeDevice, Shared 8Gi 40%; recipe qwen3 1.0"),
            ("WorkloadReady", "WorkloadReady", "1 of 1 replicas are ready"),
            ("RuntimeCurrent", "RuntimeCurrent", "no replica runs another release than 1.0"),
            ("Ready", "Ready", "1 of 1 replicas are ready"),
        )
    ]  # fmt: skip


@pytest.mark.parametrize("exposure", ["Internal", "External"])
def test_the_address_is_the_internal_one_as_long_as_there_is_no_route(exposure: str) -> None:
    policy = {"type": exposure, "authentication": "None"}
    objects = stood(order(planned=plan()), service_class(exposurePolicy=policy))
    address = "http://chat.team-a.svc.cluster.local:80"
    assert status(objects)["endpoint"] == {"url": address, "internalURL": address, "authentication": "None"}


def test_a_published_status_is_not_written_again() -> None:
    """Time passes, nothing else changes: the same status comes out, and nothing is to be written."""
    objects = standing()
    only(objects, "InferenceService")["status"].update(status(objects))
    seen = world.read(bindings.snapshots(orders.CONFIG, objects), bindings.values())
    due = decide.work(seen, render.templates_digest())
    assert decide.reports(seen, due, {}, "2026-12-01T00:00:00Z") == ((), ())


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    objects = with_condition(standing(ready=False), "NameConflict", "Service chat exists")
    before, after = only(objects, "InferenceService"), status(objects)
    kept = next(entry for entry in after["conditions"] if entry["type"] == "WorkloadReady")
    assert kept["lastTransitionTime"] == before["status"]["conditions"][0]["lastTransitionTime"]
    assert kept["reason"] == "WorkloadProgressing"


def test_a_lowered_bound_is_an_event() -> None:
    objects = standing(planned=plan(replicas={"min": 1, "max": 3, "bound": 3}))
    found = only(objects, "InferenceService")
    found["status"].update(status(objects))
    with_plan(objects, plan(replicas={"min": 1, "max": 3, "bound": 2}))
    seen = world.read(bindings.snapshots(orders.CONFIG, objects), bindings.values())
    due = decide.work(seen, render.templates_digest())
    _, records = decide.reports(seen, due, {}, NOW)
    assert [(record.type, record.reason, record.message) for record in records] == [
        ("Warning", "BoundLowered", "replicas are bound to 2 (was 3)")
    ]
