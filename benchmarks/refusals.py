# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The time to a truthful no, with a reason that can be checked, at 500 nodes x 8 devices.

    python -m benchmarks.refusals [--nodes 500] [--rounds 120]   (make bench-refusals)

Every round an order comes that finds no room, is told so with needed, free and shortfall, gets a minimal blocking set,
and goes again. Checked beside the clock, for each: the numbers agree, without all of the set the order has a seat, with
any one of it back it has none. The cases: a device of its own where all are held; a share one MiB larger than any that
is free; eight equal devices of one node where every node has seven; a partition where the counters of every card are
one slice short. The fifth is asked of the allocator's own search: 32 devices that agree in an attribute which 31 have.
Before each the board changed, so that nothing is told from memory. Bars: each within 20 CPU ms (99 % after the first,
which pays for what is made once per cluster), all checked. Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from planner import allocation, dra, garbage
from planner.incremental import Kept
from planner.model import Decision, Key

from benchmarks import standing
from tests import build
from tests.build import Object

BIG = "Qwen/Qwen3-235B-A22B"
Made = tuple[list[Object], list[Object], Object]


def all_held(nodes: int) -> Made:
    base = whole(nodes)
    return base, [standing.order(n, "35Gi", shared=False) for n in range(nodes * 8)], newcomer("alone", "needs-35gi")


def one_mib_short(nodes: int) -> Made:
    base = standing.cluster(0)
    for number in range(nodes):
        base += build.l40s_shared(8, f"node-{number:05}")
    base += [build.needing("10229Mi")]
    # 46068 MiB a card: 35 GiB leave 10,228; a share of that size and one MiB more is asked.
    return base, [standing.order(n, "35Gi", shared=True) for n in range(nodes * 8)], newcomer("share", "needs-10229mi")


def eight_of_seven(nodes: int) -> Made:
    base = whole(nodes)
    base.append(build.service_class("eight", sharing=["Dedicated"], device_classes=["h100"], count=8))
    claims = [
        build.claim(f"other-{n}", [("gpu.nvidia.com", f"node-{n:05}", f"gpu-{n % 8}")], namespace="others")
        for n in range(nodes)
    ]
    asked = build.order("newcomer", service_class="eight", model=BIG, hub=True, created=80_000)
    return [*base, *claims], [], asked


def counters_short(nodes: int) -> Made:
    """A 3g.40gb holds half of each card and a 1g.20gb a slice pair of the rest: no second half is left anywhere."""
    base = standing.cluster(0)
    base.append(build.service_class("cut", sharing=["Dedicated"], placement=["Partition"], device_classes=["h100"]))
    claims = []
    for number in range(nodes):
        where = f"node-{number:05}"
        base += build.h100_mig(8, where)
        for card in range(8):
            for place, name in enumerate(("mig-3g40gb-3-0", "mig-1g20gb-1-4")):
                device = ("gpu.nvidia.com", where, f"gpu-{card}-{name}")
                claims.append(build.claim(f"other-{number}-{card}-{place}", [device], namespace="others"))
    return [*base, *claims], [], newcomer("cut", "needs-35gi")


def whole(nodes: int) -> list[Object]:
    base = standing.cluster(0)
    for number in range(nodes):
        base += build.h100_80g(8, f"node-{number:05}")
    return base


def newcomer(service_class: str, model: str) -> Object:
    return build.order("newcomer", service_class=service_class, model=model, created=80_000)


def measured(name: str, made: Made, rounds: int) -> dict[str, Any]:
    base, held, asked = made
    kept = Kept()
    kept.plan(standing.snapshot(base, held))
    kept.change()
    (order,) = standing.orders(base, [asked])
    seconds, cpu, checked, size = [], [], 0, 0
    for number in range(rounds):
        order = replace(order, key=order.key._replace(name=f"newcomer-{number}"))
        touch(kept)
        before, spent = time.perf_counter(), time.process_time()
        told = kept.change([order])[order.key]
        blocking = kept.planning.blocking(order.key)
        cpu.append(time.process_time() - spent)
        seconds.append(time.perf_counter() - before)
        assert told.decision is Decision.REFUSED, told
        checked += holds(kept, order.key)
        size = len(blocking)
        kept.change((), [order.key])
    return row(name, seconds, cpu, checked, size, told.message)


def touch(kept: Kept) -> None:
    """Somebody leaves and comes back."""
    planning = kept.planning
    holding = planning.holdings()[0]
    planning.board.leave(holding)
    planning.board.come_back(holding)


def holds(kept: Kept, key: Key) -> bool:
    """The refusal's numbers agree and its blocking set is one: checked on the board, by hand."""
    planning = kept.planning
    work = planning.works[key]
    refusal = planning.refusal(work)
    assert work.considered is not None
    offers = work.considered.offers
    if not isinstance(refusal.needed, int) or not isinstance(refusal.free, int):
        return False
    left = list(planning.blocking(key))
    members = []
    for holding in planning.holdings():
        if holding.holder in left:
            left.remove(holding.holder)
            members.append(holding)

    def fits() -> bool:
        return any(planning.board.find(offer.wish) is not None for offer in offers)

    good = refusal.needed - refusal.free == refusal.shortfall and bool(members) and not left and not fits()
    for holding in members:
        planning.board.leave(holding)
    good = good and fits()
    for holding in members:
        planning.board.come_back(holding)
        good = good and not fits()
        planning.board.leave(holding)
    for holding in members:
        planning.board.come_back(holding)
    return good


def agreeing(rounds: int) -> dict[str, Any]:
    """32 devices of one NUMA node where 31 are on one: the search itself; checked by adding the 32nd."""

    def devices(same: int) -> list[dra.Slice]:
        plain = [
            {"name": f"d{n}", "attributes": {"gpu.example.com/numa": {"int": 0 if n < same else 1 + n}}}
            for n in range(62)
        ]
        spec = {
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        }
        return [dra.read_slice({"metadata": {"name": "s"}, "spec": {**spec, "devices": plain}})]

    ask = {"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 32}}
    claim = dra.read_claim({
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {"devices": {"requests": [ask], "constraints": [{"matchAttribute": "gpu.example.com/numa"}]}},
    })  # fmt: skip

    def verdict(same: int) -> allocation.Verdict:
        return allocation.placeable(
            devices(same), [claim], [], [dra.DeviceClass(name="any", selectors=("true",))], dra.Node(name="n"), (1, 37)
        ).verdict

    seconds, cpu, checked = [], [], 0
    for _ in range(rounds):
        before, spent = time.perf_counter(), time.process_time()
        answer = verdict(31)
        cpu.append(time.process_time() - spent)
        seconds.append(time.perf_counter() - before)
        checked += answer is allocation.Verdict.NONE and verdict(32) is allocation.Verdict.ALLOCATED
    return row("32 of 31 that agree", seconds, cpu, checked, 0, "none: 32 needed, 31 agree in gpu.example.com/numa")


def row(name: str, seconds: list[float], cpu: list[float], checked: int, size: int, message: str) -> dict[str, Any]:
    return {
        "case": name,
        "rounds": len(seconds),
        "first_ms": seconds[0] * 1e3,
        "p50_ms": standing.percentile(seconds, 0.5) * 1e3,
        "p99_ms": standing.percentile(seconds, 0.99) * 1e3,
        "cpu_p50_ms": standing.percentile(cpu, 0.5) * 1e3,
        "cpu_p99_ms": standing.percentile(cpu[1:], 0.99) * 1e3,
        "checked": checked,
        "blocking_set": size,
        "told": message[:70],
    }


CASES: dict[str, Callable[[int], Made]] = {
    "a device, all held": all_held,
    "a share, one MiB short": one_mib_short,
    "8 of 7 on every node": eight_of_seven,
    "counters one slice short": counters_short,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=120)
    given = parser.parse_args()
    garbage.seldom()  # as `serve` does
    rows = [measured(name, made(given.nodes), given.rounds) for name, made in CASES.items()]
    rows.append(agreeing(given.rounds))
    bars = [
        (f"{item['case']}: {item['cpu_p99_ms']:.1f} CPU ms, under 20 wanted", item["cpu_p99_ms"] < 20) for item in rows
    ]
    checked, of = sum(item["checked"] for item in rows), sum(item["rounds"] for item in rows)
    bars.append((f"reasons checked: {checked} of {of}", checked == of))
    title = f"time to a truthful no, {given.nodes} nodes x 8 devices"
    return standing.tell("refusals", title, rows, bars, nodes=given.nodes, seed="none: nothing is drawn")


if __name__ == "__main__":
    sys.exit(main())
