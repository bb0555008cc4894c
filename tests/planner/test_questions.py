# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Explain, what-if and capacity ask the one `plan` and change nothing."""

from __future__ import annotations

import pytest
from planner import questions, wire
from planner.plan import plan

from tests import build
from tests.build import Object

WORLD = build.flat(
    build.any_device(),
    build.service_class(sharing=["Dedicated"], placement=["WholeDevice"], replicas=(1, 2)),
    build.l4_24g(3),
    build.tiny(),
    build.orders(2),
)


def documents(objects: list[Object]) -> list[wire.Document]:
    return [wire.Document(raw=item, source="x") for item in objects]


def test_explain_gives_the_same_plan_and_every_offer() -> None:
    snapshot = build.snapshot(WORLD)
    told = questions.explain(snapshot, build.key("o1"))
    assert told["plan"] == wire.plan_status(plan(snapshot).orders[0])
    assert [offer["product"] for offer in told["considered"] if offer["chosen"]] == ["NVIDIA L4"]
    assert told["blocking"] == []
    assert [seat["standing"] for seat in told["seats"]] == [False, False]


def test_explain_of_nobody_is_an_error_of_its_own() -> None:
    with pytest.raises(questions.NoSuchOrder, match="there is no order team-a/nobody to plan"):
        questions.explain(build.snapshot(WORLD), build.key("nobody"))


def test_what_if_nothing_changes_nothing_changes() -> None:
    snapshot = build.snapshot(WORLD)
    assert questions.what_if(snapshot, snapshot) == {"changed": {}, "unchanged": 2, "classes": {}}


def test_what_if_moves_only_what_the_edit_forces() -> None:
    edit = questions.Edit(add=tuple(documents([build.order("o3", created=9)])))
    after = questions.edited(documents(WORLD), edit)
    told = questions.what_if(build.snapshot(WORLD), build.snapshot([dict(item.raw) for item in after]))
    assert set(told["changed"]) == {"team-a/o1", "team-a/o3"}
    assert told["changed"]["team-a/o1"]["before"]["bound"] == 2
    assert told["changed"]["team-a/o1"]["after"]["bound"] == 1
    assert told["changed"]["team-a/o3"]["after"]["decision"] == "Placed"


EDITS = {
    "removing what is not there": (questions.Edit(remove=("Node/nowhere",)), "Node/nowhere: no such object"),
    "a name that says too little": (
        questions.Edit(remove=("node-l4",)),
        "node-l4: Kind/name or Kind/namespace/name is expected",
    ),
    "setting nothing": (
        questions.Edit(set=("Node/node-l4:spec",)),
        "Node/node-l4:spec: Kind/namespace/name:path=value is expected",
    ),
    "draining nothing": (questions.Edit(drain=("nowhere",)), "Node/nowhere: no such object"),
}


@pytest.mark.parametrize("case", EDITS.values(), ids=EDITS)
def test_an_edit_that_means_nothing_says_so(case: tuple[questions.Edit, str]) -> None:
    edit, words = case
    with pytest.raises(questions.BadEdit) as caught:
        questions.edited(documents(WORLD), edit)
    assert str(caught.value) == words


def test_an_edit_leaves_the_objects_as_they_are() -> None:
    before = repr(WORLD)
    edit = questions.Edit(
        remove=("InferenceService/team-a/o2",),
        drain=("node-l4",),
        set=("inferenceserviceclass/standard:spec.scalingPolicy.maxReplicas=1",),
    )
    after = questions.edited(documents(WORLD), edit)
    assert repr(WORLD) == before
    snapshot = build.snapshot([dict(item.raw) for item in after])
    assert (len(snapshot.orders), snapshot.nodes[0].unschedulable, snapshot.service_classes[0].max_replicas) == (
        1,
        True,
        1,
    )


def test_capacity_shows_who_sits_where() -> None:
    foreign = build.claim("training", [(build.NVIDIA, "node-l4", "gpu-2")])
    told = questions.capacity(build.snapshot(WORLD, foreign))
    assert told["deviceClasses"] == {"gpu": {"node-l4": {"total": 3, "held": 3, "free": 0, "freeMemory": "0"}}}
    assert [
        (device["name"], [(who["name"], who["order"], who["planned"]) for who in device["holders"]])
        for device in told["devices"]
    ] == [
        ("gpu-0", [("team-a/o1", True, True)]),
        ("gpu-1", [("team-a/o2", True, True)]),
        ("gpu-2", [("others/training", False, False)]),
    ]
    assert told["problems"] == []


def test_a_drained_node_is_left_by_orders_and_not_by_others() -> None:
    world = build.flat(WORLD, build.l4_24g(3, "node-x"))
    first = plan(build.snapshot(world))
    standing = [made for item in first.orders for made in build.claims_of(item)]
    foreign = build.claim("training", [(build.NVIDIA, "node-x", "gpu-1")])
    before = build.snapshot(build.written(world, first), standing, foreign)
    after = questions.edited(
        documents([*build.written(world, first), *standing, foreign]), questions.Edit(drain=("node-l4",))
    )
    told = questions.what_if(before, build.snapshot([dict(item.raw) for item in after]))
    assert {order: change["after"]["devices"] for order, change in told["changed"].items()} == {
        "team-a/o1": ["gpu.nvidia.com/node-x/gpu-2"],
        "team-a/o2": ["gpu.nvidia.com/node-x/gpu-0"],
    }
