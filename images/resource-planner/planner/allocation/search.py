# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The exhaustive search: the first full solution in the scheduler's order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.allocation.answers import Given, Outcome, Undecidable, Verdict
from planner.allocation.problem import Candidate, Problem, room
from planner.allocation.tasks import LARGEST_ALLOCATION, Task, hopeless, prepare
from planner.dra import Amount, Ask, Attribute, Claim, Constraint, lookup


@dataclass(frozen=True, slots=True)
class State:
    """What the solution tried so far takes. Every change is a new state."""

    busy: int = 0
    """Bit per candidate: given whole in this pod."""
    busy_here: int = 0
    """The same, to the claim at hand."""
    seats: int = 0
    """Bit per candidate: a share of it is given in this pod."""
    counters: tuple[tuple[int, Amount], ...] = ()
    shares: tuple[tuple[int, tuple[tuple[str, Amount], ...]], ...] = ()
    values: tuple[object, ...] = ()
    """Per constraint of the claim at hand: the value agreed on, or the values taken."""
    count: int = 0
    """Devices given to the claim at hand."""
    given: tuple[Given, ...] = ()


def solve(problem: Problem, claims: Sequence[Claim], order: tuple[int, ...], steps: int) -> Outcome:
    tasks = [prepare(problem, number, claim, order) for number, claim in enumerate(claims)]
    search = Search(problem=problem, claims=claims, tasks=tasks, order=order, steps=steps)
    solution = None if hopeless(problem, claims, tasks) else search.run()
    if solution is not None:
        return Outcome(verdict=Verdict.ALLOCATED, given=solution.given, steps=search.steps)
    for pool in problem.pools:
        if pool.invalid:
            cause = f"nothing else fits and pool {'/'.join(pool.key)} is invalid: {pool.invalid}"
            raise Undecidable(cause)
    return Outcome(verdict=Verdict.NONE, steps=search.steps)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Candidates tied by counters, or one that stands alone."""

    members: tuple[int, ...]
    kind: int
    """Equal numbers: the groups are built alike, member by member and counter by counter."""
    counters: tuple[int, ...]
    masks: dict[int, int]
    """Remembered: a mask over all candidates → the same over the members."""
    touched: dict[int, tuple[int, ...]]
    """Remembered: a mask over the members → the counters that they touch."""

    def local(self, mask: int) -> int:
        """`mask` as it is for the members, numbered from 0."""
        found = self.masks.get(mask)
        if found is None:
            found = sum(1 << place for place, index in enumerate(self.members) if mask >> index & 1)
            self.masks[mask] = found
        return found

    def counters_of(self, wanted: int, problem: Problem) -> tuple[int, ...]:
        """The counters that these members touch."""
        found = self.touched.get(wanted)
        if found is None:
            chosen = [index for place, index in enumerate(self.members) if wanted >> place & 1]
            touched = {number for index in chosen for number, _ in problem.candidates[index].consumes}
            found = tuple(number for number in self.counters if number in touched)
            self.touched[wanted] = found
        return found


def groups(problem: Problem, signatures: Sequence[int]) -> list[Group]:
    """Candidates that share a counter stand in one group, in order."""
    owner: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for candidate in problem.candidates:
        tied = sorted({owner[number] for number, _ in candidate.consumes if number in owner})
        mine = tied[0] if tied else candidate.index
        members.setdefault(mine, []).append(candidate.index)
        for other in tied[1:]:
            members[mine] += members.pop(other)
            owner.update({number: mine for number, group in owner.items() if group == other})
        owner.update({number: mine for number, _ in candidate.consumes})
    kinds: dict[object, int] = {}
    groups = []
    for indices in sorted(sorted(found) for found in members.values()):
        counters = tuple(dict.fromkeys(n for index in indices for n, _ in problem.candidates[index].consumes))
        told = (
            tuple(
                (
                    signatures[index],
                    tuple((counters.index(n), amount) for n, amount in problem.candidates[index].consumes),
                )
                for index in indices
            ),
            tuple(problem.limits[number] for number in counters),
        )
        kind = kinds.setdefault(told, len(kinds))
        groups.append(Group(members=tuple(indices), kind=kind, counters=counters, masks={}, touched={}))
    return groups


class Search:
    """Claims, then requests, then alternatives, then devices: the first full solution in the scheduler's order."""

    def __init__(
        self,
        *,
        problem: Problem,
        claims: Sequence[Claim],
        tasks: Sequence[Sequence[Sequence[Task]]],
        order: tuple[int, ...],
        steps: int,
    ) -> None:
        self._problem = problem
        self._claims = claims
        self._tasks = tasks
        self._order = order
        self._bound = steps
        self.steps = 0
        self._after = [sum(1 << index for index in order[start:]) for start in range(len(order) + 1)]
        """Per place: the candidates from there on."""
        self._later = self._masks_of_later()
        self._failed: set[tuple[object, ...]] = set()
        self._signature = self._signatures()
        self._groups = groups(problem, self._signature)
        self._group_of = {index: group for group in self._groups for index in group.members}
        self._values_of: dict[int, dict[str, frozenset[object]]] = {}

    def run(self) -> State | None:
        """The solution, or None. Raises `Undecidable` at an erring selector and at the bound."""
        return self._claim(0, State())

    def _claim(self, number: int, state: State) -> State | None:
        if number == len(self._claims):
            return state
        blank: tuple[object, ...] = tuple(
            None if constraint.match is not None else frozenset() for constraint in self._constraints(number)
        )
        return self._request(number, 0, replace(state, busy_here=0, values=blank, count=0))

    def _request(self, claim: int, request: int, state: State) -> State | None:
        if request == len(self._tasks[claim]):
            return self._claim(claim + 1, state)
        for alternative in range(len(self._tasks[claim][request])):
            task = self._tasks[claim][request][alternative]
            if task.everything is not None:
                found = self._all(request, task, state)
            elif state.count + task.wanted > LARGEST_ALLOCATION:
                found = None
            else:
                found = self._devices(request, alternative, task, 0, 0, state)
            if found is not None:
                return found
        return None

    def _all(self, request: int, task: Task, state: State) -> State | None:
        everything = task.everything or ()
        if not everything or state.count + len(everything) > LARGEST_ALLOCATION:
            return None
        for index in everything:
            self._step()
            after = self._give(task, index, state)
            if after is None:
                return None
            state = after
        return self._request(task.claim, request + 1, state)

    def _devices(self, request: int, alternative: int, task: Task, have: int, start: int, state: State) -> State | None:
        """`have` devices are given; the next one comes at or after place `start` of the order."""
        if have == task.wanted:
            return self._request(task.claim, request + 1, state)
        remaining = self._remaining(task, start)
        free = remaining & ~(state.busy_here if task.ask.admin_access else state.busy | self._problem.held)
        if free.bit_count() < task.wanted - have and not free & task.erring:
            return None
        situation: tuple[object, ...] | None = None
        if self._failed:
            situation = self._situation(request, alternative, task, have, start, state)
            if situation in self._failed:
                return None
        refused: set[tuple[object, ...]] = set()
        candidates = self._problem.candidates
        for place in range(start, len(self._order)):
            index = self._order[place]
            bit = 1 << index
            if self._taken(task, candidates[index], bit, state):
                continue
            verdict = task.verdicts[index]
            if isinstance(verdict, str):
                raise Undecidable(verdict)
            if not verdict:
                continue
            alike = self._signature[index], candidates[index].consumes, self._own(index, state)
            if alike in refused:
                continue
            placed = self._placed(index, remaining, state)
            if placed in refused:
                continue
            self._step()
            after = self._give(task, index, state)
            if after is not None:
                found = self._devices(request, alternative, task, have + 1, place + 1, after)
                if found is not None:
                    return found
            refused |= {alike, placed}
        self._failed.add(situation or self._situation(request, alternative, task, have, start, state))
        return None

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._bound:
            raise Undecidable(f"the search gave up after {self._bound} steps", bounded=True)

    def _taken(self, task: Task, candidate: Candidate, bit: int, state: State) -> bool:
        """In use, so that not even its selectors are looked at."""
        if task.ask.admin_access:
            return bool(state.busy_here & bit)
        return candidate.held or bool(state.busy & bit)

    def _give(self, task: Task, index: int, state: State) -> State | None:
        """The state with one more device given, or None when something refuses it."""
        problem, candidate, bit = self._problem, self._problem.candidates[index], 1 << index
        if self._taken(task, candidate, bit, state):
            return None
        if not candidate.shareable and candidate.shared and not task.ask.admin_access:
            return None
        if candidate.spec.consumes and not problem.gates.partitionable:
            return None
        if not _tolerated(candidate, task.ask):
            return None
        counters = self._with_counters(candidate, bit, state)
        if counters is None:
            return None
        values = self._with_values(task, candidate, state)
        if values is None:
            return None
        consumed: dict[str, Amount] | None = None
        shares = state.shares
        if problem.gates.consumable:
            flying = dict(state.shares)
            consumed = room(problem, candidate, task.ask, flying.get(index, ()))
            if consumed is None:
                return None
            if candidate.shareable:
                before = dict(flying.get(index, ()))
                flying[index] = tuple((name, amount + before.get(name, 0)) for name, amount in consumed.items())
                shares = tuple(sorted(flying.items(), key=lambda item: item[0]))
        given = Given(
            claim=task.claim,
            request=task.name,
            device=candidate.id,
            consumed=consumed if candidate.shareable else None,
            admin_access=task.ask.admin_access,
        )
        return State(
            busy=state.busy if candidate.shareable else state.busy | bit,
            busy_here=state.busy_here if candidate.shareable else state.busy_here | bit,
            seats=state.seats | bit if candidate.shareable else state.seats,
            counters=counters,
            shares=shares,
            values=values,
            count=state.count + 1,
            given=(*state.given, given),
        )

    def _with_counters(self, candidate: Candidate, bit: int, state: State) -> tuple[tuple[int, Amount], ...] | None:
        """Counters in flight with this device's; a shared device is charged once, whoever holds the first share."""
        if not candidate.consumes or (candidate.shareable and (candidate.shared or state.seats & bit)):
            return state.counters
        if candidate.pool in self._problem.overdrawn:
            return None
        used = dict(state.counters)
        limits = self._problem.limits
        for number, amount in candidate.consumes:
            used[number] = used.get(number, 0) + amount
            if used[number] > limits[number]:
                return None
        return tuple(sorted(used.items()))

    def _with_values(self, task: Task, candidate: Candidate, state: State) -> tuple[object, ...] | None:
        values = list(state.values)
        constraints = self._constraints(task.claim)
        for position in task.constraints:
            after = _agreed(constraints[position], candidate, values[position], lists=self._problem.gates.lists)
            if after is None:
                return None
            values[position] = after
        return tuple(values)

    def _constraints(self, claim: int) -> tuple[Constraint, ...]:
        return self._claims[claim].constraints

    def _masks_of_later(self) -> list[list[int]]:
        """Per claim and request: the candidates that the requests after it may still want."""
        masks: list[list[int]] = []
        after = 0
        for requests in reversed(self._tasks):
            row = []
            for alternatives in reversed(requests):
                row.append(after)
                for task in alternatives:
                    after |= task.admitted
            masks.append(row[::-1])
        return masks[::-1]

    def _remaining(self, task: Task, start: int) -> int:
        """The candidates that the request at hand may still take."""
        return task.admitted & self._after[start]

    def _situation(
        self, request: int, alternative: int, task: Task, have: int, start: int, state: State
    ) -> tuple[object, ...]:
        """All that the rest of the search depends on: equal situations end equally.

        Devices that share counters are seen together, and groups that are built alike are told only by their state:
        which of eight equal cards is cut how does not matter.
        """
        remaining = self._remaining(task, start)
        rest = remaining | self._later[task.claim][request]
        counters = dict(state.counters)
        shares = dict(state.shares)
        groups = []
        for group in self._groups:
            wanted = group.local(rest)
            if wanted:
                groups.append(
                    (
                        group.kind,
                        wanted,
                        group.local(remaining),
                        group.local(state.busy & rest),
                        group.local(state.busy_here & rest),
                        group.local(state.seats & rest),
                        tuple(counters.get(number, 0) for number in group.counters_of(wanted, self._problem)),
                        tuple(shares[index] for index in group.members if rest >> index & 1 and index in shares),
                    )
                )
        groups.sort(key=repr)
        values = tuple(
            value & self._distinct_values(rest)[constraint.distinct]
            if constraint.distinct is not None and isinstance(value, frozenset)
            else value
            for constraint, value in zip(self._constraints(task.claim), state.values, strict=True)
        )
        return task.claim, request, alternative, have, state.count, tuple(groups), values

    def _distinct_values(self, rest: int) -> dict[str, frozenset[object]]:
        """The values that these candidates have of each attribute that must be distinct."""
        if rest not in self._values_of:
            names = {
                constraint.distinct
                for claim in self._claims
                for constraint in claim.constraints
                if constraint.distinct is not None
            }
            self._values_of[rest] = {
                name: frozenset(
                    part
                    for candidate in self._problem.candidates
                    if rest >> candidate.index & 1
                    and (found := lookup(candidate.spec.attributes, candidate.id.driver, name)) is not None
                    for part in _parts(found, lists=self._problem.gates.lists)
                )
                for name in names
            }
        return self._values_of[rest]

    def _own(self, index: int, state: State) -> tuple[object, ...]:
        share = next((item[1] for item in state.shares if item[0] == index), ())
        return state.busy >> index & 1, state.busy_here >> index & 1, state.seats >> index & 1, share

    def _placed(self, index: int, remaining: int, state: State) -> tuple[object, ...]:
        """The device's place in its group and all of the group's state: equal ones in equal groups fail alike."""
        group = self._group_of[index]
        counters = dict(state.counters)
        return (
            group.kind,
            group.members.index(index),
            group.local(remaining),
            group.local(state.busy),
            group.local(state.busy_here),
            group.local(state.seats),
            tuple(counters.get(number, 0) for number in group.counters),
            tuple((group.members.index(item[0]), item[1]) for item in state.shares if item[0] in group.members),
        )

    def _signatures(self) -> list[int]:
        """Equal numbers: nothing in this problem but their counters tells the two devices apart."""
        attributes = sorted(
            {
                name
                for claim in self._claims
                for constraint in claim.constraints
                for name in (constraint.match, constraint.distinct)
                if name is not None
            }
        )
        tasks = [task for requests in self._tasks for alternatives in requests for task in alternatives]
        numbers: dict[object, int] = {}
        signatures = []
        for candidate in self._problem.candidates:
            told = (
                candidate.pool in self._problem.overdrawn,
                tuple(_known(task.verdicts[candidate.index]) for task in tasks),
                tuple(task.everything is not None and candidate.index in task.everything for task in tasks),
                tuple(lookup(candidate.spec.attributes, candidate.id.driver, name) for name in attributes),
                bool(candidate.spec.consumes),
                candidate.shareable,
                candidate.taints,
                candidate.held,
                candidate.shared,
                tuple(sorted(candidate.consumed.items())),
                tuple(
                    (name, item.value, None if item.policy is None else repr(item.policy))
                    for name, item in sorted(candidate.spec.capacity.items())
                ),
            )
            signatures.append(numbers.setdefault(told, len(numbers)))
        return signatures


def _tolerated(candidate: Candidate, ask: Ask) -> bool:
    return all(any(toleration.tolerates(taint) for toleration in ask.tolerations) for taint in candidate.taints)


def _agreed(constraint: Constraint, candidate: Candidate, before: object, *, lists: bool) -> object | None:
    """The constraint's value with this device added; None: it refuses the device, one without the attribute always."""
    name = constraint.match or constraint.distinct or ""
    found = lookup(candidate.spec.attributes, candidate.id.driver, name)
    if found is None:
        return None
    mine = frozenset(_parts(found, lists=lists))
    if constraint.match is not None:
        if before is None:
            return mine
        assert isinstance(before, frozenset)
        return (mine & before) or None
    assert isinstance(before, frozenset)
    return None if mine & before else mine | before


def _parts(found: Attribute, *, lists: bool) -> Iterator[tuple[str, object]]:
    """An attribute's values with their type; a list has several where lists are on, else it is one value of no type."""
    kind, value = found
    if isinstance(value, tuple):
        if lists:
            yield from ((kind.removesuffix("s"), item) for item in value)
        else:
            yield kind, value
    else:
        yield kind, value


def _known(verdict: bool | str) -> bool | str:
    """A selector's verdict without the name of the device that it erred on."""
    return "error" if isinstance(verdict, str) else verdict
