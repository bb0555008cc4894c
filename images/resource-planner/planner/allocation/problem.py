# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What does not change during a search: the devices that the node may reach, and what others hold of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.allocation.releases import Gates, release
from planner.dra import (
    Amount,
    Ask,
    Claim,
    DeviceClass,
    DeviceId,
    DeviceSpec,
    Node,
    Reach,
    Slice,
    Taint,
    TaintRule,
)
from planner.inventory import charged, newest_generations, selects

Judge = Callable[[str, str, DeviceSpec], bool | str]
"""(expression, driver, device) → matches, does not, or why it cannot be judged."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
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
class Pool:
    """A pool as the node sees it."""

    key: tuple[str, str]
    parts: tuple[Slice, ...]
    binding: bool
    incomplete: bool = False
    invalid: str = ""


class Problem:
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
        self.pools: list[Pool] = []
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

    def order(self, first: tuple[Pool, ...]) -> tuple[int, ...]:
        """Candidates in the order in which they are tried; those of `first` ahead."""
        ahead = {pool.key for pool in first}
        return tuple(
            candidate.index
            for candidate in sorted(
                self.candidates, key=lambda candidate: (self.pools[candidate.pool].key not in ahead, candidate.index)
            )
        )

    def matches(self, ask: Ask, where: str, candidate: Candidate) -> bool | str:
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
        self.candidates: list[Candidate] = []
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

    def _pool(self, key: tuple[str, str], newest: Sequence[Slice], near: Sequence[Slice]) -> Pool:
        parts = tuple(
            part
            for part in near
            if not (self.table.split_counters and self.gates.partitionable and part.shared_counters)
        )
        binding = any(spec.binding_conditions for part in parts for spec in part.devices)
        if any(part.slice_count != len(newest) for part in newest):
            return Pool(key=key, parts=(), binding=False, incomplete=True)
        return Pool(key=key, parts=parts, binding=binding, invalid=self._fault(newest, parts))

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
    ) -> Candidate:
        device = DeviceId(driver=part.driver, pool=part.pool, name=spec.name)
        rules = tuple(rule.taint for rule in self.rules if selects(rule, part, spec))
        return Candidate(
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


def room(
    problem: Problem, candidate: Candidate, ask: Ask, in_flight: tuple[tuple[str, Amount], ...]
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
