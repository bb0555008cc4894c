# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Who sits on every device and what is free of it, and how far what is placed is from the fewest cards possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner import batch
from planner.candidates import Judge
from planner.dra import DeviceId
from planner.drivers import Role
from planner.inventory import Device, Inventory
from planner.model import (
    CapacityReport,
    ClassCapacity,
    DeviceUse,
    HostUse,
    Key,
    PackingReport,
    Sitting,
)
from planner.placement import Board, Wish, free_memory
from planner.resolution import Index
from planner.seating import Seating
from planner.units import UNKNOWN, Maybe
from planner.works import Work, order_of


def report(seating: Seating, known: Index, judge: Judge) -> CapacityReport:
    """Every device with who sits on it, and what of each class is free on each node."""
    board, inventory = seating.board, seating.board.inventory
    of_class: dict[DeviceId, list[str]] = {}
    for name, device_class in sorted(known.device_classes.items()):
        for group in judge.admitted(device_class, None).groups:
            for device in group:
                of_class.setdefault(device.id, []).append(name)
    sittings = _sittings(inventory, seating.works)
    uses: list[DeviceUse] = []
    totals: dict[tuple[str, str], list[Maybe]] = {}
    for device in sorted(inventory.devices, key=lambda device: device.id):
        held = device.id in sittings
        taken = board.ledger.in_use(device.id)
        lack = None if taken else board.ledger.lack(inventory, device, None)
        usable = not device.taints and any(inventory.usable(node, device.id.driver) for node in device.nodes)
        free: Maybe = (
            0 if lack is not None or not usable else device.memory if not taken else free_memory(board.ledger, device)
        )
        names = tuple(of_class.get(device.id, ()))
        problem = (
            f"tainted: {', '.join(taint.key for taint in device.taints)}"
            if device.taints
            else ""
            if usable
            else "on no node that takes pods"
        )
        uses.append(
            DeviceUse(
                id=device.id,
                nodes=device.nodes,
                device_classes=names,
                product=device.product,
                placement=device.placement,
                memory=device.memory,
                free=free,
                sittings=tuple(sittings.get(device.id, ())),
                blocked=lack is not None,
                problem=problem,
            )
        )
        for name in names:
            for node in device.nodes[:1]:
                row = totals.setdefault((name, node), [0, 0, 0, 0])
                whole_free = usable and not held and not taken and lack is None
                for place, more in enumerate((1, int(held), int(whole_free))):
                    before = row[place]
                    row[place] = UNKNOWN if before is UNKNOWN else before + more
                before = row[3]
                row[3] = UNKNOWN if before is UNKNOWN or free is UNKNOWN else before + free
    classes = tuple(
        ClassCapacity(
            device_class=name,
            node=node,
            total=_number(row[0]),
            held=_number(row[1]),
            free=_number(row[2]),
            free_memory=row[3],
        )
        for (name, node), row in sorted(totals.items())
    )
    return CapacityReport(classes=classes, devices=tuple(uses), problems=_problems(inventory, known))


def _problems(inventory: Inventory, known: Index) -> tuple[str, ...]:
    problems = [
        f"{problem.driver} pool {problem.pool}: {problem.message} ({problem.trouble.value})"
        for problem in inventory.problems
    ]
    problems += [f"cannot be read: {entry}" for entry in known.snapshot.unreadable]
    problems += [
        f"claim {hold.namespace}/{hold.claim} holds {hold.device}, which nobody publishes now"
        for hold in inventory.unpublished
    ]
    return tuple(problems)


def against_the_fewest(seating: Seating, host_use: Sequence[HostUse]) -> PackingReport:
    """All replicas packed anew on a board without our claims; those of several devices stay where they are."""
    inventory, works = seating.board.inventory, seating.works
    ledger = inventory.ledger.copy()
    for hold in inventory.holds:
        device = inventory.by_id.get(hold.device)
        if device is not None and order_of(hold) in works:
            ledger.give_back(device, hold.amounts, hold.strategy)
    board = Board(inventory, host_use, ledger)
    demand: dict[Wish, int] = {}
    mine: list[DeviceId] = []
    fixed: list[DeviceId] = []
    count = 0
    for key in sorted(works):
        work = works[key]
        for replica in work.replicas:
            count += 1
            mine.extend(replica.seat.devices)
            wish = None if work.offer is None else work.offer.wish
            if wish is None or wish.count > 1 or wish.members is not None or seating.has_volumes(key):
                board.take(replica.seat.devices, replica.use, replica.seat.node or None, replica.host)
                fixed.extend(replica.seat.devices)
            else:
                demand[wish] = demand.get(wish, 0) + 1
    least = board.alone_on(fixed)
    found = batch.seat(board, list(demand), list(demand.values()))
    limited = (found.reason,) if isinstance(found, batch.NoBatch) else found.limited
    bound = None if isinstance(found, batch.NoBatch) else found.bound + least
    cards = seating.board.alone_on(mine)
    return PackingReport(replicas=count, cards=cards, bound=bound, limited=limited)


def _sittings(inventory: Inventory, works: Mapping[Key, Work]) -> dict[DeviceId, list[Sitting]]:
    found: dict[DeviceId, list[Sitting]] = {}
    for hold in inventory.holds:
        order = order_of(hold)
        mine = order if order in works else None
        amounts = hold.amounts
        found.setdefault(hold.device, []).append(
            _sitting(
                inventory,
                str(mine) if mine else f"{hold.namespace}/{hold.claim}",
                mine,
                hold.device,
                amounts,
                planned=False,
            )
        )
    for key in sorted(works):
        for replica in works[key].replicas:
            if replica.seat.standing:
                continue
            for name in replica.seat.devices:
                found.setdefault(name, []).append(
                    _sitting(inventory, str(key), key, name, replica.use.requested, planned=True)
                )
    for sitting in found.values():
        sitting.sort(key=lambda item: (item.planned, item.holder))
    return found


def _sitting(
    inventory: Inventory,
    holder: str,
    order: Key | None,
    name: DeviceId,
    amounts: Mapping[str, object] | None,
    *,
    planned: bool,
) -> Sitting:
    device = inventory.by_id.get(name)
    memory: Maybe = UNKNOWN if device is None else device.memory
    percent: Maybe = UNKNOWN
    if device is not None and amounts is not None:
        memory, percent = _share(device, amounts)
    return Sitting(holder=holder, order=order, memory=memory, compute_percent=percent, planned=planned)


def _share(device: Device, amounts: Mapping[str, object]) -> tuple[Maybe, Maybe]:
    """Memory in bytes and compute in percent that a share's amounts stand for; UNKNOWN where it counts none."""
    memory: Maybe = UNKNOWN
    percent: Maybe = UNKNOWN
    for name, capacity in device.capacity.items():
        amount = amounts.get(name)
        if not isinstance(amount, int):
            continue
        role = device.roles[name]
        if role is Role.MEMORY:
            memory = amount
        elif role is Role.COMPUTE:
            percent = int(amount * 100 // capacity.value)
    return memory, percent


def _number(value: Maybe) -> int:
    return 0 if value is UNKNOWN else value
