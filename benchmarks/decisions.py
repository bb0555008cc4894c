# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Decisions a second: orders admitted one by one on 500 nodes x 8 devices, beside the real allocator of Kubernetes.

    python -m benchmarks.decisions [--nodes 500] [--rounds 2000] [--seed 7]   (make bench-decisions)

Three fillings: empty, half of the devices held, one short of full. Every round admits one order and lets a random one
go, so the filling stays. Ours: an order comes in as a record, its whole plan comes out (class, model, sizing, recipe,
seat, claim request, CEL selectors judged), by `incremental.Kept.change`, the procedure that `plan` runs. Theirs: the
structured allocator of `k8s.io/dynamic-resource-allocation` on the same slices and classes as JSON, asked as the
scheduler asks it, an allocator from what is held and then node by node; built from tests/contract/go-allocator/loop.
Neither side talks to an API server. Both hold whole H100 only, so that they hold the same; the last row of ours mixes
shares.
Bars: 5,000 admissions a CPU second (median batch of a hundred) and 99 % under 5 ms of wall clock, in every filling.
Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from planner import garbage
from planner.incremental import Kept
from planner.model import Decision

from benchmarks import standing
from tests import build
from tests.build import Object

ALLOCATOR = Path(__file__).parents[1] / "tests" / "contract" / "go-allocator"
MOST_SECONDS = 20.0
BATCH = 100


def ours(base: list[Object], held: list[Object], fresh: list[Object], seed: int) -> dict[str, Any]:
    """Admit every one of `fresh`, one random order going for each."""
    kept = Kept()
    standing_orders = [item.key for item in kept.plan(standing.snapshot(base, held)).orders if item.seats]
    kept.change()  # what the first plan told is written now
    incoming = standing.orders(base, fresh)
    garbage.seldom()  # as `serve` does
    chance = random.Random(seed)
    seconds: list[float] = []
    cpus: list[float] = []
    refused = 0
    started = time.perf_counter()
    for order in incoming:
        if time.perf_counter() - started > MOST_SECONDS:
            break
        before, spent = time.perf_counter(), time.process_time()
        told = kept.change([order])
        cpus.append(time.process_time() - spent)
        seconds.append(time.perf_counter() - before)
        refused += told[order.key].decision is not Decision.PLACED
        standing_orders.append(order.key)
        place = chance.randrange(len(standing_orders))
        standing_orders[place], standing_orders[-1] = standing_orders[-1], standing_orders[place]
        kept.change((), [standing_orders.pop()])
    assert kept.costs.whole == 1 and kept.costs.retained == 0, kept.costs
    return {
        "held": len(standing_orders),
        "admitted": len(seconds) - int(refused),
        "refused": int(refused),
        "per_cpu_second": len(cpus) / sum(cpus),
        "usually": rate(cpus),  # theirs: the CPU time of the whole process is all that there is
        "per_second": len(seconds) / sum(seconds),
        "p50_ms": standing.percentile(seconds, 0.5) * 1e3,
        "p99_ms": standing.percentile(seconds, 0.99) * 1e3,
    }


def rate(seconds: list[float]) -> float:
    """Admissions a second in the median of batches of a hundred: what others do on the machine counts less."""
    batches = [seconds[start : start + BATCH] for start in range(0, len(seconds), BATCH)]
    return standing.percentile([len(batch) / sum(batch) for batch in batches], 0.5)


def theirs(program: Path, base: list[Object], held: int, rounds: int, seed: int) -> dict[str, Any]:
    """The same by the real allocator."""
    kinds = {kind: [item for item in base if item["kind"] == kind] for kind in ("Node", "DeviceClass", "ResourceSlice")}
    request = {
        "name": "gpu",
        "exactly": {"deviceClassName": "h100", "allocationMode": "ExactCount", "count": 1,
                    "selectors": [{"cel": {"expression": 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("35Gi")) >= 0'}}]},  # noqa: E501
    }  # fmt: skip
    claim = {"metadata": {"name": "c", "namespace": "n"}, "spec": {"devices": {"requests": [request]}}}
    question = {
        "nodes": kinds["Node"], "classes": kinds["DeviceClass"], "slices": kinds["ResourceSlice"], "claims": [claim],
        "hold": held, "rounds": rounds, "seed": seed, "seconds": MOST_SECONDS,
    }  # fmt: skip
    answer = json.loads(
        subprocess.run([program], input=json.dumps(question), capture_output=True, text=True, check=True).stdout
    )
    seconds = [micros / 1e6 for micros in answer["micros"]]
    return {
        "held": answer["held"],
        "admitted": answer["admitted"],
        "refused": answer["refused"],
        "per_cpu_second": len(seconds) / answer["cpuSeconds"],
        "usually": len(seconds) / answer["cpuSeconds"],
        "per_second": len(seconds) / sum(seconds),
        "p50_ms": standing.percentile(seconds, 0.5) * 1e3,
        "p99_ms": standing.percentile(seconds, 0.99) * 1e3,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--allocator", type=Path, help="the built program of tests/contract/go-allocator/loop")
    given = parser.parse_args()
    whole = [*standing.CLASSES, *(build.needing(need) for need in standing.NEEDS)]
    for number in range(given.nodes):
        whole += build.h100_80g(8, f"node-{number:05}")
    whole.append(build.service_class("alone", sharing=["Dedicated"], device_classes=["h100"]))
    devices = given.nodes * 8
    rows: list[dict[str, Any]] = []
    bars: list[tuple[str, bool]] = []
    with tempfile.TemporaryDirectory() as folder:
        program = given.allocator
        if program is None:
            program = Path(folder) / "allocator"
            subprocess.run(["go", "build", "-o", program, "./loop"], cwd=ALLOCATOR, check=True)
        for filling, held in (("empty", 0), ("half", devices // 2), ("one short of full", devices - 1)):
            stands = [standing.order(n, standing.NEEDS[n % 4], shared=False) for n in range(held)]
            fresh = [standing.order(n, standing.NEEDS[n % 4], shared=False) for n in range(held, held + given.rounds)]
            mine = ours(whole, stands, fresh, given.seed)
            other = theirs(program, whole, held, given.rounds, given.seed)
            rows.append({"filling": filling, "who": "planner", **mine, "ratio": 1.0})
            ratio = mine["per_cpu_second"] / other["per_cpu_second"]
            rows.append({"filling": filling, "who": "allocator", **other, "ratio": ratio})
            bars.append((f"{filling}: {mine['usually']:.0f} admissions a CPU second (median batch), 5000 wanted",
                         mine["usually"] >= 5000))  # fmt: skip
            bars.append((f"{filling}: 99 % within {mine['p99_ms']:.2f} ms, 5 wanted", mine["p99_ms"] < 5))
    base = standing.cluster(given.nodes)
    mixed = ours(base, standing.mixed(devices // 2), standing.mixed(given.rounds, devices // 2), given.seed)
    rows.append({"filling": "half, shares and whole", "who": "planner", **mixed, "ratio": 1.0})
    bars.append((f"shares and whole: {mixed['usually']:.0f} a CPU second (median batch), 5000 wanted",
                 mixed["usually"] >= 5000))  # fmt: skip
    title = f"admissions, {given.nodes} nodes x 8 devices; ratio: ours over theirs, by CPU second"
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    return standing.tell(
        "decisions", title, rows, bars, seed=given.seed, nodes=given.nodes, rounds=given.rounds, load=load
    )


if __name__ == "__main__":
    sys.exit(main())
