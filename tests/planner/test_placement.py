# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The board: which seat takes the least from others, and that what is taken is given back exactly."""

from __future__ import annotations

import random

import pytest
from planner import inventory
from planner.dra import DeviceId
from planner.model import HostResources, HostUse
from planner.placement import Board, Use, Wish
from planner.units import MI

from tests import build
from tests.build import Object

NO_HOST = HostResources(cpu_milli=0, memory=0)


def board(*world: Object | list[Object], host_use: tuple[HostUse, ...] = ()) -> Board:
    snapshot = build.snapshot(*world)
    stock = inventory.build(
        snapshot.slices, snapshot.claims, snapshot.device_classes, snapshot.taint_rules, snapshot.nodes, (1, 37)
    )
    return Board(stock, host_use)


def wish(found: Board, profile: str, use: Use | None = None, count: int = 1, host: HostResources = NO_HOST) -> Wish:
    """A wish for devices of that profile or product."""
    shapes = {device.shape for device in found.inventory.devices if profile in (device.profile, device.product)}
    assert shapes
    return Wish(use=use or Use(), shapes=frozenset(shapes), count=count, host=host)


def seated(found: Board, *profiles: str) -> list[str]:
    """The devices that these profiles get one after another; "-" where there is none."""
    told = []
    for profile in profiles:
        asked = wish(found, profile)
        got = found.find(asked)
        if got is None:
            told.append("-")
            continue
        found.take(got[1].devices, asked.use, got[1].node, asked.host)
        told.append(got[1].devices[0].name)
    return told


GEOMETRY: dict[str, tuple[list[Object], tuple[str, ...], list[str]]] = {
    "a 1g lands at the first position, where a 4g would start, so that one opens the next card": (
        build.h100_mig(2), ("1g.10gb", "4g.40gb"), ["gpu-0-mig-1g10gb-0-0", "gpu-1-mig-4g40gb-4-0"],
    ),
    "a 3g lands in the half that the 1g and the 2g leave": (
        build.h100_mig(2), ("1g.10gb", "2g.20gb", "3g.40gb"),
        ["gpu-0-mig-1g10gb-0-0", "gpu-0-mig-2g20gb-2-2", "gpu-0-mig-3g40gb-3-4"],
    ),
    "a 4g comes first and leaves room for a 2g and a 1g": (
        build.h100_mig(2), ("4g.40gb", "2g.20gb", "1g.10gb"),
        ["gpu-0-mig-4g40gb-4-0", "gpu-0-mig-2g20gb-2-4", "gpu-0-mig-1g10gb-0-6"],
    ),
    "a card in use is filled before another is opened": (
        build.h100_mig(2), ("3g.40gb", "3g.40gb", "3g.40gb"),
        ["gpu-0-mig-3g40gb-3-0", "gpu-0-mig-3g40gb-3-4", "gpu-1-mig-3g40gb-3-0"],
    ),
    "an eighth 1g opens the next card": (
        build.h100_mig(2), ("1g.10gb",) * 8,
        [f"gpu-0-mig-1g10gb-0-{start}" for start in range(7)] + ["gpu-1-mig-1g10gb-0-0"],
    ),
    "a 1g in the way leaves no room for the largest partition": (
        build.a30_mig(1), ("1g.6gb", "4g.24gb"), ["gpu-0-mig-1g6gb-0-0", "-"],
    ),
    "four 1g fill an A30, a fifth finds nothing": (
        build.a30_mig(1), ("1g.6gb",) * 5, [f"gpu-0-mig-1g6gb-0-{start}" for start in (0, 1, 2, 3)] + ["-"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GEOMETRY.values(), ids=GEOMETRY)
def test_the_seat_takes_the_least_from_what_others_could_have(
    case: tuple[list[Object], tuple[str, ...], list[str]],
) -> None:
    world, profiles, want = case
    assert seated(board(world), *profiles) == want


def test_a_share_goes_to_the_card_in_use_with_the_least_to_spare() -> None:
    found = board(
        build.l40s_shared(3),
        build.claim("half", [(build.NVIDIA, "node-l40s", "gpu-2")], shares={"memory": "20000Mi"}),
        build.claim("most", [(build.NVIDIA, "node-l40s", "gpu-1")], shares={"memory": "40000Mi"}),
    )
    got = []
    for need in (5000, 5000, 20000, 40000):
        asked = wish(found, "NVIDIA L40S", Use((("memory", need * MI),)))
        seat = found.find(asked)
        assert seat is not None
        found.take(seat[1].devices, asked.use, seat[1].node, None)
        got.append(seat[1].devices[0].name)
    assert got == ["gpu-1", "gpu-2", "gpu-2", "gpu-0"]


def test_several_devices_are_of_one_node_with_the_fewest_to_spare() -> None:
    found = board(build.h100_80g(8, "node-a"), build.h100_80g(3, "node-b"), build.h100_80g(1, "node-c"))
    seat = found.find(wish(found, "NVIDIA H100 80GB HBM3", count=2))
    assert seat is not None
    assert (seat[1].node, [device.name for device in seat[1].devices]) == ("node-b", ["gpu-0", "gpu-1"])
    assert found.find(wish(found, "NVIDIA H100 80GB HBM3", count=9)) is None


def test_a_node_without_room_for_the_pod_is_passed_over() -> None:
    world = build.flat(build.l4_24g(1, "node-a"), build.l4_24g(1, "node-b"))
    world[0] = build.node("node-a", cpu="8", memory="8Gi")
    found = board(world, host_use=(HostUse(node="node-a", cpu_milli=7000, memory=0),))
    small, large = HostResources(cpu_milli=1000, memory=1), HostResources(cpu_milli=1001, memory=1)
    assert [found.find(wish(found, "NVIDIA L4", host=host))[1].node for host in (small, large)] == [  # type: ignore[index]
        "node-a", "node-b",
    ]  # fmt: skip


def test_nothing_is_left_of_what_was_taken_and_given_back() -> None:
    found = board(build.h100_mig(2), build.l40s_shared(2), build.a30_deckhouse(1))
    before = found.ledger.copy()
    rng = random.Random(7)
    taken: list[tuple[tuple[DeviceId, ...], Use]] = []
    for _ in range(300):
        if taken and rng.random() < 0.45:
            devices, use = taken.pop(rng.randrange(len(taken)))
            found.give_back(devices, use, "node-h100", NO_HOST)
            continue
        device = rng.choice(found.inventory.devices)
        use = Use((("memory", rng.randrange(1, 9) * 1024 * MI),)) if device.shareable else Use()
        if found.can_take(device.id, use):
            found.take((device.id,), use, "node-h100", NO_HOST)
            taken.append(((device.id,), use))
    assert taken
    for devices, use in taken:
        found.give_back(devices, use, "node-h100", NO_HOST)
    assert found.ledger == before
    assert seated(found, "1g.10gb") == ["gpu-0-mig-1g10gb-0-0"]
