# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A planning that goes on: changed orders in, decisions out, by the procedure of `plan` on the board it left.

`Kept.plan` gives the answer of `plan.plan` to the same snapshot, byte by byte (a law says so), and pays for what
changed since the last one:

1. orders that came or went, while everybody else's plan stands as it was told: only they are considered, and whoever
   waits for room; the cluster is neither read nor walked;
2. any other change of orders, claims, classes, models or volumes: every order is retained and filled again, on the
   devices, verdicts and offers that are known;
3. changed devices, device classes, taints or nodes: all from the beginning.

Where it is not certain that a cheaper way gives the same answer, the next one is taken. `Kept.change` is the first way
alone, for whoever knows what changed: its decisions count as written the moment they are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner import inventory, launches, modelfacts, packing, recipe
from planner.candidates import Offer
from planner.dra import DeviceId
from planner.model import ClassVerdict, Decision, Key, Order, OrderPlan, Plan, Snapshot
from planner.plan import Planning
from planner.works import Replica, Work, order_of

MOST_REMEMBERED: Final = 400_000
"""States and verdicts kept in mind before everything is begun anew (some 200 MiB)."""

IMMATERIAL: Final = ("now", "orders", "claims")
"""Parts of a snapshot that may differ while orders come and go: no decision reads the time."""


@dataclass(slots=True, kw_only=True)
class Costs:
    """How often each way was taken."""

    local: int = 0
    retained: int = 0
    whole: int = 0


class Kept:
    """The last plan and the board it left. Not for use from two threads at once."""

    def __init__(self, recipes: recipe.Recipes | None = None) -> None:
        """Reads the known models and loads the solver, so that no order waits for them. `recipes` None: the shipped."""
        modelfacts.table()
        packing.solver()
        self._recipes = recipes or launches.shipped()
        self._running: Running | None = None
        self.costs = Costs()

    @property
    def planning(self) -> Planning:
        """The planning of the last snapshot, for questions about it. Raises LookupError before the first one."""
        if self._running is None:
            raise LookupError("nothing was planned yet")
        return self._running

    def plan(self, snapshot: Snapshot) -> Plan:
        """The answer to `snapshot`, equal to that of `plan.plan`; see there for errors."""
        self.decide(snapshot)
        return self.planning.result()

    def decide(self, snapshot: Snapshot) -> Mapping[Key, OrderPlan]:
        """The orders' part of that answer. A plan that says the same as the last one is the same object."""
        before = self._running
        self._running = None  # an error leaves nothing half changed behind
        if before is not None and before.board.remembered > MOST_REMEMBERED:
            before = None
        if before is not None and before.follow(snapshot):
            self.costs.local += 1
            self._running = before
        elif before is not None and before.reads_as(snapshot, self._recipes):
            self.costs.retained += 1
            self._running = Running(snapshot, self._recipes, before)
        else:
            self.costs.whole += 1
            self._running = Running(snapshot, self._recipes)
        return self._running.answers

    def change(self, added: Iterable[Order] = (), gone: Iterable[Key] = ()) -> Mapping[Key, OrderPlan]:
        """The plans that differ from those told before, after orders came (without a plan) and went.

        What is told counts as written. Raises LookupError before the first `plan`.
        """
        if self._running is None:
            raise LookupError("nothing was planned yet")
        added, gone = tuple(added), tuple(gone)
        told = self._running.change(added, gone)
        if told is not None:
            self.costs.local += 1
            return told
        before, self._running = self._running, None
        earlier = before.answers
        self.costs.retained += 1
        self._running = Running(changed(before.applied(), added, gone), self._recipes, before)
        return {key: answer for key, answer in self._running.answers.items() if earlier.get(key) != answer}

    def snapshot(self) -> Snapshot:
        """The last snapshot with every change since, and with every plan written into its order."""
        if self._running is None:
            raise LookupError("nothing was planned yet")
        return self._running.applied()


def changed(snapshot: Snapshot, added: Iterable[Order], gone: Iterable[Key]) -> Snapshot:
    """`snapshot` with orders added or replaced, and orders removed."""
    orders = {order.key: order for order in snapshot.orders}
    for key in gone:
        orders.pop(key, None)
    orders |= {order.key: order for order in added}
    return replace(snapshot, orders=tuple(orders[key] for key in sorted(orders)))


class Running(Planning):
    """A planning that can be continued while orders come and go."""

    def __init__(self, snapshot: Snapshot, recipes: recipe.Recipes, before: Planning | None = None) -> None:
        self._same: dict[tuple[int, int], bool] = {}
        """Whether an offer of an order's candidates, both by identity, is the one that it would be retained by."""
        super().__init__(snapshot, recipes, before)
        self.board.ranks()  # ahead of the first refusal, which somebody waits for
        told = before.answers if isinstance(before, Running) else {}
        self.answers: dict[Key, OrderPlan] = {}
        for key, work in self.works.items():
            answer, earlier = self.answer(work), told.get(key)
            self.answers[key] = earlier if earlier is not None and earlier == answer else answer
        self._classes = super().classes()
        self._claimed = {order for order in map(order_of, self.inventory.holds) if order is not None}
        """Orders that some claim is labelled with."""
        self._open: dict[Key, None] = {}
        """Orders that get another try whenever something changes: they wait for a seat, or may have more."""
        self._seatless: dict[Key, None] = {}
        """Orders without any seat: what they are told depends on the board."""
        for work in self.works.values():
            self._file(work)
        self._unwritten = {key for key, work in self.works.items() if not carries(work.order.plan, self.answers[key])}
        """Orders that do not carry the plan that they were told."""
        self._shuffled = {key for key in self.seating.moved if key not in self._unwritten}
        """Orders whose seats changed while their plan did not."""
        self._local = (
            not self.unreadable
            and not any(work.kept or work.outgoing for work in self.works.values())
            and all(len(device.nodes) <= 1 for device in self.inventory.devices)
        )
        """Orders can come and go without a look at all the others."""

    def classes(self) -> tuple[ClassVerdict, ...]:
        """As those of any planning: no way that is gone here changes a class."""
        return self._classes

    def result(self) -> Plan:
        """As that of any planning."""
        return Plan(
            orders=tuple(self.answers[key] for key in sorted(self.answers)),
            classes=self._classes,
            capacity=self.occupancy(),
        )

    def applied(self) -> Snapshot:
        """The snapshot with every plan written into its order."""
        others = [order for order in self.snapshot.orders if order.deleting or self._ends(order)]
        orders = [replace(work.order, plan=self.answers[key]) for key, work in self.works.items()]
        return replace(self.snapshot, orders=tuple(sorted((*others, *orders), key=lambda order: order.key)))

    def _ends(self, order: Order) -> bool:
        return order.key.namespace in self.snapshot.terminating_namespaces

    # --- the two ways to go on

    def follow(self, snapshot: Snapshot) -> bool:
        """Become the planning of `snapshot` by a step; False: it takes more, and this planning is good for nothing else
        than to be taken over from."""
        if not self._local or not self._differs_in_orders_only(snapshot):
            return False
        there = {order.key: order for order in snapshot.orders if not order.deleting and not self._ends(order)}
        gone = [key for key in self.works if key not in there]
        added = []
        for key, order in there.items():
            work = self.works.get(key)
            if work is None:
                added.append(order)
            elif work.order is order:
                if key in self._unwritten:
                    return False
            elif carries(order.plan, self.answers[key]) and _asks(order) == _asks(work.order):
                work.order = order
                if key in self._unwritten and not self._settle(work):
                    return False
            else:
                return False
        if not self._may_step(added, gone) or not self._settle_moved(gone):
            return False
        self._step(added, gone)
        self.snapshot = snapshot
        return True

    def change(self, added: Sequence[Order], gone: Sequence[Key]) -> Mapping[Key, OrderPlan] | None:
        """The plans that changed after orders came and went, all earlier ones being written; None: it takes more."""
        if not self._local or not self._may_step(added, gone):
            return None
        unwritten, self._unwritten = sorted(self._unwritten), set()  # anew: walking a set costs what it once held
        for key in unwritten:
            work = self.works[key]
            work.order = replace(work.order, plan=self.answers[key])
            if key not in gone and not self._settle(work):
                self._local = False
                return None
        if not self._settle_moved(gone):
            self._local = False
            return None
        return self._step(added, gone)

    def _settle_moved(self, gone: Sequence[Key]) -> bool:
        """Orders that lost a seat and got it back hold their seats in another order than their plan tells."""
        return all(self._settle(self.works[key]) for key in sorted(self._shuffled) if key not in gone)

    def _differs_in_orders_only(self, snapshot: Snapshot) -> bool:
        mine = self.snapshot
        if any(
            getattr(mine, name) != getattr(snapshot, name)
            for name in Snapshot.__dataclass_fields__
            if name not in IMMATERIAL
        ):
            return False
        return mine.claims == snapshot.claims or self.inventory.holds == inventory.holds_of(snapshot.claims)

    def _may_step(self, added: Sequence[Order], gone: Sequence[Key]) -> bool:
        """Nobody holds anything for those who come and go, and those who come have no plan that would be retained."""
        return all(key in self.works and key not in self._claimed for key in gone) and not any(
            order.key in self._claimed
            or (order.key in self.works and order.key not in gone)
            or (order.plan is not None and order.plan.decision is Decision.PLACED)
            for order in added
        )

    def _settle(self, work: Work) -> bool:
        """As the order would be retained from the plan that it carries now; False: not certain to be the same."""
        key, plan = work.order.key, self.answers[work.order.key]
        self._unwritten.discard(key)
        self._shuffled.discard(key)
        if plan.decision is not Decision.PLACED:
            work.offer, work.retained = None, False
            return not work.replicas
        if work.standing or work.offer is None or not self._stays(work, work.offer, plan):
            return False
        work.retained = True
        if len(work.replicas) == 1 and work.replicas[0].seat.devices == plan.devices:
            work.replicas[0].ordinal = 0
            nodes = self.seating.pinned(work, 0)
            return nodes is None or work.replicas[0].seat.node in nodes
        size = work.offer.wish.count
        by_devices: dict[tuple[DeviceId, ...], list[Replica]] = {}
        for replica in work.replicas:
            by_devices.setdefault(replica.seat.devices, []).append(replica)
        groups = [tuple(sorted(plan.devices[start : start + size])) for start in range(0, len(plan.devices), size)]
        if len(groups) != len(work.replicas) or not all(by_devices.get(group) for group in groups):
            return False
        work.replicas = [by_devices[group].pop() for group in groups]
        for number, replica in enumerate(work.replicas):
            nodes = self.seating.pinned(work, number)
            if nodes is not None and replica.seat.node not in nodes:
                return False
            replica.ordinal = number
        return True

    def _stays(self, work: Work, offer: Offer, plan: OrderPlan) -> bool:
        """The offer that retention would make of the plan is the one that it was planned by."""
        known = (id(work.considered), id(offer))  # both live as long as the candidates that made them
        if known not in self._same:
            self._same[known] = self.retention.previous_offer(work, plan, same=True) == offer
        return self._same[known]

    def _step(self, added: Sequence[Order], gone: Sequence[Key]) -> Mapping[Key, OrderPlan]:
        version = self.board.version
        self.seating.moved.clear()
        for key in gone:
            self._forget(key)
        fresh = []
        for order in added:
            work = self.works[order.key] = Work(order=order)
            self.retention.resolve(work, ())
            fresh.append(work)
        tried = sorted((*(self.works[key] for key in self._open), *fresh), key=lambda work: work.age)
        self._placed_anew = self.filling.entitled([work for work in tried if self.filling.missing(work) > 0])
        moved = (self.works[key] for key in self.seating.moved)  # donors may have room for what they gave up after all
        self.filling.elastic(list({work.order.key: work for work in (*tried, *moved)}.values()))
        again = {**self.seating.moved, **{work.order.key: None for work in fresh}}
        if self.board.version != version:
            again |= self._seatless
        told: dict[Key, OrderPlan] = {}
        for key in sorted(again):
            work = self.works[key]
            answer = self.answer(work)
            if self.answers.get(key) != answer:
                self.answers[key] = told[key] = answer
                self._unwritten.add(key)
            elif key in self.seating.moved:
                self._shuffled.add(key)
            self._file(work)
        return told

    def _forget(self, key: Key) -> None:
        work = self.works[key]
        while work.replicas:
            self.seating.unseat(work)
        for kept in (self.works, self.answers, self._open, self._seatless, self.seating.moved):
            kept.pop(key, None)
        self._unwritten.discard(key)
        self._shuffled.discard(key)

    def _file(self, work: Work) -> None:
        key = work.order.key
        hungry = work.offer is not None and not work.kept and work.least <= len(work.replicas) < work.most
        for kept, belongs in (
            (self._open, hungry or self.filling.missing(work) > 0),
            (self._seatless, not work.replicas and work.considered is not None),
        ):
            if belongs:
                kept[key] = None
            else:
                kept.pop(key, None)


def _asks(order: Order) -> Order:
    """What an order asks, whatever it was told and however many replicas run."""
    return replace(order, plan=None, replicas_wanted=None)


def carries(written: OrderPlan | None, told: OrderPlan) -> bool:
    """`written`, as it is read from a cluster, says what was told: seats and numbers of a refusal are not written."""
    return written is not None and (
        written == told or replace(written, seats=(), refusal=None) == replace(told, seats=(), refusal=None)
    )
