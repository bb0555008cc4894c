# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How the cost of a decision grows with what stands: orders x 2 and devices x 2, four doublings each.

    python -m benchmarks.growth   (make bench-growth)

Of each size: CPU seconds of a plan of what stands made anew (the best of three, the rest being the machine), and CPU
milliseconds of one order that comes and goes (`incremental.Kept.change`, mean of a hundred).
Bar: a plan made anew grows no worse than n log n, measured from the first size to the last. Exit code 1 when missed.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable
from typing import Any

from planner import garbage
from planner.incremental import Kept
from planner.plan import plan

from benchmarks import standing
from tests import build

DOUBLINGS = 4


def of_size(nodes: int, count: int) -> tuple[float, float]:
    """CPU seconds of a plan anew and of one order that comes and goes."""
    base = standing.cluster(nodes)
    objects = [*base, *standing.mixed(count)]
    snapshot = build.snapshot(build.written(objects, plan(build.snapshot(objects))))
    gc.collect()
    anew = min(spent(lambda: plan(snapshot)) for _ in range(3))
    kept = Kept()
    kept.plan(snapshot)
    fresh = standing.orders(base, standing.mixed(100, count))
    kept.change()

    def come_and_go() -> None:
        for order in fresh:
            kept.change([order])
            kept.change((), [order.key])

    return anew, spent(come_and_go) / len(fresh)


def spent(act: Callable[[], object]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


def main() -> int:
    garbage.seldom()  # as `serve` does
    rows: list[dict[str, Any]] = []
    bars = []
    for what, sizes in (
        ("orders", [(250, 125 << step) for step in range(DOUBLINGS + 1)]),
        ("devices", [(40 << step, 300) for step in range(DOUBLINGS + 1)]),
    ):
        measured = []
        for nodes, count in sizes:
            anew, one = of_size(nodes, count)
            measured.append(anew)
            size = count if what == "orders" else nodes * 8
            rows.append(
                {
                    "doubled": what,
                    "orders": count,
                    "devices": nodes * 8,
                    "anew_cpu_s": anew,
                    "one_order_cpu_ms": one * 1e3,
                }
            )
        smallest = size >> DOUBLINGS
        allowed = (size * math.log(size)) / (smallest * math.log(smallest))
        grown = measured[-1] / measured[0]
        words = f"{what} x {1 << DOUBLINGS}: the plan costs x {grown:.1f}, n log n is x {allowed:.1f}"
        bars.append((words, grown <= allowed))
    return standing.tell("growth", "growth with what stands", rows, bars, seed="none: nothing is drawn")


if __name__ == "__main__":
    sys.exit(main())
