# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Many replicas seated at once on the fewest cards: the board told as a packing, and the packing told as seats.

Only new replicas are seated; whatever holds something on the board is a card in use, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from planner import packing
from planner.dra import Amount
from planner.inventory import Device, charged
from planner.model import HostResources, Seat
from planner.packing import Geometry, Kind, Packing, Room
from planner.placement import Board, Card, Use, Wish

ALL_OF_A_CARD: Final = 1_000_000
"""More parts than any card has: what a whole card takes of the resource that keeps it apart from its partitions."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Seats of each wish, and how good they are proven to be."""

    seats: tuple[tuple[Seat, ...], ...]
    opened: int
    """Cards that get their first holder."""
    bound: int
    """However the replicas are seated, at least so many do."""
    limited: tuple[str, ...] = ()
    """Limits that were hit."""


@dataclass(frozen=True, slots=True)
class NoBatch:
    """The replicas can't be seated together, or a limit left it open."""

    reason: str


def seat(
    board: Board, wishes: Sequence[Wish], demand: Sequence[int], limits: Mapping[str, int] | None = None
) -> Batch | NoBatch:
    """Seats for `demand` replicas of each of `wishes`, none taken yet. Each wish is for one device, with no members."""
    assert all(wish.count == 1 and wish.members is None for wish in wishes)
    seats: list[list[Seat]] = [[] for _ in wishes]
    opened = bound = 0
    limited: list[str] = []
    used: dict[str, tuple[int, int]] = {}
    for part in _parts(board, wishes, demand):
        told = _Told(board, [wishes[number] for number in part])
        wanted = [demand[number] for number in part]
        packed = packing.pack(told.kinds, wanted, limits)
        if packed is None:
            return NoBatch("not all replicas fit on what is free now")
        found = told.seats(packed, wanted, used)
        if found is None:
            return NoBatch("CPU or memory of the nodes, not their devices, decide who fits")
        for place, number in enumerate(part):
            seats[number] = found[0][place]
        opened += found[1]
        bound += packed.bound
        if packed.limited:
            limited.append(packed.limited)
    return Batch(tuple(tuple(item) for item in seats), opened, bound, tuple(limited))


def _parts(board: Board, wishes: Sequence[Wish], demand: Sequence[int]) -> list[list[int]]:
    """Wishes that compete for some card are packed together, all others apart."""
    root = list(range(len(wishes)))

    def find(number: int) -> int:
        while root[number] != number:
            number = root[number]
        return number

    owner: dict[int, int] = {}
    for number, wish in enumerate(wishes):
        for build in board.builds(wish):
            one, two = find(owner.setdefault(build, number)), find(number)
            root[max(one, two)] = min(one, two)
    parts: dict[int, list[int]] = {}
    for number, want in enumerate(demand):
        if want:
            parts.setdefault(find(number), []).append(number)
    return list(parts.values())


class _Told:
    """The cards that some wishes can come to, as kinds of a packing."""

    def __init__(self, board: Board, wishes: Sequence[Wish]) -> None:
        self.board = board
        self.wishes = wishes
        self.kinds: list[Kind] = []
        self._cards: list[tuple[int, ...]] = []
        self._devices: list[tuple[tuple[tuple[int, ...], ...], ...]] = []
        """Of each kind and fill: of each position (or each wish, for shares) its place on the card."""
        masks: dict[int, list[tuple[int, ...]]] = {}
        for number, wish in enumerate(wishes):
            for build, mask in board.builds(wish).items():
                masks.setdefault(build, [()] * len(wishes))[number] = mask
        for build in sorted(masks):
            for cards in board.equal_cards(build):
                self._tell(cards, masks[build])

    def _tell(self, cards: tuple[int, ...], masks: Sequence[tuple[int, ...]]) -> None:
        card = self.board.card(cards[0])
        fills: list[Geometry | Room] = []
        devices: list[tuple[tuple[int, ...], ...]] = []
        cut = self._geometry(card, masks)
        if cut is not None:
            fills.append(cut[0])
            devices.append(cut[1])
        shared = [number for number, wish in enumerate(self.wishes) if wish.use.amounts is not None and masks[number]]
        strategies = sorted({self.wishes[number].use.strategy or "" for number in shared})
        for strategy in strategies if len(strategies) < 2 else [item for item in strategies if item]:
            room = self._room(card, masks, [n for n in shared if (self.wishes[n].use.strategy or "") in ("", strategy)])
            if room is not None:
                fills.append(room[0])
                devices.append(room[1])
        if fills:
            self.kinds.append(Kind(len(cards), self.board.in_use(card), tuple(fills)))
            self._cards.append(cards)
            self._devices.append(tuple(devices))

    def _geometry(
        self, card: Card, masks: Sequence[tuple[int, ...]]
    ) -> tuple[Geometry, tuple[tuple[int, ...], ...]] | None:
        ledger, inventory = self.board.ledger, self.board.inventory
        places = sorted(
            {
                place
                for wish, mask in zip(self.wishes, masks, strict=True)
                if wish.use.amounts is None
                for place in mask
                if not card.devices[place].taints
                and ledger.lack(inventory, card.devices[place], None, wish.use.strategy) is None
            }
        )
        if not places:
            return None
        number = {place: position for position, place in enumerate(places)}
        resources: dict[object, int] = {}
        free: list[int] = []
        consumes: list[tuple[tuple[int, int], ...]] = []
        for place in places:
            device = card.devices[place]
            takes: list[tuple[int, int]] = []
            for key, amount in device.consumes:
                if key not in resources:
                    resources[key] = len(free)
                    free.append(_whole(inventory.counters.get(key, 0) - ledger.counters.get(key, 0), up=False))
                takes.append((resources[key], _whole(amount, up=True)))
            if device.card not in resources:
                resources[device.card] = len(free)
                free.append(ALL_OF_A_CARD)
            takes.append((resources[device.card], ALL_OF_A_CARD if device.whole else 1))
            consumes.append(tuple(item for item in takes if item[1]))
        kept, lean = _lean(free, consumes)
        granted = tuple(
            tuple(number[place] for place in mask if place in number) if wish.use.amounts is None else ()
            for wish, mask in zip(self.wishes, masks, strict=True)
        )
        return Geometry(kept, lean, granted), tuple((place,) for place in places)

    def _room(
        self, card: Card, masks: Sequence[tuple[int, ...]], shared: Sequence[int]
    ) -> tuple[Room, tuple[tuple[int, ...], ...]] | None:
        """Shares of the card's one device that can be shared; of several only the first that admits any is used."""
        ledger, inventory = self.board.ledger, self.board.inventory
        for place in sorted({place for number in shared for place in masks[number]}):
            device = card.devices[place]
            amounts: list[tuple[int, ...] | None] = [None] * len(self.wishes)
            for number in shared:
                use = self.wishes[number].use
                if place not in masks[number] or device.taints:
                    continue
                if ledger.lack(inventory, device, use.requested, use.strategy) is None:
                    amounts[number] = _charged(device, use)
            if any(each is not None for each in amounts):
                free = tuple(
                    _whole(capacity.value - ledger.used(device.id, name), up=False)
                    for name, capacity in device.capacity.items()
                )
                return Room(free, tuple(amounts)), tuple((place,) for _ in self.wishes)
        return None

    def seats(
        self, packed: Packing, demand: Sequence[int], used: dict[str, tuple[int, int]]
    ) -> tuple[list[list[Seat]], int] | None:
        """(seats of each wish, cards opened); None: the nodes' CPU and memory don't hold them. `used` is added to."""
        left = list(demand)
        seats: list[list[Seat]] = [[] for _ in demand]
        following = [0] * len(self.kinds)
        opened = 0
        for filling in sorted(packed.fillings, key=lambda item: (not self.kinds[item.kind].opened, item.kind)):
            kind = self.kinds[filling.kind]
            fill = kind.fills[filling.fill]
            known: dict[tuple[int, ...], tuple[tuple[int, int], ...]] = {}
            for _ in range(filling.cards):
                wanted = tuple(min(have, want) for have, want in zip(filling.pattern, left, strict=True))
                if not any(wanted):
                    break
                if wanted not in known:
                    known[wanted] = self._places(filling.kind, filling.fill, fill, wanted)
                while True:
                    if following[filling.kind] >= kind.cards:
                        return None
                    index = self._cards[filling.kind][following[filling.kind]]
                    following[filling.kind] += 1
                    nodes = self._nodes(index, known[wanted], used)
                    if nodes is not None:
                        break
                opened += 0 if kind.opened else 1
                for (wish, place), node in zip(known[wanted], nodes, strict=True):
                    device = self.board.card(index).devices[place]
                    seats[wish].append(Seat(node=node, devices=(device.id,)))
                    left[wish] -= 1
        return None if any(left) else (seats, opened)

    def _places(self, kind: int, way: int, fill: Geometry | Room, wanted: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """(wish, place on the card) of one card's content."""
        devices = self._devices[kind][way]
        if isinstance(fill, Geometry):
            found = packing.arrangement(fill, wanted)
            assert found is not None, "a pattern is made of positions that can be held together"
            return tuple((wish, devices[position][0]) for wish, position in found)
        return tuple((wish, devices[wish][0]) for wish, count in enumerate(wanted) for _ in range(count))

    def _nodes(
        self, index: int, content: Sequence[tuple[int, int]], used: dict[str, tuple[int, int]]
    ) -> list[str] | None:
        """The node of each replica of one card's content, which then counts as used there; None: there is no room."""
        card = self.board.card(index)
        more = dict[str, tuple[int, int]]()
        nodes: list[str] = []
        for wish, place in content:
            host = self.wishes[wish].host
            for node in card.nodes:
                cpu, memory = more.get(node) or used.get(node, (0, 0))
                total = HostResources(cpu_milli=cpu + host.cpu_milli, memory=memory + host.memory)
                if (
                    node in card.devices[place].nodes
                    and node not in self.wishes[wish].barred
                    and self.board.holds_host(node, total)
                ):
                    more[node] = (total.cpu_milli, total.memory)
                    nodes.append(node)
                    break
            else:
                return None
        used.update(more)
        return nodes


def _lean(
    free: Sequence[int], consumes: Sequence[tuple[tuple[int, int], ...]]
) -> tuple[tuple[int, ...], tuple[tuple[tuple[int, int], ...], ...]]:
    """Without resources that all positions together can't exhaust."""
    total = [0] * len(free)
    for takes in consumes:
        for resource, amount in takes:
            total[resource] += amount
    scarce = [resource for resource, have in enumerate(free) if total[resource] > have]
    number = {resource: place for place, resource in enumerate(scarce)}
    return (
        tuple(free[resource] for resource in scarce),
        tuple(
            tuple((number[resource], amount) for resource, amount in takes if resource in number) for takes in consumes
        ),
    )


def _charged(device: Device, use: Use) -> tuple[int, ...]:
    asked = use.requested or {}
    told = []
    for name, capacity in device.capacity.items():
        amount = charged(capacity, asked.get(name))
        assert amount is not None, "a use that lacks nothing is one that the policy knows"
        told.append(_whole(amount, up=True))
    return tuple(told)


def _whole(amount: Amount, *, up: bool) -> int:
    """Amounts are exact fractions; what is taken is rounded up, what is free down: nothing is overdrawn."""
    return ceil(amount) if up else floor(amount)
