# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Bounds: what an order is entitled to comes first, the rest is split max-min fair and taken from nobody."""

from __future__ import annotations

import itertools
import json

import pytest
from planner import wire
from planner.model import Key
from planner.plan import plan
from planner.replicas import Claimant, split

from tests import build
from tests.build import Object


def claimants(*most: int, elastic: tuple[int, ...] = ()) -> list[Claimant]:
    had = elastic or (0,) * len(most)
    return [
        Claimant(key=build.key(f"o{n}"), age=(f"{n}", build.key(f"o{n}")), elastic=have, most=top)
        for n, (top, have) in enumerate(zip(most, had, strict=True))
    ]


SPLITS = {
    "five among three who may have four: two, two, one": (claimants(4, 4, 4), 5, [2, 2, 1]),
    "nobody gets more than it may have": (claimants(1, 4, 1), 5, [1, 3, 1]),
    "who has none is first": (claimants(4, 4, elastic=(2, 0)), 3, [1, 2]),
    "nothing free, nothing given": (claimants(3, 3), 0, [0, 0]),
}


@pytest.mark.parametrize("case", SPLITS.values(), ids=SPLITS)
def test_split(case: tuple[list[Claimant], int, list[int]]) -> None:
    asking, free, want = case
    got: dict[Key, int] = {claimant.key: 0 for claimant in asking}

    def grow(key: Key) -> bool:
        if sum(got.values()) == free:
            return False
        got[key] += 1
        return True

    split(asking, grow)
    assert list(got.values()) == want


def world(devices: int, orders: list[Object], replicas: tuple[int, int]) -> list[Object]:
    return build.flat(
        build.any_device(),
        build.service_class(sharing=["Dedicated"], placement=["WholeDevice"], replicas=replicas),
        build.service_class("one", sharing=["Dedicated"], placement=["WholeDevice"]),
        build.l4_24g(devices),
        build.tiny(),
        orders,
    )


def bounds(objects: list[Object], *claims: Object) -> dict[str, tuple[int, int, int] | None]:
    found = plan(build.snapshot(objects, *claims))
    return {
        item.key.name: None if item.bounds is None else (item.bounds.min, item.bounds.max, item.bounds.bound)
        for item in found.orders
    }


BOUNDS = {
    "room for everybody": (6, 2, (1, 3), {"o1": (1, 3, 3), "o2": (1, 3, 3)}),
    "the odd elastic replica goes to the older order": (5, 2, (1, 3), {"o1": (1, 3, 3), "o2": (1, 3, 2)}),
    "entitled replicas come before elastic ones": (3, 3, (1, 3), {"o1": (1, 3, 1), "o2": (1, 3, 1), "o3": (1, 3, 1)}),
    "the youngest goes without": (2, 3, (1, 3), {"o1": (1, 3, 1), "o2": (1, 3, 1), "o3": None}),
    "some of the entitled replicas are better than none": (3, 2, (2, 3), {"o1": (2, 3, 2), "o2": (2, 3, 1)}),
}


@pytest.mark.parametrize("case", BOUNDS.values(), ids=BOUNDS)
def test_bounds(case: tuple[int, int, tuple[int, int], dict[str, tuple[int, int, int] | None]]) -> None:
    devices, count, replicas, want = case
    assert bounds(world(devices, build.orders(count), replicas)) == want


def test_fewer_replicas_than_entitled_say_so() -> None:
    found = plan(build.snapshot(world(1, build.orders(1), (2, 3)))).orders[0]
    assert found.message.endswith("Only 1 of the 2 replicas it is entitled to have room now.")


def test_without_a_scaling_policy_there_is_one_replica() -> None:
    assert bounds(world(4, [build.order("o", service_class="one")], (1, 1))) == {"o": (1, 1, 1)}


def test_an_entitled_replica_takes_a_reservation_that_nobody_holds_but_nothing_that_serves() -> None:
    objects = world(3, build.orders(1), (1, 3))
    first = plan(build.snapshot(objects))
    serving = build.claims_of(first.orders[0])
    newcomer = build.order("new", service_class="one", created=9)
    asked = [*build.written(objects, first), newcomer]
    assert bounds(asked, *serving[:2]) == {"o1": (1, 3, 2), "new": (1, 1, 1)}
    assert bounds(asked, *serving) == {"o1": (1, 3, 3), "new": None}


def test_a_bound_rises_in_the_first_plan_with_room() -> None:
    objects = world(2, build.orders(2), (1, 2))
    first = plan(build.snapshot(objects))
    written = build.written(objects, first)
    alone = [item for item in written if item["metadata"]["name"] != "o2"]
    assert bounds(written) == {"o1": (1, 2, 1), "o2": (1, 2, 1)}
    assert bounds(alone) == {"o1": (1, 2, 2)}


def test_arrivals_and_departures_never_move_a_replica_that_stays() -> None:
    """Plan after plan, each applied: an order that stays keeps its devices; repeating a plan changes nothing."""
    names = [f"o{number}" for number in range(6)]
    present: dict[str, Object] = {}
    found = plan(build.snapshot(world(5, [], (1, 2))))
    for step, name in enumerate(itertools.islice(itertools.cycle(names), 60)):
        if step % 3 == 2 and name in present:
            del present[name]
        else:
            present.setdefault(name, build.order(name, created=step))
        objects = build.written(world(5, list(present.values()), (1, 2)), found)
        claims = [
            made
            for item in found.orders
            if item.key.name in present and item.seats
            for made in build.claims_of(item)[: item.bounds.min if item.bounds else 0]
        ]
        before = {item.key: set(item.devices[:1]) for item in found.orders if item.seats and item.key.name in present}
        found = plan(build.snapshot(objects, claims))
        for item in found.orders:
            if item.key in before:
                assert before[item.key] <= set(item.devices)
        again = plan(build.snapshot(build.written(objects, found), claims))
        assert json.dumps(wire.plan_json(again)["orders"]) == json.dumps(wire.plan_json(found)["orders"])
