# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Runs the stages; its one public name is `plan`.

The contract: a pure function of the snapshot (and the recipes of the shipped release). Standing placements are inputs:
retain first, then fill. In this order,

1. a replica that a claim already holds keeps its device; what was planned and not yet held keeps its device while it is
   free; an order whose facts cannot be judged any more keeps the plan it serves under;
2. entitled replicas (the class's `minReplicas`) are placed: all of them, largest first, when all fit, else the oldest
   order first;
3. elastic replicas get what is left, max-min fair; they never take what serves.

Retention ends when the device is gone or tainted NoExecute, when the order was edited so that its placement changes,
when the class no longer admits what nobody holds yet, or when the recipes of now no longer fit and nothing serves.
All replicas of an order share one claim template, so they are held alike: one offer for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from planner import batch, explanation, inventory, launches, recipe, replicas, request, resolution
from planner.candidates import READ_FOR_PLACEMENT, Candidates, Considered, Judge, Offer, Question, Way
from planner.dra import DeviceId, Effect
from planner.drivers import Role
from planner.inventory import Device, Hold, Inventory
from planner.model import (
    ORDER_LABEL,
    Alternative,
    Bounds,
    CapacityReport,
    ClassCapacity,
    ClassVerdict,
    Decision,
    DeviceUse,
    Holder,
    HostResources,
    Key,
    ModelSource,
    Order,
    OrderPlan,
    PackingReport,
    PlacementType,
    Plan,
    Refusal,
    Seat,
    ServiceClass,
    SharingMode,
    Sitting,
    Snapshot,
    Truth,
    Verdict,
    VolumeNeed,
)
from planner.placement import Board, Holding, Use, Wish, free_memory
from planner.reasons import LAUNCH_PLAN_CALCULATED, Lack, Refused
from planner.resolution import Resolved, Unresolved
from planner.units import GI, UNKNOWN, Maybe

__all__ = ["Planning", "Replica", "Work", "order_of", "plan"]

EVERYTHING = 8
"""Devices per replica that a refusal considers when it asks whether a wider policy would help."""


def plan(snapshot: Snapshot, recipes: recipe.Recipes | None = None) -> Plan:
    """The answer to `snapshot`: the same for every order of its lists. `recipes` None: those of the shipped release.

    Orders being deleted and orders in namespaces being deleted get no plan; what their claims hold stays held. Raises
    `recipe.RecipeError` when the shipped recipes cannot be read, and nothing else for any input that `wire` can read.
    """
    return Planning(snapshot, recipes or launches.shipped()).result()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One claim of an order that holds devices: a replica that serves or starts."""

    claim: str
    pod: str | None
    devices: tuple[DeviceId, ...]
    use: Use


@dataclass(slots=True)
class Replica:
    """A seat under trial and what it holds on the board; a standing one is held by its claim already."""

    seat: Seat
    use: Use
    host: HostResources | None
    ordinal: int
    claim: str = ""
    """The claim that a standing one is held by."""


@dataclass(slots=True)
class Work:
    """One order while its plan is being made."""

    order: Order
    resolved: Resolved | None = None
    unresolved: Unresolved | None = None
    question: Question | None = None
    considered: Considered | None = None
    offer: Offer | None = None
    kept: bool = False
    """The previous plan is told again as it is, because it serves and cannot be made anew."""
    retained: bool = False
    """`offer` is that of the previous plan."""
    standing: list[Standing] = field(default_factory=list)
    outgoing: list[Standing] = field(default_factory=list)
    """Claims of a template that is no longer planned: they hold until their pods are replaced."""
    replicas: list[Replica] = field(default_factory=list)
    refusal: Refusal | None = None

    @property
    def age(self) -> tuple[str, Key]:
        """Older first; an order that no server has seen yet is the youngest."""
        return self.order.created or "~", self.order.key

    @property
    def least(self) -> int:
        """Replicas the order is entitled to."""
        return self.resolved.service_class.min_replicas if self.resolved else 0

    @property
    def most(self) -> int:
        """Replicas the order may have at most."""
        return self.resolved.service_class.max_replicas if self.resolved else 0


class Planning:
    """One run over one snapshot; keeps what questions about the plan need afterwards."""

    def __init__(self, snapshot: Snapshot, recipes: recipe.Recipes, before: Planning | None = None) -> None:
        """`before`: a planning that is needed no more; what it read of the same devices is taken over from it."""
        self.snapshot = snapshot
        self.recipes = recipes
        self.known = resolution.index(snapshot)
        self.inventory: Inventory
        self.judge: Judge
        self.candidates: Candidates
        self.board: Board
        self.explainer: explanation.Explainer
        if before is not None and before.reads_as(snapshot, recipes):
            self.inventory = inventory.held_by(before.inventory, snapshot.claims)
            self.judge, self.candidates = before.judge, before.candidates
            self.board, self.explainer = before.board, before.explainer
            self.board.renew(self.inventory, snapshot.host_use)
        else:
            self.inventory = inventory.build(
                snapshot.slices,
                snapshot.claims,
                snapshot.device_classes,
                snapshot.taint_rules,
                snapshot.nodes,
                snapshot.kubernetes,
            )
            self.judge = Judge(self.inventory)
            self.candidates = Candidates(self.judge, self.known.device_classes, launches.Launcher(recipes))
            self.board = Board(self.inventory, snapshot.host_use)
            self.explainer = explanation.Explainer(self.board)
        self.works: dict[Key, Work] = {}
        self._asked: dict[tuple[object, ...], tuple[Question, Considered]] = {}
        self._seated: dict[DeviceId, list[tuple[Key, Replica]]] = {}
        """Who is planned on a device and not held by a claim yet."""
        self._generous: dict[Key, None] = {}
        """Orders with planned seats above what they are entitled to."""
        self._holds_of: dict[tuple[str, str], list[Hold]] = {}
        """What a claim (namespace, name) holds."""
        for hold in self.inventory.holds:
            self._holds_of.setdefault((hold.namespace, hold.claim), []).append(hold)
        self._placed_anew: PackingReport | None = None
        self._volumes: dict[Key, dict[int, frozenset[str]]] = {}
        for volume in snapshot.volumes:
            ordinal = _ordinal(volume.name)
            if volume.nodes is not None and ordinal is not None:
                self._volumes.setdefault(volume.order, {})[ordinal] = frozenset(volume.nodes)
        half_read = {kind for kind, _ in self.known.spoilt} & {"ResourceClaim", "DeviceTaintRule"}
        self._unreadable = tuple(
            kind for kind in READ_FOR_PLACEMENT if kind in self.known.unreadable or kind in half_read
        )
        self._decide()

    def reads_as(self, snapshot: Snapshot, recipes: recipe.Recipes) -> bool:
        """Devices, device classes and nodes of `snapshot` are those that this planning read."""
        mine = self.snapshot
        return recipes is self.recipes and all(
            getattr(mine, name) == getattr(snapshot, name)
            for name in ("kubernetes", "slices", "device_classes", "taint_rules", "nodes")
        )

    # --- the run

    def _decide(self) -> None:
        standing = _standing(self.inventory.holds)
        orders = [
            order
            for order in self.snapshot.orders
            if not order.deleting and order.key.namespace not in self.snapshot.terminating_namespaces
        ]
        works = [Work(order=order) for order in orders]
        works.sort(key=lambda work: work.age)
        self.works = {work.order.key: work for work in works}
        for work in works:
            self._resolve(work, standing.get(work.order.key, ()))
        for work in works:
            self._retain_held(work)
        for work in works:
            with self._outgoing_gone(work):
                self._retain_planned(work, work.least)
        for work in works:
            with self._outgoing_gone(work):
                self._retain_planned(work, work.most)
        for work in works:
            if work.retained and not work.replicas:
                # Nothing is left of what was planned and nothing serves: any offer will do again.
                work.offer, work.retained = None, False
        self._fill_entitled([work for work in works if self._missing(work) > 0])
        self._fill_elastic(works)

    def _resolve(self, work: Work, standing: Sequence[Standing]) -> None:
        order = work.order
        work.standing = list(standing)
        settled = resolution.resolve(order, self.known)
        if isinstance(settled, Unresolved):
            work.unresolved = settled
            work.outgoing, work.standing = work.standing, []
            return
        work.resolved = settled
        previous = order.plan if order.plan is not None and order.plan.decision is Decision.PLACED else None
        same = previous is not None and previous.observed_generation == order.generation
        if self._unreadable:
            work.kept = same
            return
        work.question, work.considered = self._considered(order, settled)
        if previous is not None:
            work.offer = self._previous_offer(work, previous, same=same)
        if work.offer is None and previous is None and work.standing:
            work.offer = self._matching(work)
        work.retained = work.offer is not None
        if work.offer is None and same and work.standing:
            work.kept = True
            return
        if work.offer is None:
            work.outgoing, work.standing = work.standing, []
        else:
            mine = work.offer
            work.outgoing = [item for item in work.standing if not _same_use(item.use, mine.wish.use)]
            work.standing = [item for item in work.standing if _same_use(item.use, mine.wish.use)]

    def _considered(self, order: Order, settled: Resolved) -> tuple[Question, Considered]:
        """What the order asks of the inventory, and its offers; one look for all orders that ask the same."""
        # Identities: classes and facts are kept as long as the questions that name them, which stand beside.
        told = (
            id(settled.service_class),
            order.device_classes,
            id(settled.facts),
            settled.repository,
            settled.endpoint_type,
            order.strategy,
        )
        known = self._asked.get(told)
        if known is None:
            model = launches.Model(
                facts=settled.facts,
                repository=settled.repository,
                endpoint_type=settled.endpoint_type,
                strategy=order.strategy,
            )
            question = Question(service_class=settled.service_class, device_classes=order.device_classes, model=model)
            known = self._asked[told] = question, self.candidates.of(question)
        return known

    def _previous_offer(self, work: Work, previous: OrderPlan, *, same: bool) -> Offer | None:
        """The offer of the previous plan; of an edited order only if it is still one that would be made today."""
        if previous.device_class is None or previous.placement is None or previous.sharing is None:
            return None
        assert work.question is not None and work.considered is not None
        way = Way(device_class=previous.device_class, placement=previous.placement, sharing=previous.sharing)
        count = previous.accelerator_count or 1
        example = next((name for name in previous.devices if name in self.inventory.by_id), None)
        if example is None:
            return None
        if same:
            return self.candidates.retained(work.question, way, example, count, previous.share)
        shape = self.inventory.by_id[example].shape
        return next(
            (
                offer
                for offer in work.considered.offers
                if offer.way == way
                and offer.wish.count == count
                and shape in offer.wish.shapes
                and previous.request is not None
                and dict(offer.capacity) == dict(previous.request.capacity)
            ),
            None,
        )

    def _matching(self, work: Work) -> Offer | None:
        """The offer that the order's claims were made by, where no plan tells it any more."""
        assert work.considered is not None
        for offer in work.considered.offers:
            for item in work.standing:
                devices = [self.inventory.by_id.get(name) for name in item.devices]
                if (
                    len(devices) == offer.wish.count
                    and all(device is not None and device.shape in offer.wish.shapes for device in devices)
                    and _same_use(item.use, offer.wish.use)
                ):
                    return offer
        return None

    def _retain_held(self, work: Work) -> None:
        """Seats that claims hold. A device tainted NoExecute is lost to the order though its claim still holds it."""
        offer = work.offer
        if offer is None:
            return
        free = [number for number in range(work.most) if number not in self._ordinals(work)]
        for item in sorted(work.standing, key=lambda item: (item.pod or "", item.claim)):
            if len(work.replicas) >= work.most or any(self._evicted(name) for name in item.devices):
                continue
            number = _ordinal(item.pod) if item.pod else None
            if number is None or number >= work.most or any(known.ordinal == number for known in work.replicas):
                number = free.pop(0) if free else len(work.replicas)
            node = self.board.node_of(item.devices, lambda node: True) or self._home(item.devices)
            seat = Seat(node=node, devices=tuple(sorted(item.devices)), standing=True)
            work.replicas.append(Replica(seat, item.use, offer.wish.host, number, item.claim))
            self.board.take((), item.use, node or None, offer.wish.host)

    def _ordinals(self, work: Work) -> set[int]:
        return {number for item in work.standing if item.pod and (number := _ordinal(item.pod)) is not None}

    def _evicted(self, name: DeviceId) -> bool:
        device = self.inventory.by_id.get(name)
        return device is not None and any(taint.effect is Effect.NO_EXECUTE for taint in device.taints)

    def _home(self, devices: Sequence[DeviceId]) -> str:
        """The node of held devices that takes no more pods; empty: nobody publishes them now."""
        for name in devices:
            device = self.inventory.by_id.get(name)
            if device is not None and device.nodes:
                return device.nodes[0]
        return ""

    def _retain_planned(self, work: Work, upto: int) -> None:
        """Seats of the previous plan that no claim holds yet, while their devices can still be had."""
        offer, previous = work.offer, work.order.plan
        if not work.retained or offer is None or previous is None or previous.bounds is None:
            return
        if previous.decision is not Decision.PLACED:
            return
        wanted = min(previous.bounds.bound, upto, work.most)
        if len(work.replicas) >= wanted:
            return
        count = offer.wish.count
        groups = [previous.devices[i : i + count] for i in range(0, len(previous.devices), count)]
        left = Counter(tuple(sorted(group)) for group in groups if len(group) == count)
        for replica in work.replicas:
            if left[replica.seat.devices] > 0:
                left[replica.seat.devices] -= 1
        for group in groups:
            key = tuple(sorted(group))
            if len(work.replicas) >= wanted:
                return
            if left[key] <= 0:
                continue
            left[key] -= 1
            if not self._admits(offer, key):
                continue
            ordinal = self._next_ordinal(work)
            nodes = self._pinned(work, ordinal)
            if not self._all_fit(key, offer.wish.use):
                continue
            node = self.board.node_of(
                key,
                lambda name, nodes=nodes: (  # type: ignore[misc]
                    (nodes is None or name in nodes)
                    and name not in offer.wish.barred
                    and self.board.holds_host(name, offer.wish.host)
                ),
            )
            if node is not None:
                self._seat(work, Seat(node=node, devices=key), ordinal)

    def _admits(self, offer: Offer, devices: Iterable[DeviceId]) -> bool:
        for name in devices:
            device = self.inventory.by_id.get(name)
            if device is None or device.shape not in offer.wish.shapes:
                return False
            if offer.wish.members is not None and name not in offer.wish.members:
                return False
        return True

    def _all_fit(self, devices: Sequence[DeviceId], use: Use) -> bool:
        return all(self.board.can_take(name, use) for name in devices)

    def _seat(self, work: Work, seat: Seat, ordinal: int) -> None:
        assert work.offer is not None
        wish = work.offer.wish
        self._sit(work, Replica(seat, wish.use, wish.host, ordinal))

    def _sit(self, work: Work, replica: Replica) -> None:
        """A planned replica takes its seat."""
        self.board.take(replica.seat.devices, replica.use, replica.seat.node, replica.host)
        work.replicas.append(replica)
        if len(work.replicas) > work.least:
            self._generous[work.order.key] = None
        for name in replica.seat.devices:
            self._seated.setdefault(name, []).append((work.order.key, replica))

    def _unseat(self, work: Work) -> None:
        replica = work.replicas.pop()
        self.board.give_back(replica.seat.devices, replica.use, replica.seat.node, replica.host)
        if len(work.replicas) <= work.least:
            self._generous.pop(work.order.key, None)
        for name in replica.seat.devices:
            left = [item for item in self._seated[name] if item[1] is not replica]
            if left:
                self._seated[name] = left
            else:
                del self._seated[name]

    def _next_ordinal(self, work: Work) -> int:
        taken = {replica.ordinal for replica in work.replicas}
        return next(number for number in range(len(taken) + 1) if number not in taken)

    def _pinned(self, work: Work, ordinal: int) -> frozenset[str] | None:
        """The nodes that the replica's standing model volume allows; None: any."""
        return self._volumes.get(work.order.key, {}).get(ordinal)

    def _missing(self, work: Work) -> int:
        """Entitled replicas without a seat, of an order that may get some."""
        if work.resolved is None or work.kept or self._unreadable or work.considered is None:
            return 0
        if work.considered.blocked is not None and not work.retained:
            return 0
        return max(work.least - len(work.replicas), 0) if work.considered.offers or work.offer else 0

    # --- filling

    def _fill_entitled(self, works: Sequence[Work]) -> None:
        """On the fewest cards if all fit so; else largest first; if one finds no room then, oldest first instead."""
        packed = sorted(works, key=lambda work: (self._size(work), work.order.key))
        replicas_missing = sum(self._missing(work) for work in packed)
        if not replicas_missing:
            return
        seated = {work.order.key: len(work.replicas) for work in works}
        found = self._fill_at_once(packed) if replicas_missing > 1 else batch.NoBatch("one replica")
        if isinstance(found, batch.NoBatch):
            self._fill_one_by_one(works, packed)
        new = [replica for work in packed for replica in work.replicas[seated[work.order.key] :]]
        opened = self.board.alone_on(name for replica in new for name in replica.seat.devices)
        bound = None
        limited = (found.reason,) if isinstance(found, batch.NoBatch) else found.limited
        if isinstance(found, batch.Batch) or not opened:
            bound = found.bound if isinstance(found, batch.Batch) else 0
        self._placed_anew = PackingReport(replicas=len(new), cards=opened, bound=bound, limited=limited)

    def _fill_at_once(self, works: Sequence[Work]) -> batch.Batch | batch.NoBatch:
        """All of `works` on the fewest cards that hold them by their first offers; NoBatch: nothing was changed.

        Those that no packing can judge come first, one by one: replicas of several devices, or held by their volume.
        """
        marks = {work.order.key: (work.offer, len(work.replicas)) for work in works}
        apart = [work for work in works if not self._packable(work)]
        found: batch.Batch | batch.NoBatch = batch.NoBatch("a replica that is placed by itself has no room")
        if not any(self._place(work, self._missing(work)) for work in apart):
            found = self._fill_packed([work for work in works if self._missing(work) > 0])
        if isinstance(found, batch.NoBatch):
            for work in works:
                offer, before = marks[work.order.key]
                while len(work.replicas) > before:
                    self._unseat(work)
                work.offer = offer
        elif apart:
            return replace(found, bound=0, limited=(*found.limited, "replicas of several devices, or held by a volume"))
        return found

    def _packable(self, work: Work) -> bool:
        """Its replicas take one device each, any of the offer's shapes, on any node."""
        if work.outgoing or work.order.key in self._volumes:
            return False
        offers = (work.offer,) if work.offer is not None else work.considered.offers[:1] if work.considered else ()
        return all(offer.wish.count == 1 and offer.wish.members is None for offer in offers)

    def _fill_packed(self, works: Sequence[Work]) -> batch.Batch | batch.NoBatch:
        together: list[tuple[Work, tuple[Offer, ...], Wish]] = []
        alike: dict[tuple[int, int, int], tuple[tuple[Offer, ...], Wish]] = {}
        for work in works:
            about = id(work.offer), id(work.considered), self._missing(work)
            if about not in alike:
                offers = self._alike_offers(work)
                shapes = frozenset(shape for offer in offers for shape in offer.wish.shapes)
                alike[about] = offers, replace(offers[0].wish, shapes=shapes)
            together.append((work, *alike[about]))
        demand: dict[Wish, int] = {}
        for work, _, wish in together:
            demand[wish] = demand.get(wish, 0) + self._missing(work)
        found = batch.seat(self.board, list(demand), list(demand.values()))
        if isinstance(found, batch.NoBatch):
            return found
        seats = {wish: iter(row) for wish, row in zip(demand, found.seats, strict=True)}
        for work, offers, wish in together:
            for _ in range(self._missing(work)):
                seat = next(seats[wish])
                shape = self.inventory.by_id[seat.devices[0]].shape
                work.offer = next(offer for offer in offers if shape in offer.wish.shapes)
                self._seat(work, seat, self._next_ordinal(work))
        return found

    def _alike_offers(self, work: Work) -> tuple[Offer, ...]:
        """The first offer, and for a single replica those of its rank that hold a device in the same way."""
        if work.offer is not None:
            return (work.offer,)
        assert work.considered is not None
        offers = work.considered.offers
        if self._missing(work) > 1:
            return (next((offer for offer in self._ranked(work) if offer.wish.members is None), offers[0]),)
        return tuple(
            offer
            for offer in offers
            if offer.rank == offers[0].rank and replace(offer.wish, shapes=offers[0].wish.shapes) == offers[0].wish
        )

    def _fill_one_by_one(self, works: Sequence[Work], packed: Sequence[Work]) -> None:
        marks = {work.order.key: (work.offer, len(work.replicas)) for work in packed}
        complete = True
        for work in packed:
            if self._place(work, self._missing(work)) > 0:
                complete = False
                break
        if complete:
            return
        for work in packed:
            offer, before = marks[work.order.key]
            while len(work.replicas) > before:
                self._unseat(work)
            work.offer = offer
        had = {work.order.key: len(work.replicas) for work in works}
        for work in works:
            self._place(work, self._missing(work))
        self._repack([work for work in packed if len(work.replicas) > had[work.order.key]], had)
        for work in works:
            left = self._place(work, self._missing(work))
            if left > 0:
                self._place_instead(work, left)

    def _repack(self, works: Sequence[Work], had: Mapping[Key, int]) -> None:
        """The same orders again, largest first: who is served stays, more room may be left for those who are not."""
        before = {work.order.key: (work.offer, list(work.replicas)) for work in works}

        def clear() -> None:
            for work in works:
                while len(work.replicas) > had[work.order.key]:
                    self._unseat(work)
                if not work.replicas and not work.retained:
                    work.offer = None

        clear()
        for work in works:
            wanted = len(before[work.order.key][1]) - had[work.order.key]
            if self._place(work, wanted) > 0:
                break
        else:
            return
        clear()
        for work in works:
            work.offer, replicas_before = before[work.order.key]
            for replica in replicas_before[had[work.order.key] :]:
                self._seat(work, replica.seat, replica.ordinal)

    def _size(self, work: Work) -> tuple[int, int]:
        offer = work.offer or (work.considered.offers[0] if work.considered and work.considered.offers else None)
        if offer is None or offer.held is UNKNOWN:
            return 0, 0
        return -offer.wish.count, -offer.held

    def _place(self, work: Work, wanted: int) -> int:
        """Place up to `wanted` more replicas; how many are left over."""
        if wanted <= 0:
            return 0
        if not work.outgoing:
            return self._place_within(work, wanted)
        with self._outgoing_gone(work):
            return self._place_within(work, wanted)

    @contextmanager
    def _outgoing_gone(self, work: Work) -> Iterator[None]:
        """The order's own outgoing claims make room for it: a replica is ended before its successor starts.

        To everybody else they hold until they are really gone.
        """
        for item in work.outgoing:
            self.board.give_back(item.devices, item.use, None, None)
        yield
        for item in work.outgoing:
            self.board.take(item.devices, item.use, None, None)

    def _place_within(self, work: Work, wanted: int) -> int:
        if work.offer is not None:
            return wanted - self._place_by(work, work.offer, wanted)
        assert work.considered is not None
        best: tuple[int, Offer] | None = None
        for offer in self._ranked(work):
            placed = self._place_by(work, offer, wanted)
            if placed == wanted:
                return 0
            for _ in range(placed):
                self._unseat(work)
            work.offer = None
            if placed and (best is None or placed > best[0]):
                best = (placed, offer)
        if best is None:
            return wanted
        return wanted - self._place_by(work, best[1], wanted)

    def _ranked(self, work: Work) -> Iterable[Offer]:
        """Offers in rank order; among equals the one whose first seat takes the least from others."""
        assert work.considered is not None
        offers = work.considered.offers
        nodes = self._pinned(work, self._next_ordinal(work))
        start = 0
        while start < len(offers):
            end = start
            while end < len(offers) and offers[end].rank == offers[start].rank:
                end += 1
            scored = []
            for place in range(start, end):
                found = self.board.find(offers[place].wish, nodes)
                if found is not None:
                    scored.append((found[0], place))
            yield from (offers[place] for _, place in sorted(scored))
            start = end

    def _place_by(self, work: Work, offer: Offer, wanted: int) -> int:
        before = work.offer
        work.offer = offer
        for placed in range(wanted):
            ordinal = self._next_ordinal(work)
            found = self.board.find(offer.wish, self._pinned(work, ordinal))
            if found is None:
                if placed == 0:
                    work.offer = before
                return placed
            self._seat(work, found[1], ordinal)
        return wanted

    def _place_instead(self, work: Work, wanted: int) -> None:
        """Place entitled replicas on what is only reserved: elastic seats of others that nobody holds yet.

        The fewest reservations that suffice are given up, from the order with the most elastic replicas.
        """
        for _ in range(wanted):
            donors = sorted(
                (
                    donor
                    for donor in (self.works[key] for key in self._generous)
                    if donor is not work and len(donor.replicas) > donor.least and not donor.replicas[-1].seat.standing
                ),
                key=lambda donor: (-(len(donor.replicas) - donor.least), donor.age),
            )
            released: list[tuple[Work, Replica]] = []
            done = False
            for donor in donors:
                while len(donor.replicas) > donor.least and not donor.replicas[-1].seat.standing and not done:
                    replica = donor.replicas[-1]
                    self._unseat(donor)
                    released.append((donor, replica))
                    done = self._place(work, 1) == 0
                if done:
                    break
            for donor, replica in reversed(released):
                # Given back where it still fits; what the entitled replica needed stays given up.
                if self._all_fit(replica.seat.devices, replica.use):
                    self._sit(donor, replica)
            if not done:
                return

    def _fill_elastic(self, works: Sequence[Work]) -> None:
        claimants = [
            replicas.Claimant(
                key=work.order.key,
                age=work.age,
                elastic=len(work.replicas) - work.least,
                most=work.most - work.least,
            )
            for work in works
            if work.offer is not None and not work.kept and work.least <= len(work.replicas) < work.most
        ]
        replicas.split(claimants, lambda key: self._place(self.works[key], 1) == 0)

    # --- the answer

    def result(self) -> Plan:
        """The plan of every order, the verdict on every class, the capacity that results."""
        return Plan(
            orders=tuple(self.answer(self.works[key]) for key in sorted(self.works)),
            classes=self.classes(),
            capacity=self.occupancy(),
        )

    def classes(self) -> tuple[ClassVerdict, ...]:
        """The verdict on every class, by name."""
        return tuple(self._verdict(item) for item in self.snapshot.service_classes)

    def answer(self, work: Work) -> OrderPlan:
        """The plan of one order."""
        order = work.order
        if work.unresolved is not None:
            return self._unresolved(work.unresolved)
        assert work.resolved is not None
        if work.kept:
            assert order.plan is not None
            return order.plan
        if self._unreadable:
            return self._refused(
                work,
                Refusal(
                    reason=Refused.UNDECIDABLE,
                    message=f"{', '.join(self._unreadable)} cannot be read now, so nothing can be placed.",
                    lack=Lack.UNREADABLE,
                ),
            )
        if work.replicas and work.offer is not None:
            return self._placed(work, work.offer)
        return self._refused(work, self.refusal(work))

    def refusal(self, work: Work) -> Refusal:
        """Why the order has no seat."""
        assert work.considered is not None and work.resolved is not None
        return self.explainer.refusal(
            work.considered,
            nodes=self._pinned(work, 0),
            wider=lambda: self._wider(work),
            service_class=work.resolved.service_class.name,
        )

    def _wider(self, work: Work) -> Considered:
        """The order's offers if neither class nor order limited where it may be placed."""
        assert work.question is not None
        service_class = replace(
            work.question.service_class,
            sharing_modes=tuple(SharingMode),
            placement_types=tuple(PlacementType),
            max_accelerator_count=max(EVERYTHING, work.question.service_class.max_accelerator_count),
            device_class_names=None,
            min_share_memory=None,
            max_share_memory=None,
        )
        return self.candidates.of(replace(work.question, service_class=service_class, device_classes=None))

    def _unresolved(self, failed: Unresolved) -> OrderPlan:
        return OrderPlan(
            key=failed.order.key,
            observed_generation=failed.order.generation,
            decision=Decision.UNDECIDABLE if failed.undecidable else Decision.REFUSED,
            reason=failed.reason.word,
            message=failed.message,
            refusal=Refusal(reason=failed.reason, message=failed.message),
            endpoint_type=failed.endpoint_type,
            served_name=failed.served_name,
            model_revision=failed.revision,
        )

    def _refused(self, work: Work, refusal: Refusal) -> OrderPlan:
        settled = work.resolved
        assert settled is not None
        alternatives: tuple[Alternative, ...] = ()
        if work.considered is not None and work.considered.blocked is None:
            alternatives = self.explainer.alternatives(work.considered, None, self._pinned(work, 0))
        warning = f" {settled.warning}" if settled.warning else ""
        return OrderPlan(
            key=work.order.key,
            observed_generation=work.order.generation,
            decision=Decision.UNDECIDABLE if refusal.reason is Refused.UNDECIDABLE else Decision.REFUSED,
            reason=refusal.reason.word,
            message=refusal.message + warning,
            refusal=refusal,
            endpoint_type=settled.endpoint_type,
            endpoint_type_guessed=settled.endpoint_type_guessed,
            served_name=settled.served_name,
            model_revision=settled.revision,
            alternatives=alternatives,
        )

    def _placed(self, work: Work, offer: Offer) -> OrderPlan:
        settled, order, previous = work.resolved, work.order, work.order.plan
        assert settled is not None and work.considered is not None
        found = sorted(work.replicas, key=lambda replica: (replica.seat.node, replica.seat.devices))
        seats = tuple(replica.seat for replica in found)
        devices = tuple(name for seat in seats for name in seat.devices)
        nodes = tuple(sorted({seat.node for seat in seats if seat.node}))
        retained = previous if work.retained and previous is not None and previous.request is not None else None
        asked = request.pinned(devices, self.inventory.by_id, offer.capacity, settled.service_class.device_selector)
        if (
            retained is not None
            and retained.request is not None
            and retained.bounds is not None
            and retained.bounds.bound == len(seats)
            and set(devices) <= set(retained.devices)
        ):
            # The scheduler may have put replicas on the planned devices in another way, or a driver may publish none
            # of them for a while: another template would restart pods for nothing.
            devices, nodes, asked = retained.devices, retained.nodes or nodes, retained.request
        volume = self._volume(work, offer)
        if retained is not None and retained.alternatives:
            alternatives = retained.alternatives
        else:
            alternatives = self.explainer.alternatives(work.considered, offer, None)
        return OrderPlan(
            key=order.key,
            observed_generation=order.generation,
            decision=Decision.PLACED,
            reason=LAUNCH_PLAN_CALCULATED,
            message=_placed_message(work, offer, len(seats)),
            endpoint_type=settled.endpoint_type,
            endpoint_type_guessed=settled.endpoint_type_guessed,
            served_name=settled.served_name,
            model_revision=settled.revision,
            device_class=offer.way.device_class,
            placement=offer.way.placement,
            sharing=offer.way.sharing,
            share=offer.share,
            accelerator_count=offer.wish.count,
            seats=seats,
            devices=devices,
            nodes=nodes,
            request=asked,
            recipe=offer.launch.recipe,
            host=offer.launch.host,
            sized=offer.launch.sized,
            volume=volume,
            bounds=Bounds(min=work.least, max=work.most, bound=len(seats)),
            alternatives=alternatives,
        )

    def _volume(self, work: Work, offer: Offer) -> VolumeNeed | None:
        """The model volume of a Hugging Face order: the checkpoint, a quarter more and 2 GiB, in whole GiB.

        Of a checkpoint that nobody knows, as much as its devices could hold. A volume planned before stays as it is.
        """
        settled = work.resolved
        assert settled is not None
        if work.order.model.source is not ModelSource.HUGGING_FACE:
            return None
        previous = work.order.plan
        if work.retained and previous is not None and previous.volume is not None:
            return previous.volume
        size: Maybe = settled.artifact
        if size is UNKNOWN:
            size = (64 * GI if offer.example.memory is UNKNOWN else offer.example.memory) * offer.wish.count
        whole = -(-(size + size // 4 + 2 * GI) // GI) * GI
        return VolumeNeed(size=whole, storage_class_name=settled.service_class.storage_class_name)

    # --- classes and capacity

    def _verdict(self, service_class: ServiceClass) -> ClassVerdict:
        return ClassVerdict(
            name=service_class.name,
            generation=service_class.generation,
            validated=self._validated(service_class),
            ready=self._ready(service_class),
        )

    def _validated(self, service_class: ServiceClass) -> Verdict:
        selector = service_class.device_selector
        if selector is not None:
            program = self.judge.program(selector)
            if program.error is not None:
                return Verdict(
                    status=Truth.FALSE,
                    reason="SelectorBroken",
                    message=f"deviceSelector `{selector}` does not compile: {program.error}",
                )
            for name in service_class.device_class_names or sorted(self.known.device_classes):
                found = self.known.device_classes.get(name)
                fatal = self.judge.admitted(found, selector).fatal if found is not None else None
                if fatal is not None:
                    detail = fatal.detail.replace("the service class", f"service class {service_class.name}", 1)
                    return Verdict(
                        status=Truth.FALSE, reason="SelectorBroken", message=detail[0].upper() + detail[1:] + "."
                    )
        if self._unreadable:
            return Verdict(
                status=Truth.UNKNOWN,
                reason="Unreadable",
                message=f"{', '.join(self._unreadable)} cannot be read now.",
            )
        return Verdict(status=Truth.TRUE, reason="Validated", message="Every expression can be judged on every device.")

    def _ready(self, service_class: ServiceClass) -> Verdict:
        names = service_class.device_class_names or ()
        missing = [name for name in names if name not in self.known.device_classes]
        if "DeviceClass" in self.known.unreadable:
            return Verdict(status=Truth.UNKNOWN, reason="Unreadable", message="Device classes cannot be read now.")
        if missing:
            return Verdict(
                status=Truth.FALSE,
                reason="DeviceClassNotFound",
                message=f"Device class {', '.join(missing)} does not exist.",
            )
        storage = resolution.storage_missing(service_class, self.known)
        if storage:
            return Verdict(
                status=Truth.FALSE, reason="StorageClassNotFound", message=storage[0].upper() + storage[1:] + "."
            )
        return Verdict(status=Truth.TRUE, reason="Ready", message="Everything that the class names exists.")

    def occupancy(self) -> CapacityReport:
        """Every device with who sits on it, and what of each class is free on each node."""
        of_class: dict[DeviceId, list[str]] = {}
        for name, device_class in sorted(self.known.device_classes.items()):
            for group in self.judge.admitted(device_class, None).groups:
                for device in group:
                    of_class.setdefault(device.id, []).append(name)
        sittings = self._sittings()
        uses: list[DeviceUse] = []
        totals: dict[tuple[str, str], list[Maybe]] = {}
        for device in sorted(self.inventory.devices, key=lambda device: device.id):
            held = device.id in sittings
            taken = self.board.ledger.in_use(device.id)
            lack = None if taken else self.board.ledger.lack(self.inventory, device, None)
            usable = not device.taints and any(self.inventory.usable(node, device.id.driver) for node in device.nodes)
            free: Maybe = (
                0
                if lack is not None or not usable
                else device.memory
                if not taken
                else free_memory(self.board.ledger, device)
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
        problems = [
            f"{problem.driver} pool {problem.pool}: {problem.message} ({problem.trouble.value})"
            for problem in self.inventory.problems
        ]
        problems += [f"cannot be read: {entry}" for entry in self.snapshot.unreadable]
        problems += [
            f"claim {hold.namespace}/{hold.claim} holds {hold.device}, which nobody publishes now"
            for hold in self.inventory.unpublished
        ]
        return CapacityReport(classes=classes, devices=tuple(uses), problems=tuple(problems))

    def capacity(self) -> CapacityReport:
        """The plan's capacity, and how far what is placed is from the fewest cards that could hold it."""
        return replace(self.occupancy(), placed=self._placed_anew, standing=self._against_the_fewest())

    def _against_the_fewest(self) -> PackingReport:
        """All replicas packed anew on a board without our claims; those of several devices stay where they are."""
        ledger = self.inventory.ledger.copy()
        for hold in self.inventory.holds:
            device = self.inventory.by_id.get(hold.device)
            if device is not None and order_of(hold) in self.works:
                ledger.give_back(device, hold.amounts, hold.strategy)
        board = Board(self.inventory, self.snapshot.host_use, ledger)
        demand: dict[Wish, int] = {}
        mine: list[DeviceId] = []
        fixed: list[DeviceId] = []
        count = 0
        for key in sorted(self.works):
            work = self.works[key]
            for replica in work.replicas:
                count += 1
                mine.extend(replica.seat.devices)
                wish = None if work.offer is None else work.offer.wish
                if wish is None or wish.count > 1 or wish.members is not None or key in self._volumes:
                    board.take(replica.seat.devices, replica.use, replica.seat.node or None, replica.host)
                    fixed.extend(replica.seat.devices)
                else:
                    demand[wish] = demand.get(wish, 0) + 1
        least = board.alone_on(fixed)
        found = batch.seat(board, list(demand), list(demand.values()))
        limited = (found.reason,) if isinstance(found, batch.NoBatch) else found.limited
        bound = None if isinstance(found, batch.NoBatch) else found.bound + least
        cards = self.board.alone_on(mine)
        return PackingReport(replicas=count, cards=cards, bound=bound, limited=limited)

    def _sittings(self) -> dict[DeviceId, list[Sitting]]:
        found: dict[DeviceId, list[Sitting]] = {}
        for hold in self.inventory.holds:
            order = order_of(hold)
            mine = order if order in self.works else None
            amounts = hold.amounts
            found.setdefault(hold.device, []).append(
                self._sitting(
                    str(mine) if mine else f"{hold.namespace}/{hold.claim}", mine, hold.device, amounts, planned=False
                )
            )
        for key in sorted(self.works):
            for replica in self.works[key].replicas:
                if replica.seat.standing:
                    continue
                for name in replica.seat.devices:
                    found.setdefault(name, []).append(
                        self._sitting(str(key), key, name, replica.use.requested, planned=True)
                    )
        for sitting in found.values():
            sitting.sort(key=lambda item: (item.planned, item.holder))
        return found

    def _sitting(
        self, holder: str, order: Key | None, name: DeviceId, amounts: Mapping[str, object] | None, *, planned: bool
    ) -> Sitting:
        device = self.inventory.by_id.get(name)
        memory: Maybe = UNKNOWN if device is None else device.memory
        percent: Maybe = UNKNOWN
        if device is not None and amounts is not None:
            memory, percent = inventory_share(device, amounts)
        return Sitting(holder=holder, order=order, memory=memory, compute_percent=percent, planned=planned)

    # --- who holds what

    def holdings(self) -> list[Holding]:
        """Everybody who holds something on the board: claims one by one, then planned replicas; a stable order."""
        published = sorted(
            claim
            for claim, holds in self._holds_of.items()
            if any(hold.device in self.inventory.by_id for hold in holds)
        )
        found = [self._claim_holding(*claim) for claim in published]
        for key in sorted(self.works):
            found += [
                _planned_holding(key, replica) for replica in self.works[key].replicas if not replica.seat.standing
            ]
        return found

    def blocking(self, key: Key) -> tuple[Holder, ...]:
        """A minimal set of holders without whom the order would have a seat; empty: it has one, or no leaving helps."""
        work = self.works[key]
        if work.replicas or work.considered is None or not work.considered.offers:
            return ()
        return explanation.blocking_set(self.board, work.considered.offers, self._holders_on, self._pinned(work, 0))

    def _holders_on(self, devices: Iterable[Device]) -> list[Holding]:
        """Everybody who holds one of `devices` on the board: claims by name, then planned replicas; a stable order."""
        claims: dict[tuple[str, str], None] = {}
        planned: dict[int, tuple[Key, Replica]] = {}
        for device in devices:
            for hold in self.inventory.holders.get(device.id, ()):
                claims.setdefault((hold.namespace, hold.claim))
            for key, replica in self._seated.get(device.id, ()):
                planned.setdefault(id(replica), (key, replica))
        found = [self._claim_holding(*claim) for claim in sorted(claims)]
        seated = sorted(planned.values(), key=lambda item: (item[0], item[1].ordinal))
        return [*found, *(_planned_holding(key, replica) for key, replica in seated)]

    def _claim_holding(self, namespace: str, claim: str) -> Holding:
        holds = [hold for hold in self._holds_of[namespace, claim] if hold.device in self.inventory.by_id]
        devices = tuple(sorted(hold.device for hold in holds))
        order = order_of(holds[0])
        mine = order if order in self.works else None
        seat = None
        if mine is not None:
            seat = next(
                (replica for replica in self.works[mine].replicas if replica.seat.standing and replica.claim == claim),
                None,
            )
        return Holding(
            holder=Holder(name=str(mine) if mine else f"{namespace}/{claim}", order=mine, devices=devices),
            parts=tuple((hold.device, _use(hold)) for hold in holds),
            node=seat.seat.node or None if seat else None,
            host=seat.host if seat else None,
        )


def inventory_share(device: inventory.Device, amounts: Mapping[str, object]) -> tuple[Maybe, Maybe]:
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


def _standing(holds: Sequence[Hold]) -> dict[Key, tuple[Standing, ...]]:
    """Claims of orders that hold devices, by order and claim."""
    by_claim: dict[tuple[Key, str], list[Hold]] = {}
    for hold in holds:
        order = order_of(hold)
        if order is not None:
            by_claim.setdefault((order, hold.claim), []).append(hold)
    found: dict[Key, list[Standing]] = {}
    for (key, claim), items in sorted(by_claim.items()):
        if len({_use(item) for item in items}) > 1:
            continue  # our template asks for devices alike: this was written by somebody else under our label
        found.setdefault(key, []).append(
            Standing(
                claim=claim,
                pod=items[0].owner_pod,
                devices=tuple(sorted(item.device for item in items)),
                use=_use(items[0]),
            )
        )
    return {key: tuple(items) for key, items in found.items()}


def order_of(hold: Hold) -> Key | None:
    """The order that the claim is labelled with; None: nobody's of ours."""
    name = hold.labels.get(ORDER_LABEL)
    return Key(namespace=hold.namespace, name=name) if name else None


def _planned_holding(key: Key, replica: Replica) -> Holding:
    return Holding(
        holder=Holder(name=str(key), order=key, devices=replica.seat.devices),
        parts=tuple((name, replica.use) for name in replica.seat.devices),
        node=replica.seat.node,
        host=replica.host,
    )


def _use(hold: Hold) -> Use:
    return Use(None if hold.amounts is None else tuple(sorted(hold.amounts.items())), hold.strategy)


def _same_use(held: Use, planned: Use) -> bool:
    """A claim holds what the plan asks: whole or the same amounts (a strategy that none set is no difference)."""
    return held.amounts == planned.amounts


def _ordinal(name: str) -> int | None:
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isdigit() else None


def _placed_message(work: Work, offer: Offer, seats: int) -> str:
    what = "a partition" if offer.way.placement is PlacementType.PARTITION else "a whole device"
    if offer.share is not None and offer.share.memory is not UNKNOWN:
        what = f"a share of {explanation.mib_up(offer.share.memory)} of {what}"
    if offer.wish.count > 1:
        what = f"{offer.wish.count} whole devices of one node"
    text = f"Each replica gets {what} of device class {offer.way.device_class}."
    if seats < work.least:
        text += f" Only {seats} of the {work.least} replicas it is entitled to have room now."
    elif seats < work.most:
        text += f" {seats} of at most {work.most} replicas have room now."
    settled = work.resolved
    if settled is not None and settled.warning:
        text += f" {settled.warning}"
    if not offer.sized:
        text += " Nobody states how many bytes the model has, so it gets the largest device it may."
    return text
