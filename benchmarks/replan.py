# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A plan made anew of what stands: 5,000 orders on 1,000 nodes x 8 devices, and 1,000 new orders on 500 x 8.

    python -m benchmarks.replan   (make bench-replan)

Standing orders carry the plan that was written into them, and half of them the claims that the scheduler made of it.
Three answers are timed, each in CPU and wall seconds: `plan` of the snapshot, with nothing known before; the same by a
planner that planned before, after one claim more (`incremental.Kept`); and the same after one order more. The first
must say what the second and third say. Memory is the most that the process ever had, the objects themselves included.
Bars: a new plan under 2 CPU seconds, memory under 1 GiB. Exit code 1 when one is missed.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import Any

from planner import garbage, wire
from planner.incremental import Kept
from planner.model import Plan, Snapshot
from planner.plan import plan

from benchmarks import standing
from tests import build

SIZES = ((1000, 5000), (500, 1000))


def text(made: Plan) -> dict[str, Any]:
    return wire.plan_json(made)


def timed(kept: Kept | None, snapshot: Snapshot) -> tuple[Plan, float, float]:
    started, spent = time.perf_counter(), time.process_time()
    made = plan(snapshot) if kept is None else kept.plan(snapshot)
    return made, time.process_time() - spent, time.perf_counter() - started


def row(case: str, cpu: float, wall: float) -> dict[str, Any]:
    return {"case": case, "cpu_s": cpu, "wall_s": wall, "mib": standing.resident_mib()}


def main() -> int:
    garbage.seldom()  # as `serve` does
    rows: list[dict[str, Any]] = []
    bars: list[tuple[str, bool]] = []
    for nodes, count in SIZES:
        base = standing.cluster(nodes)
        objects = [*base, *standing.mixed(count)]
        first, cpu, wall = timed(None, build.snapshot(objects))
        gc.collect()
        rows.append(row(f"{count} new orders, {nodes} x 8", cpu, wall))
        bars.append((f"{count} new orders on {nodes} x 8: {cpu:.2f} CPU s, under 2 wanted", cpu < 2))
        claims = [made for item in first.orders[: count // 2] for made in build.claims_of(item)]
        stands = build.written([*base, *standing.mixed(count)], first)
        snapshot = build.snapshot(stands, claims[1:])
        again, cpu, wall = timed(None, snapshot)
        rows.append(row(f"{count} standing, all anew", cpu, wall))
        bars.append((f"{count} standing on {nodes} x 8: {cpu:.2f} CPU s, under 2 wanted", cpu < 2))
        kept = Kept()
        kept.plan(snapshot)
        later = build.snapshot(stands, claims)
        made, cpu, wall = timed(kept, later)
        assert text(made) == text(plan(later)) and kept.costs.local == 1, kept.costs
        rows.append(row(f"{count} standing, one claim more", cpu, wall))
        fewer = build.snapshot(stands[:-1], claims[:-1])
        made, cpu, wall = timed(kept, fewer)
        assert text(made) == text(plan(fewer)) and kept.costs.local == 2, kept.costs
        rows.append(row(f"{count} standing, an order and a claim gone", cpu, wall))
        more = build.snapshot(stands[:-1], claims[:-1], standing.mixed(1, count))
        made, cpu, wall = timed(kept, more)
        assert text(made) == text(plan(more)) and kept.costs.local == 3, kept.costs
        rows.append(row(f"{count} standing, one order more", cpu, wall))
        assert sum(1 for item in again.orders if item.seats) == count
    most = standing.resident_mib()
    bars.append((f"memory: {most:.0f} MiB, under 1024 wanted", most < 1024))
    return standing.tell("replan", "plans of what stands", rows, bars, seed="none: nothing is drawn")


if __name__ == "__main__":
    sys.exit(main())
