# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A planning that goes on: changed orders in, decisions out, by the procedure of `plan` on the board it left.

`Kept.plan` gives the answer of `plan.plan` to the same snapshot, byte by byte (a law says so), and pays for what
changed since the last one:

1. orders that came or went, and claims and model volumes of orders that keep their seats all the same (a planned
   replica came to life, a claim went after its order), while everybody else's plan stands as it was told: only they are
   considered, and whoever waits for room; the cluster is neither read nor walked;
2. any other change of orders, claims, classes, models or volumes: every order is retained and filled again, on the
   devices, verdicts and offers that are known;
3. changed devices, device classes, taints or nodes: all from the beginning.

Where it is not certain that a cheaper way gives the same answer, the next one is taken. `Kept.change` is the first way
alone, for whoever knows what changed: its decisions count as written the moment they are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner import inventory, launches, modelfacts, packing, recipe
from planner.candidates import Offer
from planner.dra import Amount, DeviceId
from planner.holders import Holders
from planner.inventory import Hold, Inventory
from planner.model import ClassVerdict, Decision, Key, Order, OrderPlan, Plan, Snapshot
from planner.plan import Planning
from planner.works import Replica, Work, order_of, standing, use_of

MOST_REMEMBERED: Final = 400_000
"""States and verdicts kept in mind before everything is begun anew (some 200 MiB)."""

FOLLOWED: Final = ("now", "orders", "claims", "volumes")
"""Parts of a snapshot that may differ from one step to the next: no decision reads the time."""

Sit = tuple[str, tuple[DeviceId, ...], tuple[tuple[str, Amount], ...] | None]
"""Node and devices of a replica, and how much it holds of each (None: all)."""


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
        self._claimed = self._labels()
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
        if not self._local or not self._devices_and_rules_stand(snapshot):
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
        if not self._settle_moved(gone):
            return False
        version = self._leave(gone)
        if not self._hold(snapshot) or not self._may_come(added):
            return False
        self._step(added, version)
        self.snapshot = snapshot
        return True

    def change(self, added: Sequence[Order], gone: Sequence[Key]) -> Mapping[Key, OrderPlan] | None:
        """The plans that changed after orders came and went, all earlier ones being written; None: it takes more."""
        if not self._local or any(key not in self.works for key in gone) or not self._may_come(added, gone):
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
        return self._step(added, self._leave(gone))

    def _settle_moved(self, gone: Sequence[Key]) -> bool:
        """Orders that lost a seat and got it back hold their seats in another order than their plan tells."""
        return all(self._settle(self.works[key]) for key in sorted(self._shuffled) if key not in gone)

    def _devices_and_rules_stand(self, snapshot: Snapshot) -> bool:
        mine = self.snapshot
        return all(
            getattr(mine, name) == getattr(snapshot, name)
            for name in Snapshot.__dataclass_fields__
            if name not in FOLLOWED
        )

    def _may_come(self, added: Sequence[Order], gone: Sequence[Key] = ()) -> bool:
        """Nobody holds anything for those who come, and they have no plan that would be retained."""
        return not any(
            order.key in self._claimed
            or (order.key in self.works and order.key not in gone)
            or (order.plan is not None and order.plan.decision is Decision.PLACED)
            for order in added
        )

    def _labels(self) -> frozenset[Key]:
        return frozenset(order for order in map(order_of, self.inventory.holds) if order is not None)

    def _hold(self, snapshot: Snapshot) -> bool:
        """Claims and model volumes are those of `snapshot`; False: somebody's seat is not certain to stay as it is.

        An order of which one changed is retained again, as in a planning of all: nobody is seated anew meanwhile, so
        everybody else would keep the seats that they have.
        """
        pinned = self.seating.pin(snapshot.volumes) if snapshot.volumes != self.snapshot.volumes else []
        if any(len(self.works[key].replicas) < self.works[key].most for key in pinned if key in self.works):
            return False  # where it may still go changed as well
        now = self.inventory
        if self.snapshot.claims != snapshot.claims:
            now = inventory.held_by(now, snapshot.claims)
        elif not pinned:
            return True
        old, new = _changed(self.inventory, now)
        orders = {*pinned, *(key for hold in (*old, *new) if (key := order_of(hold)) is not None)}
        was = {key: self.works[key] for key in sorted(orders) if key in self.works}
        if self._disputed((*old, *new)):
            return False
        uses = {hold.device: self.board.uses_of(hold.device) for hold in new}
        seats = {key: _sits(work) for key, work in was.items()}
        for work in was.values():
            self.seating.rise(work)
        for hold in old:
            self.board.give_back((hold.device,), use_of(hold), None, None)
        for hold in new:
            self.board.take((hold.device,), use_of(hold), None, None)
        if now is not self.inventory:
            self.inventory = self.board.inventory = now
            self.holders = Holders(self.seating)
            self._claimed = self._labels()
        # What a claim holds anew has to be what was planned for it: others may sit on the rest.
        return self._retain_again(was, seats) and all(self.board.uses_of(name) == use for name, use in uses.items())

    def _disputed(self, holds: Iterable[Hold]) -> bool:
        """Holders of some card of these holds need different sharing strategies: then it matters who came first."""
        needs: dict[str, set[str | None]] = {}
        for hold in holds:
            for device in self.board.neighbours(hold.device):
                stands, _ = self.board.ledger.strategies.get(device.card, (None, 0))
                others = (other.strategy for other in self.inventory.holders.get(device.id, ()))
                needs.setdefault(device.card, {None}).update((hold.strategy, stands, *others))
        return any(len(found) > 2 for found in needs.values())

    def _retain_again(self, was: Mapping[Key, Work], seats: Mapping[Key, Counter[Sit]]) -> bool:
        """Orders that rose sit again by their claims and plans; False: not all of them as before."""
        fresh = sorted((Work(order=work.order) for work in was.values()), key=lambda work: work.age)
        self.works |= {work.order.key: work for work in fresh}
        self._retain(fresh, standing([hold for hold in self.inventory.holds if order_of(hold) in was]))
        for work in fresh:
            key = work.order.key
            if work.kept or work.outgoing or work.offer != was[key].offer or _sits(work) != seats[key]:
                return False
            answer = self.answer(work)
            if self.answers[key] != answer:
                self.answers[key] = answer
            if carries(work.order.plan, answer):
                self._unwritten.discard(key)
            else:
                self._unwritten.add(key)
            self._shuffled.discard(key)
            self.seating.moved.pop(key, None)
            self._file(work)
        return True

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
        if Counter(groups) != {devices: len(replicas) for devices, replicas in by_devices.items()}:
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

    def _leave(self, gone: Sequence[Key]) -> int:
        """Orders go; the board's version before. What their claims hold stays held until the claims are gone."""
        version = self.board.version
        self.seating.moved.clear()
        for key in gone:
            self._forget(key)
        return version

    def _step(self, added: Sequence[Order], version: int) -> Mapping[Key, OrderPlan]:
        """The plans that changed once `added` came; `version` of the board, as it was when everybody was told."""
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
        self.seating.rise(self.works[key])
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


def _changed(before: Inventory, now: Inventory) -> tuple[list[Hold], list[Hold]]:
    """What claims held that hold something else now, and what those and new ones hold."""
    old, new = _by_claim(before.holds), _by_claim(now.holds)
    claims = [claim for claim in {**old, **new} if old.get(claim) != new.get(claim)]
    return [hold for claim in claims for hold, _ in old.get(claim, ())], [
        hold for claim in claims for hold, _ in new.get(claim, ())
    ]


def _by_claim(holds: Iterable[Hold]) -> dict[tuple[str, str], list[tuple[Hold, Key | None]]]:
    """What each claim (namespace, name) holds, and whose label it carries."""
    found: dict[tuple[str, str], list[tuple[Hold, Key | None]]] = {}
    for hold in holds:
        found.setdefault((hold.namespace, hold.claim), []).append((hold, order_of(hold)))
    return found


def _sits(work: Work) -> Counter[Sit]:
    """Where the order's replicas sit and what they hold, in no order."""
    return Counter((replica.seat.node, replica.seat.devices, replica.use.amounts) for replica in work.replicas)


def _asks(order: Order) -> Order:
    """What an order asks, whatever it was told and however many replicas run."""
    return replace(order, plan=None, replicas_wanted=None)


def carries(written: OrderPlan | None, told: OrderPlan) -> bool:
    """`written`, as it is read from a cluster, says what was told: seats and numbers of a refusal are not written."""
    return written is not None and (
        written == told or replace(written, seats=(), refusal=None) == replace(told, seats=(), refusal=None)
    )
