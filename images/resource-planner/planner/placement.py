# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Where one replica sits: the free capacity under trial, indexed so that equal cards are judged once.

A card (with everything cut from it) is in a state: which of its devices are held how, what its counters have left.
Cards of one build in one state are interchangeable, so a use is judged once per (state, wish) and remembered; finding a
seat then costs the number of different states, not of devices.

Among seats that grant a wish the one wins that takes the least from what others could still have: first by the largest
device that would be lost, then by the tightest fit, then by the scheduler's own order. That fills cards in use before
it opens whole ones, and cuts partitions where they block the fewest larger ones.

Where a partition starts is not ours to choose: no driver publishes it, so a request names card and profile, and the
scheduler takes the first position that fits in the slice's order. So a seat is judged at that position: what is planned
is where the pod lands, and what a card can still hold afterwards is what it really can.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from planner.dra import Amount, DeviceId
from planner.drivers import Role
from planner.inventory import CounterKey, Device, Inventory, Ledger, exclusive_amounts
from planner.model import Holder, HostResources, HostUse, Seat
from planner.units import UNKNOWN


@dataclass(frozen=True, slots=True)
class Use:
    """How one device is held: whole (`amounts` None) or by a share of stated capacities, under a sharing strategy."""

    amounts: tuple[tuple[str, Amount], ...] | None = None
    strategy: str | None = None

    @property
    def requested(self) -> Mapping[str, Amount] | None:
        """The amounts as the ledger takes them."""
        return None if self.amounts is None else dict(self.amounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a seat must be: `count` devices of one node, each among `shapes` (and `members`, if given), used alike."""

    use: Use
    shapes: frozenset[str]
    members: frozenset[DeviceId] | None = None
    """Only these devices, where a selector tells equal devices apart; None: every device of the shapes."""
    barred: frozenset[str] = frozenset()
    """Nodes where a selector errs on some device: a pod there would fail to schedule."""
    count: int = 1
    host: HostResources


@dataclass(frozen=True, slots=True)
class Options:
    """What can still be had of a card: whole devices by size (bytes, falling) and the largest free share."""

    sizes: tuple[tuple[int, int], ...]
    share: int

    @property
    def total(self) -> int:
        """A measure of how much is left; only compared."""
        return sum(size * count for size, count in self.sizes) + self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one holder has of the board: devices, each in its own use, and host resources of a node (None: not ours)."""

    holder: Holder
    parts: tuple[tuple[DeviceId, Use], ...]
    node: str | None
    host: HostResources | None


Score = tuple[tuple[tuple[int, int], ...], int, int]


@dataclass(slots=True)
class Card:
    """A card and all that excludes each other on it, in the scheduler's order."""

    devices: tuple[Device, ...]
    nodes: tuple[str, ...]
    """Nodes that our pods can come to, in name order."""
    names: tuple[str, ...]
    counters: tuple[CounterKey, ...]
    build: int
    """Cards with equal builds are interchangeable when in equal states."""
    uniform: bool
    """Whatever node reaches one of its devices reaches all."""
    state: int = -1


class Board:
    """Everything that is free, under trial. `take` and `give_back` are exact inverses; nothing else changes it."""

    def __init__(self, inventory: Inventory, host_use: Sequence[HostUse] = (), ledger: Ledger | None = None) -> None:
        self.inventory = inventory
        self.version = 0
        """Changes with every change: an answer given at one version holds as long as the version does."""
        self.ledger = (inventory.ledger if ledger is None else ledger).copy()
        self.host_free = _host_free(inventory, host_use)
        """Node → milli-CPU and bytes that our pods can still ask for; None: the node states none, so none is judged."""
        self._cards: list[Card] = []
        self._card_of: dict[DeviceId, int] = {}
        self._builds: dict[tuple[object, ...], int] = {}
        self._states: dict[tuple[object, ...], int] = {}
        self._buckets: dict[int, list[int]] = {}
        self._live: list[dict[int, None]] = []
        self._options: dict[int, Options] = {}
        self._best: dict[tuple[int, int, tuple[int, ...]], tuple[Score, int] | None] = {}
        self._wishes: dict[tuple[Use, frozenset[str], frozenset[DeviceId] | None], int] = {}
        self._masks: dict[int, tuple[tuple[int, tuple[int, ...]], ...]] = {}
        self._members: dict[int, tuple[tuple[int, tuple[int, ...]], ...]] = {}
        self._exclusive: dict[str, Mapping[str, Amount] | None] = {}
        self._of_build: list[list[int]] = []
        self._tables: dict[int, dict[str, dict[int, tuple[Score, int]]]] = {}
        self._ranks: list[list[int]] | None = None
        self._uses_of: dict[int, int] = {}
        self._several: dict[int, tuple[Wish, dict[int, tuple[int, ...]]]] = {}
        self._cards_on: dict[str, list[int]] = {}
        self._found: dict[tuple[Wish, frozenset[str] | None], tuple[int, tuple[Score, Seat] | None]] = {}
        """What was last found for a wish, and at which version."""
        self._build_cards()

    # --- what is there

    def _build_cards(self) -> None:
        groups: dict[str, list[Device]] = {}
        for device in self.inventory.devices:
            groups.setdefault(device.card, []).append(device)
        for devices in _joined(groups):
            nodes = tuple(
                name
                for name in sorted({name for device in devices for name in device.nodes})
                if self.inventory.usable(name, devices[0].id.driver)
            )
            sets = sorted({key[:3] for device in devices for key, _ in device.consumes})
            counters = tuple(dict.fromkeys(key for device in devices for key, _ in device.consumes))
            told = (
                tuple((device.shape, tuple(sets.index(key[:3]) for key, _ in device.consumes)) for device in devices),
                tuple(self.inventory.counters.get(key, 0) for key in counters),
                tuple(device.card == devices[0].card for device in devices),
            )
            build = self._builds.setdefault(told, len(self._builds))
            if build == len(self._live):
                self._live.append({})
                self._of_build.append([])
            index = len(self._cards)
            names = tuple(dict.fromkeys(device.card for device in devices))
            uniform = all(device.nodes == devices[0].nodes for device in devices)
            card = Card(tuple(devices), nodes, names, counters, build, uniform)
            self._cards.append(card)
            self._of_build[build].append(index)
            for device in devices:
                self._card_of[device.id] = index
            for node in nodes:
                self._cards_on.setdefault(node, []).append(index)
            if nodes:
                self._enter(index)

    def _enter(self, index: int) -> None:
        card = self._cards[index]
        state = self._state(card)
        card.state = state
        bucket = self._buckets.get(state)
        if not bucket:
            self._buckets[state] = [index]
            self._live[card.build][state] = None
        else:
            insort(bucket, index)

    def _leave(self, index: int) -> None:
        card = self._cards[index]
        bucket = self._buckets[card.state]
        del bucket[bisect_left(bucket, index)]
        if not bucket:
            del self._live[card.build][card.state]

    def _state(self, card: Card) -> int:
        key = self._key(card)
        return self._states.setdefault(key, len(self._states))

    def _key(self, card: Card) -> tuple[object, ...]:
        ledger = self.ledger
        uses = tuple(
            (place, ledger.whole.get(device.id, 0), ledger.shares.get(device.id, 0), _sorted(ledger, device.id))
            for place, device in enumerate(card.devices)
            if device.id in ledger.whole or device.id in ledger.shares
        )
        return (
            card.build,
            uses,
            tuple(ledger.counters.get(key, 0) for key in card.counters),
            tuple(ledger.strategies.get(name) for name in card.names),
        )

    # --- changes

    def take(self, devices: Iterable[DeviceId], use: Use, node: str | None, host: HostResources | None) -> None:
        """Hold `devices` alike, and the replica's host resources on `node`. Devices nobody publishes hold nothing."""
        for name in devices:
            self._change(name, use, taking=True)
        if node is not None and host is not None:
            self._host(node, host, -1)

    def give_back(self, devices: Iterable[DeviceId], use: Use, node: str | None, host: HostResources | None) -> None:
        """Undo one `take` of the same arguments."""
        for name in devices:
            self._change(name, use, taking=False)
        if node is not None and host is not None:
            self._host(node, host, 1)

    def leave(self, holding: Holding) -> None:
        """The holder goes; `come_back` is the exact inverse."""
        for name, use in holding.parts:
            self._change(name, use, taking=False)
        if holding.node is not None and holding.host is not None:
            self._host(holding.node, holding.host, 1)

    def come_back(self, holding: Holding) -> None:
        """The holder that left holds what it held before."""
        for name, use in holding.parts:
            self._change(name, use, taking=True)
        if holding.node is not None and holding.host is not None:
            self._host(holding.node, holding.host, -1)

    def renew(self, inventory: Inventory, host_use: Sequence[HostUse]) -> None:
        """As a new board of `inventory`, which has the same devices and nodes, other holds; costs what is held."""
        self.version += 1
        ledgers = (self.ledger, inventory.ledger)
        held = {name for ledger in ledgers for part in (ledger.whole, ledger.shares) for name in part}
        touched = sorted({self._card_of[name] for name in held})
        listed = [index for index in touched if self._cards[index].nodes]
        for index in listed:
            self._leave(index)
        self.inventory, self.ledger = inventory, inventory.ledger.copy()
        self.host_free = _host_free(inventory, host_use)
        for index in listed:
            self._enter(index)
            self._retabulate(index)

    @property
    def remembered(self) -> int:
        """How many states and verdicts it keeps in mind: grows with what was ever tried."""
        return len(self._states) + len(self._best) + len(self._options)

    def _retabulate(self, index: int) -> None:
        for number, (_, masks) in self._several.items():
            if index in masks:
                self._tabulate(number, index)

    def _change(self, name: DeviceId, use: Use, *, taking: bool) -> None:
        device = self.inventory.by_id.get(name)
        if device is None:
            return
        self.version += 1
        index = self._card_of[name]
        listed = bool(self._cards[index].nodes)
        if listed:
            self._leave(index)
        (self.ledger.take if taking else self.ledger.give_back)(device, use.requested, use.strategy)
        if listed:
            self._enter(index)
            self._retabulate(index)

    def _host(self, node: str, host: HostResources, sign: int) -> None:
        self.version += 1
        cpu, memory = self.host_free.get(node, (None, None))
        self.host_free[node] = (
            None if cpu is None else cpu + sign * host.cpu_milli,
            None if memory is None else memory + sign * host.memory,
        )

    # --- questions

    def uses_of(self, name: DeviceId) -> object:
        """What is held of the device's card, strategies apart; equal while it is as much."""
        index = self._card_of.get(name)
        return None if index is None else self._key(self._cards[index])[:-1]

    def neighbours(self, name: DeviceId) -> Sequence[Device]:
        """The devices of the same card, the named one among them; empty: nobody publishes it."""
        index = self._card_of.get(name)
        return () if index is None else self._cards[index].devices

    def can_take(self, name: DeviceId, use: Use) -> bool:
        """One more such use of the device fits now, on a node that takes pods."""
        device = self.inventory.by_id.get(name)
        if device is None or device.taints or not self._cards[self._card_of[name]].nodes:
            return False
        return self.ledger.lack(self.inventory, device, use.requested, use.strategy) is None

    def node_of(self, devices: Sequence[DeviceId], admits: Callable[[str], bool]) -> str | None:
        """The first usable node that reaches all of `devices` and is admitted; None: there is none."""
        common: set[str] | None = None
        for name in devices:
            index = self._card_of.get(name)
            reached = set() if index is None else set(self._cards[index].nodes) & set(self.inventory.by_id[name].nodes)
            common = reached if common is None else common & reached
        return next((node for node in sorted(common or ()) if admits(node)), None)

    def holds_host(self, node: str, host: HostResources) -> bool:
        """The node's CPU and memory hold one more replica, or it does not say how much it has."""
        cpu, memory = self.host_free.get(node, (None, None))
        return (cpu is None or cpu >= host.cpu_milli) and (memory is None or memory >= host.memory)

    def find(self, wish: Wish, nodes: frozenset[str] | None = None) -> tuple[Score, Seat] | None:
        """The seat that takes the least from others, and how much that is; None: none admits the wish now.

        `nodes` None: any node. Ties go to the first card in the scheduler's order.
        """
        asked = (wish, nodes)
        known = self._found.get(asked)
        if known is None or known[0] != self.version:
            found = self._find_several(wish, nodes) if wish.count > 1 else self._find_one(wish, nodes)
            known = self._found[asked] = self.version, found
        return known[1]

    def _find_one(self, wish: Wish, nodes: frozenset[str] | None) -> tuple[Score, Seat] | None:
        number = self._number(wish)

        def admitted(node: str) -> bool:
            return (nodes is None or node in nodes) and node not in wish.barred and self.holds_host(node, wish.host)

        best: tuple[Score, int, str, int] | None = None
        if wish.members is not None:
            for index, mask in self._restricted(number, wish):
                found = self._judged(self._cards[index].state, number, wish, mask, index)
                if found is None or (best is not None and (found[0], index) >= best[:2]):
                    continue
                node = self._node(index, found[1], admitted)
                if node is not None:
                    best = (found[0], index, node, found[1])
            return self._seat(best)
        for build, mask in self._unrestricted(number, wish):
            for state in self._live[build]:
                bucket = self._buckets[state]
                found = self._judged(state, number, wish, mask, bucket[0])
                if found is None or (best is not None and (found[0], bucket[0]) >= best[:2]):
                    continue
                for index in bucket:
                    if best is not None and (found[0], index) >= best[:2]:
                        break
                    node = self._node(index, found[1], admitted)
                    if node is not None:
                        best = (found[0], index, node, found[1])
                        break
        return self._seat(best)

    def _seat(self, best: tuple[Score, int, str, int] | None) -> tuple[Score, Seat] | None:
        if best is None:
            return None
        score, index, node, place = best
        return score, Seat(node=node, devices=(self._cards[index].devices[place].id,))

    def _node(self, index: int, place: int, admitted: Callable[[str], bool]) -> str | None:
        card = self._cards[index]
        reach = card.devices[place].nodes
        return next((node for node in card.nodes if node in reach and admitted(node)), None)

    def _find_several(self, wish: Wish, nodes: frozenset[str] | None) -> tuple[Score, Seat] | None:
        """Several equal devices of one node, one from each card: on the node with the fewest to spare."""
        best: tuple[int, str] | None = None
        for node, cards in self._table(wish).items():
            spare = len(cards) - wish.count
            if spare < 0 or (best is not None and (spare, node) >= best):
                continue
            if (nodes is None or node in nodes) and node not in wish.barred and self.holds_host(node, wish.host):
                best = (spare, node)
        if best is None:
            return None
        node = best[1]
        chosen = sorted((*judged, index) for index, judged in self._table(wish)[node].items())[: wish.count]
        lost = tuple(sorted((item for score, _, _ in chosen for item in score[0]), reverse=True))
        score: Score = (lost, sum(score[1] for score, _, _ in chosen), chosen[0][2])
        devices = tuple(sorted(self._cards[index].devices[place].id for _, place, index in chosen))
        return score, Seat(node=node, devices=devices)

    def fits_on(self, node: str, wish: Wish, nodes: frozenset[str] | None = None) -> bool:
        """Whether `node` alone has a seat for the wish now; costs that node's cards and nothing else."""
        if node in wish.barred or (nodes is not None and node not in nodes) or not self.holds_host(node, wish.host):
            return False
        number = self._number(wish)
        places = dict(self._restricted(number, wish) if wish.members is not None else self._unrestricted(number, wish))
        found = 0
        for index in self._cards_on.get(node, ()):
            card = self._cards[index]
            mask = places.get(index if wish.members is not None else card.build)
            judged = self._judged(card.state, number, wish, mask, index) if mask else None
            if judged is not None and node in card.devices[judged[1]].nodes:
                found += 1
                if found == wish.count:
                    return True
        return False

    def alike(self, wish: Wish) -> Iterator[tuple[tuple[int, ...], int]]:
        """Every device among the wish's shapes (and members), as (cards, place): equal devices of equal cards.

        What one of them lacks the others lack too, as far as the ledger goes; cards whose parts are reached from
        different nodes, or from none that takes pods, come alone or among themselves.
        """
        number = self._number(wish)
        if wish.members is not None:
            split: dict[tuple[int, int, int], list[int]] = {}
            masks: dict[int, list[int]] = {}
            for name in wish.members:
                index = self._card_of.get(name)
                if index is not None:
                    masks.setdefault(index, []).append(self.place_of(name))
            for index in sorted(masks):
                card = self._cards[index]
                for place in sorted(masks[index]):
                    alone = index if not card.uniform else -1
                    split.setdefault((card.state if card.nodes else -1 - card.build, place, alone), []).append(index)
            yield from ((tuple(cards), place) for (_, place, _), cards in split.items())
            return
        for build, mask in self._unrestricted(number, wish):
            for state in self._live[build]:
                bucket = self._buckets[state]
                if all(self._cards[index].uniform for index in bucket):
                    yield from ((tuple(bucket), place) for place in mask)
                else:
                    yield from (((index,), place) for index in bucket for place in mask)
            idle = tuple(index for index in self._of_build[build] if not self._cards[index].nodes)
            if idle:
                yield from ((idle, place) for place in mask)

    def device_at(self, card: int, place: int) -> Device:
        """The device of a card that `alike` told."""
        return self._cards[card].devices[place]

    def place_of(self, name: DeviceId) -> int:
        """The place of a published device on its card."""
        devices = self._cards[self._card_of[name]].devices
        return next(place for place, device in enumerate(devices) if device.id == name)

    def ranks(self) -> Sequence[Sequence[int]]:
        """Card → place → the device's rank in the scheduler's order; made once."""
        if self._ranks is None:
            order = {id(device): rank for rank, device in enumerate(self.inventory.devices)}
            self._ranks = [[order[id(device)] for device in card.devices] for card in self._cards]
        return self._ranks

    def ranked(self, rank: int) -> Device:
        """The device of a rank that `ranks` told."""
        return self.inventory.devices[rank]

    def crowded_cards(self, wish: Wish, nodes: frozenset[str] | None, alike: int | None) -> list[tuple[int, ...]]:
        """Cards where somebody's leaving could make room for one device of the wish, those with the fewest holds first.

        Of cards that are held alike the first `alike` are told (None: all).
        """
        number = self._number(wish)
        chosen: list[int] = []
        if wish.members is not None:
            chosen = [index for index, _ in self._restricted(number, wish) if self._open(index, wish, nodes)]
        else:
            for build, _ in self._unrestricted(number, wish):
                for state in self._live[build]:
                    bucket = (index for index in self._buckets[state] if self._open(index, wish, nodes))
                    chosen += islice(bucket, alike)
        return [(index,) for uses, index in sorted((self._uses(index), index) for index in chosen) if uses]

    def crowded_nodes(self, wish: Wish, nodes: frozenset[str] | None, alike: int | None) -> list[tuple[int, ...]]:
        """The same node by node (all cards of one): for several devices, or where the node's host is what is short."""
        number = self._number(wish)
        if wish.members is not None:
            matching = {index for index, _ in self._restricted(number, wish)}
        else:
            matching = {index for build, _ in self._unrestricted(number, wish) for index in self._of_build[build]}
        same: dict[tuple[int, ...], int] = {}
        found = []
        for node, cards in sorted(self._cards_on.items()):
            if node in wish.barred or (nodes is not None and node not in nodes):
                continue
            if len(matching.intersection(cards)) < wish.count:
                continue
            told = tuple(sorted(self._cards[index].state for index in cards))
            same[told] = same.get(told, 0) + 1
            if alike is None or same[told] <= alike:
                uses = sum(self._uses(index) for index in cards)
                if uses:
                    found.append((uses, node))
        return [tuple(self._cards_on[node]) for _, node in sorted(found)]

    def _open(self, index: int, wish: Wish, nodes: frozenset[str] | None) -> bool:
        return any(node not in wish.barred and (nodes is None or node in nodes) for node in self._cards[index].nodes)

    def devices_on(self, cards: Iterable[int]) -> Iterator[Device]:
        """The devices of cards that somebody holds."""
        for index in cards:
            for device in self._cards[index].devices:
                if self.ledger.in_use(device.id):
                    yield device

    def _uses(self, index: int) -> int:
        """How many hold something of the card: the same for all cards in its state."""
        card = self._cards[index]
        found = self._uses_of.get(card.state)
        if found is None:
            found = sum(sum(self.ledger.cards.get(name, (0, 0))) for name in card.names)
            self._uses_of[card.state] = found
        return found

    def reached_from(self, name: DeviceId) -> tuple[str, ...]:
        """The nodes that our pods can come to and that reach the device's card."""
        index = self._card_of.get(name)
        return () if index is None else self._cards[index].nodes

    def available(self, wish: Wish, nodes: frozenset[str] | None = None) -> dict[str, int]:
        """Node → how many cards have a device for one part of `wish` now; nodes where none has are left out."""
        return {
            node: len(cards)
            for node, cards in sorted(self._table(wish).items())
            if cards and node not in wish.barred and (nodes is None or node in nodes)
        }

    def _table(self, wish: Wish) -> dict[str, dict[int, tuple[Score, int]]]:
        """Node → card → the best place there for one part of `wish`; made once, then kept as cards change."""
        number = self._number(wish)
        found = self._tables.get(number)
        if found is None:
            masks = dict(
                self._restricted(number, wish)
                if wish.members is not None
                else (
                    (index, mask) for build, mask in self._unrestricted(number, wish) for index in self._of_build[build]
                )
            )
            found = {}
            self._tables[number] = found
            self._several[number] = (wish, masks)
            for index in masks:
                self._tabulate(number, index)
        return found

    def _tabulate(self, number: int, index: int) -> None:
        wish, masks = self._several[number]
        card = self._cards[index]
        judged = self._judged(card.state, number, wish, masks[index], index) if card.nodes else None
        for node in card.nodes:
            cards = self._tables[number].setdefault(node, {})
            if judged is not None and node in card.devices[judged[1]].nodes:
                cards[index] = judged
            else:
                cards.pop(index, None)

    # --- many at once (see `batch`)

    def builds(self, wish: Wish) -> dict[int, tuple[int, ...]]:
        """Build → the places on its cards whose devices are of the wish's shapes."""
        return dict(self._unrestricted(self._number(wish), wish))

    def equal_cards(self, build: int) -> list[tuple[int, ...]]:
        """The cards of a build that pods can come to, in lots of equal state; each in the scheduler's order."""
        return sorted(tuple(self._buckets[state]) for state in self._live[build])

    def card(self, index: int) -> Card:
        """A card by its number."""
        return self._cards[index]

    def alone_on(self, names: Iterable[DeviceId]) -> int:
        """How many cards nobody holds anything of but by one of `names` (a name for each use)."""
        uses: dict[int, int] = {}
        for name in names:
            if name in self._card_of:
                uses[self._card_of[name]] = uses.get(self._card_of[name], 0) + 1
        told = self.ledger.cards
        return sum(
            count >= sum(sum(told.get(card, (0, 0))) for card in self._cards[index].names)
            for index, count in uses.items()
        )

    def in_use(self, card: Card) -> bool:
        """Somebody holds something of it."""
        return any(device.id in self.ledger.whole or device.id in self.ledger.shares for device in card.devices)

    # --- judging

    def _number(self, wish: Wish) -> int:
        return self._wishes.setdefault((wish.use, wish.shapes, wish.members), len(self._wishes))

    def _unrestricted(self, number: int, wish: Wish) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """(build, places of matching devices) of every build that has some."""
        masks = self._masks.get(number)
        if masks is None:
            found: dict[int, tuple[int, ...]] = {}
            for build, cards in enumerate(self._of_build):
                devices = self._cards[cards[0]].devices
                found[build] = tuple(place for place, device in enumerate(devices) if device.shape in wish.shapes)
            masks = self._masks[number] = tuple((build, mask) for build, mask in sorted(found.items()) if mask)
        return masks

    def _restricted(self, number: int, wish: Wish) -> tuple[tuple[int, tuple[int, ...]], ...]:
        found = self._members.get(number)
        if found is None:
            places: dict[int, list[int]] = {}
            for name in wish.members or ():
                index = self._card_of.get(name)
                if index is not None and self._cards[index].nodes:
                    places.setdefault(index, []).append(
                        next(place for place, device in enumerate(self._cards[index].devices) if device.id == name)
                    )
            found = self._members[number] = tuple((index, tuple(sorted(places[index]))) for index in sorted(places))
        return found

    def _judged(
        self, state: int, number: int, wish: Wish, mask: tuple[int, ...], index: int
    ) -> tuple[Score, int] | None:
        """The best place for one device of `wish` on a card in `state`, of which `index` is one."""
        key = (state, number, mask)
        if key not in self._best:
            self._best[key] = self._judge(self._cards[index], wish, mask)
        return self._best[key]

    def _judge(self, card: Card, wish: Wish, mask: tuple[int, ...]) -> tuple[Score, int] | None:
        requested, strategy = wish.use.requested, wish.use.strategy
        best: tuple[Score, int] | None = None
        before: Options | None = None
        led_to: set[tuple[str, ...]] = set()
        for place in mask:
            device = card.devices[place]
            if device.pins in led_to:
                continue  # no request tells it from an earlier one that fits, and the scheduler takes the first
            if device.taints or self.ledger.lack(self.inventory, device, requested, strategy) is not None:
                continue
            led_to.add(device.pins)
            if before is None:
                before = self._options_of(card)
            self.ledger.take(device, requested, strategy)
            after = self._options_of(card)
            self.ledger.give_back(device, requested, strategy)
            score: Score = (_loss(before, after), after.total, place)
            if best is None or score < best[0]:
                best = (score, place)
        return best

    def _options_of(self, card: Card) -> Options:
        state = self._state(card)
        found = self._options.get(state)
        if found is None:
            sizes: dict[int, int] = {}
            share = 0
            for device in card.devices:
                if device.taints:
                    continue
                size = 0 if device.memory is UNKNOWN else device.memory
                if not device.shareable:
                    if self.ledger.lack(self.inventory, device, None) is None:
                        sizes[size] = sizes.get(size, 0) + 1
                    continue
                alone = self._alone(device)
                if alone is not None and self.ledger.lack(self.inventory, device, alone) is None:
                    sizes[size] = sizes.get(size, 0) + 1
                if self.ledger.lack(self.inventory, device, {}) is None or device.id in self.ledger.shares:
                    share = max(share, free_memory(self.ledger, device))
            found = self._options[state] = Options(tuple(sorted(sizes.items(), reverse=True)), share)
        return found

    def _alone(self, device: Device) -> Mapping[str, Amount] | None:
        if device.shape not in self._exclusive:
            self._exclusive[device.shape] = exclusive_amounts(device)
        return self._exclusive[device.shape]


def _host_free(inventory: Inventory, host_use: Sequence[HostUse]) -> dict[str, tuple[int | None, int | None]]:
    others = {item.node: item for item in host_use}
    found: dict[str, tuple[int | None, int | None]] = {}
    for name, node in inventory.nodes.items():
        use = others.get(name)
        found[name] = (
            node.cpu_milli - (use.cpu_milli if use else 0) if node.cpu_milli else None,
            node.memory - (use.memory if use else 0) if node.memory else None,
        )
    return found


def free_memory(ledger: Ledger, device: Device) -> int:
    """Bytes of a shareable device that no share holds; 0 where it is held whole or counts no memory."""
    if device.id in ledger.whole:
        return 0
    for name, role in device.roles.items():
        if role is Role.MEMORY:
            return max(int(device.capacity[name].value - ledger.used(device.id, name)), 0)
    return 0


def _loss(before: Options, after: Options) -> tuple[tuple[int, int], ...]:
    """Devices that can no longer be had, largest first."""
    left = dict(after.sizes)
    return tuple((size, count - left.get(size, 0)) for size, count in before.sizes if count > left.get(size, 0))


def _sorted(ledger: Ledger, device: DeviceId) -> tuple[tuple[str, Amount], ...]:
    return tuple(sorted(ledger.consumed.get(device, {}).items()))


def _joined(groups: Mapping[str, Sequence[Device]]) -> list[list[Device]]:
    """Cards that share a counter set made one, because what is held on one changes what is free on the other."""
    root: dict[str, str] = {name: name for name in groups}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    owner: dict[tuple[str, str, str], str] = {}
    for name, devices in groups.items():
        for device in devices:
            for key, _ in device.consumes:
                other = owner.setdefault(key[:3], name)
                one, two = find(other), find(name)
                if one != two:
                    root[two] = one
    joined: dict[str, list[Device]] = {}
    for name, devices in groups.items():
        joined.setdefault(find(name), []).extend(devices)
    return list(joined.values())
