# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A plan that is kept up to date says what a plan made anew says, byte by byte, whatever happens in between."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planner import wire
from planner.incremental import Kept, changed
from planner.memory import Memory
from planner.model import Plan, Snapshot
from planner.plan import plan

from tests import build
from tests.build import Object
from tests.planner.laws.worlds import held_worlds

law = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
EVENTS = ("written", "come", "go", "serve", "half", "free", "class", "node", "edit", "nothing")


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
@given(held_worlds(), st.lists(st.sampled_from(EVENTS), min_size=3, max_size=9), st.data())
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
