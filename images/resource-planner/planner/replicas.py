# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How many replicas each order may have: what it is entitled to comes first, the rest is split max-min fair.

`split` gives out what is free and takes nothing from anybody. Capacity that moves between orders (donors, recipients)
enters here: as a second step over the same claimants, which changes hands only when the split strictly improves.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.model import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """An order that may have more: how many elastic replicas it has, and how many it may have at most."""

    key: Key
    age: tuple[str, Key]
    """A full sort key, older first."""
    elastic: int
    most: int


def split(claimants: Sequence[Claimant], grow: Callable[[Key], bool]) -> None:
    """Give elastic replicas one by one, always to the order that has the fewest; among equals to the older one.

    `grow` places one more replica of the order and says whether there was room; an order that was refused once is not
    asked again, since what is free only shrinks. The result is max-min fair: no order could have one more without
    taking it from one that has no more than it.
    """
    waiting = [(claimant.elastic, claimant.age, claimant.most, claimant.key) for claimant in claimants]
    heapq.heapify(waiting)
    while waiting:
        elastic, age, most, key = heapq.heappop(waiting)
        if elastic < most and grow(key):
            heapq.heappush(waiting, (elastic + 1, age, most, key))
