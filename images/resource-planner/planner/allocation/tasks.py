# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What the claims ask, ready to be searched: per request its alternatives, each with its verdict on every device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.allocation.answers import Undecidable
from planner.allocation.problem import Problem, room
from planner.dra import Ask, Claim, Mode, Request, lookup

LARGEST_ALLOCATION: Final = 32
"""Devices per claim (`AllocationResultsMaxSize`)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """One alternative of one request, ready to be searched."""

    claim: int
    name: str
    """As results write it: `request` or `request/subrequest`."""
    ask: Ask
    verdicts: tuple[bool | str, ...]
    """Per candidate: selectors."""
    admitted: int
    """Bit per candidate: not refused by the selectors (errors included)."""
    erring: int
    """Bit per candidate: its selectors cannot be judged."""
    constraints: tuple[int, ...]
    """Which constraints of the claim bind it."""
    everything: tuple[int, ...] | None
    """`All`: the candidates that it needs."""

    @property
    def wanted(self) -> int:
        return self.ask.count if self.everything is None else len(self.everything)


def prepare(problem: Problem, number: int, claim: Claim, order: tuple[int, ...]) -> list[list[Task]]:
    """Per request of the claim its alternatives. Raises `Undecidable` for what the scheduler refuses to judge."""
    label = f"claim {claim.namespace}/{claim.name}"
    prepared = []
    least = 0
    for request in claim.requests:
        _check(problem, label, request)
        alternatives = [_task(problem, number, claim, request, ask, order) for ask in request.asks]
        least += min(task.wanted for task in alternatives)
        if least > LARGEST_ALLOCATION:
            raise Undecidable(f"{label}: it asks for more than {LARGEST_ALLOCATION} devices")
        prepared.append(alternatives)
    for constraint in claim.constraints:
        if constraint.match is None and constraint.distinct is None:
            raise Undecidable(f"{label}: it has a constraint of an unknown kind")
        if constraint.match is None and not problem.gates.full:
            raise Undecidable(f"{label}: distinctAttribute needs the gate DRAConsumableCapacity, which is off")
    return prepared


def hopeless(problem: Problem, claims: Sequence[Claim], tasks: Sequence[Sequence[Sequence[Task]]]) -> bool:
    """Some request cannot be met even alone. Where a selector errs the search itself must say what it reaches."""
    every = [alternatives for requests in tasks for alternatives in requests]
    if any(task.erring for alternatives in every for task in alternatives):
        return False
    return any(all(_short(problem, claims[task.claim], task) for task in alternatives) for alternatives in every)


def _short(problem: Problem, claim: Claim, task: Task) -> bool:
    """Fewer devices than wanted match, or fewer that agree (or differ) as a constraint wants it."""
    if task.everything is not None:
        return not task.everything
    free = task.admitted if task.ask.admin_access else task.admitted & ~problem.held
    if free.bit_count() < task.wanted:
        return True
    if problem.gates.lists:
        return False
    near = [candidate for candidate in problem.candidates if free >> candidate.index & 1]
    for constraint in (claim.constraints[position] for position in task.constraints):
        name = constraint.match or constraint.distinct or ""
        found = (lookup(candidate.spec.attributes, candidate.id.driver, name) for candidate in near)
        counts = Counter(value for value in found if value is not None)
        most = max(counts.values(), default=0) if constraint.match is not None else len(counts)
        if most < task.wanted:
            return True
    return False


def _check(problem: Problem, label: str, request: Request) -> None:
    where = f"{label}, request {request.name}"
    if not request.asks:
        raise Undecidable(f"{where}: neither exactly nor firstAvailable is set")
    if request.prioritized and not problem.gates.prioritized:
        raise Undecidable(f"{where}: firstAvailable needs the gate DRAPrioritizedList, which is off")
    for ask in request.asks:
        if ask.capacity is not None and not problem.gates.consumable and problem.gates.full:
            raise Undecidable(f"{where}: capacity requests need the gate DRAConsumableCapacity, which is off")
        if ask.admin_access and not problem.gates.admin:
            raise Undecidable(f"{where}: admin access needs the gate DRAAdminAccess, which is off")
        if ask.device_class not in problem.classes:
            raise Undecidable(f"{where}: device class {ask.device_class} is not there")
        if ask.mode not in (Mode.EXACT_COUNT.value, Mode.ALL.value):
            raise Undecidable(f"{where}: unknown allocation mode {ask.mode}")


def _task(problem: Problem, number: int, claim: Claim, request: Request, ask: Ask, order: tuple[int, ...]) -> Task:
    name = f"{request.name}/{ask.name}" if request.prioritized else request.name
    where = f"claim {claim.namespace}/{claim.name}, request {name}"
    verdicts = tuple(problem.matches(ask, where, candidate) for candidate in problem.candidates)
    everything = _everything(problem, ask, where, verdicts, order) if ask.mode == Mode.ALL.value else None
    if any(isinstance(verdict, str) for verdict in verdicts):
        problem.erring = True
    return Task(
        claim=number,
        name=name,
        ask=ask,
        verdicts=verdicts,
        admitted=sum(1 << index for index, verdict in enumerate(verdicts) if verdict),
        erring=sum(1 << index for index, verdict in enumerate(verdicts) if isinstance(verdict, str)),
        constraints=tuple(
            position
            for position, constraint in enumerate(claim.constraints)
            if not constraint.requests or request.name in constraint.requests or name in constraint.requests
        ),
        everything=everything,
    )


def _everything(
    problem: Problem, ask: Ask, where: str, verdicts: Sequence[bool | str], order: tuple[int, ...]
) -> tuple[int, ...]:
    """The devices that `All` means: every match that has room now; an error or a pool in doubt decides nothing."""
    for pool in problem.pools:
        if pool.incomplete or pool.invalid:
            state = f"invalid: {pool.invalid}" if pool.invalid else "being updated"
            raise Undecidable(f"{where}: it asks for all devices and pool {'/'.join(pool.key)} is {state}")
    chosen = []
    for index in order:
        verdict = verdicts[index]
        if isinstance(verdict, str):
            problem.erring = True
            raise Undecidable(verdict)
        candidate = problem.candidates[index]
        if verdict and (not problem.gates.consumable or room(problem, candidate, ask, ()) is not None):
            chosen.append(index)
    return tuple(chosen)
