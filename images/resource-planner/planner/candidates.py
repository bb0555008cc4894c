# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Class ∩ order ∩ inventory: every way in which one replica of an order may be held, and why all others fell out.

An offer is a device class × placement type × sharing mode × a group of equal devices, with the smallest use of one
device that admits the model. What is held by whom does not matter here: offers depend on what exists, so they are made
once for all orders that ask the same of the same class. Selectors are judged once per device shape, on every device
that a device class could reach: the scheduler may reach any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner import cel, launches
from planner.dra import Amount, DeviceClass, DeviceId
from planner.drivers import Role
from planner.inventory import (
    Device,
    Inventory,
    exclusive_amounts,
    judging_key,
    largest,
    quantities,
    share_amounts,
    strategy_of,
)
from planner.launches import Launch
from planner.model import PlacementType, ServiceClass, Share, SharingMode
from planner.placement import Use, Wish
from planner.reasons import Lack, Miss
from planner.units import UNKNOWN, Bytes, Maybe

READ_FOR_PLACEMENT = ("DeviceClass", "DeviceTaintRule", "Node", "ResourceClaim", "ResourceSlice")
"""Kinds without which no placement can be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A device class × placement type × sharing mode."""

    device_class: str
    placement: PlacementType
    sharing: SharingMode

    @property
    def order(self) -> tuple[str, str, str]:
        """A full sort key."""
        return self.device_class, self.placement.value, self.sharing.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One way to hold a replica on one group of equal devices."""

    way: Way
    wish: Wish
    example: Device
    """A device of the group; all others differ from it in identity and in place on the card only."""
    devices: int
    """How many devices the group has."""
    share: Share | None
    capacity: Mapping[str, str]
    """What the claim requests of each device, as quantities."""
    held: Maybe
    """Bytes of one device that a replica takes from others; UNKNOWN where the device publishes no memory."""
    need: Maybe
    """The fewest bytes of one device that admit the model; UNKNOWN where nobody knows its size."""
    launch: Launch
    sized: bool
    """False: nobody knows the model's bytes, so the largest use was offered instead of the smallest."""

    @property
    def rank(self) -> tuple[int, int]:
        """Fewer devices first, then fewer bytes held; a model of unknown size takes the largest device instead."""
        held = 0 if self.held is UNKNOWN else self.held
        return self.wish.count, held if self.sized else -held


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """All ways of an order: the offers in rank order, and the misses of every way that offers nothing or less."""

    offers: tuple[Offer, ...]
    misses: tuple[tuple[Way | None, Miss], ...]
    """Way None: the miss concerns the order or its class as a whole, and nothing can be placed (`blocked`)."""
    tried: int = 0
    """Devices that the allowed device classes (and the class's own selector) admit."""

    @property
    def blocked(self) -> Miss | None:
        """Something that every way depends on cannot be judged; None: nothing of the kind."""
        return next((miss for way, miss in self.misses if way is None), None)


@dataclass(slots=True)
class _Group:
    """Equal devices that a device class admits."""

    devices: list[Device] = field(default_factory=list)
    partial: bool = False
    """Some devices of its shapes are not admitted: the members must be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Admitted:
    """What a device class (and, for a service class, its selector) admits."""

    groups: tuple[tuple[Device, ...], ...]
    group_of: Mapping[DeviceId, int] = field(default_factory=dict)
    partial: frozenset[str]
    """Shapes of which not every device is admitted."""
    barred: frozenset[str]
    """Nodes on which a selector of the device class errs on some device."""
    errors: tuple[Miss, ...]
    fatal: Miss | None = None
    """The service class's own expression cannot be judged on a device that the device class admits."""


class Judge:
    """Selectors judged on devices, each expression once per device shape. Reads the inventory, changes nothing."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self._programs: dict[str, cel.Program] = {}
        self._devices: dict[str | DeviceId, cel.CelDevice] = {}
        self._answers: dict[tuple[str, str | DeviceId], cel.Answer] = {}
        self._shapes: dict[str, list[Device]] = {}
        for device in inventory.devices:
            self._shapes.setdefault(device.shape, []).append(device)
        self._by_class: dict[tuple[str, str | None], _Admitted] = {}

    def program(self, expression: str) -> cel.Program:
        """The compiled expression; one that does not compile answers so on every device."""
        found = self._programs.get(expression)
        if found is None:
            found = self._programs[expression] = cel.compile(expression, self.inventory.kubernetes)
        return found

    def verdict(self, expression: str, device: Device) -> cel.Answer:
        """The selector's answer for `device`."""
        key = (expression, judging_key(device, expression))
        found = self._answers.get(key)
        if found is None:
            own = device.id if key[1] == device.id else device.shape
            seen = self._devices.get(own)
            if seen is None:
                seen = self._devices[own] = cel.cel_device(device.id.driver, device.spec.raw)
            found = self._answers[key] = self.program(expression).judge(seen)
        return found

    def admitted(self, device_class: DeviceClass, selector: str | None) -> _Admitted:
        """Devices that all selectors of `device_class` and the service class's `selector` match, in equal groups."""
        key = (device_class.name, selector)
        found = self._by_class.get(key)
        if found is None:
            found = self._by_class[key] = (
                self._of_class(device_class) if selector is None else self._narrowed(device_class, selector)
            )
        return found

    def _of_class(self, device_class: DeviceClass) -> _Admitted:
        kept: list[Device] = []
        partial: set[str] = set()
        barred: set[str] = set()
        errors: list[Miss] = []
        for expression in device_class.selectors:
            program = self.program(expression)
            if program.error is not None:
                broken = Miss(
                    lack=Lack.SELECTOR,
                    detail=_unjudged(expression, f"device class {device_class.name}", "", program.error),
                )
                return _Admitted(groups=(), partial=frozenset(), barred=frozenset(), errors=(broken,))
        for shape, devices in self._shapes.items():
            before = len(kept)
            for unit in self._units(devices, device_class.selectors):
                miss = self._all_match(unit[0], device_class.selectors, f"device class {device_class.name}")
                if miss is None:
                    kept.extend(unit)
                elif miss is not _NO:
                    errors.append(miss)
                    barred.update(node for device in unit for node in device.nodes)
            if 0 < len(kept) - before < len(devices):
                partial.add(shape)
        groups = _grouped(kept)
        return _Admitted(
            groups=groups,
            group_of=_places(groups),
            partial=frozenset(partial),
            barred=frozenset(barred),
            errors=tuple(errors),
        )

    def _narrowed(self, device_class: DeviceClass, selector: str) -> _Admitted:
        base = self.admitted(device_class, None)
        kept: list[Device] = []
        partial = set(base.partial)
        by_shape: dict[str, list[Device]] = {}
        for group in base.groups:
            for device in group:
                by_shape.setdefault(device.shape, []).append(device)
        for shape, devices in by_shape.items():
            before = len(kept)
            for unit in self._units(devices, (selector,)):
                miss = self._all_match(unit[0], (selector,), "the service class")
                if miss is None:
                    kept.extend(unit)
                elif miss is not _NO:
                    return _Admitted(groups=(), partial=frozenset(), barred=frozenset(), errors=base.errors, fatal=miss)
            if 0 < len(kept) - before < len(devices):
                partial.add(shape)
        groups = _grouped(kept)
        return _Admitted(
            groups=groups,
            group_of=_places(groups),
            partial=frozenset(partial),
            barred=base.barred,
            errors=base.errors,
        )

    def _units(self, devices: Sequence[Device], expressions: Sequence[str]) -> list[Sequence[Device]]:
        """Devices of one shape in parts that all `expressions` must judge alike."""
        if all(judging_key(devices[0], expression) == devices[0].shape for expression in expressions):
            return [devices]
        return [[device] for device in devices]

    def _all_match(self, device: Device, expressions: Sequence[str], where: str) -> Miss | None:
        """None: every one matches; `_NO`: one does not; else the miss of the first that cannot be judged."""
        for expression in expressions:
            answer = self.verdict(expression, device)
            if answer.verdict is cel.Verdict.NO_MATCH:
                return _NO
            if answer.verdict is not cel.Verdict.MATCH:
                return Miss(
                    lack=Lack.SELECTOR,
                    device=str(device.id),
                    detail=_unjudged(expression, where, str(device.id), answer.cause),
                )
        return None


_NO = Miss(lack=Lack.NO_DEVICE)


def _unjudged(expression: str, where: str, device: str, cause: str) -> str:
    on = f" on device {device}" if device else ""
    return f"the expression `{expression}` of {where} cannot be judged{on}: {cause}"


def _grouped(devices: Sequence[Device]) -> tuple[tuple[Device, ...], ...]:
    """Devices equal in all that sizing and launching ask about; parts of a card that differ in place only are equal."""
    groups: dict[tuple[object, ...], list[Device]] = {}
    keys: dict[str, tuple[object, ...]] = {}
    for device in devices:
        told = keys.get(device.shape)
        if told is None:
            told = keys[device.shape] = alike(device)
        groups.setdefault(told, []).append(device)
    return tuple(tuple(group) for _, group in sorted(groups.items(), key=lambda item: repr(item[0])))


def _places(groups: Sequence[Sequence[Device]]) -> dict[DeviceId, int]:
    return {device.id: number for number, group in enumerate(groups) for device in group}


def alike(device: Device) -> tuple[object, ...]:
    """What must be equal for two devices to be interchangeable for a model."""
    return (
        device.id.driver,
        device.placement.value,
        device.profile,
        device.product,
        None if device.memory is UNKNOWN else device.memory,
        None if device.compute_capability is UNKNOWN else device.compute_capability,
        device.driver_version,
        device.shareable,
        tuple(sorted((name, repr(item)) for name, item in device.capacity.items())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What offers depend on beside the inventory; orders with equal questions have equal offers."""

    service_class: ServiceClass
    device_classes: tuple[str, ...] | None
    """The order's own narrowing."""
    model: launches.Model

    def __hash__(self) -> int:
        """Cheap: a question is looked up for every order, and a handful of them share these."""
        model = self.model
        return hash((self.service_class.name, self.device_classes, model.facts.name, model.strategy))


def _distinct(admitted: Sequence[Sequence[tuple[Device, ...]]]) -> int:
    """How many devices several device classes admit together; the groups of one class have none in common."""
    if len(admitted) == 1:
        return sum(len(group) for group in admitted[0])
    return len({device.id for groups in admitted for group in groups for device in group})


class Candidates:
    """The offers of orders, each question answered once."""

    def __init__(self, judge: Judge, device_classes: Mapping[str, DeviceClass], launcher: launches.Launcher) -> None:
        self.judge = judge
        self._device_classes = device_classes
        self._launcher = launcher
        self._answers: dict[Question, Considered] = {}
        self._retained: dict[tuple[Question, Way, int, int, Share | None], Offer | None] = {}

    def of(self, question: Question) -> Considered:
        """Every way that class and order allow: offers in rank order, misses for the rest."""
        found = self._answers.get(question)
        if found is None:
            found = self._answers[question] = self._consider(question)
        return found

    def retained(
        self, question: Question, way: Way, example: DeviceId, count: int, share: Share | None
    ) -> Offer | None:
        """The offer of a placement that stands: the share as it is held, launched anew; None: it is none any more.

        None when class and order no longer allow the way, no longer admit the device, or when the model, by the recipes
        of now, does not fit into what is held.
        """
        names, _ = self.allowed(question)
        if way.device_class not in names or way not in _ways(way.device_class, question.service_class):
            return None
        admitted = self.judge.admitted(self._device_classes[way.device_class], question.service_class.device_selector)
        if admitted.fatal is not None:
            return None
        number = admitted.group_of.get(example)
        if number is None:
            return None
        key = (question, way, number, count, share)
        if key not in self._retained:
            self._retained[key] = self._retain(question, way, admitted, number, count, share)
        return self._retained[key]

    def _retain(
        self, question: Question, way: Way, admitted: _Admitted, number: int, count: int, share: Share | None
    ) -> Offer | None:
        group = admitted.groups[number]
        if group[0].placement is not way.placement:
            return None
        if self._launcher.unsuitable(question.model, group[0]):
            return None
        if way.sharing is SharingMode.DEDICATED:
            found = self._alone(way, group, admitted, question, only=count)
        elif share is None or share.memory is UNKNOWN:
            return None
        else:
            found = self._share_of(way, group, admitted, question, share.memory, sized=True)
        return None if isinstance(found, Miss) else found

    def allowed(self, question: Question) -> tuple[tuple[str, ...], tuple[Miss, ...]]:
        """Names of device classes that class and order allow and that exist, and a miss for each that does not."""
        named = question.service_class.device_class_names
        names = tuple(sorted(self._device_classes)) if named is None else tuple(sorted(named))
        if question.device_classes is not None:
            if named is None:
                names = tuple(sorted(question.device_classes))
            else:
                names = tuple(name for name in names if name in question.device_classes)
        missing = tuple(name for name in names if name not in self._device_classes)
        return tuple(name for name in names if name in self._device_classes), tuple(
            Miss(lack=Lack.MISSING_CLASS, detail=name) for name in missing
        )

    def _consider(self, question: Question) -> Considered:
        service_class = question.service_class
        names, missing = self.allowed(question)
        misses: list[tuple[Way | None, Miss]] = []
        for miss in missing:
            misses += [(way, miss) for way in _ways(miss.detail, service_class)]
        selector = service_class.device_selector
        if selector is not None:
            program = self.judge.program(selector)
            if program.error is not None:
                detail = _unjudged(selector, f"service class {service_class.name}", "", program.error)
                return Considered(offers=(), misses=((None, Miss(lack=Lack.SELECTOR, detail=detail)),))
        offers: list[Offer] = []
        tried: list[Sequence[tuple[Device, ...]]] = []
        for name in names:
            admitted = self.judge.admitted(self._device_classes[name], selector)
            if admitted.fatal is not None:
                detail = admitted.fatal.detail.replace("the service class", f"service class {service_class.name}", 1)
                fatal = Miss(lack=Lack.SELECTOR, device=admitted.fatal.device, detail=detail)
                return Considered(offers=(), misses=((None, fatal),))
            tried.append(admitted.groups)
            for way in _ways(name, service_class):
                found, lost = self._of_way(way, admitted, question)
                offers += found
                misses += [(way, miss) for miss in (*admitted.errors, *lost)]
        offers.sort(key=lambda offer: (*offer.rank, offer.way.order, repr(alike(offer.example))))
        return Considered(offers=tuple(offers), misses=tuple(misses), tried=_distinct(tried))

    def _of_way(self, way: Way, admitted: _Admitted, question: Question) -> tuple[list[Offer], list[Miss]]:
        offers: list[Offer] = []
        misses: list[Miss] = []
        if not admitted.groups and not admitted.errors:
            misses.append(Miss(lack=Lack.NO_DEVICE, count=0))
        for group in admitted.groups:
            found = self._of_group(way, group, admitted, question)
            if isinstance(found, Miss):
                misses.append(found)
            else:
                offers.append(found)
        return offers, misses

    def _of_group(self, way: Way, group: tuple[Device, ...], admitted: _Admitted, question: Question) -> Offer | Miss:
        example = group[0]
        if example.placement is not way.placement:
            words = "a partition" if way.placement is PlacementType.PARTITION else "a whole device"
            return Miss(lack=Lack.NOT_OFFERED, device=str(example.id), detail=words, count=len(group))
        unsuitable = self._launcher.unsuitable(question.model, example)
        if unsuitable:
            return Miss(lack=Lack.HARDWARE, device=str(example.id), detail=unsuitable, count=len(group))
        if way.sharing is SharingMode.SHARED:
            return self._shared(way, group, admitted, question)
        return self._alone(way, group, admitted, question)

    def _shared(self, way: Way, group: tuple[Device, ...], admitted: _Admitted, question: Question) -> Offer | Miss:
        device, policy = group[0], question.service_class
        if not device.shareable:
            return Miss(lack=Lack.NOT_OFFERED, device=str(device.id), detail="shares", count=len(group))
        if device.memory is UNKNOWN:
            return Miss(lack=Lack.MEMORY_UNPUBLISHED, device=str(device.id), count=len(group))
        most = _largest_share(device)
        need = self._launcher.smallest(question.model, device, shared=True)
        sized = need is not UNKNOWN
        low = policy.min_share_memory or 0
        high = most if policy.max_share_memory is None else min(policy.max_share_memory, most)
        wanted = max(need, low) if need is not UNKNOWN else max(high, low)
        if wanted > most:
            return Miss(lack=Lack.TOO_SMALL, device=str(device.id), needed=wanted, free=most, count=len(group))
        return self._share_of(way, group, admitted, question, wanted, sized=sized)

    def _share_of(
        self,
        way: Way,
        group: tuple[Device, ...],
        admitted: _Admitted,
        question: Question,
        wanted: Bytes,
        *,
        sized: bool,
    ) -> Offer | Miss:
        device, policy = group[0], question.service_class
        if not device.shareable or device.memory is UNKNOWN:
            return Miss(lack=Lack.NOT_OFFERED, device=str(device.id), detail="shares", count=len(group))
        amounts = share_amounts(device, wanted)
        if amounts is None:
            most = _largest_share(device)
            return Miss(lack=Lack.TOO_SMALL, device=str(device.id), needed=wanted, free=most, count=len(group))
        memory = _memory_of(device, amounts)
        if policy.max_share_memory is not None and memory > policy.max_share_memory:
            return Miss(
                lack=Lack.SHARE_BOUND,
                device=str(device.id),
                needed=memory,
                free=policy.max_share_memory,
                count=len(group),
            )
        launch = self._launcher.shared(question.model, device, memory)
        if isinstance(launch, Miss):
            return _counted(launch, group)
        configs = self._device_classes[way.device_class].config
        use = Use(tuple(sorted(amounts.items())), strategy_of(device.id.driver, configs, shared=True))
        share = Share(memory=memory, compute_percent=_compute_of(device, amounts))
        return self._offer(way, group, admitted, use, launch, 1, share, amounts, memory, memory, sized=sized)

    def _alone(
        self,
        way: Way,
        group: tuple[Device, ...],
        admitted: _Admitted,
        question: Question,
        only: int | None = None,
    ) -> Offer | Miss:
        device = group[0]
        amounts: Mapping[str, Amount] | None = None
        if device.shareable:
            amounts = exclusive_amounts(device)
            if amounts is None:
                return Miss(
                    lack=Lack.NOT_OFFERED,
                    device=str(device.id),
                    detail="a device that nobody can share",
                    count=len(group),
                )
        most = question.service_class.max_accelerator_count if way.placement is PlacementType.WHOLE_DEVICE else 1
        counts = self._launcher.counts(question.model, device, most) if only is None else (only,)
        missed: list[Miss] = []
        for count in counts:
            launch = self._launcher.alone(question.model, device, count)
            if isinstance(launch, Miss):
                missed.append(launch if count == 1 else replace(launch, detail=f"each of {count} devices"))
                if launch.lack is Lack.MEMORY_UNPUBLISHED:
                    break
                continue
            configs = self._device_classes[way.device_class].config
            strategy = strategy_of(device.id.driver, configs, shared=False)
            use = Use(None if amounts is None else tuple(sorted(amounts.items())), strategy)
            sized = launch.sized.source != "Unknown"
            need = self._launcher.smallest(question.model, device, shared=False, count=count)
            return self._offer(
                way, group, admitted, use, launch, count, None, amounts or {}, device.memory, need, sized=sized
            )
        odd = self._launcher.indivisible(question.model, most)
        if len(counts) == 1 and odd is not None and missed[0].lack is Lack.TOO_SMALL:
            return Miss(lack=Lack.HEADS, device=str(device.id), needed=odd, count=len(group))
        return _counted(min(missed, key=lambda miss: miss.shortfall or 0), group)

    def _offer(
        self,
        way: Way,
        group: tuple[Device, ...],
        admitted: _Admitted,
        use: Use,
        launch: Launch,
        count: int,
        share: Share | None,
        amounts: Mapping[str, Amount],
        held: Maybe,
        need: Maybe,
        *,
        sized: bool,
    ) -> Offer:
        shapes = frozenset(device.shape for device in group)
        members = frozenset(device.id for device in group) if shapes & admitted.partial else None
        return Offer(
            way=way,
            wish=Wish(use=use, shapes=shapes, members=members, barred=admitted.barred, count=count, host=launch.host),
            example=group[0],
            devices=len(group),
            share=share,
            capacity=quantities(group[0], amounts),
            held=held,
            need=need,
            launch=launch,
            sized=sized,
        )


def _counted(miss: Miss, group: Sequence[Device]) -> Miss:
    return Miss(
        lack=miss.lack,
        device=str(group[0].id),
        needed=miss.needed,
        free=miss.free,
        detail=miss.detail,
        count=len(group),
    )


def _ways(device_class: str, service_class: ServiceClass) -> tuple[Way, ...]:
    return tuple(
        sorted(
            (
                Way(device_class=device_class, placement=placement, sharing=sharing)
                for placement in service_class.placement_types
                for sharing in service_class.sharing_modes
            ),
            key=lambda way: way.order,
        )
    )


def _largest_share(device: Device) -> Bytes:
    """The most memory one share can stand for: what the policy lets it hold, or its seat's part of the device."""
    assert device.memory is not UNKNOWN
    for name, capacity in device.capacity.items():
        if device.roles[name] is Role.MEMORY and _countable(device, name):
            return int(largest(capacity))
    seats = max(
        (int(item.value) for name, item in device.capacity.items() if device.roles[name] is Role.SEATS), default=0
    )
    return device.memory // seats if seats else device.memory


def _memory_of(device: Device, amounts: Mapping[str, Amount]) -> Bytes:
    for name, amount in amounts.items():
        if device.roles[name] is Role.MEMORY and _countable(device, name):
            return int(amount)
    return _largest_share(device)


def _countable(device: Device, name: str) -> bool:
    """Shares of this capacity add up to it: the driver gave it a policy, so not every share takes all of it."""
    return device.capacity[name].policy is not None


def _compute_of(device: Device, amounts: Mapping[str, Amount]) -> Maybe:
    for name, amount in amounts.items():
        if device.roles[name] is Role.COMPUTE:
            return int(amount * 100 // device.capacity[name].value)
    return UNKNOWN
