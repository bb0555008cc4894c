# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The exact packing: compared with brute force, its bound with its own packing, and how a filling lands."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from functools import cache

import pytest
from planner import batch, inventory, launches, packing
from planner.batch import Batch, NoBatch
from planner.model import HostResources, HostUse
from planner.packing import Geometry, Kind, Room
from planner.placement import Board, Use, Wish
from planner.plan import Planning
from planner.units import GI, MI

from tests import build
from tests.build import Object

NO_HOST = HostResources(cpu_milli=0, memory=0)
HARDWARE = {"H100": build.h100_mig, "A100": build.a100_mig, "A30": build.a30_mig}


def board(*world: Object | list[Object], host_use: tuple[HostUse, ...] = ()) -> Board:
    snapshot = build.snapshot(*world)
    stock = inventory.build(
        snapshot.slices, snapshot.claims, snapshot.device_classes, snapshot.taint_rules, snapshot.nodes, (1, 37)
    )
    return Board(stock, host_use)


def wishes(found: Board, host: HostResources = NO_HOST) -> dict[str, Wish]:
    """A wish for each profile that a card can be cut into."""
    profiles = sorted({device.profile for device in found.inventory.devices if device.profile})
    return {
        profile: Wish(
            use=Use(),
            shapes=frozenset(device.shape for device in found.inventory.devices if device.profile == profile),
            host=host,
        )
        for profile in profiles
    }


def taken(found: Board, asked: list[Wish], answer: Batch) -> None:
    """Take every seat on the board; fails where one is not free any more."""
    for wish, seats in zip(asked, answer.seats, strict=True):
        for seat in seats:
            assert found.can_take(seat.devices[0], wish.use)
            found.take(seat.devices, wish.use, seat.node, wish.host)


def fewest(fills: list[Geometry | Room], demand: tuple[int, ...]) -> int:
    """Brute force: the fewest new cards of one kind, by every pattern that is not empty."""
    fits = [pattern for fill in fills for pattern in packing._patterns(fill).largest]

    @cache
    def need(left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        return 1 + min(
            need(tuple(max(want - have, 0) for want, have in zip(left, pattern, strict=True)))
            for pattern in fits
            if any(want and have for want, have in zip(left, pattern, strict=True))
        )

    return need(demand)


@pytest.mark.parametrize("name", HARDWARE)
def test_patterns_are_exactly_the_largest_sets_of_positions_that_can_be_held_together(name: str) -> None:
    found = board(HARDWARE[name](1))
    asked = list(wishes(found).values())
    told = batch._Told(found, asked)
    (geometry,) = told.kinds[0].fills
    assert isinstance(geometry, Geometry)
    places = [(wish, place) for wish, mask in enumerate(geometry.places) for place in mask]
    held: set[tuple[int, ...]] = set()
    for size in range(1, 8):
        for chosen in itertools.combinations(places, size):
            free = list(geometry.free)
            for _, place in chosen:
                for resource, amount in geometry.consumes[place]:
                    free[resource] -= amount
            if min(free) >= 0:
                count = Counter(wish for wish, _ in chosen)
                held.add(tuple(count[wish] for wish in range(len(asked))))
        if len(places) > 22 and size == 4:
            break
    largest = packing._patterns(geometry).largest
    assert all(any(all(a <= b for a, b in zip(one, two, strict=True)) for two in largest) for one in held)
    assert {pattern for pattern in largest if sum(pattern) <= 4} <= held


@pytest.mark.parametrize("name", HARDWARE)
@pytest.mark.parametrize("seed", range(8))
def test_as_few_cards_are_opened_as_brute_force_finds(name: str, seed: int) -> None:
    rng = random.Random(seed)
    found = board(HARDWARE[name](12))
    asked = list(wishes(found).values())
    demand = [rng.randrange(4) for _ in asked]
    answer = batch.seat(found, asked, demand)
    assert isinstance(answer, Batch)
    assert answer.opened == answer.bound == fewest(list(batch._Told(found, asked).kinds[0].fills), tuple(demand))
    assert [len(seats) for seats in answer.seats] == demand
    taken(found, asked, answer)
    cards = {found.inventory.by_id[seat.devices[0]].card for seats in answer.seats for seat in seats}
    assert len(cards) == answer.opened


def test_cards_in_use_are_filled_before_any_is_opened_and_what_stands_stays() -> None:
    standing = build.claim("standing", [(build.NVIDIA, "node-h100", "gpu-1-mig-3g40gb-3-0")])
    found = board(build.h100_mig(3), standing)
    by = wishes(found)
    answer = batch.seat(found, [by["3g.40gb"], by["2g.20gb"], by["1g.10gb"]], [1, 2, 1])
    assert isinstance(answer, Batch)
    assert (answer.opened, answer.bound) == (1, 1)
    cards = Counter(seat.devices[0].name[:5] for seats in answer.seats for seat in seats)
    assert set(cards) == {"gpu-1", "gpu-0"}
    taken(found, [by["3g.40gb"], by["2g.20gb"], by["1g.10gb"]], answer)


def test_what_does_not_fit_together_is_no_batch() -> None:
    found = board(build.h100_mig(1))
    by = wishes(found)
    assert isinstance(batch.seat(found, [by["4g.40gb"]], [2]), NoBatch)
    assert isinstance(batch.seat(found, [by["4g.40gb"], by["3g.40gb"]], [1, 1]), Batch)


def test_a_node_without_cpu_for_the_pods_is_passed_over() -> None:
    world = build.flat(build.h100_mig(2, "node-a"), build.h100_mig(2, "node-b"))
    world[0] = build.node("node-a", cpu="4", memory="64Gi")
    found = board(world)
    wish = wishes(found, HostResources(cpu_milli=3000, memory=GI))["7g.80gb"]
    answer = batch.seat(found, [wish], [3])
    assert isinstance(answer, Batch)
    assert sorted(seat.node for seat in answer.seats[0]) == ["node-a", "node-b", "node-b"]
    assert isinstance(batch.seat(found, [wish], [4]), NoBatch)


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_packed_as_tightly_as_brute_force_packs_them(seed: int) -> None:
    rng = random.Random(seed)
    sizes = sorted({rng.randrange(5, 30) for _ in range(4)})
    room = Room((46, 100), tuple((size, rng.randrange(5, 60)) for size in sizes))
    demand = tuple(rng.randrange(1, 4) for _ in sizes)
    packed = packing.pack([Kind(20, False, (room,))], demand)
    assert packed is not None
    assert packed.opened == packed.bound == fewest([room], demand)


@pytest.mark.parametrize("seed", range(4))
def test_many_different_shares_are_packed_close_to_the_bound(seed: int) -> None:
    rng = random.Random(seed)
    sizes = tuple((rng.randrange(2_000, 30_000),) for _ in range(60))
    packed = packing.pack([Kind(200, False, (Room((46_068,), sizes),))], [rng.randrange(1, 6) for _ in sizes])
    assert packed is not None
    assert packed.bound <= packed.opened <= packed.bound + 2
    assert packed.proven or packed.limited


def test_shares_of_a_board_add_up_to_less_than_each_card() -> None:
    found = board(build.l40s_shared(6))
    shape = frozenset(device.shape for device in found.inventory.devices)
    asked = [Wish(use=Use((("memory", need * MI),)), shapes=shape, host=NO_HOST) for need in (20_000, 13_000, 9_000)]
    answer = batch.seat(found, asked, [4, 4, 4])
    assert isinstance(answer, Batch)
    assert (answer.opened, answer.bound) == (4, 4)
    taken(found, asked, answer)


def test_a_limit_that_is_hit_is_told_and_the_bound_stays_true() -> None:
    found = board(build.h100_mig(40))
    asked = list(wishes(found).values())
    demand = [7, 5, 9, 4, 8, 3]
    exact = batch.seat(found, asked, demand)
    cut = batch.seat(found, asked, demand, {"iterations": 0, "nodes": 0})
    assert isinstance(exact, Batch) and isinstance(cut, Batch)
    assert cut.bound <= exact.bound == exact.opened <= cut.opened
    assert cut.opened == cut.bound or cut.limited


def test_equal_questions_get_equal_seats() -> None:
    answers = set()
    for _ in range(3):
        found = board(build.h100_mig(8, "node-a"), build.a30_mig(8, "node-b"))
        answers.add(repr(batch.seat(found, list(wishes(found).values()), [3, 5, 2, 7, 1, 4, 2, 1, 1])))
    assert len(answers) == 1


# How a filling lands


def geometry_of(hardware: str) -> tuple[Geometry, list[str]]:
    found = board(HARDWARE[hardware](1))
    by = wishes(found)
    (fill,) = batch._Told(found, list(by.values())).kinds[0].fills
    assert isinstance(fill, Geometry)
    return fill, list(by)


LANDING = {
    ("H100", ("1g.10gb",) * 7): True,
    ("H100", ("3g.40gb", "3g.40gb")): True,
    ("H100", ("3g.40gb", "2g.20gb", "1g.10gb")): False,
    ("H100", ("3g.40gb", *("1g.10gb",) * 3)): True,
    ("H100", ("4g.40gb", "2g.20gb", "1g.10gb")): False,
    ("H100", ("2g.20gb",) * 3): True,
    ("H100", ("2g.20gb", "2g.20gb", "2g.20gb", "1g.10gb")): False,
    ("A30", ("2g.12gb", "1g.6gb", "1g.6gb")): True,
    ("A30", ("2g.12gb", "2g.12gb")): True,
    ("A30", ("1g.6gb",) * 4): True,
}


@pytest.mark.parametrize("case", LANDING, ids=lambda case: f"{case[0]} {'+'.join(case[1])}")
def test_a_filling_lands_whatever_the_order_of_arrival_or_not(case: tuple[str, tuple[str, ...]]) -> None:
    hardware, profiles = case
    fill, names = geometry_of(hardware)
    count = Counter(profiles)
    wanted = tuple(count[name] for name in names)
    assert packing.arrangement(fill, wanted) is not None
    assert packing.lands(fill, wanted) is LANDING[case]


ALIKE = {
    "four 1g and two 3g of H100: apart, not three 1g beside a 3g and a fourth": (
        "H100", {"1g.10gb": 7, "3g.40gb": 2}, {("1g.10gb",) * 7, ("3g.40gb", "3g.40gb")},
    ),
    "a 4g, three 2g and a 1g of A100 can't, so they come as they come": (
        "A100", {"4g.20gb": 1, "2g.10gb": 1, "1g.5gb": 1}, {("1g.5gb", "2g.10gb", "4g.20gb")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ALIKE.values(), ids=ALIKE)
def test_of_equal_packings_one_is_taken_that_lands_in_every_order(
    case: tuple[str, dict[str, int], set[tuple[str, ...]]],
) -> None:
    hardware, asked, want = case
    found = board(HARDWARE[hardware](4))
    by = wishes(found)
    answer = batch.seat(found, [by[name] for name in asked], list(asked.values()))
    assert isinstance(answer, Batch) and answer.opened == answer.bound == len(want)
    held: dict[str, list[str]] = {}
    for profile, seats in zip(asked, answer.seats, strict=True):
        for seat in seats:
            held.setdefault(found.inventory.by_id[seat.devices[0]].card, []).append(profile)
    assert {tuple(sorted(profiles)) for profiles in held.values()} == want


def test_capacity_reports_the_fewest_cards_beside_those_in_use() -> None:
    world = build.flat(
        build.any_device(),
        build.service_class(placement=["Partition"], sharing=["Dedicated"]),
        build.h100_mig(4),
        build.needing("8Gi", "m"),
        build.orders(9, model="m"),
    )
    report = Planning(build.snapshot(world), launches.shipped()).capacity()
    assert report.placed is not None and report.standing is not None
    for item in (report.placed, report.standing):
        assert (item.replicas, item.cards, item.bound, item.proven, item.limited) == (9, 2, 2, True, ())
