# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The records of a planning: an order while its plan is being made, its replicas, and the claims that stand for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.candidates import Considered, Offer, Question
from planner.dra import DeviceId
from planner.inventory import Hold
from planner.model import ORDER_LABEL, HostResources, Key, Order, Seat
from planner.placement import Use
from planner.resolution import Resolved, Unresolved


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


def order_of(hold: Hold) -> Key | None:
    """The order that the claim is labelled with; None: nobody's of ours."""
    name = hold.labels.get(ORDER_LABEL)
    return Key(namespace=hold.namespace, name=name) if name else None


def use_of(hold: Hold) -> Use:
    """How the claim holds the device: whole, or these amounts of it."""
    return Use(None if hold.amounts is None else tuple(sorted(hold.amounts.items())), hold.strategy)


def ordinal_of(name: str) -> int | None:
    """The number that the name of a pod or volume ends with; None: it has none."""
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isdigit() else None


def standing(holds: Sequence[Hold]) -> dict[Key, tuple[Standing, ...]]:
    """Claims of orders that hold devices, by order and claim."""
    by_claim: dict[tuple[Key, str], list[Hold]] = {}
    for hold in holds:
        order = order_of(hold)
        if order is not None:
            by_claim.setdefault((order, hold.claim), []).append(hold)
    found: dict[Key, list[Standing]] = {}
    for (key, claim), items in sorted(by_claim.items()):
        if len({use_of(item) for item in items}) > 1:
            continue  # our template asks for devices alike: this was written by somebody else under our label
        found.setdefault(key, []).append(
            Standing(
                claim=claim,
                pod=items[0].owner_pod,
                devices=tuple(sorted(item.device for item in items)),
                use=use_of(items[0]),
            )
        )
    return {key: tuple(items) for key, items in found.items()}
