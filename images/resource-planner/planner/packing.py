# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The fewest cards that hold a batch of replicas, with the proof: how many cards any packing needs at least.

A card of some kind (its build and what already stands on it) can be filled in a limited number of ways. A *pattern* is
a largest such way: how many replicas of each wish fit together, by the positions and counters that the driver
publishes, or by the sums of shares. The packing is the integer program

    fewest newly opened cards, such that the chosen patterns hold every replica and no kind is used more than it exists

(Gilmore and Gomory's formulation of cutting stock). A card on which anything stands already costs nothing, and what
stands on it never moves. Before the program is solved a first-fit-decreasing packing is compared with the counting
bound; where they meet nothing is left to solve. Limits are counted in nodes, iterations and patterns, never in seconds,
and a limit that was hit is told: the bound stays true, only the packing may be larger than it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Final

PATTERNS: Final = 400
"""Largest ways to fill a card with shares that are written down; beyond, they are generated as the program asks."""

COLUMNS: Final = 6_000
"""Patterns of all kinds together in one program; beyond, it isn't solved."""

WISHES: Final = 200
"""Different wishes in one program; beyond, it isn't solved."""

STEPS: Final = 2_000
"""Steps of one search for the share pattern that improves the relaxation most; beyond, its bound is not told."""

NODES: Final = 400
"""Nodes of branch and bound for one program."""

ITERATIONS: Final = 20_000
"""Simplex iterations of one program."""

ROUNDS: Final = 12
"""Rounds in which patterns are generated for one program."""

STATES: Final = 60_000
"""Partial fillings of one kind of card that are looked at."""

Pattern = tuple[int, ...]
"""How many replicas of each wish, by the wish's number."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """A card that is given by positions: each takes what it consumes from what is free and can be held once."""

    free: tuple[int, ...]
    consumes: tuple[tuple[tuple[int, int], ...], ...]
    """Of each position (resource, amount); resources are places in `free`."""
    places: tuple[tuple[int, ...], ...]
    """Of each wish, the positions that grant it, in the scheduler's order."""


@dataclass(frozen=True, slots=True)
class Room:
    """A card that is given by shares: the amounts of its holders add up."""

    free: tuple[int, ...]
    amounts: tuple[tuple[int, ...] | None, ...]
    """Of each wish what one replica takes of each resource; None: it can't sit here."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Interchangeable cards: how many, whether something stands on them, and the ways to fill one."""

    cards: int
    opened: bool
    fills: tuple[Geometry | Room, ...]


@dataclass(frozen=True, slots=True)
class Filling:
    """`cards` cards of kind number `kind` that take `pattern` (or less) by way number `fill`."""

    kind: int
    fill: int
    pattern: Pattern
    cards: int


@dataclass(frozen=True, slots=True)
class Packing:
    """Where the replicas go, and how good that is proven to be."""

    fillings: tuple[Filling, ...]
    opened: int
    """Cards that get their first holder."""
    bound: int
    """No packing of these replicas opens fewer."""
    limited: str = ""
    """The limit that was hit, in words; empty: none."""

    @property
    def proven(self) -> bool:
        """No packing opens fewer cards than this one."""
        return self.opened == self.bound


def pack(kinds: Sequence[Kind], demand: Sequence[int], limits: Mapping[str, int] | None = None) -> Packing | None:
    """The packing of `demand` replicas of each wish on `kinds`; None: they don't all fit, or a limit left it open.

    Deterministic: equal arguments give equal packings. `limits` replaces NODES and ITERATIONS (`nodes`, `iterations`).
    """
    if not any(demand):
        return Packing((), 0, 0)
    wanted = tuple(demand)
    table = [tuple(_patterns(fill) for fill in kind.fills) for kind in kinds]
    whole = all(found.complete for row in table for found in row)
    columns: list[tuple[int, int, Pattern]] = []
    for number, row in enumerate(table):
        for way, found in enumerate(row):
            fill = kinds[number].fills[way]
            some = found.largest
            if not found.complete and isinstance(fill, Room):
                some = tuple(_first_columns(fill, found.most, wanted))
            columns += [
                (number, way, pattern)
                for pattern in some
                if any(have and want for have, want in zip(pattern, wanted, strict=True))
            ]
    least = max(_counting(kinds, table, wanted), _sums(kinds, wanted))
    quick = _decreasing(kinds, columns, wanted)
    if quick is not None and quick[1] <= least:
        return Packing(*_landing(kinds, columns, wanted, quick, limits or {}), least)
    if len(columns) > COLUMNS or len(wanted) > WISHES:
        limited = f"more than {COLUMNS} patterns or {WISHES} different wishes"
        return None if quick is None else Packing(quick[0], quick[1], least, limited)
    program = _Program(kinds, columns, wanted, limits or {})
    relaxed = program.relaxed(table, complete=whole)
    if relaxed is None:
        if program.limited and quick is not None:
            return Packing(quick[0], quick[1], least, program.limited)
        return None
    if relaxed.true_bound:
        least = max(least, relaxed.bound)
    if quick is not None and quick[1] <= least:
        return Packing(*_landing(kinds, columns, wanted, quick, limits or {}), least)
    solved = program.solved()
    best = quick
    if solved is not None and (best is None or solved[1] < best[1]):
        best = solved[0], solved[1]
    if whole and program.floor is not None:
        least = max(least, program.floor)
    if best is None:
        return None
    if best[1] <= least:
        best = _landing(kinds, columns, wanted, best, limits or {})
    limited = "" if best[1] <= least else program.limited or "patterns of shares are generated for the relaxation only"
    return Packing(best[0], best[1], min(least, best[1]), limited)


def _landing(
    kinds: Sequence[Kind],
    columns: Sequence[tuple[int, int, Pattern]],
    demand: Pattern,
    best: tuple[tuple[Filling, ...], int],
    limits: Mapping[str, int],
) -> tuple[tuple[Filling, ...], int]:
    """Another packing on as few cards whose every filling lands in whatever order the pods come; else `best`."""

    def safe(kind: int, way: int, pattern: Pattern) -> bool:
        fill = kinds[kind].fills[way]
        return isinstance(fill, Room) or lands(fill, pattern)

    if all(safe(item.kind, item.fill, item.pattern) for item in best[0]):
        return best
    kept: dict[tuple[int, int, Pattern], None] = {}
    for kind, way, pattern in columns:
        fill = kinds[kind].fills[way]
        parts = (pattern,) if isinstance(fill, Room) else _landing_parts(fill, pattern)
        kept.update(dict.fromkeys((kind, way, part) for part in parts))
    found = _decreasing(kinds, list(kept), demand)
    if found is None or found[1] > best[1]:
        found = _Program(kinds, list(kept), demand, limits).solved()
    return found if found is not None and found[1] <= best[1] else best


@lru_cache(maxsize=4096)
def _landing_parts(fill: Geometry, pattern: Pattern) -> tuple[Pattern, ...]:
    """The largest parts of `pattern` that land in every order."""
    found: dict[Pattern, None] = {}
    seen = {pattern}
    todo = [pattern]
    while todo:
        part = todo.pop()
        if lands(fill, part):
            found[part] = None
            continue
        for wish, count in enumerate(part):
            less = (*part[:wish], count - 1, *part[wish + 1 :])
            if count and less not in seen:
                seen.add(less)
                todo.append(less)
    return _largest(found)


# --- patterns


@dataclass(frozen=True, slots=True)
class Patterns:
    """The largest patterns of one way to fill a card; not `complete`: there may be others."""

    largest: tuple[Pattern, ...]
    complete: bool
    most: Pattern
    """Of each wish alone, how many fit."""


@lru_cache(maxsize=4096)
def _patterns(fill: Geometry | Room) -> Patterns:
    return _of_positions(fill) if isinstance(fill, Geometry) else _of_shares(fill)


def _of_positions(fill: Geometry) -> Patterns:
    """Every set of positions that can be held together, as counts; only those that no other one contains."""
    fitting = [
        (wish, place)
        for wish, places in enumerate(fill.places)
        for place in places
        if all(fill.free[resource] >= amount for resource, amount in fill.consumes[place])
    ]
    wishes = len(fill.places)
    reached: dict[Pattern, None] = {}
    seen: set[tuple[Pattern, tuple[int, ...], int]] = set()
    frontier: list[tuple[Pattern, tuple[int, ...], int, int]] = [((0,) * wishes, fill.free, 0, 0)]
    complete = True
    while frontier:
        counts, free, used, start = frontier.pop()
        reached[counts] = None
        if len(seen) > STATES:
            complete = False
            break
        for number in range(start, len(fitting)):
            wish, place = fitting[number]
            if used >> place & 1:
                continue
            left = _less(free, fill.consumes[place])
            if left is None:
                continue
            more = (*counts[:wish], counts[wish] + 1, *counts[wish + 1 :])
            key = (more, left, number)
            if key not in seen:
                seen.add(key)
                frontier.append((more, left, used | 1 << place, number + 1))
    most = tuple(max((pattern[wish] for pattern in reached), default=0) for wish in range(wishes))
    return Patterns(_largest(reached), complete, most)


def _less(free: tuple[int, ...], takes: tuple[tuple[int, int], ...]) -> tuple[int, ...] | None:
    left = list(free)
    for resource, amount in takes:
        left[resource] -= amount
        if left[resource] < 0:
            return None
    return tuple(left)


def _of_shares(fill: Room) -> Patterns:
    """Largest multisets of shares, by depth first; the larger shares first, so that a cut-off keeps the best ones."""
    amounts = fill.amounts
    most = tuple(
        0
        if each is None
        else min((have // take for have, take in zip(fill.free, each, strict=True) if take), default=0)
        for each in amounts
    )
    order = sorted((wish for wish, count in enumerate(most) if count), key=lambda wish: (_weight(fill, wish), wish))
    order.reverse()
    found: list[Pattern] = []
    complete = True
    counts = [0] * len(amounts)

    def fits(free: tuple[int, ...], wish: int) -> int:
        each = amounts[wish]
        assert each is not None
        return min((have // take for have, take in zip(free, each, strict=True) if take), default=0)

    def descend(position: int, free: tuple[int, ...]) -> bool:
        if len(found) >= PATTERNS:
            return False
        if position == len(order):
            if any(counts) and not any(fits(free, wish) for wish in order):
                found.append(tuple(counts))
            return True
        wish = order[position]
        each = amounts[wish]
        assert each is not None
        last = position == len(order) - 1
        top = fits(free, wish)
        for count in range(top, top - 1 if last else -1, -1):
            counts[wish] = count
            left = tuple(have - count * take for have, take in zip(free, each, strict=True))
            if not descend(position + 1, left):
                counts[wish] = 0
                return False
        counts[wish] = 0
        return True

    if order:
        complete = descend(0, fill.free)
    return Patterns(tuple(found) if complete else (), complete, most)


def _first_columns(fill: Room, most: Pattern, demand: Pattern) -> list[Pattern]:
    """Patterns to start from where not all are known: those of first fit decreasing, and each wish alone."""
    order = [wish for wish, count in enumerate(most) if count and demand[wish]]
    order.sort(key=lambda wish: (-_weight(fill, wish), wish))
    cards: list[tuple[list[int], list[int]]] = []
    for wish in order:
        left = demand[wish]
        each = fill.amounts[wish]
        assert each is not None
        for free, counts in cards:
            fits = min((have // take for have, take in zip(free, each, strict=True) if take), default=0)
            count = min(fits, left)
            if count:
                left -= count
                counts[wish] += count
                free[:] = [have - count * take for have, take in zip(free, each, strict=True)]
        while left:
            count = min(most[wish], left)
            left -= count
            counts = [0] * len(most)
            counts[wish] = count
            cards.append(([have - count * take for have, take in zip(fill.free, each, strict=True)], counts))
    alone = [tuple(most[wish] if wish == other else 0 for other in range(len(most))) for wish in order]
    return list(dict.fromkeys([*(tuple(counts) for _, counts in cards), *alone]))


def _weight(fill: Room, wish: int) -> Fraction:
    each = fill.amounts[wish]
    assert each is not None
    return max((Fraction(take, have) for have, take in zip(fill.free, each, strict=True) if have), default=Fraction(0))


def _largest(patterns: Mapping[Pattern, None]) -> tuple[Pattern, ...]:
    """Those that no other one contains, in falling order."""
    kept: list[Pattern] = []
    for pattern in sorted(patterns, key=lambda item: (-sum(item), item)):
        if any(pattern) and not any(all(one <= two for one, two in zip(pattern, other, strict=True)) for other in kept):
            kept.append(pattern)
    return tuple(sorted(kept, reverse=True))


# --- bounds and quick packings


def _counting(kinds: Sequence[Kind], table: Sequence[Sequence[Patterns]], demand: Pattern) -> int:
    """A bound by counting, one wish at a time: what cards in use can't take needs new ones."""
    least = 0
    for wish, wanted in enumerate(demand):
        left, most = wanted, 0
        for kind, row in zip(kinds, table, strict=True):
            here = max((found.most[wish] for found in row), default=0)
            if kind.opened:
                left -= here * kind.cards
            else:
                most = max(most, here)
        if left > 0 and most:
            least = max(least, -(-left // most))
    if not any(kind.opened for kind in kinds):
        least = max(least, 1)
    return least


def _sums(kinds: Sequence[Kind], demand: Pattern) -> int:
    """A bound for shares by each resource alone: what all ask, less what cards in use have, over what a new one has."""
    rooms = [(kind, fill) for kind in kinds for fill in kind.fills if isinstance(fill, Room)]
    width = len(rooms[0][1].free) if rooms else 0
    alike = all(len(kind.fills) == 1 and isinstance(kind.fills[0], Room) for kind in kinds)
    if not alike or any(len(fill.free) != width for _, fill in rooms):
        return 0
    least = 0
    for resource in range(width):
        most = max((fill.free[resource] for kind, fill in rooms if not kind.opened), default=0)
        each = [
            min((fill.amounts[wish][resource] for _, fill in rooms if fill.amounts[wish] is not None), default=0)  # type: ignore[index]
            for wish in range(len(demand))
        ]
        asked = sum(want * take for want, take in zip(demand, each, strict=True))
        free = sum(fill.free[resource] * kind.cards for kind, fill in rooms if kind.opened)
        if most and asked > free:
            least = max(least, -(-(asked - free) // most))
        if most and not free:
            least = max(least, sum(want for want, take in zip(demand, each, strict=True) if 2 * take > most))
    return least


def _decreasing(
    kinds: Sequence[Kind], columns: Sequence[tuple[int, int, Pattern]], demand: Pattern
) -> tuple[tuple[Filling, ...], int] | None:
    """Cards in use first, then new ones, each time the pattern that holds most of what is hardest to seat."""
    alone = [max((pattern[wish] for _, _, pattern in columns), default=0) for wish in range(len(demand))]
    if any(want and not most for want, most in zip(demand, alone, strict=True)):
        return None
    worth = [1 / most if most else 0.0 for most in alone]
    left, spare = list(demand), [kind.cards for kind in kinds]
    fillings: list[Filling] = []
    opened = 0
    while any(left):
        best: tuple[tuple[bool, float, int], int] | None = None
        for number, (kind, _, pattern) in enumerate(columns):
            if not spare[kind]:
                continue
            value = sum(worth[wish] * min(have, left[wish]) for wish, have in enumerate(pattern) if have)
            key = (kinds[kind].opened, value, -sum(pattern))
            if value and (best is None or key > best[0]):
                best = key, number
        if best is None:
            return None
        kind, way, pattern = columns[best[1]]
        times = spare[kind]
        for wish, have in enumerate(pattern):
            if have and left[wish] >= have:
                times = min(times, left[wish] // have)
            elif have and left[wish]:
                times = 1
        times = max(times, 1)
        spare[kind] -= times
        for wish, have in enumerate(pattern):
            left[wish] = max(left[wish] - have * times, 0)
        opened += 0 if kinds[kind].opened else times
        fillings.append(Filling(kind, way, pattern, times))
    return tuple(fillings), opened


# --- the program


@dataclass(frozen=True, slots=True)
class _Relaxed:
    bound: int
    true_bound: bool
    """It bounds every packing, not only those of the patterns at hand."""


def solver() -> Any:
    """The solver's library. Loading it takes 0.1 s: not before something is to be solved, or is about to be."""
    from highspy import _core  # the public wrapper adds call-backs only, and prints a banner to stdout

    return _core


class _Program:
    """The integer program over HiGHS; one thread, one seed, limits in nodes and iterations."""

    def __init__(
        self,
        kinds: Sequence[Kind],
        columns: list[tuple[int, int, Pattern]],
        demand: Pattern,
        limits: Mapping[str, int],
    ) -> None:
        self.kinds = kinds
        self.columns = list(columns)
        self.demand = demand
        self.limits = limits
        self.limited = ""
        self.floor: int | None = None
        self.exact = True
        """Every search for a better pattern came to its end."""
        self._known = set(columns)

    def _model(self) -> Any:
        model: Any = solver()._Highs()
        for name, value in (
            ("output_flag", False),
            ("threads", 1),
            ("random_seed", 0),
            ("parallel", "off"),
            ("mip_max_nodes", self.limits.get("nodes", NODES)),
            ("simplex_iteration_limit", self.limits.get("iterations", ITERATIONS)),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", 0.999),
        ):
            model.setOptionValue(name, value)
        infinity = float("inf")
        rows = [wish for wish, want in enumerate(self.demand) if want]
        for wish in rows:
            model.addRow(float(self.demand[wish]), infinity, 0, [], [])
        for kind in self.kinds:
            model.addRow(-infinity, float(kind.cards), 0, [], [])
        for column in self.columns:
            self._add(model, rows, column)
        return model

    def _add(self, model: Any, rows: Sequence[int], column: tuple[int, int, Pattern]) -> None:
        kind, _, pattern = column
        entries = [(row, pattern[wish]) for row, wish in enumerate(rows) if pattern[wish]]
        entries.append((len(rows) + kind, 1))
        model.addCol(
            0.0 if self.kinds[kind].opened else 1.0,
            0.0,
            float(self.kinds[kind].cards),
            len(entries),
            [row for row, _ in entries],
            [float(value) for _, value in entries],
        )

    def relaxed(self, table: Sequence[Sequence[Patterns]], *, complete: bool) -> _Relaxed | None:
        """The bound of the linear relaxation, patterns of shares generated until none improves it; None: no packing."""
        highspy = solver()
        model = self._model()
        for _ in range(ROUNDS):
            model.run()
            status = model.getModelStatus()
            if status == highspy.HighsModelStatus.kIterationLimit:
                self.limited = f"{self.limits.get('iterations', ITERATIONS)} simplex iterations"
                return None
            if status != highspy.HighsModelStatus.kOptimal:
                return None
            value = model.getInfo().objective_function_value
            bound = ceil(value - 1e-6)
            if complete:
                return _Relaxed(bound, True)
            if not self._generated(model, table):
                return _Relaxed(bound, self.exact and self._exact(table))
        self.limited = f"{ROUNDS} rounds of patterns"
        return _Relaxed(0, False)

    def _exact(self, table: Sequence[Sequence[Patterns]]) -> bool:
        """Patterns that aren't complete are all of shares, for which the pricing is exact."""
        return all(
            found.complete or isinstance(fill, Room)
            for kind, row in zip(self.kinds, table, strict=True)
            for fill, found in zip(kind.fills, row, strict=True)
        )

    def _generated(self, model: Any, table: Sequence[Sequence[Patterns]]) -> bool:
        """Add the pattern of each kind that would improve the relaxation most; False: none does."""
        rows = [wish for wish, want in enumerate(self.demand) if want]
        duals = list(model.getSolution().row_dual)
        worth = [0.0] * len(self.demand)
        for row, wish in enumerate(rows):
            worth[wish] = max(duals[row], 0.0)
        added = False
        for number, (kind, ways) in enumerate(zip(self.kinds, table, strict=True)):
            price = (0.0 if kind.opened else 1.0) - duals[len(rows) + number]
            for way, (fill, found) in enumerate(zip(kind.fills, ways, strict=True)):
                if found.complete or not isinstance(fill, Room):
                    continue
                pattern, whole = _knapsack(fill, worth, self.demand)
                self.exact = self.exact and whole
                value = sum(worth[wish] * count for wish, count in enumerate(pattern))
                column = (number, way, pattern)
                if value > price + 1e-7 and column not in self._known:
                    self._known.add(column)
                    self.columns.append(column)
                    self._add(model, rows, column)
                    added = True
        return added

    def solved(self) -> tuple[tuple[Filling, ...], int] | None:
        """The best packing by the patterns at hand within the limits; `floor` is the bound that its search proved."""
        highspy = solver()
        model = self._model()
        for column in range(len(self.columns)):
            model.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        model.run()
        status = model.getModelStatus()
        info = model.getInfo()
        if status == highspy.HighsModelStatus.kOptimal:
            self.floor = round(info.objective_function_value)
        else:
            self.limited = f"{self.limits.get('nodes', NODES)} nodes"
            if 0 < info.mip_dual_bound < float("inf"):  # infinite: not even a fraction of the patterns fits
                self.floor = ceil(info.mip_dual_bound - 1e-6)
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        values = model.getSolution().col_value
        fillings = tuple(
            Filling(*column, cards)
            for column, value in zip(self.columns, values, strict=True)
            if (cards := round(value)) > 0
        )
        return fillings, sum(item.cards for item in fillings if not self.kinds[item.kind].opened)


def _knapsack(fill: Room, worth: Sequence[float], demand: Pattern) -> tuple[Pattern, bool]:
    """The pattern of most worth that the room holds, and whether the search came to its end (`STEPS`).

    Depth first, cut where what is free can't hold enough worth of any resource.
    """
    wishes = [w for w, each in enumerate(fill.amounts) if each is not None and worth[w] > 1e-9 and demand[w]]

    def weight(wish: int) -> float:
        return max(float(_weight(fill, wish)), 1e-12)

    wishes.sort(key=lambda wish: (-worth[wish] / weight(wish), wish))
    best_value = 0.0
    best = [0] * len(worth)
    counts = [0] * len(worth)
    steps = 0

    def bound(position: int, free: tuple[int, ...]) -> float:
        """No filling of what is free is worth more: worth per part of each resource, the scarcest counts."""
        tightest = float("inf")
        for resource, have in enumerate(free):
            dense = 0.0
            for wish in wishes[position:]:
                each = fill.amounts[wish]
                assert each is not None
                if not each[resource]:
                    dense = float("inf")
                    break
                dense = max(dense, worth[wish] / each[resource])
            tightest = min(tightest, dense * have)
        return tightest

    def descend(position: int, free: tuple[int, ...], value: float) -> None:
        nonlocal best_value, best, steps
        steps += 1
        if steps > STEPS:
            return
        if value > best_value + 1e-12:
            best_value, best = value, counts.copy()
        if position == len(wishes) or value + bound(position, free) <= best_value + 1e-9:
            return
        wish = wishes[position]
        each = fill.amounts[wish]
        assert each is not None
        top = min((have // take for have, take in zip(free, each, strict=True) if take), default=0)
        for count in range(min(top, demand[wish]), -1, -1):
            counts[wish] = count
            left = tuple(have - count * take for have, take in zip(free, each, strict=True))
            descend(position + 1, left, value + count * worth[wish])
        counts[wish] = 0

    descend(0, fill.free, 0.0)
    return tuple(best), steps <= STEPS


def arrangement(fill: Geometry, wanted: Sequence[int]) -> tuple[tuple[int, int], ...] | None:
    """(wish, position) of `wanted` replicas of each wish on one card; None: they don't fit together.

    First as the scheduler would itself place them if the largest came first: the first position that fits. Only where
    that leads nowhere any other positions.
    """
    order = sorted(
        (wish for wish, count in enumerate(wanted) if count),
        key=lambda wish: (
            -max(sum(amount for _, amount in fill.consumes[place]) for place in fill.places[wish])
            if fill.places[wish]
            else 0,
            wish,
        ),
    )
    todo = [wish for wish in order for _ in range(wanted[wish])]

    def seat(number: int, free: tuple[int, ...], used: int, after: int) -> tuple[tuple[int, int], ...] | None:
        if number == len(todo):
            return ()
        wish = todo[number]
        same = number > 0 and todo[number - 1] == wish
        for rank, place in enumerate(fill.places[wish]):
            if used >> place & 1 or (same and rank <= after):
                continue
            left = _less(free, fill.consumes[place])
            if left is None:
                continue
            rest = seat(number + 1, left, used | 1 << place, rank)
            if rest is not None:
                return ((wish, place), *rest)
        return None

    return seat(0, fill.free, 0, -1)


@lru_cache(maxsize=65536)
def lands(fill: Geometry, wanted: Pattern) -> bool:
    """Whatever the order in which the pods come, the scheduler's first fit seats all of `wanted` on one card.

    The scheduler takes the first position that fits; a request names card and profile, never the position. So a filling
    lands as a whole only if every order of arrival ends with everybody seated.
    """
    good: set[tuple[tuple[int, ...], int, tuple[int, ...]]] = set()

    def every(left: tuple[int, ...], used: int, free: tuple[int, ...]) -> bool:
        key = (left, used, free)
        if key in good:
            return True
        for wish, count in enumerate(left):
            if not count:
                continue
            for place in fill.places[wish]:
                rest = None if used >> place & 1 else _less(free, fill.consumes[place])
                if rest is not None:
                    fewer = (*left[:wish], count - 1, *left[wish + 1 :])
                    if not every(fewer, used | 1 << place, rest):
                        return False
                    break
            else:
                return False
        good.add(key)
        return True

    return every(wanted, 0, fill.free)
