# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Whether claims can be allocated on a node, exactly as the API of Kubernetes defines it: an exhaustive search.

`placeable` answers ALLOCATED, NONE or ERROR. ERROR is "cannot be decided", never "does not fit": a selector that errs
on a device that the search reaches, a class that is not there, an `All` over a pool being updated, a switched-off
feature that the claim uses, a search that hits its bound. The rules are those of the allocator of 1.36 and later
wherever the releases before it only had faults (one shared device given twice in one request, a next device not tried,
counters kept after a refusal, counters of two drivers mixed, distinct values compared with the last one only):
`Release` holds what really differs between releases, `Gates` what a cluster switches on or off.

Devices are tried in the scheduler's order and judged only when reached. Three things keep the search small without
changing an answer: a device equal to one that failed at the same place is skipped, as is one at the same place of an
equal card; a situation that failed is remembered by what the rest of the search can still see of it; and a request that
wants more devices than are left is given up at once. Trial state is copied, never undone. A bound is counted in steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from planner import cel
from planner.allocation.answers import Given, Outcome, Undecidable, Verdict
from planner.allocation.problem import Judge, Problem
from planner.allocation.releases import Gates, Release, default_gates, release, seen_gates
from planner.allocation.search import solve
from planner.allocation.tasks import LARGEST_ALLOCATION
from planner.dra import Claim, DeviceClass, DeviceSpec, Node, Slice, TaintRule

__all__ = [
    "LARGEST_ALLOCATION", "STEPS", "Gates", "Given", "Judge", "Outcome", "Release", "Undecidable", "Verdict",
    "default_gates", "evaluated", "placeable", "release", "seen_gates",
]  # fmt: skip

STEPS: Final = 60_000
"""Devices tried before the search gives up as undecidable: some seconds, as the scheduler gives up after ten."""


def placeable(
    slices: Sequence[Slice],
    claims: Sequence[Claim],
    held: Sequence[Claim],
    device_classes: Sequence[DeviceClass],
    node: Node,
    kubernetes: tuple[int, int],
    *,
    gates: Gates | None = None,
    taint_rules: Sequence[TaintRule] = (),
    steps: int = STEPS,
    judge: Judge | None = None,
) -> Outcome:
    """Whether the scheduler could allocate all of `claims` (one pod's) on `node` while `held` keep what they have.

    `gates` None: every one on but list attributes. Taints of the node itself, its readiness and its CPU are no part of
    the question. `steps` bounds the devices tried; at the bound the answer is ERROR and says so. `judge` brings
    verdicts that were made before; None: every selector is judged here.
    """
    chosen = Gates() if gates is None else gates
    table = release(kubernetes)
    try:
        problem = Problem(
            slices=slices,
            held=held,
            classes={found.name: found for found in device_classes},
            node=node,
            kubernetes=kubernetes,
            gates=chosen,
            taint_rules=taint_rules,
            judge=judge or evaluated(kubernetes, lists=chosen.lists, consumable=chosen.consumable),
        )
        outcome = solve(problem, claims, problem.order(()), steps)
    except Undecidable as error:
        return Outcome(verdict=Verdict.ERROR, cause=error.cause, bounded=error.bounded)
    if table.ordered_pools or not problem.erring:
        return outcome
    # Any pool may come first here: an answer that depends on the order is none.
    for pool in problem.pools:
        try:
            solve(problem, claims, problem.order((pool,)), steps)
        except Undecidable as error:
            cause = f"{error.cause} (before 1.36 the order of pools varies, so it may be reached or not)"
            return Outcome(verdict=Verdict.ERROR, cause=cause, bounded=error.bounded)
    return outcome


def evaluated(kubernetes: tuple[int, int], *, lists: bool = False, consumable: bool = True) -> Judge:
    """Verdicts by evaluating each selector on each device.

    `lists`: selectors may see list attributes; without `consumable` no device says that it may be shared.
    """
    seen: dict[int, tuple[DeviceSpec, cel.CelDevice]] = {}

    def judged(expression: str, driver: str, spec: DeviceSpec) -> bool | str:
        if id(spec) not in seen:
            hidden = () if consumable else ("allowMultipleAllocations",)
            raw = {name: value for name, value in spec.raw.items() if name not in hidden}
            seen[id(spec)] = spec, cel.cel_device(driver, raw)  # the spec is kept so that its id stays its own
        answer = _program(expression, kubernetes, lists).judge(seen[id(spec)][1])
        if answer.verdict is cel.Verdict.MATCH:
            return True
        return False if answer.verdict is cel.Verdict.NO_MATCH else f"{answer.verdict.value}: {answer.cause}"

    return judged


@lru_cache(maxsize=4_096)
def _program(expression: str, kubernetes: tuple[int, int], lists: bool) -> cel.Program:
    return cel.compile(expression, kubernetes, list_attributes=lists)
