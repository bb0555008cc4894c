# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A plan that is kept up to date says what a plan made anew says, byte by byte, whatever happens in between."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planner import wire
from planner.incremental import Costs, Kept, changed
from planner.memory import Memory
from planner.model import ORDER_LABEL, Plan, Snapshot
from planner.plan import plan

from tests import build
from tests.build import Object
from tests.planner.laws.worlds import devices_of, held_worlds

law = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
EVENTS = (
    "written", "come", "go", "serve", "half", "free", "class", "node", "edit", "nothing",
    "bind", "unbind", "end", "stray", "spill", "delete", "relabel",
)  # fmt: skip
LIFE = ("come", "written", "bind", "serve", "serve", "go", "free", "end", "stray")


def text(plan_: Plan) -> str:
    return json.dumps(wire.plan_json(plan_))


def is_order(item: Object) -> bool:
    return bool(item["kind"] == "InferenceService")


def after(event: str, world: list[Object], last: Plan, draw: st.DataObject, number: int) -> list[Object]:
    """The world after one thing happened; every event but `half` comes after the plans were written."""
    written = build.written(world, last)
    orders = [item for item in written if is_order(item)]
    match event:
        case "come":
            name = draw.draw(st.sampled_from(("any", "alone", "cut", "share", "broken")))
            model = draw.draw(st.sampled_from(("tiny", "needs-8gi", "needs-18gi", "needs-35gi")))
            made = build.order(f"new{number}", service_class=name, model=model, created=draw.draw(st.integers(0, 9)))
            return [*written, made]
        case "go" if orders:
            gone = draw.draw(st.sampled_from(orders))
            return [item for item in written if item is not gone]
        case "serve":
            names = {item["metadata"]["name"] for item in written if item["kind"] == "ResourceClaim"}
            claims = [made for item in last.orders if item.seats for made in build.claims_of(item)]
            claims = [item for item in claims if item["metadata"]["name"] not in names]
            return [*written, *claims[: draw.draw(st.integers(0, 3))]]
        case "half" if orders:
            chosen = draw.draw(st.sampled_from(orders))["metadata"]["name"]
            return [old if is_order(old) and old["metadata"]["name"] != chosen else new
                    for old, new in zip(world, written, strict=True)]  # fmt: skip
        case "free":
            claims = [item for item in written if item["kind"] == "ResourceClaim"]
            return [item for item in written if not claims or item is not claims[-1]]
        case "bind":
            placed = [item for item in last.orders if item.seats and item.seats[0].node]
            known = {item["metadata"]["name"] for item in written}
            volumes = [
                build.volume(item.key.name, seat.node, ordinal=ordinal, namespace=item.key.namespace)
                for item in placed[: draw.draw(st.integers(1, 3))]
                for ordinal, seat in enumerate(item.seats)
            ]
            return [*written, *(part for pair in volumes for part in pair if pair[1]["metadata"]["name"] not in known)]
        case "unbind":
            volume = next((item for item in written if item["kind"] == "PersistentVolumeClaim"), None)
            return [item for item in written if item is not volume]
        case "end":
            names = {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in orders}
            return [item for item in written if item["kind"] != "ResourceClaim" or owner(item) in names]
        case "stray" | "spill":
            free = draw.draw(st.sampled_from(devices_of(written)))
            whose: Object = draw.draw(st.sampled_from(orders))["metadata"] if orders and event == "spill" else {}
            labels = {ORDER_LABEL: whose["name"]} if whose else {}
            namespace = whose.get("namespace", "others")
            shares = {"memory": "4Gi"} if free[2].get("allowMultipleAllocations") else None
            parameters = {"sharing": {"strategy": draw.draw(st.sampled_from(("MPS", "TimeSlicing")))}}
            config = [{"opaque": {"driver": free[0], "parameters": parameters}}] if draw.draw(st.booleans()) else []
            made = build.claim(f"s{number}", [(free[0], free[1], free[2]["name"])], namespace=namespace, labels=labels,
                               shares=shares, pod=f"{whose['name']}-0" if whose else None, config=config)  # fmt: skip
            return [*written, made]
        case "delete" | "relabel":
            claim = next((item for item in written if item["kind"] == "ResourceClaim"), None)
            if claim is None:
                return written
            told: Object = {"deletionTimestamp": "2026-11-30T10:00:00Z"} if event == "delete" else {"labels": {}}
            return [{**item, "metadata": {**item["metadata"], **told}} if item is claim else item for item in written]
        case "class":
            made = build.service_class("any", replicas=draw.draw(st.sampled_from(((1, 1), (1, 2), (2, 4)))))
            return [item for item in written if item["metadata"]["name"] != "any"] + [made]
        case "node":
            return [*written, *build.l4_24g(1, f"late-{number}")]
        case "edit" if orders:
            chosen = draw.draw(st.sampled_from(orders))
            edited = {**chosen, "metadata": {**chosen["metadata"], "generation": 7}}
            edited["spec"] = {**chosen["spec"], "launchStrategy": "Latency"}
            return [edited if item is chosen else item for item in written]
        case "nothing":
            return world
    return written


def owner(claim: Object) -> tuple[str, str | None]:
    return claim["metadata"]["namespace"], claim["metadata"]["labels"].get(ORDER_LABEL)


class Watched:
    """A world as `serve` reads it: an object that stays is the same object, and what was read of it is remembered."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._objects: dict[str, wire.Document] = {}
        self._kinds: dict[str, tuple[wire.Document, ...]] = {}

    def snapshot(self, world: list[Object]) -> Snapshot:
        objects = {json.dumps(item, sort_keys=True): item for item in build.flat(world)}
        self._objects = {
            content: self._objects.get(content) or wire.Document(raw=item, source=item["kind"])
            for content, item in objects.items()
        }
        kinds: dict[str, tuple[wire.Document, ...]] = {}
        for document in self._objects.values():
            kind = document.raw["kind"]
            kinds[kind] = (*kinds.get(kind, ()), document)
        self._kinds = {kind: self._kinds[kind] if self._kinds.get(kind) == kinds[kind] else kinds[kind]
                       for kind in kinds}  # fmt: skip
        return build.read(self._kinds, memory=self._memory)


@law
@given(
    held_worlds(),
    st.one_of(
        st.lists(st.sampled_from(EVENTS), min_size=3, max_size=9),
        st.lists(st.sampled_from(LIFE), min_size=4, max_size=14),
    ),
    st.data(),
)
def test_a_kept_plan_follows_whatever_happens(world: list[Object], events: list[str], data: st.DataObject) -> None:
    kept, watched = Kept(), Watched()
    last = kept.plan(watched.snapshot(world))
    assert text(last) == text(plan(build.snapshot(world)))
    for number, event in enumerate(events):
        world = after(event, world, last, data, number)
        snapshot, anew = watched.snapshot(world), build.snapshot(world)
        assert snapshot == anew, event
        last = kept.plan(snapshot)
        assert text(last) == text(plan(anew)), event


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize(("service_class", "replicas"), [("one", 1), ("two", 2), ("part", 1)])
def test_the_life_of_an_order_costs_no_look_at_the_others(service_class: str, replicas: int, pinned: bool) -> None:
    world = [
        build.any_device(),
        build.tiny(),
        build.service_class("one", sharing=["Dedicated"], placement=["WholeDevice"]),
        build.service_class("two", sharing=["Dedicated"], placement=["WholeDevice"], replicas=(2, 2)),
        build.service_class("part", sharing=["Shared"], share=(None, "8Gi")),
        *build.l4_24g(4, "node-1"),
        *build.rtx3090_deckhouse(2, "node-2"),
        *(build.order(f"o{number}", service_class="one", created=number) for number in range(2)),
        build.order("waits", service_class="two", model="tiny", created=9),
    ]
    kept, watched = Kept(), Watched()
    last = kept.plan(watched.snapshot(world))
    first = build.written(world, last)
    claims = [made for item in last.orders if item.seats for made in build.claims_of(item)]
    order = build.order("new", service_class=service_class, created=5)
    kept.plan(watched.snapshot([*first, *claims]))
    kept.costs = Costs()

    def step(*objects: Object) -> Plan:
        made = kept.plan(watched.snapshot([*first, *claims, *objects]))
        assert text(made) == text(plan(build.snapshot([*first, *claims, *objects])))
        return made

    told = {item.key.name: item for item in step(order).orders}["new"]
    assert len(told.seats) == replicas
    (order,) = build.written([order], kept.planning.result())
    step(order)
    volumes = build.volume("new", told.seats[0].node) if pinned else []
    step(order, *volumes)
    allocated = build.claims_of(told)
    for number in range(replicas):
        found = {item.key.name: item for item in step(order, *volumes, *allocated[: number + 1]).orders}["new"]
        assert sum(seat.standing for seat in found.seats) == number + 1
        assert found.devices == told.devices
    step(*volumes, *allocated)
    step(*allocated)
    step(*allocated[1:])
    step()
    assert (kept.costs.whole, kept.costs.retained) == (0, 0) and kept.costs.local == 7 + replicas, kept.costs


def test_a_claim_that_took_another_device_than_planned_is_a_look_at_everybody() -> None:
    world = [build.any_device(), build.tiny(), build.service_class(sharing=["Dedicated"]), *build.l4_24g(3, "node-1"),
             build.order("o1", created=1), build.order("o2", created=2)]  # fmt: skip
    kept, watched = Kept(), Watched()
    last = kept.plan(watched.snapshot(world))
    stands = build.written(world, last)
    kept.plan(watched.snapshot(stands))
    kept.costs = Costs()
    (taken,) = last.orders[1].seats[0].devices
    stray = build.claim("o1-0-gpu", [(taken.driver, taken.pool, taken.name)], namespace="team-a",
                        labels={ORDER_LABEL: "o1"}, pod="o1-0")  # fmt: skip
    made = kept.plan(watched.snapshot([*stands, stray]))
    assert text(made) == text(plan(build.snapshot([*stands, stray])))
    assert made.orders[0].seats[0].devices == (taken,) and made.orders[1].seats[0].devices != (taken,)
    assert kept.costs.retained == 1


def test_a_plan_that_names_a_shared_device_more_often_than_replicas_sit_there_is_followed() -> None:
    world = [build.any_device(), build.needing("8Gi"), *build.a30_deckhouse(2, "node-0"),
             build.service_class("any", replicas=(1, 3)),
             build.order("o", service_class="any", model="needs-8gi")]  # fmt: skip
    kept, watched = Kept(), Watched()

    def step() -> Plan:
        made = kept.plan(watched.snapshot(world))
        assert text(made) == text(plan(build.snapshot(world)))
        return made

    first = step().orders[0]
    assert len(set(first.devices)) == 2 and len(first.devices) == 3
    world = build.written([*world, build.claims_of(first)[0]], kept.planning.result())
    step()
    # The claim is somebody else's now, so one replica moves to the other card; the plan's devices stay as they are.
    world[-1] = {**world[-1], "metadata": {**world[-1]["metadata"], "labels": {}}}
    moved = step().orders[0]
    assert moved.devices == first.devices != tuple(name for seat in moved.seats for name in seat.devices)
    world = build.written(world, kept.planning.result())
    step()
    step()


@law
@given(held_worlds(), st.data())
def test_a_change_tells_exactly_what_differs(world: list[Object], data: st.DataObject) -> None:
    kept = Kept()
    told = {item.key: item for item in kept.plan(build.snapshot(world)).orders}
    orders = [order for order in build.snapshot(world).orders if order.key in told]
    for _ in range(data.draw(st.integers(1, 6))):
        before = kept.snapshot()
        standing = sorted(told)
        if standing and data.draw(st.sampled_from((True, False))):
            added, gone = [], [data.draw(st.sampled_from(standing))]
        else:
            example = data.draw(st.sampled_from(orders))
            name = f"n{len(before.orders)}-{data.draw(st.integers(0, 99))}"
            added, gone = [replace(example, key=example.key._replace(name=name))], []
            if added[0].key in told:
                continue
        difference = kept.change(added, gone)
        expected = plan(changed(before, added, gone))
        for key in gone:
            del told[key]
        told |= difference
        assert told == {item.key: item for item in expected.orders}
        assert text(kept.planning.result()) == text(expected)
