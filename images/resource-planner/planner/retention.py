# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What stands comes first: which offer an order is kept by, and which of its seats it keeps.

A replica that a claim already holds keeps its device; what was planned and not yet held keeps its device while it is
free; an order whose facts cannot be judged any more keeps the plan it serves under.

Retention ends when the device is gone or tainted NoExecute, when the order was edited so that its placement changes,
when the class no longer admits what nobody holds yet, or when the recipes of now no longer fit and nothing serves.
All replicas of an order share one claim template, so they are held alike: one offer for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from planner import launches, resolution
from planner.candidates import Candidates, Considered, Offer, Question, Way
from planner.dra import DeviceId, Effect
from planner.model import Decision, Order, OrderPlan, Seat
from planner.placement import Use
from planner.resolution import Index, Resolved, Unresolved
from planner.seating import Seating
from planner.works import Replica, Standing, Work, ordinal_of


class Retention:
    """Brings orders to where they stood, before anything is filled. Every order is resolved before any is retained."""

    def __init__(self, known: Index, candidates: Candidates, seating: Seating, *, unreadable: Sequence[str]) -> None:
        """`unreadable`: kinds without which nothing may be placed anew."""
        self._known = known
        self._candidates = candidates
        self._seating = seating
        self._inventory = seating.board.inventory
        self._unreadable = unreadable
        self._asked: dict[tuple[object, ...], tuple[Question, Considered]] = {}

    def resolve(self, work: Work, claims: Sequence[Standing]) -> None:
        """Settle the class, the model, the offers, and by which offer the order stands; `claims` are its own."""
        order = work.order
        work.standing = list(claims)
        settled = resolution.resolve(order, self._known)
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
            work.offer = self.previous_offer(work, previous, same=same)
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
            known = self._asked[told] = question, self._candidates.of(question)
        return known

    def previous_offer(self, work: Work, previous: OrderPlan, *, same: bool) -> Offer | None:
        """The offer of the previous plan; of an edited order only if it is still one that would be made today."""
        if previous.device_class is None or previous.placement is None or previous.sharing is None:
            return None
        assert work.question is not None and work.considered is not None
        way = Way(device_class=previous.device_class, placement=previous.placement, sharing=previous.sharing)
        count = previous.accelerator_count or 1
        example = next((name for name in previous.devices if name in self._inventory.by_id), None)
        if example is None:
            return None
        if same:
            return self._candidates.retained(work.question, way, example, count, previous.share)
        shape = self._inventory.by_id[example].shape
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
                devices = [self._inventory.by_id.get(name) for name in item.devices]
                if (
                    len(devices) == offer.wish.count
                    and all(device is not None and device.shape in offer.wish.shapes for device in devices)
                    and _same_use(item.use, offer.wish.use)
                ):
                    return offer
        return None

    def retain_held(self, work: Work) -> None:
        """Seats that claims hold. A device tainted NoExecute is lost to the order though its claim still holds it."""
        offer = work.offer
        if offer is None:
            return
        free = [number for number in range(work.most) if number not in self._ordinals(work)]
        for item in sorted(work.standing, key=lambda item: (item.pod or "", item.claim)):
            if len(work.replicas) >= work.most or any(self._evicted(name) for name in item.devices):
                continue
            number = ordinal_of(item.pod) if item.pod else None
            if number is None or number >= work.most or any(known.ordinal == number for known in work.replicas):
                number = free.pop(0) if free else len(work.replicas)
            node = self._seating.board.node_of(item.devices, lambda node: True) or self._home(item.devices)
            seat = Seat(node=node, devices=tuple(sorted(item.devices)), standing=True)
            work.replicas.append(Replica(seat, item.use, offer.wish.host, number, item.claim))
            self._seating.board.take((), item.use, node or None, offer.wish.host)

    def _ordinals(self, work: Work) -> set[int]:
        return {number for item in work.standing if item.pod and (number := ordinal_of(item.pod)) is not None}

    def _evicted(self, name: DeviceId) -> bool:
        device = self._inventory.by_id.get(name)
        return device is not None and any(taint.effect is Effect.NO_EXECUTE for taint in device.taints)

    def _home(self, devices: Sequence[DeviceId]) -> str:
        """The node of held devices that takes no more pods; empty: nobody publishes them now."""
        for name in devices:
            device = self._inventory.by_id.get(name)
            if device is not None and device.nodes:
                return device.nodes[0]
        return ""

    def retain_planned(self, work: Work, upto: int) -> None:
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
            ordinal = self._seating.next_ordinal(work)
            nodes = self._seating.pinned(work, ordinal)
            if not self._seating.all_fit(key, offer.wish.use):
                continue
            node = self._seating.board.node_of(
                key,
                lambda name, nodes=nodes: (  # type: ignore[misc]
                    (nodes is None or name in nodes)
                    and name not in offer.wish.barred
                    and self._seating.board.holds_host(name, offer.wish.host)
                ),
            )
            if node is not None:
                self._seating.seat(work, Seat(node=node, devices=key), ordinal)

    def _admits(self, offer: Offer, devices: Iterable[DeviceId]) -> bool:
        for name in devices:
            device = self._inventory.by_id.get(name)
            if device is None or device.shape not in offer.wish.shapes:
                return False
            if offer.wish.members is not None and name not in offer.wish.members:
                return False
        return True


def _same_use(held: Use, planned: Use) -> bool:
    """A claim holds what the plan asks: whole or the same amounts (a strategy that none set is no difference)."""
    return held.amounts == planned.amounts
