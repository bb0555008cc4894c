# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Who holds what on the board, claims and planned replicas alike, and who would have to leave for an order to fit."""

from __future__ import annotations

from collections.abc import Iterable

from planner import explanation
from planner.inventory import Device, Hold
from planner.model import Holder, Key
from planner.placement import Holding
from planner.seating import Seating
from planner.works import Replica, order_of, use_of


class Holders:
    """Everybody who holds something, by device and by claim."""

    def __init__(self, seating: Seating) -> None:
        self._seating = seating
        self._works = seating.works
        self._inventory = seating.board.inventory
        self._holds_of: dict[tuple[str, str], list[Hold]] = {}
        """What a claim (namespace, name) holds."""
        for hold in self._inventory.holds:
            self._holds_of.setdefault((hold.namespace, hold.claim), []).append(hold)

    def holdings(self) -> list[Holding]:
        """Everybody who holds something on the board: claims one by one, then planned replicas; a stable order."""
        published = sorted(
            claim
            for claim, holds in self._holds_of.items()
            if any(hold.device in self._inventory.by_id for hold in holds)
        )
        found = [self._claim_holding(*claim) for claim in published]
        for key in sorted(self._works):
            found += [
                _planned_holding(key, replica) for replica in self._works[key].replicas if not replica.seat.standing
            ]
        return found

    def blocking(self, key: Key) -> tuple[Holder, ...]:
        """A minimal set of holders without whom the order would have a seat; empty: it has one, or no leaving helps."""
        work = self._works[key]
        if work.replicas or work.considered is None or not work.considered.offers:
            return ()
        return explanation.blocking_set(
            self._seating.board, work.considered.offers, self._holders_on, self._seating.pinned(work, 0)
        )

    def _holders_on(self, devices: Iterable[Device]) -> list[Holding]:
        """Everybody who holds one of `devices` on the board: claims by name, then planned replicas; a stable order."""
        claims: dict[tuple[str, str], None] = {}
        planned: dict[int, tuple[Key, Replica]] = {}
        for device in devices:
            for hold in self._inventory.holders.get(device.id, ()):
                claims.setdefault((hold.namespace, hold.claim))
            for key, replica in self._seating.seated_on(device.id):
                planned.setdefault(id(replica), (key, replica))
        found = [self._claim_holding(*claim) for claim in sorted(claims)]
        seated = sorted(planned.values(), key=lambda item: (item[0], item[1].ordinal))
        return [*found, *(_planned_holding(key, replica) for key, replica in seated)]

    def _claim_holding(self, namespace: str, claim: str) -> Holding:
        holds = [hold for hold in self._holds_of[namespace, claim] if hold.device in self._inventory.by_id]
        devices = tuple(sorted(hold.device for hold in holds))
        order = order_of(holds[0])
        mine = order if order in self._works else None
        seat = None
        if mine is not None:
            seat = next(
                (replica for replica in self._works[mine].replicas if replica.seat.standing and replica.claim == claim),
                None,
            )
        return Holding(
            holder=Holder(name=str(mine) if mine else f"{namespace}/{claim}", order=mine, devices=devices),
            parts=tuple((hold.device, use_of(hold)) for hold in holds),
            node=seat.seat.node or None if seat else None,
            host=seat.host if seat else None,
        )


def _planned_holding(key: Key, replica: Replica) -> Holding:
    return Holding(
        holder=Holder(name=str(key), order=key, devices=replica.seat.devices),
        parts=tuple((name, replica.use) for name in replica.seat.devices),
        node=replica.seat.node,
        host=replica.host,
    )
