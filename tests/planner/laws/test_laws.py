# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What holds of every plan, whatever the world."""

from __future__ import annotations

import json
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planner import dra, launches, wire
from planner.candidates import Considered
from planner.inventory import build as inventory_of
from planner.model import Decision, OrderPlan, Plan, Snapshot
from planner.plan import Planning, plan
from planner.reasons import Refused

from tests import build
from tests.build import Object
from tests.planner.laws.worlds import held_worlds

law = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def text(plan_: Plan) -> str:
    return json.dumps(wire.plan_json(plan_))


def orders_text(plan_: Plan) -> str:
    return json.dumps(wire.plan_json(plan_)["orders"])


@law
@given(held_worlds(), st.integers(0, 1000))
def test_shuffled_lists_give_equal_bytes(world: list[Object], seed: int) -> None:
    shuffled = random.Random(seed).sample(world, len(world))
    assert text(plan(build.snapshot(shuffled))) == text(plan(build.snapshot(world)))


@law
@given(held_worlds())
def test_a_plan_applied_and_planned_again_changes_nothing(world: list[Object]) -> None:
    first = plan(build.snapshot(world))
    assert text(plan(build.snapshot(build.written(world, first)))) == text(first)


@law
@given(held_worlds())
def test_a_plan_that_the_scheduler_carried_out_changes_nothing(world: list[Object]) -> None:
    first = plan(build.snapshot(world))
    claims = [made for item in first.orders if item.seats for made in build.claims_of(item)]
    second = plan(build.snapshot(build.written(world, first), claims))
    assert orders_text(second) == orders_text(first)


@law
@given(held_worlds(), st.data())
def test_a_plan_that_was_carried_out_in_part_changes_nothing(world: list[Object], data: st.DataObject) -> None:
    first = plan(build.snapshot(world))
    claims = [made for item in first.orders if item.seats for made in build.claims_of(item)]
    some = [made for made in claims if data.draw(st.booleans())]
    second = plan(build.snapshot(build.written(world, first), some))
    assert orders_text(second) == orders_text(first)


@law
@given(held_worlds())
def test_no_device_is_overdrawn(world: list[Object]) -> None:
    snapshot = build.snapshot(world)
    found = plan(snapshot)
    stock = inventory_of(
        snapshot.slices, snapshot.claims, snapshot.device_classes, snapshot.taint_rules, snapshot.nodes, (1, 37)
    )
    ledger = stock.ledger.copy()
    for item in found.orders:
        for seat in item.seats:
            assert len(set(seat.devices)) == len(seat.devices) == item.accelerator_count
            for name in seat.devices:
                device = stock.by_id[name]
                assert seat.node in device.nodes
                amounts = amounts_of(item) if device.shareable else None
                assert ledger.lack(stock, device, amounts) is None
                ledger.take(device, amounts)


def amounts_of(item: OrderPlan) -> dict[str, int]:
    assert item.request is not None
    return {name: int(dra.read_amount(amount, "")) for name, amount in item.request.capacity.items()}


@law
@given(held_worlds())
def test_bounds_lie_within_the_class_and_seats_are_as_many_as_the_bound(world: list[Object]) -> None:
    snapshot = build.snapshot(world)
    classes = {item.name: item for item in snapshot.service_classes}
    of_class = {order.key: classes[order.service_class] for order in snapshot.orders}
    for item in plan(snapshot).orders:
        if item.decision is not Decision.PLACED:
            assert item.refusal is not None and item.bounds is None and not item.seats
            continue
        assert item.bounds is not None
        assert (item.bounds.min, item.bounds.max) == (of_class[item.key].min_replicas, of_class[item.key].max_replicas)
        assert 0 < item.bounds.bound == len(item.seats) <= item.bounds.max


@law
@given(held_worlds())
def test_a_refusal_has_numbers_that_agree_and_no_seat_exists(world: list[Object]) -> None:
    snapshot = build.snapshot(world)
    planning = Planning(snapshot, launches.shipped())
    for item in planning.result().orders:
        refusal = item.refusal
        if refusal is None or refusal.reason is not Refused.EXHAUSTED:
            continue
        assert isinstance(refusal.needed, int) and isinstance(refusal.free, int)
        assert refusal.needed - refusal.free == refusal.shortfall
        work = planning.works[item.key]
        assert work.considered is not None
        for offer in work.considered.offers:
            assert planning.board.find(offer.wish) is None


@law
@given(held_worlds())
def test_a_blocking_set_frees_the_order_and_no_longer_does_when_one_member_is_put_back(world: list[Object]) -> None:
    planning = Planning(build.snapshot(world), launches.shipped())
    for item in planning.result().orders:
        if item.refusal is None or item.refusal.reason is not Refused.EXHAUSTED:
            continue
        before = planning.board.ledger.copy()
        blocking = planning.blocking(item.key)
        assert planning.board.ledger == before
        assert bool(blocking) is (item.refusal.fits_empty is True)
        if not blocking:
            continue
        offers = planning.works[item.key].considered
        assert offers is not None
        members = []
        left = list(blocking)
        for holding in planning.holdings():
            if holding.holder in left:
                left.remove(holding.holder)
                members.append(holding)
        assert not left

        def fits(planning: Planning = planning, offers: Considered = offers) -> bool:
            return any(planning.board.find(offer.wish) is not None for offer in offers.offers)

        for holding in members:
            planning.board.leave(holding)
        assert fits()
        for holding in members:
            planning.board.come_back(holding)
            assert not fits()
            planning.board.leave(holding)
        for holding in members:
            planning.board.come_back(holding)
        assert planning.board.ledger == before


@law
@given(held_worlds())
def test_nobody_younger_is_served_where_an_equal_older_order_is_refused(world: list[Object]) -> None:
    snapshot = build.snapshot(world)
    told = {item.key: item for item in plan(snapshot).orders}
    asked = {
        order.key: (order.service_class, order.model, order.device_classes, order.strategy) for order in snapshot.orders
    }
    by_age = sorted(snapshot.orders, key=lambda order: (order.created, order.key))
    for place, older in enumerate(by_age):
        for younger in by_age[place + 1 :]:
            if asked[older.key] == asked[younger.key] and told[older.key].decision is Decision.REFUSED:
                assert told[younger.key].decision is not Decision.PLACED


@law
@given(held_worlds())
def test_a_replay_file_gives_the_plan_of_its_snapshot(world: list[Object]) -> None:
    snapshot = build.snapshot(world)
    documents = [wire.Document(raw=item, source="x") for item in world]
    saved = wire.replay(
        documents, kubernetes=snapshot.kubernetes, now=snapshot.now, release=snapshot.release, catalog=snapshot.catalog
    )
    again: Snapshot = wire.from_replay(wire.Document(raw=json.loads(json.dumps(saved)), source="replay"))
    assert text(plan(again)) == text(plan(snapshot))
