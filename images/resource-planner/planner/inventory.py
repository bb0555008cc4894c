# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Slices, claims, taints and nodes become what is there and what is free: devices, partitions, counters, shares.

`build` offers a device only where nothing about it is in doubt: newest generation of a complete, valid pool, one
identity on one place. What gives nothing is a `Problem` with the pool and the reason, so that a missing pool is never
read as missing capacity. `Ledger` is what is held, as plain dictionaries: a trial copies it and drops the copy.
Amounts are exact; memory is bytes. Nothing here is looked up by name of a driver: `drivers` says what a device means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import blake2b
from math import ceil

from planner import drivers
from planner.dra import (
    Amount,
    Capacity,
    Claim,
    ClaimRequestConfig,
    DeviceClass,
    DeviceId,
    DeviceSpec,
    Effect,
    Node,
    Policy,
    Reach,
    Slice,
    Taint,
    TaintRule,
)
from planner.drivers import Role
from planner.model import PlacementType
from planner.units import UNKNOWN, Bytes, Unknown, binary

CounterKey = tuple[str, str, str, str]
"""(driver, pool, counter set, counter): two drivers may use one pool name."""

PoolKey = tuple[str, str]
"""(driver, pool)."""

TOLERATED_KEYS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com", "gpu.deckhouse.io")
"""Taints of accelerator nodes that our pods tolerate (NoSchedule only), beside the driver's own name: `api.md`."""

SPLIT_LAYOUT_SINCE = (1, 35)
"""From here on a slice has either devices or shared counters; before, both stand in one slice."""

COUNTERS_SINCE = (1, 36)
"""From here on the API server stores counters without a feature gate."""


class Trouble(Enum):
    """Why a pool, or devices of it, give nothing."""

    INCOMPLETE = "IncompletePool"
    INVALID = "InvalidPool"
    LAYOUT = "CombinedCounterLayout"
    DUPLICATE = "DuplicateIdentity"
    NODE_UNKNOWN = "NodeUnknown"
    RULE = "TaintRuleNotJudged"
    COUNTERS_DROPPED = "CountersDropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A pool (or devices of it) that gives nothing, and why."""

    driver: str
    pool: str
    trouble: Trouble
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device that a claim can get, as its driver's adapter read it from one slice."""

    id: DeviceId
    nodes: tuple[str, ...]
    """Names of the nodes that reach it, in order."""
    placement: PlacementType
    card: str
    """The physical card in the cluster: a card and all its partitions have the same."""
    profile: str
    """The partition's profile; empty for a whole card."""
    memory: Bytes | Unknown
    """What the driver publishes, not the marketing size."""
    product: str
    vendor: str
    compute_capability: tuple[int, int] | Unknown
    driver_version: str
    shareable: bool
    capacity: Mapping[str, Capacity]
    roles: Mapping[str, Role]
    """What each capacity stands for."""
    consumes: tuple[tuple[CounterKey, Amount], ...]
    """What it takes from its pool's counters while held, once however many share it."""
    taints: tuple[Taint, ...]
    """Those that repel, from the slice and from taint rules."""
    shape: str
    """Equal for devices that differ in nothing but identity: attributes, capacity, policies, counters, taints."""
    identity: frozenset[str]
    """Names of the attributes that `shape` leaves out."""
    pins: tuple[str, ...]
    """CEL conjuncts that select exactly this device, or its equals on the same card; empty: the driver tells none."""
    spec: DeviceSpec = field(repr=False, compare=False)
    binds: bool = False
    """It has binding conditions: the scheduler waits for its driver before the pod starts."""

    @property
    def whole(self) -> bool:
        """A card, not a part of one."""
        return self.placement is PlacementType.WHOLE_DEVICE


class Shortage(Enum):
    """What a device lacks for a use."""

    HELD = "Held"
    """Held whole; needed 1, free 0."""
    SHARED = "Shared"
    """Shares are held, so it cannot be had whole; needed 1, free 0."""
    CARD = "CardInUse"
    """The whole card is in use while a partition is asked, or the other way round; needed 1, free 0."""
    COUNTER = "Counter"
    CAPACITY = "Capacity"
    STRATEGY = "Strategy"
    """Another sharing strategy stands on the card; needed 1, free 0."""
    POLICY = "Policy"
    """The driver's policy knows no such amount, at any time; free is the most it allows."""
    NO_CAPACITY = "NoSuchCapacity"
    """The device publishes no capacity of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What was missing on one device: which capacity or counter, how much was needed and how much is free."""

    shortage: Shortage
    what: str = ""
    """The capacity, `set/counter`, or the strategy that stands."""
    needed: Amount = 1
    free: Amount = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One device that an allocated claim holds. `amounts` is what was charged; None: the whole device."""

    namespace: str
    claim: str
    device: DeviceId
    amounts: Mapping[str, Amount] | None
    strategy: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)
    owner_pod: str | None = None
    deleting: bool = False


class Ledger:
    """What is held. Plain dictionaries that name only what is in use; every look-up costs the device, not the cluster.

    A whole card and its partitions exclude each other whether or not the driver's counters say so; one card has one
    sharing strategy. `take` and `give_back` never check: `lack` does.
    """

    __slots__ = ("cards", "consumed", "counters", "shares", "strategies", "whole")

    def __init__(self) -> None:
        self.whole: dict[DeviceId, int] = {}
        """Device → how many hold all of it (more than one only by somebody's fault)."""
        self.shares: dict[DeviceId, int] = {}
        """Device → number of shares held."""
        self.consumed: dict[DeviceId, dict[str, Amount]] = {}
        """Device → capacity → amount held by shares; a value is replaced, never changed."""
        self.counters: dict[CounterKey, Amount] = {}
        """Counter → amount in use."""
        self.cards: dict[str, tuple[int, int]] = {}
        """Card → uses of the whole card (shares included), uses of its partitions."""
        self.strategies: dict[str, tuple[str, int]] = {}
        """Card → the sharing strategy that stands and how many holders need it."""

    def copy(self) -> Ledger:
        """An independent copy."""
        other = Ledger()
        other.whole = self.whole.copy()
        other.shares = self.shares.copy()
        other.consumed = self.consumed.copy()
        other.counters = self.counters.copy()
        other.cards = self.cards.copy()
        other.strategies = self.strategies.copy()
        return other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Ledger.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def in_use(self, device: DeviceId) -> bool:
        """Anybody holds it, whole or a share."""
        return device in self.whole or device in self.shares

    def used(self, device: DeviceId, capacity: str) -> Amount:
        """How much of a capacity shares hold; 0 when none does."""
        return self.consumed.get(device, {}).get(capacity, 0)

    def lack(
        self,
        inventory: Inventory,
        device: Device,
        amounts: Mapping[str, Amount] | None,
        strategy: str | None = None,
    ) -> Lack | None:
        """What `device` lacks for one more use; None: it can be had.

        `amounts` None asks for the whole device, otherwise for a share that requests them; a capacity that they don't
        name is charged as the driver's policy says. A shareable device is only ever given by shares.
        """
        if device.id in self.whole:
            return Lack(shortage=Shortage.HELD)
        if amounts is None and device.id in self.shares:
            return Lack(shortage=Shortage.SHARED)
        whole, partitions = self.cards.get(device.card, (0, 0))
        if partitions if device.whole else whole:
            return Lack(shortage=Shortage.CARD)
        standing = self.strategies.get(device.card)
        if standing is not None and strategy is not None and standing[0] != strategy:
            return Lack(shortage=Shortage.STRATEGY, what=standing[0])
        if device.id not in self.shares:
            for key, amount in device.consumes:
                free = inventory.counters.get(key, 0) - self.counters.get(key, 0)
                if amount > free:
                    return Lack(shortage=Shortage.COUNTER, what=f"{key[2]}/{key[3]}", needed=amount, free=max(free, 0))
        if amounts is None:
            return None
        return self._capacity_lack(device, amounts)

    def _capacity_lack(self, device: Device, amounts: Mapping[str, Amount]) -> Lack | None:
        for name in amounts:
            if name not in device.capacity:
                return Lack(shortage=Shortage.NO_CAPACITY, what=name, needed=amounts[name])
        held = self.consumed.get(device.id)
        for name, capacity in device.capacity.items():
            asked = amounts.get(name)
            amount = charged(capacity, asked)
            if amount is None:
                return Lack(shortage=Shortage.POLICY, what=name, needed=asked or 0, free=largest(capacity))
            free = capacity.value - (held.get(name, 0) if held else 0)
            if amount > free:
                return Lack(shortage=Shortage.CAPACITY, what=name, needed=amount, free=max(free, 0))
        return None

    def take(self, device: Device, amounts: Mapping[str, Amount] | None, strategy: str | None = None) -> None:
        """Hold `device`: whole, or a share that is charged exactly `amounts` (`charge` completes a request)."""
        first = device.id not in self.shares and device.id not in self.whole
        if amounts is None:
            self.whole[device.id] = self.whole.get(device.id, 0) + 1
        else:
            self.shares[device.id] = self.shares.get(device.id, 0) + 1
            self._charge(device.id, amounts, 1)
        if first:
            for key, amount in device.consumes:
                self.counters[key] = self.counters.get(key, 0) + amount
        whole, partitions = self.cards.get(device.card, (0, 0))
        self.cards[device.card] = (whole + 1, partitions) if device.whole else (whole, partitions + 1)
        if strategy is not None:
            standing = self.strategies.get(device.card)
            if standing is None:
                self.strategies[device.card] = (strategy, 1)
            elif standing[0] == strategy:
                self.strategies[device.card] = (strategy, standing[1] + 1)

    def give_back(self, device: Device, amounts: Mapping[str, Amount] | None, strategy: str | None = None) -> None:
        """Undo one `take` of the same arguments."""
        if amounts is None:
            _less(self.whole, device.id)
        else:
            _less(self.shares, device.id)
            self._charge(device.id, amounts, -1)
        if device.id not in self.shares and device.id not in self.whole:
            self.consumed.pop(device.id, None)
            for key, amount in device.consumes:
                left = self.counters.get(key, 0) - amount
                if left:
                    self.counters[key] = left
                else:
                    self.counters.pop(key, None)
        whole, partitions = self.cards[device.card]
        uses = (whole - 1, partitions) if device.whole else (whole, partitions - 1)
        if uses == (0, 0):
            del self.cards[device.card]
        else:
            self.cards[device.card] = uses
        if strategy is not None:
            standing = self.strategies.get(device.card)
            if standing is not None and standing[0] == strategy:
                if standing[1] == 1:
                    del self.strategies[device.card]
                else:
                    self.strategies[device.card] = (strategy, standing[1] - 1)

    def _charge(self, device: DeviceId, amounts: Mapping[str, Amount], sign: int) -> None:
        held = dict(self.consumed.get(device, {}))
        for name, amount in amounts.items():
            held[name] = held.get(name, 0) + sign * amount
        self.consumed[device] = held


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What is there; `ledger` is what allocated claims hold of it, everybody's and ours: copy it before a trial."""

    devices: tuple[Device, ...]
    """In the order in which the scheduler looks at them: driver, pool, slice, place in the slice."""
    by_id: Mapping[DeviceId, Device]
    on_node: Mapping[str, tuple[Device, ...]]
    nodes: Mapping[str, Node]
    counters: Mapping[CounterKey, Amount]
    """The value of every counter of the pools that are offered."""
    ledger: Ledger
    holds: tuple[Hold, ...]
    """Every device that an allocated claim holds, those that nobody publishes now included."""
    holders: Mapping[DeviceId, tuple[Hold, ...]]
    unpublished: tuple[Hold, ...]
    """Holds on devices that are not offered now: a slice that vanished while its claim stands is not a device gone."""
    problems: tuple[Problem, ...]
    kubernetes: tuple[int, int]

    def usable(self, node: str, driver: str) -> bool:
        """Our pods can come to `node` for a device of `driver`; an unknown node is not usable."""
        found = self.nodes.get(node)
        return found is not None and usable(found, driver)


def usable(node: Node, driver: str) -> bool:
    """A pod of ours can be scheduled to `node` for a device of `driver`.

    Not when it is cordoned or not ready, nor under a taint that repels other than NoSchedule with one of
    `TOLERATED_KEYS` or the driver's name as its key.
    """
    if node.unschedulable or not node.ready:
        return False
    return all(
        not taint.effect.repels
        or (taint.effect is Effect.NO_SCHEDULE and (taint.key in TOLERATED_KEYS or taint.key == driver))
        for taint in node.taints
    )


def charged(capacity: Capacity, asked: Amount | None, *, whole_ranges: bool = False) -> Amount | None:
    """What a share that asks `asked` (None: names no amount) is charged; None: the policy knows no such amount.

    Nothing asked: the policy's default, without one the whole value. Otherwise rounded up to the next amount that the
    policy knows. The result may exceed what is free or even the whole. `whole_ranges`: as before 1.37, where a range's
    numbers are rounded up to whole ones first. Source: KEP-5075, `capacity.requestPolicy`.
    """
    policy = capacity.policy
    if policy is None:
        return capacity.value if asked is None else asked
    if asked is None:
        amount = capacity.value if policy.default is None else policy.default
    else:
        amount = _rounded(policy, asked, whole_ranges)
    if policy.default is not None and amount == policy.default:
        return amount
    if policy.ranged:
        if policy.maximum is not None and amount > policy.maximum:
            return None
        return amount if _on_step(policy, amount, whole_ranges) else None
    return amount if not policy.values or amount in policy.values else None


def charge(device: Device, asked: Mapping[str, Amount]) -> Mapping[str, Amount] | None:
    """What a share of `device` that requests `asked` is charged of every capacity.

    None: it names a capacity that the device has not, or an amount that a policy does not know.
    """
    if any(name not in device.capacity for name in asked):
        return None
    held = {}
    for name, capacity in device.capacity.items():
        amount = charged(capacity, asked.get(name))
        if amount is None:
            return None
        held[name] = amount
    return held


def largest(capacity: Capacity) -> Amount:
    """The most that one share can hold: the whole value or, where lower, the policy's largest amount."""
    policy = capacity.policy
    if policy is None:
        return capacity.value
    if policy.values and not policy.ranged:
        return max((value for value in policy.values if value <= capacity.value), default=0)
    top = capacity.value if policy.maximum is None else min(capacity.value, policy.maximum)
    if policy.step and policy.minimum is not None:
        return policy.minimum + (top - policy.minimum) // policy.step * policy.step if top >= policy.minimum else 0
    return top


def share_amounts(
    device: Device, memory: Bytes | Unknown, compute_percent: int | Unknown = UNKNOWN
) -> Mapping[str, Amount] | None:
    """Every capacity that a share of `memory` bytes must hold on `device`, rounded as the policies round.

    Compute takes `compute_percent` hundredths of its whole, where UNKNOWN in proportion to the memory, rounded up;
    tenants are counted one by one; what is neither goes in proportion to the memory. `memory` UNKNOWN: as much as one
    share may hold. None: the device cannot be shared, or no share of it is that large.
    """
    if not device.shareable:
        return None
    total = device.memory
    asked: dict[str, Amount] = {}
    for name, capacity in device.capacity.items():
        role = device.roles[name]
        whole = largest(capacity)
        if role is Role.MEMORY:
            want: Amount = whole if memory is UNKNOWN else memory
        elif role is Role.SEATS and total is not UNKNOWN:
            want = min(1, whole)
        elif role is Role.COMPUTE and compute_percent is not UNKNOWN:
            want = _ceiling(capacity.value * compute_percent, 100)
        elif memory is UNKNOWN or total is UNKNOWN or total == 0:
            want = whole
        else:
            want = _ceiling(capacity.value * min(memory, total), total)
        amount = charged(capacity, want)
        if amount is None or amount > capacity.value:
            return None
        asked[name] = amount
    if memory is not UNKNOWN and total is not UNKNOWN and memory > total:
        return None
    return asked


def exclusive_amounts(device: Device) -> Mapping[str, Amount] | None:
    """What a request for a shareable device must name to have it alone: every capacity in full.

    None: no request makes it exclusive, because a share could still take nothing of every capacity (or the policy
    allows no amount as large as the whole).
    """
    if not device.shareable or not device.capacity:
        return None
    asked = {name: largest(capacity) for name, capacity in device.capacity.items()}
    alone = any(
        asked[name] == capacity.value and (charged(capacity, None) or 0) > 0 and (charged(capacity, 0) or 0) > 0
        for name, capacity in device.capacity.items()
    )
    return asked if alone else None


def quantities(device: Device, amounts: Mapping[str, Amount]) -> Mapping[str, str]:
    """`amounts` as a claim writes them: memory in binary units, the rest as plain numbers."""
    written = {}
    for name, amount in amounts.items():
        if isinstance(amount, int):
            written[name] = binary(amount) if device.roles.get(name) is Role.MEMORY else str(amount)
        else:
            written[name] = f"{ceil(amount * 10**9)}n"
    return written


def share_request(
    device: Device, memory: Bytes | Unknown, compute_percent: int | Unknown = UNKNOWN
) -> Mapping[str, str] | None:
    """`share_amounts` as a claim's `capacity.requests`."""
    amounts = share_amounts(device, memory, compute_percent)
    return None if amounts is None else quantities(device, amounts)


def exclusive_request(device: Device) -> Mapping[str, str] | None:
    """`exclusive_amounts` as a claim's `capacity.requests`."""
    amounts = exclusive_amounts(device)
    return None if amounts is None else quantities(device, amounts)


def strategy_of(driver: str, configs: Iterable[ClaimRequestConfig], *, shared: bool) -> str | None:
    """The sharing strategy that opaque parameters set for `driver`: the last one that sets any wins.

    None set: a shared use gets the driver's default, a use alone needs none.
    """
    adapter = drivers.adapter_of(driver)
    chosen = None
    for config in configs:
        if config.driver == driver:
            chosen = adapter.strategy(config.parameters) or chosen
    return chosen or (adapter.default_strategy if shared else None)


def judging_key(device: Device, expression: str) -> str | DeviceId:
    """Under which key a selector's verdict on `device` may be kept: its shape, or itself where identity may matter.

    An expression that names no identity attribute and builds no name (no `+`, no loop over names) says the same of
    every device of one shape.
    """
    if any(mark in expression for mark in _BUILDS_NAMES):
        return device.id
    if any(name.rpartition("/")[2] in expression for name in device.identity):
        return device.id
    return device.shape


_BUILDS_NAMES = ("+", ".exists(", ".exists_one(", ".all(", ".map(", ".filter(", "transform", "existsOne(", "format(")


def build(
    slices: Sequence[Slice],
    claims: Sequence[Claim],
    device_classes: Sequence[DeviceClass],
    taint_rules: Sequence[TaintRule],
    nodes: Sequence[Node],
    kubernetes: tuple[int, int],
) -> Inventory:
    """Everything that is offered and everything that is held. The order of the arguments' items does not matter.

    A taint rule that selects by class or CEL (v1alpha3 only) taints every device that its other criteria select: a
    device too few is better than one that the scheduler would refuse; it is a `Problem`.
    """
    by_name = {node.name: node for node in sorted(nodes, key=lambda node: node.name)}
    problems: list[Problem] = []
    counters: dict[CounterKey, Amount] = {}
    rules = sorted((rule for rule in taint_rules if not rule.selects_nothing), key=lambda rule: rule.name)
    for rule in rules:
        if rule.selectors or rule.device_class is not None:
            message = f"DeviceTaintRule {rule.name} selects by class or CEL: it is taken to taint all that it may mean"
            problems.append(
                Problem(driver=rule.driver or "", pool=rule.pool or "", trouble=Trouble.RULE, message=message)
            )
    devices: list[Device] = []
    reading = _Reading(nodes=by_name, rules=tuple(rules))
    for (driver, pool), newest in newest_generations(slices):
        trouble = pool_trouble(newest, kubernetes)
        if trouble is not None:
            problems.append(Problem(driver=driver, pool=pool, trouble=trouble[0], message=trouble[1]))
            continue
        doubled, found = _doubled(newest)
        problems.extend(found)
        for part in newest:
            for counter_set in part.shared_counters:
                for name, value in counter_set.counters.items():
                    counters[driver, pool, counter_set.name, name] = value
        for part in newest:
            if part.node_name is not None and part.node_name not in by_name and part.devices:
                message = f"slice {part.name} names node {part.node_name}, which is not there"
                problems.append(Problem(driver=driver, pool=pool, trouble=Trouble.NODE_UNKNOWN, message=message))
            for spec in part.devices:
                if spec.name not in doubled:
                    devices.append(reading.device(part, spec, counters))
    if kubernetes < COUNTERS_SINCE:
        dropped = without_counters(devices)
        problems.extend(dropped.values())
        devices = [device for device in devices if device.whole or (device.id.driver, device.card) not in dropped]
    by_id = {device.id: device for device in devices}
    on_node: dict[str, list[Device]] = {name: [] for name in by_name}
    for device in devices:
        for name in device.nodes:
            on_node[name].append(device)
    return held_by(
        Inventory(
            devices=tuple(devices),
            by_id=by_id,
            on_node={name: tuple(found) for name, found in on_node.items()},
            nodes=by_name,
            counters=counters,
            ledger=Ledger(),
            holds=(),
            holders={},
            unpublished=(),
            problems=tuple(sorted(problems, key=lambda p: (p.driver, p.pool, p.trouble.value, p.message))),
            kubernetes=kubernetes,
        ),
        claims,
    )


def held_by(offered: Inventory, claims: Sequence[Claim]) -> Inventory:
    """The same devices, held by `claims` and by nobody else."""
    ledger = Ledger()
    holds = holds_of(claims)
    holders: dict[DeviceId, list[Hold]] = {}
    unpublished = []
    for hold in holds:
        holders.setdefault(hold.device, []).append(hold)
        held = offered.by_id.get(hold.device)
        if held is None:
            unpublished.append(hold)
        else:
            ledger.take(held, hold.amounts, hold.strategy)
    return replace(
        offered,
        ledger=ledger,
        holds=holds,
        holders={device: tuple(found) for device, found in holders.items()},
        unpublished=tuple(unpublished),
    )


def without_counters(devices: Sequence[Device]) -> dict[tuple[str, str], Problem]:
    """Cards, by (driver, card), whose partitions cannot all exist and yet consume no counters.

    An API server before 1.36 drops counters at write unless `DRAPartitionableDevices` is on: what is left are parts
    that overlap and do not say so. Partitions cut beforehand fit on their card together and stay on offer; so does what
    is on a card of unpublished memory, where nothing can be told.
    """
    memory: dict[tuple[str, str], Bytes] = {}
    parts: dict[tuple[str, str], list[Device]] = {}
    for device in devices:
        card = (device.id.driver, device.card)
        if device.whole:
            if device.memory is not UNKNOWN:
                memory[card] = device.memory
        elif not device.consumes:
            parts.setdefault(card, []).append(device)
    found = {}
    for card, cut in parts.items():
        sizes = [part.memory for part in cut if part.memory is not UNKNOWN]
        if card in memory and sum(sizes) > memory[card]:
            pool = cut[0].id.pool
            message = (
                f"the {len(cut)} partitions of one card are stored without counters and do not fit on it together: "
                "the API server needs the feature gate DRAPartitionableDevices"
            )
            found[card] = Problem(driver=card[0], pool=pool, trouble=Trouble.COUNTERS_DROPPED, message=message)
    return found


def pool_trouble(newest: Sequence[Slice], kubernetes: tuple[int, int]) -> tuple[Trouble, str] | None:
    """Why the newest generation of a pool gives nothing; None: it is complete and valid."""
    expected = max(part.slice_count for part in newest)
    if any(part.slice_count != len(newest) for part in newest):
        return Trouble.INCOMPLETE, f"{len(newest)} of {expected} slices of generation {newest[0].generation} are there"
    split = kubernetes >= SPLIT_LAYOUT_SINCE
    sets: dict[str, Mapping[str, Amount]] = {}
    for part in newest:
        if split and part.devices and part.shared_counters:
            return Trouble.LAYOUT, f"slice {part.name} has devices and shared counters: unreadable since 1.35"
        for counter_set in part.shared_counters:
            if counter_set.name in sets:
                return Trouble.INVALID, f"counter set {counter_set.name} is there twice"
            sets[counter_set.name] = counter_set.counters
    for part in newest:
        for spec in part.devices:
            for consumption in spec.consumes:
                known = sets.get(consumption.counter_set)
                if known is None:
                    return Trouble.INVALID, f"device {spec.name}: no counter set {consumption.counter_set}"
                for name in consumption.counters:
                    if name not in known:
                        return Trouble.INVALID, f"device {spec.name}: no counter {consumption.counter_set}/{name}"
    places: dict[str, Reach] = {}
    for part in newest:
        for spec in part.devices:
            reach = (spec.reach or Reach()) if part.per_device else part.reach
            if places.get(spec.name) == reach:
                return Trouble.INVALID, f"device {spec.name} is there twice"
            places[spec.name] = reach
    return None


def newest_generations(slices: Sequence[Slice]) -> list[tuple[PoolKey, list[Slice]]]:
    """The slices of each pool's newest generation, pools and slices in the scheduler's order."""
    pools: dict[PoolKey, list[Slice]] = {}
    for part in sorted(slices, key=lambda part: (part.driver, part.pool, part.name)):
        found = pools.setdefault((part.driver, part.pool), [])
        if found and part.generation > found[0].generation:
            found.clear()
        if not found or part.generation == found[0].generation:
            found.append(part)
    return list(pools.items())


def _doubled(newest: Sequence[Slice]) -> tuple[set[str], list[Problem]]:
    """Names published for two places: used by nobody until it is clear which is meant."""
    seen: set[str] = set()
    doubled: set[str] = set()
    for part in newest:
        for spec in part.devices:
            (doubled if spec.name in seen else seen).add(spec.name)
    first = newest[0]
    return doubled, [
        Problem(
            driver=first.driver,
            pool=first.pool,
            trouble=Trouble.DUPLICATE,
            message=f"device {name} is published for two places",
        )
        for name in sorted(doubled)
    ]


def holds_of(claims: Sequence[Claim]) -> tuple[Hold, ...]:
    """What allocated claims hold, by their results alone; admin access holds nothing, pending claims neither."""
    holds = []
    for claim in sorted(claims, key=lambda claim: (claim.namespace, claim.name, claim.uid)):
        if claim.allocation is None:
            continue
        for result in claim.allocation.results:
            if result.admin_access:
                continue
            shared = result.share_id is not None
            base = result.request.partition("/")[0]
            configs = [
                config
                for config in claim.allocation.config
                if not config.requests or result.request in config.requests or base in config.requests
            ]
            holds.append(
                Hold(
                    namespace=claim.namespace,
                    claim=claim.name,
                    device=result.device,
                    amounts=dict(result.consumed) if shared else None,
                    strategy=strategy_of(result.device.driver, configs, shared=shared),
                    labels=claim.labels,
                    owner_pod=claim.owner_pod,
                    deleting=claim.deleting,
                )
            )
    return tuple(holds)


class _Reading:
    """Turns published devices into `Device`s, remembering what repeats."""

    def __init__(self, *, nodes: Mapping[str, Node], rules: tuple[TaintRule, ...]) -> None:
        self._nodes = nodes
        self._rules = rules
        self._all = tuple(nodes)
        self._reached: dict[Reach, tuple[str, ...]] = {}

    def device(self, part: Slice, spec: DeviceSpec, counters: Mapping[CounterKey, Amount]) -> Device:
        driver, pool = part.driver, part.pool
        adapter = drivers.adapter_of(driver)
        facts = adapter.facts(driver, spec)
        consumes = tuple(
            ((driver, pool, consumption.counter_set, name), amount)
            for consumption in spec.consumes
            for name, amount in sorted(consumption.counters.items())
        )
        taints = self._taints(part, spec)
        card = facts.card or (spec.consumes[0].counter_set if spec.consumes else spec.name)
        return Device(
            id=DeviceId(driver=driver, pool=pool, name=spec.name),
            nodes=self._nodes_of((spec.reach or Reach()) if part.per_device else part.reach),
            placement=PlacementType.PARTITION
            if facts.partition or _part_of_counters(consumes, counters)
            else PlacementType.WHOLE_DEVICE,
            card=f"{driver}/{pool}/{card}",
            profile=facts.profile,
            memory=facts.memory,
            product=facts.product,
            vendor=facts.vendor,
            compute_capability=facts.compute_capability,
            driver_version=facts.driver_version,
            shareable=spec.shareable,
            capacity=spec.capacity,
            roles={name: adapter.role(name.rpartition("/")[2], item) for name, item in spec.capacity.items()},
            consumes=consumes,
            taints=taints,
            shape=_shape(driver, spec, facts.identity, consumes, counters, taints),
            identity=facts.identity,
            pins=facts.pins,
            spec=spec,
            binds=bool(spec.binding_conditions),
        )

    def _nodes_of(self, reach: Reach) -> tuple[str, ...]:
        if reach.node_name is not None:
            return (reach.node_name,) if reach.node_name in self._nodes else ()
        if reach.all_nodes:
            return self._all
        if reach not in self._reached:
            self._reached[reach] = tuple(name for name, node in self._nodes.items() if reach.admits(node))
        return self._reached[reach]

    def _taints(self, part: Slice, spec: DeviceSpec) -> tuple[Taint, ...]:
        if not spec.taints and not self._rules:
            return ()
        stated = [taint for taint in spec.taints if taint.effect.repels]
        stated += [rule.taint for rule in self._rules if rule.taint.effect.repels and selects(rule, part, spec)]
        return tuple(sorted(set(stated), key=lambda taint: (taint.key, taint.value, taint.effect.value)))


def selects(rule: TaintRule, part: Slice, spec: DeviceSpec) -> bool:
    """The rule's driver, pool and device select the device (those not stated select every one)."""
    return (
        not rule.selects_nothing
        and rule.driver in (None, part.driver)
        and rule.pool in (None, part.pool)
        and rule.device in (None, spec.name)
    )


def _part_of_counters(consumes: tuple[tuple[CounterKey, Amount], ...], counters: Mapping[CounterKey, Amount]) -> bool:
    """It takes only a part of a counter set: a partition whatever its attributes say."""
    return any(amount < counters.get(key, 0) for key, amount in consumes)


def _shape(
    driver: str,
    spec: DeviceSpec,
    identity: frozenset[str],
    consumes: tuple[tuple[CounterKey, Amount], ...],
    counters: Mapping[CounterKey, Amount],
    taints: tuple[Taint, ...],
) -> str:
    sets = sorted({key[2] for key, _ in consumes})  # which set it is does not matter, how they divide does
    told = (
        driver,
        sorted((name, value) for name, value in spec.attributes.items() if name not in identity),
        sorted((name, item.value, _policy_key(item.policy)) for name, item in spec.capacity.items()),
        sorted((sets.index(key[2]), key[3], amount, counters.get(key, 0)) for key, amount in consumes),
        spec.shareable,
        spec.binding_conditions,
        [(taint.key, taint.value, taint.effect.value) for taint in taints],
    )
    return blake2b(repr(told).encode(), digest_size=16).hexdigest()


def _policy_key(policy: Policy | None) -> tuple[object, ...]:
    if policy is None:
        return ()
    return policy.default, policy.values, policy.minimum, policy.maximum, policy.step, policy.ranged


def _rounded(policy: Policy, asked: Amount, whole: bool) -> Amount:
    if policy.ranged and policy.minimum is not None:
        if asked < policy.minimum:
            return policy.minimum
        if not policy.step:
            return asked
        minimum, step, amount = _range(policy.minimum, policy.step, asked, whole)
        return minimum + _ceiling(amount - minimum, step) * step
    if policy.values and not policy.ranged:
        return next((value for value in policy.values if value >= asked), asked)
    return asked


def _on_step(policy: Policy, amount: Amount, whole: bool) -> bool:
    if not policy.step or policy.minimum is None:
        return True
    minimum, step, exactly = _range(policy.minimum, policy.step, amount, whole)
    return (exactly - minimum) % step == 0


def _range(minimum: Amount, step: Amount, amount: Amount, whole: bool) -> tuple[Amount, Amount, Amount]:
    return (ceil(minimum), ceil(step), ceil(amount)) if whole else (minimum, step, amount)


def _ceiling(amount: Amount, divisor: Amount) -> int:
    return int(-(-amount // divisor))


def _less(counts: dict[DeviceId, int], device: DeviceId) -> None:
    left = counts[device] - 1
    if left:
        counts[device] = left
    else:
        del counts[device]


__all__ = [
    "SPLIT_LAYOUT_SINCE",
    "TOLERATED_KEYS",
    "CounterKey",
    "Device",
    "Hold",
    "Inventory",
    "Lack",
    "Ledger",
    "Problem",
    "Shortage",
    "Trouble",
    "build",
    "charge",
    "charged",
    "exclusive_amounts",
    "exclusive_request",
    "held_by",
    "holds_of",
    "judging_key",
    "largest",
    "newest_generations",
    "pool_trouble",
    "quantities",
    "selects",
    "share_amounts",
    "share_request",
    "strategy_of",
    "usable",
]
