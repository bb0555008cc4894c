# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Misses become one refusal per order, alternatives, and a blocking set that can be checked.

The numbers are those of the stage that refused: every device of every offer is asked once more what it lacks on the
board as the plan leaves it, and nothing is derived in a second way. Sentences are made here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner import inventory as stock
from planner.candidates import Considered, Offer, Way
from planner.drivers import Role
from planner.inventory import Device, Shortage
from planner.model import Alternative, Holder, PlacementType, Refusal, SharingMode
from planner.placement import Board, Holding, Wish, free_memory
from planner.reasons import RANK, Lack, Miss, Refused, leading
from planner.units import MI, UNKNOWN, Maybe, human

MOST_ALTERNATIVES = 16
"""Alternatives that one plan tells."""


BY_NODE = (Lack.SELECTOR, Lack.VOLUME, Lack.HOST_MEMORY, Lack.HOST_CPU, Lack.COUNT, Lack.NODE)
"""Lacks that depend on the node: equal devices on equal cards may differ in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """What all devices of one offer lack on a board."""

    misses: tuple[Miss, ...]
    """One for all devices that lack the same; each names the first of them and says how many they are."""
    members: tuple[frozenset[int], ...]
    """For each miss its devices, by rank."""
    closest: Device | None
    """The device with the most memory free; None: the offer has no device."""
    near: Miss | None
    """What the closest device lacks."""
    free: Maybe
    """Bytes free there for such a use."""
    best_node: str | None
    """For several devices at once: the node with the most free, and how many."""
    on_best_node: int


class Explainer:
    """Refusals on one board, each offer asked once."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self._version = board.version
        self._devices: dict[str, list[Device]] = {}
        for device in board.inventory.devices:
            self._devices.setdefault(device.shape, []).append(device)
        self._empty: dict[Wish, bool] = {}
        self._larger: dict[tuple[int, int], tuple[Alternative, ...]] = {}
        self._lacking: dict[tuple[object, ...], Lacking] = {}
        self._refusals: dict[tuple[int, frozenset[str] | None], Refusal] = {}
        self._lost: dict[tuple[int, frozenset[str] | None], tuple[Alternative, ...]] = {}

    def refusal(
        self,
        considered: Considered,
        *,
        nodes: frozenset[str] | None,
        wider: Callable[[], Considered],
        service_class: str,
    ) -> Refusal:
        """Why an order with these offers has no seat. `wider` considers it without the policy's limits on placement.

        Orders that ask the same share one `Considered` and so one refusal.
        """
        self._refresh()
        key = (id(considered), nodes)
        found = self._refusals.get(key)
        if found is None:
            found = self._refusals[key] = self._refuse(considered, nodes, wider, service_class)
        return found

    def _refresh(self) -> None:
        """Forget what was true of another state of the board."""
        if self._version != self.board.version:
            self._version = self.board.version
            self._lacking.clear()
            self._refusals.clear()
            self._lost.clear()

    def _refuse(
        self,
        considered: Considered,
        nodes: frozenset[str] | None,
        wider: Callable[[], Considered],
        service_class: str,
    ) -> Refusal:
        blocked = considered.blocked
        if blocked is not None:
            return Refusal(
                reason=blocked.lack.leads_to,
                message=_sentence(blocked.detail),
                lack=blocked.lack,
                tried=considered.tried,
            )
        return self._with_silent_pools(self._judged(considered, nodes, wider, service_class))

    def _with_silent_pools(self, refusal: Refusal) -> Refusal:
        """What gives nothing now is named beside "exhausted": a missing pool must not be read as missing capacity."""
        problems = self.board.inventory.problems
        if refusal.reason not in (Refused.EXHAUSTED, Refused.NOT_PERMITTED) or not problems:
            return refusal
        pools = {(problem.driver, problem.pool) for problem in problems}
        number = "1 pool gives" if len(pools) == 1 else f"{len(pools)} pools give"
        first = problems[0]
        return replace(
            refusal, message=f"{refusal.message} {number} nothing now: {first.driver} {first.pool}, {first.message}."
        )

    def _judged(
        self,
        considered: Considered,
        nodes: frozenset[str] | None,
        wider: Callable[[], Considered],
        service_class: str,
    ) -> Refusal:
        misses = [miss for _, miss in considered.misses]
        if not considered.offers:
            return self._unplaceable(considered, misses, wider, service_class)
        found = [self.lacking(offer, nodes) for offer in considered.offers]
        lacks = [miss.lack for miss in misses if miss.lack.leads_to is Refused.UNDECIDABLE]
        lacks += [miss.lack for lacking in found for miss in lacking.misses]
        reason = leading(lacks)
        if reason is Refused.UNDECIDABLE:
            return _undecidable(misses, considered.tried)
        if reason in (Refused.HOST_RESOURCES, Refused.VOLUME_PINNED):
            return _on_node(reason, found, considered)
        return self._exhausted(considered, found)

    def lacking(self, offer: Offer, nodes: frozenset[str] | None) -> Lacking:
        """What every device of `offer` lacks; a free device that still gives no seat lacks its node or its equals."""
        self._refresh()
        wish = offer.wish
        key = (wish, nodes)
        known = self._lacking.get(key)
        if known is not None:
            return known
        ranks = self.board.ranks()
        groups: dict[tuple[object, ...], tuple[Miss, list[int]]] = {}
        most, nearest, near = -1, -1, None
        for cards, place in self.board.alike(wish):
            device = self.board.device_at(cards[0], place)
            miss, free = self._miss(device, offer, nodes)
            parts = [cards]
            if miss.lack in BY_NODE and len(cards) > 1:
                by_node: dict[tuple[str, ...], list[int]] = {}
                for card in cards:
                    by_node.setdefault(self.board.device_at(card, place).nodes, []).append(card)
                parts = [tuple(part) for part in by_node.values()]
            for part in parts:
                if part is not cards:
                    miss, free = self._miss(self.board.device_at(part[0], place), offer, nodes)
                members = [ranks[card][place] for card in part]
                first = min(members)
                told = (miss.lack, miss.needed, miss.free, miss.detail)
                groups.setdefault(told, (miss, []))[1].extend(members)
                if free > most or (free == most and first < nearest):
                    most, nearest, near = free, first, miss
        rows = sorted(
            ((min(members), miss, frozenset(members)) for miss, members in groups.values()), key=lambda row: row[0]
        )
        best_node, on_best = None, 0
        if wish.count > 1:
            for node, several in self.board.available(wish, nodes).items():
                if several > on_best:
                    best_node, on_best = node, several
        found = self._lacking[key] = Lacking(
            misses=tuple(
                replace(miss, device=str(self.board.ranked(first).id), count=len(members))
                for first, miss, members in rows
            ),
            members=tuple(members for _, _, members in rows),
            closest=self.board.ranked(nearest) if nearest >= 0 else None,
            near=near,
            free=max(most, 0),
            best_node=best_node,
            on_best_node=on_best,
        )
        return found

    def _miss(self, device: Device, offer: Offer, nodes: frozenset[str] | None) -> tuple[Miss, int]:
        """What `device` lacks and how many bytes of it are free for such a use."""
        board, wish, name = self.board, offer.wish, str(device.id)
        held = 0 if offer.held is UNKNOWN else offer.held
        if device.taints:
            taint = device.taints[0]
            return Miss(lack=Lack.TAINTED, device=name, detail=taint.key), 0
        reachable = [node for node in device.nodes if board.inventory.usable(node, device.id.driver)]
        if not reachable:
            return Miss(lack=Lack.NODE, device=name, detail=", ".join(device.nodes) or "none that is known"), 0
        lack = board.ledger.lack(board.inventory, device, wish.use.requested, wish.use.strategy)
        if lack is not None:
            return _of_ledger(board, device, offer, lack)
        whole = 0 if device.memory is UNKNOWN else device.memory
        free = whole if wish.use.amounts is None else max(free_memory(board.ledger, device), held)
        open_nodes = [node for node in reachable if node not in wish.barred]
        if not open_nodes:
            return Miss(lack=Lack.SELECTOR, device=name, detail="a selector errs on another device of its node"), free
        if nodes is not None and not any(node in nodes for node in open_nodes):
            return Miss(lack=Lack.VOLUME, device=name, detail=", ".join(sorted(nodes)) or "no node that is left"), free
        for node in open_nodes:
            if nodes is not None and node not in nodes:
                continue
            cpu, memory = board.host_free.get(node, (None, None))
            if memory is not None and memory < wish.host.memory:
                return Miss(
                    lack=Lack.HOST_MEMORY, device=name, detail=node, needed=wish.host.memory, free=max(memory, 0)
                ), free
            if cpu is not None and cpu < wish.host.cpu_milli:
                return Miss(
                    lack=Lack.HOST_CPU, device=name, detail=node, needed=wish.host.cpu_milli, free=max(cpu, 0)
                ), free
        return Miss(lack=Lack.COUNT, device=name, needed=wish.count), free

    def _unplaceable(
        self, considered: Considered, misses: Sequence[Miss], wider: Callable[[], Considered], service_class: str
    ) -> Refusal:
        """No offer at all: nothing that exists and is allowed could ever hold the model."""
        # A device that is no partition is no news while others are too small or cannot run the model.
        telling = [miss for miss in misses if miss.lack not in (Lack.NOT_OFFERED, Lack.MISSING_CLASS, Lack.NO_DEVICE)]
        reason = leading([miss.lack for miss in telling or misses])
        if reason is Refused.UNDECIDABLE:
            return _undecidable(misses, considered.tried)
        small = _smallest_shortfall([miss for miss in misses if miss.lack in (Lack.TOO_SMALL, Lack.SHARE_BOUND)])
        elsewhere = wider() if reason is not Refused.HARDWARE_UNSUITABLE else None
        other = next((offer for offer in elsewhere.offers if offer.wish.count == 1), None) if elsewhere else None
        if other is not None:
            place = _way_words(other.way)
            absent = _not_offered(misses)
            numbers = f"; {mib_up(small.needed)} are needed on one device" if small and small.needed else ""
            return Refusal(
                reason=Refused.NOT_PERMITTED,
                message=f"Service class {service_class} and the order admit no placement that could hold the model"
                f"{numbers}{absent}; {place} could.",
                lack=small.lack if small else _first(misses, Refused.NOT_PERMITTED),
                needed=small.needed if small else None,
                free=small.free if small else None,
                shortfall=small.shortfall if small else None,
                tried=considered.tried,
                fits_empty=False,
            )
        if small is not None and small.needed is not None and small.free is not None:
            several = elsewhere.offers[0].wish.count if elsewhere and elsewhere.offers else None
            hint = f" The service class allows fewer than the {several} devices that would hold it." if several else ""
            return Refusal(
                reason=Refused.EXHAUSTED,
                message=f"{_numbers(small)} ({small.device} is the closest). {_devices(considered.tried)} tried; "
                f"it would not fit even if nobody used them.{hint}",
                lack=small.lack,
                needed=small.needed,
                free=small.free,
                shortfall=small.shortfall,
                tried=considered.tried,
                fits_empty=False,
            )
        if reason is Refused.HARDWARE_UNSUITABLE:
            miss = next(miss for miss in misses if miss.lack.leads_to is reason)
            return Refusal(
                reason=reason,
                message=f"No admitted device can run the model, however free it is: {_detail(miss)}.",
                lack=miss.lack,
                tried=considered.tried,
                fits_empty=False,
            )
        if considered.tried == 0:
            missing = [miss.detail for miss in misses if miss.lack is Lack.MISSING_CLASS]
            if missing and all(miss.lack is Lack.MISSING_CLASS for miss in misses):
                names = ", ".join(dict.fromkeys(missing))
                return Refusal(
                    reason=Refused.NOT_PERMITTED,
                    message=f"Of the device classes that service class and order allow none exists: {names}.",
                    lack=Lack.MISSING_CLASS,
                    fits_empty=False,
                )
            if not misses:
                return Refusal(
                    reason=Refused.NOT_PERMITTED,
                    message=f"Service class {service_class} and the order have no device class in common.",
                    lack=Lack.MISSING_CLASS,
                    fits_empty=False,
                )
            names = ", ".join(dict.fromkeys(way.device_class for way, _ in considered.misses if way is not None))
            return Refusal(
                reason=Refused.EXHAUSTED,
                message=f"No device matches device class {names}: 1 device needed, 0 there, 1 short.",
                lack=Lack.NO_DEVICE,
                needed=1,
                free=0,
                shortfall=1,
                fits_empty=False,
            )
        lack = _first(misses, Refused.NOT_PERMITTED)
        words = sorted({miss.detail for miss in misses if miss.lack is Lack.NOT_OFFERED})
        return Refusal(
            reason=Refused.NOT_PERMITTED,
            message=f"Service class {service_class} and the order admit no placement that the "
            f"{_devices(considered.tried)} offer: none is {' or '.join(words)}.",
            lack=lack,
            tried=considered.tried,
            fits_empty=False,
        )

    def _exhausted(self, considered: Considered, found: Sequence[Lacking]) -> Refusal:
        """Every offer was tried; the one nearest to a seat gives the numbers."""
        best = min(range(len(found)), key=lambda place: _distance(considered.offers[place], found[place], place))
        offer, lacking = considered.offers[best], found[best]
        fits_empty = any(self.fits_empty(item) for item in considered.offers)
        empty = "It would fit if nobody used them." if fits_empty else "It would not fit even if nobody used them."
        told = _tally(_nearest(found))
        if offer.wish.count > 1:
            needed, free = offer.wish.count, lacking.on_best_node
            where = f" on node {lacking.best_node}" if lacking.best_node else " on any node"
            return Refusal(
                reason=Refused.EXHAUSTED,
                message=f"{needed} equal devices of one node needed, {free} of {needed} free{where}, {needed - free} "
                f"short. {_devices(considered.tried)} of {_classes(considered)} tried: {told}. {empty}",
                lack=Lack.COUNT,
                needed=needed,
                free=free,
                shortfall=needed - free,
                tried=considered.tried,
                closest=lacking.closest.id if lacking.closest else None,
                device_class=offer.way.device_class,
                fits_empty=fits_empty,
            )
        needed_bytes: Maybe = offer.need
        free_bytes: Maybe = lacking.free
        shortfall: Maybe = UNKNOWN
        if needed_bytes is not UNKNOWN and free_bytes is not UNKNOWN:
            free_bytes = min(free_bytes, needed_bytes)
            shortfall = needed_bytes - free_bytes
        near = lacking.near
        lack = near.lack if near is not None else Lack.NO_DEVICE
        if lack is Lack.COMPUTE and near is not None and near.needed is not None and near.free is not None:
            numbers = f"{near.needed} % of compute needed, {near.free} % free, {near.needed - near.free} % short"
        elif needed_bytes is UNKNOWN or free_bytes is UNKNOWN:
            numbers = "1 device needed, 0 free, 1 short"
        else:
            numbers = (
                f"{mib_up(needed_bytes)} needed on one device, {mib_down(free_bytes)} free at most, "
                f"{_short(needed_bytes, free_bytes)} short"
            )
        closest = f" (closest: {lacking.closest.id})" if lacking.closest else ""
        return Refusal(
            reason=Refused.EXHAUSTED,
            message=f"{numbers}{closest}. {_devices(considered.tried)} of {_classes(considered)} tried: {told}. "
            f"{empty}",
            lack=lack,
            needed=needed_bytes,
            free=free_bytes,
            shortfall=shortfall,
            tried=considered.tried,
            closest=lacking.closest.id if lacking.closest else None,
            device_class=offer.way.device_class,
            fits_empty=fits_empty,
        )

    def fits_empty(self, offer: Offer) -> bool:
        """The offer would have a seat if nobody held anything; taints and nodes that take no pods stay as they are."""
        found = self._empty.get(offer.wish)
        if found is None:
            found = self._empty[offer.wish] = self._holds_when_empty(offer.wish)
        return found

    def _holds_when_empty(self, wish: Wish) -> bool:
        taken = self.board.inventory
        per_node: dict[str, set[str]] = {}
        for shape in sorted(wish.shapes):
            for device in self._devices.get(shape, ()):
                if device.taints or (wish.members is not None and device.id not in wish.members):
                    continue
                for node in device.nodes:
                    if node in wish.barred or not taken.usable(node, device.id.driver):
                        continue
                    if wish.count == 1:
                        return True
                    per_node.setdefault(node, set()).add(device.card)
        return any(len(cards) >= wish.count for cards in per_node.values())

    def alternatives(
        self, considered: Considered, chosen: Offer | None, nodes: frozenset[str] | None
    ) -> tuple[Alternative, ...]:
        """Every way that was considered and lost, with the word and the sentence why."""
        self._refresh()
        if chosen is not None:
            place = (id(considered), id(chosen))  # both live as long as the candidates that made them
            if place not in self._larger:
                self._larger[place] = self._alternatives(considered, chosen, nodes)
            return self._larger[place]
        key = (id(considered), nodes)
        found = self._lost.get(key)
        if found is None:
            found = self._lost[key] = self._alternatives(considered, None, nodes)
        return found

    def _alternatives(
        self, considered: Considered, chosen: Offer | None, nodes: frozenset[str] | None
    ) -> tuple[Alternative, ...]:
        told: dict[tuple[str, str, str], Alternative] = {}
        for offer in considered.offers:
            if chosen is not None and offer.way == chosen.way:
                continue
            if offer.way.order in told:
                continue
            if chosen is not None:
                reason, message = "NotSmallest", _larger(offer, chosen)
            else:
                lacking = self.lacking(offer, nodes)
                reason = leading([miss.lack for miss in lacking.misses]).word
                message = _sentence(_tally(lacking.misses)) or "No device matches."
            told[offer.way.order] = _alternative(offer.way, reason, message)
        by_way: dict[tuple[str, str, str], list[Miss]] = {}
        ways: dict[tuple[str, str, str], Way] = {}
        for way, miss in considered.misses:
            if way is None or way.order in told or (chosen is not None and way == chosen.way):
                continue
            by_way.setdefault(way.order, []).append(miss)
            ways[way.order] = way
        for order, misses in by_way.items():
            if told and all(miss.lack is Lack.NOT_OFFERED for miss in misses):
                continue  # a kind of device that the device class never offers is no alternative
            lack = leading([miss.lack for miss in misses])
            telling = [miss for miss in misses if miss.lack.leads_to is lack]
            told[order] = _alternative(ways[order], lack.word, _sentence(_tally(telling)))
        return tuple(told[order] for order in sorted(told))[:MOST_ALTERNATIVES]


HoldersOn = Callable[[Iterable[Device]], list[Holding]]
"""Everybody who holds one of these devices, each once, in a stable order."""

ALIKE = 4
"""Of places that are held alike, how many a search for a blocking set looks at first."""

MOST_PLACES = 32
"""Cards (and then nodes) that such a search looks at, those with the fewest holds first."""

MOST_PLACES_UNLIKE = 256
"""The same when none of the first would do."""


def blocking_set(
    board: Board, offers: Sequence[Offer], holders_on: HoldersOn, nodes: frozenset[str] | None
) -> tuple[Holder, ...]:
    """A minimal set of holders without whom one of `offers` has a seat: all gone it fits, any one back it does not.

    Of the sets found card by card (node by node for several devices, or where the host is short) the smallest is
    returned; empty: no set of holders helps. Precondition: none of `offers` has a seat now. The board is as before
    afterwards.
    """
    version = board.version
    try:
        for alike, most in ((ALIKE, MOST_PLACES), (None, MOST_PLACES_UNLIKE)):
            best: tuple[Holding, ...] | None = None
            seen: set[tuple[int, ...]] = set()
            for crowded in (board.crowded_cards, board.crowded_nodes):
                places = [
                    place
                    for offer in offers
                    if offer.wish.count == 1 or crowded == board.crowded_nodes
                    for place in crowded(offer.wish, nodes, alike)[:most]
                ]
                for place in sorted(set(places) - seen, key=places.index):
                    seen.add(place)
                    found = _minimal(board, offers, holders_on(board.devices_on(place)), nodes)
                    if found and (best is None or len(found) < len(best)):
                        best = found
                    if best is not None and len(best) == 1:
                        return tuple(holding.holder for holding in best)
                if best is not None:
                    return tuple(holding.holder for holding in best)
        return ()
    finally:
        board.version = version


def _minimal(
    board: Board, offers: Sequence[Offer], holdings: Sequence[Holding], nodes: frozenset[str] | None
) -> tuple[Holding, ...]:
    """Those of `holdings` whom nobody else's leaving spares; empty: it does not fit even without all of them.

    Only the nodes that they leave can have room then: nothing changes elsewhere.
    """
    left = {node: None for holding in holdings for node in _left_by(board, holding)}

    def fits() -> bool:
        return any(board.fits_on(node, offer.wish, nodes) for offer in offers for node in left)

    gone = list(holdings)
    for holding in gone:
        board.leave(holding)
    try:
        if not fits():
            return ()
        for holding in sorted(holdings, key=_amount):
            board.come_back(holding)
            gone.remove(holding)
            if fits():
                continue
            board.leave(holding)
            gone.append(holding)
        return tuple(sorted(gone, key=lambda holding: (holding.holder.name, holding.holder.devices)))
    finally:
        for holding in gone:
            board.come_back(holding)


def _left_by(board: Board, holding: Holding) -> Iterator[str]:
    for name, _ in holding.parts:
        yield from board.reached_from(name)
    if holding.node is not None:
        yield holding.node


def _amount(holding: Holding) -> tuple[int, int, int, str]:
    """Who holds little is put back first, so that the few who hold much remain."""
    whole = sum(1 for _, use in holding.parts if use.amounts is None)
    held = sum(int(amount) for _, use in holding.parts for _, amount in use.amounts or ())
    return whole, held, len(holding.parts), holding.holder.name


def _of_ledger(board: Board, device: Device, offer: Offer, lack: stock.Lack) -> tuple[Miss, int]:
    name = str(device.id)
    free = 0 if offer.wish.use.amounts is None else free_memory(board.ledger, device)
    match lack.shortage:
        case Shortage.HELD | Shortage.SHARED:
            return Miss(lack=Lack.HELD, device=name), free
        case Shortage.CARD | Shortage.COUNTER:
            return Miss(lack=Lack.NEIGHBOUR, device=name, detail=lack.what), 0
        case Shortage.STRATEGY:
            return Miss(lack=Lack.STRATEGY, device=name, detail=lack.what), 0
        case Shortage.CAPACITY:
            role = device.roles.get(lack.what)
            if role is Role.MEMORY:
                return Miss(lack=Lack.MEMORY, device=name, needed=int(lack.needed), free=int(lack.free)), int(lack.free)
            if role is Role.COMPUTE:
                return Miss(lack=Lack.COMPUTE, device=name, needed=int(lack.needed), free=int(lack.free)), free
            return Miss(lack=Lack.HELD, device=name, detail=lack.what), free
        case Shortage.POLICY | Shortage.NO_CAPACITY:
            return Miss(lack=Lack.NOT_OFFERED, device=name, detail=f"such an amount of {lack.what}"), free


def _undecidable(misses: Sequence[Miss], tried: int) -> Refusal:
    telling = [miss for miss in misses if miss.lack.leads_to is Refused.UNDECIDABLE]
    miss = telling[0] if telling else Miss(lack=Lack.SELECTOR, detail="a selector errs on a device of every free node")
    more = len({item.detail for item in telling}) - 1
    also = f" ({more} more cannot be judged)" if more > 0 else ""
    text = miss.detail if miss.lack is Lack.SELECTOR else _detail(miss)
    return Refusal(reason=Refused.UNDECIDABLE, message=_sentence(text + also), lack=miss.lack, tried=tried)


def _on_node(reason: Refused, found: Sequence[Lacking], considered: Considered) -> Refusal:
    offer, misses = next(
        (offer, telling)
        for offer, lacking in zip(considered.offers, found, strict=True)
        if (telling := [miss for miss in lacking.misses if miss.lack.leads_to is reason])
    )
    if reason is Refused.VOLUME_PINNED:
        miss = misses[0]
        number = sum(item.count for item in misses)
        message = (
            f"The model volume is bound to {miss.detail}, where nothing is free; {_devices(number)} would hold "
            f"the order elsewhere (first: {miss.device}). Free a device there, or delete the volume claim, so that the "
            "model is loaded anew."
        )
        return Refusal(
            reason=reason, message=message, lack=miss.lack, tried=considered.tried, device_class=offer.way.device_class
        )
    miss = min(misses, key=lambda item: (item.shortfall or 0, item.device or ""))
    assert miss.needed is not None and miss.free is not None
    if miss.lack is Lack.HOST_CPU:
        numbers = f"{_cpu(miss.needed)} CPU needed, {_cpu(miss.free)} free, {_cpu(miss.needed - miss.free)} short"
    else:
        numbers = (
            f"{mib_up(miss.needed)} of host memory needed, {mib_down(miss.free)} free, "
            f"{_short(miss.needed, miss.free)} short"
        )
    return Refusal(
        reason=reason,
        message=f"Devices are free, their nodes are not: {numbers} on node {miss.detail}, the closest of "
        f"{len({item.detail for item in misses})}.",
        lack=miss.lack,
        needed=miss.needed,
        free=miss.free,
        shortfall=miss.shortfall,
        tried=considered.tried,
        device_class=offer.way.device_class,
    )


def _numbers(miss: Miss) -> str:
    """Needed, free and shortfall of a miss in bytes."""
    assert miss.needed is not None and miss.free is not None
    where = miss.detail or "one device"
    return (
        f"{mib_up(miss.needed)} needed on {where}, {mib_down(miss.free)} offered at most, "
        f"{_short(miss.needed, miss.free)} short"
    )


def _classes(considered: Considered) -> str:
    names = list(dict.fromkeys(offer.way.device_class for offer in considered.offers))
    shown = ", ".join(sorted(names)[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f"device class {shown}" if len(names) == 1 else f"device classes {shown}"


def _distance(offer: Offer, lacking: Lacking, place: int) -> tuple[int, int, int]:
    """How far an offer is from a seat: devices missing, then bytes missing, then its rank."""
    if offer.wish.count > 1:
        return offer.wish.count - lacking.on_best_node, 0, place
    if offer.need is UNKNOWN or lacking.free is UNKNOWN:
        return 1, 0, place
    return 1, max(offer.need - lacking.free, 0), place


def _smallest_shortfall(misses: Sequence[Miss]) -> Miss | None:
    return min(misses, key=lambda miss: (miss.shortfall or 0, miss.device or ""), default=None)


def _first(misses: Sequence[Miss], reason: Refused) -> Lack | None:
    return next((miss.lack for miss in misses if miss.lack.leads_to is reason), None)


def _alternative(way: Way, reason: str, message: str) -> Alternative:
    return Alternative(
        device_class=way.device_class, placement=way.placement, sharing=way.sharing, reason=reason, message=message
    )


def _larger(offer: Offer, chosen: Offer) -> str:
    if offer.wish.count != chosen.wish.count:
        return f"It would take {offer.wish.count} devices a replica, the chosen way {chosen.wish.count}."
    if offer.rank == chosen.rank:
        return "It would take as much; the chosen way leaves more room for others."
    return f"It would take {human(offer.held)} of a device, the chosen way {human(chosen.held)}."


def _nearest(found: Iterable[Lacking]) -> list[Miss]:
    """Every device counted once: of the misses that its different uses had, under the one nearest to a placement."""
    rows = [
        (RANK.index(miss.lack.leads_to), place, miss, members)
        for place, (miss, members) in enumerate(
            pair for lacking in found for pair in zip(lacking.misses, lacking.members, strict=True)
        )
    ]
    rows.sort(key=lambda row: row[:2])
    seen: set[int] = set()
    kept = []
    for _, place, miss, members in rows:
        fresh = members - seen if seen else members
        if fresh:
            kept.append((place, replace(miss, count=len(fresh))))
            seen |= fresh
    return [miss for _, miss in sorted(kept, key=lambda item: item[0])]


def _tally(misses: Sequence[Miss]) -> str:
    """Lacks with their counts, the most frequent first: "3 devices are held, 1 device is tainted: …"."""
    counts: dict[Lack, int] = {}
    detail: dict[Lack, Miss] = {}
    for miss in misses:
        counts[miss.lack] = counts.get(miss.lack, 0) + miss.count
        shown = detail.setdefault(miss.lack, miss)
        if (miss.shortfall or 0) < (shown.shortfall or 0):
            detail[miss.lack] = miss
    parts = []
    for lack, count in sorted(counts.items(), key=lambda item: (RANK.index(item[0].leads_to), -item[1], item[0].word)):
        parts.append(_detail(detail[lack], count))
    return ", ".join(parts)


def _detail(miss: Miss, count: int | None = None) -> str:
    number = miss.count if count is None else count
    unit = mib_up if miss.lack not in (Lack.COUNT, Lack.HEADS, Lack.COMPUTE) else str
    down = mib_down if miss.lack not in (Lack.COUNT, Lack.HEADS, Lack.COMPUTE) else str
    if miss.lack in (Lack.HOST_CPU,):
        unit = down = _cpu
    text = miss.lack.sentence.format(
        count=_devices(number),
        needed="" if miss.needed is None else unit(miss.needed),
        free="0" if miss.free is None else down(miss.free),
        device=miss.detail if miss.lack in (Lack.HOST_CPU, Lack.HOST_MEMORY) else miss.device,
        detail=miss.detail,
    )
    if number == 1:
        text = text.replace("1 device are ", "1 device is ").replace("1 device have ", "1 device has ")
        text = text.replace("1 device do ", "1 device does ").replace("1 device publish ", "1 device publishes ")
    return text.removesuffix(": ")


def _way_words(way: Way) -> str:
    what = "a partition" if way.placement is PlacementType.PARTITION else "a whole device"
    how = f"a share of {what}" if way.sharing is SharingMode.SHARED else what
    return f"{how} of device class {way.device_class}"


def _devices(number: int) -> str:
    return f"{number} device" if number == 1 else f"{number} devices"


def mib_up(amount: int) -> str:
    """Bytes as whole MiB, rounded up: what is needed."""
    return f"{-(-amount // MI)} MiB"


def mib_down(amount: int) -> str:
    """Bytes as whole MiB, rounded down: what is free."""
    return f"{amount // MI} MiB"


def _short(needed: int, free: int) -> str:
    return f"{-(-needed // MI) - free // MI} MiB"


def _cpu(amount: int) -> str:
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def _sentence(text: str) -> str:
    """Upper case first, a full stop last."""
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _not_offered(misses: Sequence[Miss]) -> str:
    """Which kind of place no admitted device offers ("; no admitted device offers shares"), or nothing to say."""
    kinds = sorted({miss.detail for miss in misses if miss.lack is Lack.NOT_OFFERED})
    return f"; no admitted device offers {' or '.join(kinds)}" if kinds else ""
