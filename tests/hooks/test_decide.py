# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Snapshots, made by the hook's own filters, → intents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orders
import pytest
from lib.ai_inference import decide, names, render, values, world
from lib.ai_inference.conditions import Outcome

from tests.hooks import bindings
from tests.hooks.objects import HUGGING_FACE, VOLUME, event, only, order, plan, pod, refused, service_class, stood, uid

Objects = list[dict[str, Any]]


def seen(objects: Objects) -> world.World:
    return world.read(bindings.snapshots(orders.CONFIG, objects), bindings.values())


def work(objects: Objects) -> decide.Work:
    return decide.work(seen(objects), render.templates_digest())


@dataclass(frozen=True)
class Intents:
    """What a run would write, in words."""

    applied: set[str] = field(default_factory=set)
    pruned: set[str] = field(default_factory=set)
    scaled: dict[str, int] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    nudged: set[str] = field(default_factory=set)
    stranded: set[str] = field(default_factory=set)
    rebuilt: set[str] = field(default_factory=set)


def intents(objects: Objects) -> Intents:
    found = work(objects)
    return Intents(
        applied={apply.order.name for apply in found.applies},
        pruned={f"{item.kind}/{item.name}" for apply in found.applies for item in decide.prunable(apply)},
        scaled={order.name: scale.replicas for order, scale in found.scales},
        deleted={f"{item.kind}/{item.name}" for item in found.deletes},
        nudged={f"{item.kind}/{item.name}" for item in found.nudges},
        stranded={pod.name for _, pod in found.stranded},
        rebuilt={apply.order.name for apply in found.applies if apply.rebuild is not None},
    )


def changed(objects: Objects, kind: str, change: Callable[[dict[str, Any]], None]) -> Objects:
    for item in objects:
        if item["kind"] == kind:
            change(item)
    return objects


def without(objects: Objects, kind: str) -> Objects:
    return [item for item in objects if item["kind"] != kind]


def edited(objects: Objects, generation: int, planned: dict[str, Any] | None) -> Objects:
    def change(item: dict[str, Any]) -> None:
        item["metadata"]["generation"] = generation
        if planned is not None:
            item["status"] = {**item.get("status", {}), "plan": planned}

    return changed(objects, "InferenceService", change)


PLACED = order(planned=plan())
STANDING = stood(PLACED, service_class())


def standing(*items: dict[str, Any], **changes: Any) -> Objects:
    return stood(*(items or (order(planned=plan()), service_class())), **changes)


def foreign_uid(item: dict[str, Any]) -> None:
    item["metadata"]["annotations"][names.ORDER_UID] = uid(66)


def terminating(item: dict[str, Any]) -> None:
    item["metadata"]["deletionTimestamp"] = "2026-11-30T10:00:00Z"


def held(item: dict[str, Any]) -> None:
    item["spec"]["updateStrategy"]["type"] = "OnDelete"
    item["status"]["updateRevision"] = "r2"


CASES: dict[str, tuple[Objects, Intents]] = {
    "a placed order without a workload is applied": ([PLACED, service_class()], Intents(applied={"chat"})),
    "an order that the planner has not answered is left": ([order(), service_class()], Intents()),
    "an order that is refused is left": (
        [order(planned=refused("ResourceClaimExhausted")), service_class()],
        Intents(),
    ),
    "a plan of an earlier generation makes nothing": (
        [order(generation=2, planned=plan()), service_class()],
        Intents(),
    ),
    "an order whose class is not there yet is left": ([PLACED], Intents()),
    "an order in deletion is left to the garbage collector": (
        [order(planned=plan(), deleting=True), service_class()],
        Intents(),
    ),
    "what stands as it should is not written again": (standing(), Intents()),
    "a deleted set is applied": (without(standing(), "StatefulSet"), Intents(applied={"chat"})),
    "a deleted service is applied": (without(standing(), "Service"), Intents(applied={"chat"})),
    "a deleted token is made again": (without(standing(), "Secret"), Intents(applied={"chat"})),
    "a service in deletion is applied (and waited for)": (
        changed(standing(), "Service", terminating),
        Intents(applied={"chat"}),
    ),
    "objects of a former order of the name do not count": (
        changed(standing(), "Service", foreign_uid),
        Intents(applied={"chat"}),
    ),
    "a new plan is applied; its old claim template goes after": (
        edited(standing(), 1, plan(deviceRequest={"capacity": {"memory": "9Gi"}})),
        Intents(
            applied={"chat"},
            pruned={"ResourceClaimTemplate/" + only(standing(), "ResourceClaimTemplate")["metadata"]["name"]},
        ),
    ),
    "a standing order whose plan is of an earlier generation stays as it is": (edited(standing(), 2, None), Intents()),
    "a standing order that is refused now stays as it is": (
        edited(standing(), 1, refused("ResourceClaimExhausted")),
        Intents(),
    ),
    "a standing order that cannot be judged now stays as it is": (
        edited(standing(), 1, {**refused("PlacementUndecidable"), "decision": "Undecidable"}),
        Intents(),
    ),
    "a standing order whose class is gone stays as it is": (without(standing(), "InferenceServiceClass"), Intents()),
    "workloads stay when the list of orders is empty": (without(standing(), "InferenceService"), Intents()),
    "a budget comes with the second replica": (
        [order(planned=plan(replicas={"min": 1, "max": 2, "bound": 2})), service_class()],
        Intents(applied={"chat"}),
    ),
    "a set below its minimum is scaled up": (
        standing(order(planned=plan(replicas={"min": 2, "max": 3, "bound": 3})), service_class(), replicas=1),
        Intents(scaled={"chat": 2}),
    ),
    "a set above its bound is scaled down": (
        standing(order(planned=plan(replicas={"min": 1, "max": 3, "bound": 2})), service_class(), replicas=3),
        Intents(scaled={"chat": 2}),
    ),
    "a set within its bounds belongs to the autoscaler": (
        standing(order(planned=plan(replicas={"min": 1, "max": 3, "bound": 3})), service_class(), replicas=2),
        Intents(),
    ),
    "a replica of an older template that never served is deleted under OnDelete": (
        changed(
            standing(order(planned=plan()), service_class(updatePolicy={"strategy": "OnDelete"}), ready=False),
            "StatefulSet",
            held,
        ),
        Intents(deleted={"Pod/chat-0"}),
    ),
    "a replica of an older template that serves is never deleted": (
        changed(
            standing(order(planned=plan()), service_class(updatePolicy={"strategy": "OnDelete"})),
            "StatefulSet",
            held,
        ),
        Intents(),
    ),
    "a model source with a volume needs the set made anew": (
        edited(
            changed(standing(), "InferenceService", lambda item: item["spec"].update(model=HUGGING_FACE)),
            2,
            plan(observedGeneration=2, volume=VOLUME),
        ),
        Intents(applied={"chat"}, rebuilt={"chat"}),
    ),
    "a plan that lacks what its contract promises touches nothing": (
        [order(planned=plan(hostResources=None)), service_class()],
        Intents(),
    ),
}


@pytest.mark.parametrize(("objects", "want"), CASES.values(), ids=CASES)
def test_intents(objects: Objects, want: Intents) -> None:
    assert intents(objects) == want


def strategy_of(objects: Objects) -> str:
    apply = decide.wanted(seen(objects), seen(objects).orders[0], render.templates_digest())
    assert apply is not None
    found: str = apply.values["workload"]["updateStrategy"]
    return found


def release(name: str) -> dict[str, Any]:
    return plan(recipe={**plan()["recipe"], "release": name})


STRATEGIES: dict[str, tuple[Objects, str]] = {
    "a new set takes the strategy of its class": ([PLACED, service_class()], "RollingUpdate"),
    "a class may ask for OnDelete": (
        [PLACED, service_class(updatePolicy={"strategy": "OnDelete"})],
        "OnDelete",
    ),
    "a new release alone rolls nobody": (edited(standing(), 1, release("2.0")), "OnDelete"),
    "other nodes alone roll nobody": (edited(standing(), 1, plan(nodes=["n2"])), "OnDelete"),
    "an edit rolls as the class says": (
        edited(standing(), 2, plan(observedGeneration=2, recipe=release("2.0")["recipe"])),
        "RollingUpdate",
    ),
    "another share rolls as the class says": (
        edited(standing(), 1, plan(share={"memory": "9Gi", "computePercent": 40})),
        "RollingUpdate",
    ),
    "replicas stay held while any of the older template serves": (changed(standing(), "StatefulSet", held), "OnDelete"),
    "when the last older replica is gone the class's strategy returns": (
        changed(
            changed(standing(), "StatefulSet", held),
            "Pod",
            lambda item: item["metadata"]["labels"].update({"controller-revision-hash": "r2"}),
        ),
        "RollingUpdate",
    ),
}


@pytest.mark.parametrize(("objects", "want"), STRATEGIES.values(), ids=STRATEGIES)
def test_update_strategy(objects: Objects, want: str) -> None:
    assert strategy_of(objects) == want


def test_a_settled_volume_is_kept_and_the_divergence_is_recorded() -> None:
    before = stood(order(model=HUGGING_FACE, planned=plan(volume=VOLUME)), service_class())
    settled = only(before, "StatefulSet")["spec"]["volumeClaimTemplates"]
    bigger = {"size": "32Gi", "storageClassName": "slow"}
    objects = edited(before, 2, plan(observedGeneration=2, volume=bigger))
    found = seen(objects)
    due = decide.work(found, render.templates_digest())

    (apply,) = due.applies
    assert render.manifests(apply.values)[-1]["spec"]["volumeClaimTemplates"] == settled
    outcomes = {apply.key: Outcome()}
    _, records = decide.reports(found, due, outcomes, "2026-11-30T10:00:00Z")
    assert [(record.reason, record.message) for record in records] == [
        (
            "SettledRegionKept",
            "the model volume keeps 16Gi of fast; the plan asks for 32Gi of slow",
        )
    ]


def test_another_placement_is_an_event_when_it_is_applied() -> None:
    objects = edited(standing(), 1, plan(deviceClassName="h100", sharingMode="Dedicated", share=None))
    found = seen(objects)
    due = decide.work(found, render.templates_digest())
    (apply,) = due.applies
    _, records = decide.reports(found, due, {apply.key: Outcome()}, "2026-11-30T10:00:00Z")
    assert [(record.type, record.reason, record.message) for record in records] == [
        ("Normal", "PlanChanged", "1 × a30, WholeDevice, Shared 8Gi 40% → 1 × h100, WholeDevice, Dedicated")
    ]
    refusal = Outcome(reason="WorkloadRefused", message="Service chat: no")
    _, records = decide.reports(found, due, {apply.key: refusal}, "2026-11-30T10:00:00Z")
    assert [record.reason for record in records] == ["WorkloadRefused"]


def test_refused_pods_and_claims_are_nudged() -> None:
    objects = stood(order(planned=plan()), service_class(), ready=False)
    workload = only(objects, "StatefulSet")
    workload["status"]["replicas"] = 0
    pods = [event(workload, "FailedCreate", "exceeded quota: pods")]
    assert intents([*without(objects, "Pod"), *pods]).nudged == {"StatefulSet/chat"}

    objects = stood(order(planned=plan()), service_class(), ready=False)
    claims = [event(only(objects, "Pod"), "FailedResourceClaimCreation", "exceeded quota: claims")]
    assert intents([*objects, *claims]).nudged == {"Pod/chat-0"}


NO_DEVICE = "0/3 nodes are available: 3 cannot allocate all claims. preemption: 0/3 nodes are available."


@pytest.mark.parametrize(
    ("standing_pod", "planned", "stranded"),
    [
        ({"unschedulable": NO_DEVICE}, plan(), {"chat-0"}),
        (
            {"unschedulable": "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."},
            plan(),
            set(),
        ),
        ({"unschedulable": "0/3 nodes are available: 3 Insufficient cpu."}, plan(), set()),
        ({}, plan(), set()),
        ({"unschedulable": NO_DEVICE, "served": True}, plan(), set()),
        ({"unschedulable": NO_DEVICE}, refused("ResourceClaimExhausted"), set()),
        # The workload is about to be applied anew, and what never served goes with its template.
        ({"unschedulable": NO_DEVICE}, plan(deviceRequest={"capacity": {"memory": "9Gi"}}), set()),
    ],
)
def test_a_replica_without_the_device_that_its_plan_has_room_for_is_stranded(
    standing_pod: dict[str, Any], planned: dict[str, Any], stranded: set[str]
) -> None:
    objects = stood(order(planned=plan()), service_class(), ready=False)
    waiting = pod(only(objects, "StatefulSet"), **{"ready": False, "served": False, **standing_pod})
    found = intents(edited([*without(objects, "Pod"), waiting], 1, planned))
    assert found.stranded == stranded


def test_serving_orders_come_first() -> None:
    """A module upgrade changes every order at once."""
    objects = [order("aaa", number=1, planned=plan()), *stood(order("zzz", number=2, planned=plan()), service_class())]
    found = decide.work(seen(objects), "another digest of the templates")
    assert [apply.order.name for apply in found.applies] == ["zzz", "aaa"]


def test_the_placement_reads_well() -> None:
    assert values.placement(plan()) == "1 × a30, WholeDevice, Shared 8Gi 40%"
    assert values.placement(plan(share=None, sharingMode="Dedicated", acceleratorCount=2)) == (
        "2 × a30, WholeDevice, Dedicated"
    )


def test_a_set_whose_status_lags_is_taken_to_have_old_replicas_only() -> None:
    objects = standing()
    only(objects, "StatefulSet")["metadata"]["generation"] = 2
    found = seen(objects)
    workload = found.workload(found.orders[0])
    assert workload is not None
    assert len(decide.older_replicas(found, found.orders[0], workload)) == 1
    assert decide.never_served(found, found.orders[0], workload) == ()


def test_pods_of_another_set_are_not_counted() -> None:
    objects = standing()
    stray = pod(only(objects, "StatefulSet"), 7)
    stray["metadata"]["ownerReferences"][0]["uid"] = uid(4242)
    found = seen([*objects, stray])
    workload = found.workload(found.orders[0])
    assert workload is not None
    assert [replica.name for replica in found.replicas_of(workload, found.orders[0])] == ["chat-0"]


def test_a_new_order_is_told_that_it_waits_only_when_its_plan_is_late() -> None:
    made = order()
    made["metadata"]["creationTimestamp"] = "2026-11-30T10:00:00Z"
    found = seen([made, service_class()])
    due = decide.work(found, render.templates_digest())
    early, _ = decide.reports(found, due, {}, "2026-11-30T10:00:04Z")
    late, _ = decide.reports(found, due, {}, "2026-11-30T10:00:05Z")
    assert early == ()
    assert [condition["reason"] for condition in late[0].status["conditions"] if condition["type"] == "Planned"] == [
        "PlanPending"
    ]


def test_an_order_that_goes_with_its_namespace_is_told_why_it_gets_nothing() -> None:
    made = order(deleting=True)
    made["metadata"]["creationTimestamp"] = "2026-11-30T10:00:00Z"
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": made["metadata"]["namespace"], "deletionTimestamp": "2026-11-30T10:00:01Z"},
    }
    found = seen([made, service_class(), namespace])
    statuses, _ = decide.reports(found, decide.work(found, render.templates_digest()), {}, "2026-11-30T10:00:01Z")
    reasons = {condition["type"]: condition["reason"] for condition in statuses[0].status["conditions"]}
    assert reasons["WorkloadReady"] == "NamespaceTerminating"
    assert decide.work(found, render.templates_digest()).applies == ()
