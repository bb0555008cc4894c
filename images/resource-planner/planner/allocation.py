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

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final

from planner import cel
from planner.dra import (
    Amount,
    Ask,
    Attribute,
    Claim,
    Constraint,
    DeviceClass,
    DeviceId,
    DeviceSpec,
    Mode,
    Node,
    Reach,
    Request,
    Slice,
    Taint,
    TaintRule,
    lookup,
)
from planner.inventory import charged, newest_generations, selects

LARGEST_ALLOCATION: Final = 32
"""Devices per claim (`AllocationResultsMaxSize`)."""

STEPS: Final = 60_000
"""Devices tried before the search gives up as undecidable: some seconds, as the scheduler gives up after ten."""


class Verdict(Enum):
    """The answer of the search."""

    ALLOCATED = "allocated"
    NONE = "none"
    ERROR = "error"
    """Cannot be decided: `cause` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One device given to one request; `consumed` is what a share takes of each capacity, None: not a share."""

    claim: int
    request: str
    device: DeviceId
    consumed: Mapping[str, Amount] | None = None
    admin_access: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer; with ALLOCATED the first solution in the scheduler's order, with ERROR the cause."""

    verdict: Verdict
    cause: str = ""
    given: tuple[Given, ...] = ()
    steps: int = 0
    """Devices tried."""
    bounded: bool = False
    """ERROR because the search hit its bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Which optional parts of DRA the scheduler obeys. By default all but list attributes."""

    admin: bool = True
    prioritized: bool = True
    partitionable: bool = True
    consumable: bool = True
    taints: bool = True
    binding: bool = True
    lists: bool = False

    @property
    def full(self) -> bool:
        """The variant of the allocator that knows shares runs; the smaller one overlooks capacity requests."""
        return self.binding or self.consumable or self.lists

    @staticmethod
    def named(names: Iterable[str]) -> Gates:
        """Exactly the named ones; a name unknown here is an ValueError."""
        chosen = set(names)
        unknown = chosen - set(Gates.__dataclass_fields__)
        if unknown:
            raise ValueError(f"unknown gates: {', '.join(sorted(unknown))}")
        return Gates(**{name: name in chosen for name in Gates.__dataclass_fields__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What differs between minor releases of Kubernetes."""

    split_counters: bool
    """Shared counters stand in slices of their own; before, beside the devices that use them, and only there."""
    ordered_pools: bool
    """Pools are tried in the order of driver and name; before, in an order that varies from run to run."""
    fractional_ranges: bool
    """Ranges of a capacity policy are exact; before, their numbers are rounded up to whole ones first."""


def release(kubernetes: tuple[int, int]) -> Release:
    """The release table, by what was measured on 1.34 to 1.37."""
    return Release(
        split_counters=kubernetes >= (1, 35),
        ordered_pools=kubernetes >= (1, 36),
        fractional_ranges=kubernetes >= (1, 37),
    )


def default_gates(kubernetes: tuple[int, int]) -> Gates:
    """What a cluster of that release obeys when nobody touched a gate."""
    if kubernetes >= (1, 36):
        return Gates()
    return Gates(partitionable=False, consumable=False, taints=False, binding=False)


def seen_gates(slices: Sequence[Slice], kubernetes: tuple[int, int]) -> Gates:
    """The release's defaults, and every feature whose fields are stored: without its gate they would be dropped."""
    specs = [spec for part in slices for spec in part.devices]
    base = default_gates(kubernetes)
    return replace(
        base,
        partitionable=base.partitionable
        or any(part.shared_counters or part.per_device for part in slices)
        or any(spec.consumes for spec in specs),
        consumable=base.consumable or any(spec.shareable for spec in specs),
        taints=base.taints or any(spec.taints for spec in specs),
        binding=base.binding or any(spec.binding_conditions for spec in specs),
    )


class Undecidable(Exception):
    """Inside the search: the answer is ERROR with this cause."""

    def __init__(self, cause: str, *, bounded: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.bounded = bounded


Judge = Callable[[str, str, DeviceSpec], bool | str]
"""(expression, driver, device) → matches, does not, or why it cannot be judged."""


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
        problem = _Problem(
            slices=slices,
            held=held,
            classes={found.name: found for found in device_classes},
            node=node,
            kubernetes=kubernetes,
            gates=chosen,
            taint_rules=taint_rules,
            judge=judge or evaluated(kubernetes, lists=chosen.lists, consumable=chosen.consumable),
        )
        outcome = _solve(problem, claims, problem.order(()), table, steps)
    except Undecidable as error:
        return Outcome(verdict=Verdict.ERROR, cause=error.cause, bounded=error.bounded)
    if table.ordered_pools or not problem.erring:
        return outcome
    # Any pool may come first here: an answer that depends on the order is none.
    for pool in problem.pools:
        try:
            _solve(problem, claims, problem.order((pool,)), table, steps)
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Candidate:
    """A device that the node may reach, as the search needs it."""

    index: int
    id: DeviceId
    spec: DeviceSpec
    pool: int
    reachable: bool
    """Where devices choose their nodes themselves: this one chose ours."""
    shareable: bool
    consumes: tuple[tuple[int, Amount], ...]
    """Counter → amount."""
    taints: tuple[Taint, ...]
    held: bool
    """Somebody holds all of it."""
    shared: bool
    """Somebody holds a share of it."""
    consumed: Mapping[str, Amount]
    """What shares hold of its capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """A pool as the node sees it."""

    key: tuple[str, str]
    parts: tuple[Slice, ...]
    binding: bool
    incomplete: bool = False
    invalid: str = ""


@dataclass(frozen=True, slots=True)
class _State:
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


class _Problem:
    """Everything that does not change during a search."""

    def __init__(
        self,
        *,
        slices: Sequence[Slice],
        held: Sequence[Claim],
        classes: Mapping[str, DeviceClass],
        node: Node,
        kubernetes: tuple[int, int],
        gates: Gates,
        taint_rules: Sequence[TaintRule],
        judge: Judge,
    ) -> None:
        self.classes = classes
        self.node = node
        self.gates = gates
        self.table = release(kubernetes)
        self.judge = judge
        self.rules = tuple(rule for rule in taint_rules if not rule.selects_nothing)
        self.pools: list[_Pool] = []
        self.limits: list[Amount] = []
        """Per counter: what is left of it after everything held; may be negative."""
        self.overdrawn: set[int] = set()
        """Pools that hold more of a counter than there is: nothing that consumes counters is given of them."""
        self._judged: dict[tuple[str, int], bool | str] = {}
        self._holding(held)
        self._gather(slices)
        self.held = sum(1 << candidate.index for candidate in self.candidates if candidate.held)
        """Bit per candidate: somebody holds all of it."""
        self.erring = False
        """A selector could not be judged on some device."""

    def order(self, first: tuple[_Pool, ...]) -> tuple[int, ...]:
        """Candidates in the order in which they are tried; those of `first` ahead."""
        ahead = {pool.key for pool in first}
        return tuple(
            candidate.index
            for candidate in sorted(
                self.candidates, key=lambda candidate: (self.pools[candidate.pool].key not in ahead, candidate.index)
            )
        )

    def matches(self, ask: Ask, where: str, candidate: _Candidate) -> bool | str:
        """Selectors of class and request on one device, in the order in which they are asked; a text: an error."""
        if candidate.spec.binding_conditions and not self.gates.binding:
            return False
        for source, expressions in (
            (f"class {ask.device_class}", self.classes[ask.device_class].selectors),
            (where, ask.selectors),
        ):
            for expression in expressions:
                key = (expression, candidate.index)
                if key not in self._judged:
                    self._judged[key] = self.judge(expression, candidate.id.driver, candidate.spec)
                verdict = self._judged[key]
                if isinstance(verdict, str):
                    return f"{source}: selector {expression!r} on device {candidate.id}: {verdict}"
                if not verdict:
                    return False
        return candidate.reachable

    def _holding(self, held: Sequence[Claim]) -> None:
        self._held: set[DeviceId] = set()
        self._shared: dict[DeviceId, dict[str, Amount]] = {}
        for claim in held:
            for result in claim.allocation.results if claim.allocation else ():
                if result.admin_access:
                    continue
                if result.share_id is None or not self.gates.consumable:
                    self._held.add(result.device)
                    continue
                taken = self._shared.setdefault(result.device, {})
                for name, amount in result.consumed.items():
                    taken[name] = taken.get(name, 0) + amount

    def _gather(self, slices: Sequence[Slice]) -> None:
        found = []
        for key, newest in newest_generations(slices):
            near = [part for part in newest if self._near(part)]
            if near:
                found.append(self._pool(key, newest, near))
        self.pools = sorted(found, key=lambda pool: (pool.binding, pool.key))
        newest_of = dict(newest_generations(slices))
        self.candidates: list[_Candidate] = []
        for number, pool in enumerate(self.pools):
            if pool.incomplete or pool.invalid:
                continue
            counters = self._counters(number, newest_of[pool.key])
            for part in pool.parts:
                for spec in part.devices:
                    self.candidates.append(self._candidate(number, part, spec, counters))

    def _near(self, part: Slice) -> bool:
        if part.per_device or part.shared_counters:
            if not self.gates.partitionable and self.table.split_counters:
                return False
            if part.per_device and not self.gates.partitionable:
                return False
        if part.per_device:
            return any((spec.reach or Reach()).admits(self.node) for spec in part.devices)
        return part.reach.admits(self.node)

    def _pool(self, key: tuple[str, str], newest: Sequence[Slice], near: Sequence[Slice]) -> _Pool:
        parts = tuple(
            part
            for part in near
            if not (self.table.split_counters and self.gates.partitionable and part.shared_counters)
        )
        binding = any(spec.binding_conditions for part in parts for spec in part.devices)
        if any(part.slice_count != len(newest) for part in newest):
            return _Pool(key=key, parts=(), binding=False, incomplete=True)
        return _Pool(key=key, parts=parts, binding=binding, invalid=self._fault(newest, parts))

    def _fault(self, newest: Sequence[Slice], parts: Sequence[Slice]) -> str:
        names: set[str] = set()
        for part in parts:
            for spec in part.devices:
                if spec.name in names:
                    return f"device {spec.name} is there twice"
                names.add(spec.name)
        if not (self.table.split_counters and self.gates.partitionable):
            return ""
        sets: dict[str, Mapping[str, Amount]] = {}
        for part in newest:
            for counter_set in part.shared_counters:
                if counter_set.name in sets:
                    return f"counter set {counter_set.name} is there twice"
                sets[counter_set.name] = counter_set.counters
        for part in newest:
            if part.shared_counters:
                continue
            for spec in part.devices:
                for consumption in spec.consumes:
                    if not consumption.counters.keys() <= sets.get(consumption.counter_set, {}).keys() or (
                        consumption.counter_set not in sets
                    ):
                        return f"device {spec.name} consumes counters that are not there"
        return ""

    def _counters(self, pool: int, newest: Sequence[Slice]) -> Mapping[tuple[str, str, str], int]:
        """Number of each counter, by the slice that may use it (split layout: any), set and name."""
        numbers: dict[tuple[str, str, str], int] = {}
        split = self.table.split_counters
        for part in newest:
            for counter_set in part.shared_counters:
                for name, value in counter_set.counters.items():
                    numbers["" if split else part.name, counter_set.name, name] = len(self.limits)
                    self.limits.append(value)
        for part in newest:
            if split and part.shared_counters:
                continue
            for spec in part.devices:
                device = DeviceId(driver=part.driver, pool=part.pool, name=spec.name)
                if device in self._held or device in self._shared:
                    for number, amount in self._consumes(part, spec, numbers):
                        self.limits[number] -= amount
        if any(self.limits[number] < 0 for number in numbers.values()):
            self.overdrawn.add(pool)
        return numbers

    def _consumes(
        self, part: Slice, spec: DeviceSpec, numbers: Mapping[tuple[str, str, str], int]
    ) -> tuple[tuple[int, Amount], ...]:
        """Counters that nobody offers are left out: before 1.35 nothing is enforced for them."""
        scope = "" if self.table.split_counters else part.name
        return tuple(
            (numbers[scope, consumption.counter_set, name], amount)
            for consumption in spec.consumes
            for name, amount in consumption.counters.items()
            if (scope, consumption.counter_set, name) in numbers
        )

    def _candidate(
        self, pool: int, part: Slice, spec: DeviceSpec, counters: Mapping[tuple[str, str, str], int]
    ) -> _Candidate:
        device = DeviceId(driver=part.driver, pool=part.pool, name=spec.name)
        rules = tuple(rule.taint for rule in self.rules if selects(rule, part, spec))
        return _Candidate(
            index=len(self.candidates),
            id=device,
            spec=spec,
            pool=pool,
            reachable=not part.per_device or (spec.reach or Reach()).admits(self.node),
            shareable=spec.shareable and self.gates.consumable,
            consumes=self._consumes(part, spec, counters),
            taints=tuple(taint for taint in spec.taints + rules if taint.effect.repels) if self.gates.taints else (),
            held=device in self._held,
            shared=device in self._shared,
            consumed=self._shared.get(device, {}),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Task:
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


def _solve(problem: _Problem, claims: Sequence[Claim], order: tuple[int, ...], table: Release, steps: int) -> Outcome:
    tasks = [_tasks(problem, number, claim, order) for number, claim in enumerate(claims)]
    search = _Search(problem=problem, claims=claims, tasks=tasks, order=order, steps=steps)
    solution = None if _hopeless(problem, claims, tasks) else search.run()
    if solution is not None:
        return Outcome(verdict=Verdict.ALLOCATED, given=solution.given, steps=search.steps)
    for pool in problem.pools:
        if pool.invalid:
            cause = f"nothing else fits and pool {'/'.join(pool.key)} is invalid: {pool.invalid}"
            raise Undecidable(cause)
    return Outcome(verdict=Verdict.NONE, steps=search.steps)


def _tasks(problem: _Problem, number: int, claim: Claim, order: tuple[int, ...]) -> list[list[_Task]]:
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


def _hopeless(problem: _Problem, claims: Sequence[Claim], tasks: Sequence[Sequence[Sequence[_Task]]]) -> bool:
    """Some request cannot be met even alone. Where a selector errs the search itself must say what it reaches."""
    every = [alternatives for requests in tasks for alternatives in requests]
    if any(task.erring for alternatives in every for task in alternatives):
        return False
    return any(all(_short(problem, claims[task.claim], task) for task in alternatives) for alternatives in every)


def _short(problem: _Problem, claim: Claim, task: _Task) -> bool:
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


def _check(problem: _Problem, label: str, request: Request) -> None:
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


def _task(problem: _Problem, number: int, claim: Claim, request: Request, ask: Ask, order: tuple[int, ...]) -> _Task:
    name = f"{request.name}/{ask.name}" if request.prioritized else request.name
    where = f"claim {claim.namespace}/{claim.name}, request {name}"
    verdicts = tuple(problem.matches(ask, where, candidate) for candidate in problem.candidates)
    everything = _everything(problem, ask, where, verdicts, order) if ask.mode == Mode.ALL.value else None
    if any(isinstance(verdict, str) for verdict in verdicts):
        problem.erring = True
    return _Task(
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
    problem: _Problem, ask: Ask, where: str, verdicts: Sequence[bool | str], order: tuple[int, ...]
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
        if verdict and (not problem.gates.consumable or _room(problem, candidate, ask, ()) is not None):
            chosen.append(index)
    return tuple(chosen)


def _room(
    problem: _Problem, candidate: _Candidate, ask: Ask, in_flight: tuple[tuple[str, Amount], ...]
) -> dict[str, Amount] | None:
    """What the request takes of each capacity; None: the device has not that much left, or no such capacity."""
    capacity = candidate.spec.capacity
    asked = ask.capacity or {}
    if not asked.keys() <= capacity.keys():
        return None
    flying = dict(in_flight)
    taken = {}
    for name, item in capacity.items():
        amount = charged(item, asked.get(name), whole_ranges=not problem.table.fractional_ranges)
        if amount is None or amount + candidate.consumed.get(name, 0) + flying.get(name, 0) > item.value:
            return None
        taken[name] = amount
    return taken


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
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

    def counters_of(self, wanted: int, problem: _Problem) -> tuple[int, ...]:
        """The counters that these members touch."""
        found = self.touched.get(wanted)
        if found is None:
            chosen = [index for place, index in enumerate(self.members) if wanted >> place & 1]
            touched = {number for index in chosen for number, _ in problem.candidates[index].consumes}
            found = tuple(number for number in self.counters if number in touched)
            self.touched[wanted] = found
        return found


def _groups(problem: _Problem, signatures: Sequence[int]) -> list[_Group]:
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
        groups.append(_Group(members=tuple(indices), kind=kind, counters=counters, masks={}, touched={}))
    return groups


class _Search:
    """Claims, then requests, then alternatives, then devices: the first full solution in the scheduler's order."""

    def __init__(
        self,
        *,
        problem: _Problem,
        claims: Sequence[Claim],
        tasks: Sequence[Sequence[Sequence[_Task]]],
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
        self._groups = _groups(problem, self._signature)
        self._group_of = {index: group for group in self._groups for index in group.members}
        self._values_of: dict[int, dict[str, frozenset[object]]] = {}

    def run(self) -> _State | None:
        """The solution, or None. Raises `Undecidable` at an erring selector and at the bound."""
        return self._claim(0, _State())

    def _claim(self, number: int, state: _State) -> _State | None:
        if number == len(self._claims):
            return state
        blank: tuple[object, ...] = tuple(
            None if constraint.match is not None else frozenset() for constraint in self._constraints(number)
        )
        return self._request(number, 0, replace(state, busy_here=0, values=blank, count=0))

    def _request(self, claim: int, request: int, state: _State) -> _State | None:
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

    def _all(self, request: int, task: _Task, state: _State) -> _State | None:
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

    def _devices(
        self, request: int, alternative: int, task: _Task, have: int, start: int, state: _State
    ) -> _State | None:
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

    def _taken(self, task: _Task, candidate: _Candidate, bit: int, state: _State) -> bool:
        """In use, so that not even its selectors are looked at."""
        if task.ask.admin_access:
            return bool(state.busy_here & bit)
        return candidate.held or bool(state.busy & bit)

    def _give(self, task: _Task, index: int, state: _State) -> _State | None:
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
            consumed = _room(problem, candidate, task.ask, flying.get(index, ()))
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
        return _State(
            busy=state.busy if candidate.shareable else state.busy | bit,
            busy_here=state.busy_here if candidate.shareable else state.busy_here | bit,
            seats=state.seats | bit if candidate.shareable else state.seats,
            counters=counters,
            shares=shares,
            values=values,
            count=state.count + 1,
            given=(*state.given, given),
        )

    def _with_counters(self, candidate: _Candidate, bit: int, state: _State) -> tuple[tuple[int, Amount], ...] | None:
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

    def _with_values(self, task: _Task, candidate: _Candidate, state: _State) -> tuple[object, ...] | None:
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

    def _remaining(self, task: _Task, start: int) -> int:
        """The candidates that the request at hand may still take."""
        return task.admitted & self._after[start]

    def _situation(
        self, request: int, alternative: int, task: _Task, have: int, start: int, state: _State
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

    def _own(self, index: int, state: _State) -> tuple[object, ...]:
        share = next((item[1] for item in state.shares if item[0] == index), ())
        return state.busy >> index & 1, state.busy_here >> index & 1, state.seats >> index & 1, share

    def _placed(self, index: int, remaining: int, state: _State) -> tuple[object, ...]:
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


def _tolerated(candidate: _Candidate, ask: Ask) -> bool:
    return all(any(toleration.tolerates(taint) for toleration in ask.tolerations) for taint in candidate.taints)


def _agreed(constraint: Constraint, candidate: _Candidate, before: object, *, lists: bool) -> object | None:
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
