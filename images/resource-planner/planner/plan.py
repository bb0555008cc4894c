# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Runs the stages: a snapshot in, the plan of every order out.

The contract: a pure function of the snapshot (and the recipes of the shipped release). Standing placements are inputs:
retain first, then fill. In this order,

1. a replica that a claim already holds keeps its device; what was planned and not yet held keeps its device while it is
   free; an order whose facts cannot be judged any more keeps the plan it serves under (`retention`, which also says
   when this ends);
2. entitled replicas (the class's `minReplicas`) are placed: all of them, largest first, when all fit, else the oldest
   order first (`filling`);
3. elastic replicas get what is left, max-min fair; they never take what serves (`filling`);
4. every order is told its seats or why it has none (`answers`), every class its verdict (`verdicts`), and the capacity
   that results is reported (`occupancy`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner import explanation, inventory, launches, occupancy, recipe, resolution, verdicts, works
from planner.answers import Answerer
from planner.candidates import READ_FOR_PLACEMENT, Candidates, Judge
from planner.filling import Filling
from planner.holders import Holders
from planner.inventory import Inventory
from planner.model import CapacityReport, ClassVerdict, Holder, Key, OrderPlan, PackingReport, Plan, Refusal, Snapshot
from planner.placement import Board, Holding
from planner.retention import Retention
from planner.seating import Seating
from planner.works import Work

__all__ = ["Planning", "plan"]


def plan(snapshot: Snapshot, recipes: recipe.Recipes | None = None) -> Plan:
    """The answer to `snapshot`: the same for every order of its lists. `recipes` None: those of the shipped release.

    Orders being deleted and orders in namespaces being deleted get no plan; what their claims hold stays held. Raises
    `recipe.RecipeError` when the shipped recipes cannot be read, and nothing else for any input that `wire` can read.
    """
    return Planning(snapshot, recipes or launches.shipped()).result()


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
        half_read = {kind for kind, _ in self.known.spoilt} & {"ResourceClaim", "DeviceTaintRule"}
        self.unreadable = tuple(
            kind for kind in READ_FOR_PLACEMENT if kind in self.known.unreadable or kind in half_read
        )
        """Kinds without which nothing may be placed anew."""
        by_age = sorted(_works(snapshot), key=lambda work: work.age)
        self.works: dict[Key, Work] = {work.order.key: work for work in by_age}
        self.seating = Seating(self.board, self.works, snapshot.volumes)
        self.holders = Holders(self.seating)
        self.retention = Retention(self.known, self.candidates, self.seating, unreadable=self.unreadable)
        self.filling = Filling(self.seating, unreadable=self.unreadable)
        self.answerer = Answerer(self.candidates, self.explainer, self.seating, unreadable=self.unreadable)
        self._placed_anew: PackingReport | None = None
        self._decide(by_age)

    def reads_as(self, snapshot: Snapshot, recipes: recipe.Recipes) -> bool:
        """Devices, device classes and nodes of `snapshot` are those that this planning read."""
        mine = self.snapshot
        return recipes is self.recipes and all(
            getattr(mine, name) == getattr(snapshot, name)
            for name in ("kubernetes", "slices", "device_classes", "taint_rules", "nodes")
        )

    def _decide(self, by_age: Sequence[Work]) -> None:
        self._retain(by_age, works.standing(self.inventory.holds))
        self._placed_anew = self.filling.entitled([work for work in by_age if self.filling.missing(work) > 0])
        self.filling.elastic(by_age)

    def _retain(self, by_age: Sequence[Work], standing: Mapping[Key, Sequence[works.Standing]]) -> None:
        """Bring orders without any seat to where they stood; `standing`: their claims."""
        for work in by_age:
            self.retention.resolve(work, standing.get(work.order.key, ()))
        for work in by_age:
            self.retention.retain_held(work)
        for work in by_age:
            with self.seating.outgoing_gone(work):
                self.retention.retain_planned(work, work.least)
        for work in by_age:
            with self.seating.outgoing_gone(work):
                self.retention.retain_planned(work, work.most)
        for work in by_age:
            if work.retained and not work.replicas:
                # Nothing is left of what was planned and nothing serves: any offer will do again.
                work.offer, work.retained = None, False

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
        return tuple(
            verdicts.verdict(item, self.known, self.judge, unreadable=self.unreadable)
            for item in self.snapshot.service_classes
        )

    def answer(self, work: Work) -> OrderPlan:
        """The plan of one order."""
        return self.answerer.answer(work)

    def refusal(self, work: Work) -> Refusal:
        """Why the order has no seat."""
        return self.answerer.refusal(work)

    def occupancy(self) -> CapacityReport:
        """Every device with who sits on it, and what of each class is free on each node."""
        return occupancy.report(self.seating, self.known, self.judge)

    def capacity(self) -> CapacityReport:
        """The plan's capacity, and how far what is placed is from the fewest cards that could hold it."""
        fewest = occupancy.against_the_fewest(self.seating, self.snapshot.host_use)
        return replace(self.occupancy(), placed=self._placed_anew, standing=fewest)

    # --- who holds what

    def holdings(self) -> list[Holding]:
        """Everybody who holds something on the board: claims one by one, then planned replicas; a stable order."""
        return self.holders.holdings()

    def blocking(self, key: Key) -> tuple[Holder, ...]:
        """A minimal set of holders without whom the order would have a seat; empty: it has one, or no leaving helps."""
        return self.holders.blocking(key)


def _works(snapshot: Snapshot) -> list[Work]:
    """The orders that get a plan."""
    return [
        Work(order=order)
        for order in snapshot.orders
        if not order.deleting and order.key.namespace not in snapshot.terminating_namespaces
    ]
