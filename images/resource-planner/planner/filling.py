# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Seats for replicas that have none: what orders are entitled to first, then what is left.

Entitled replicas are placed all of them on the fewest cards (`batch`), else largest first when all fit, else the oldest
order first; a seat that is only reserved for an elastic replica is given up for an entitled one. Elastic replicas get
what is left, max-min fair (`replicas`). Nothing here takes what serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner import batch, replicas
from planner.candidates import Offer
from planner.model import Key, PackingReport
from planner.placement import Wish
from planner.seating import Seating
from planner.units import UNKNOWN
from planner.works import Replica, Work


class Filling:
    """Places replicas through `seating`; whatever is tried and does not fit is unseated again."""

    def __init__(self, seating: Seating, *, unreadable: Sequence[str]) -> None:
        """`unreadable`: kinds without which nothing may be placed anew."""
        self._seating = seating
        self._board = seating.board
        self._inventory = seating.board.inventory
        self._unreadable = unreadable

    def missing(self, work: Work) -> int:
        """Entitled replicas without a seat, of an order that may get some."""
        if work.resolved is None or work.kept or self._unreadable or work.considered is None:
            return 0
        if work.considered.blocked is not None and not work.retained:
            return 0
        return max(work.least - len(work.replicas), 0) if work.considered.offers or work.offer else 0

    def entitled(self, works: Sequence[Work]) -> PackingReport | None:
        """On the fewest cards if all fit so; else largest first; if one finds no room then, oldest first instead.

        How well it was packed comes back; None: nothing was missing. `works` are in order of age.
        """
        packed = sorted(works, key=lambda work: (self._size(work), work.order.key))
        replicas_missing = sum(self.missing(work) for work in packed)
        if not replicas_missing:
            return None
        seated = {work.order.key: len(work.replicas) for work in works}
        found = self._at_once(packed) if replicas_missing > 1 else batch.NoBatch("one replica")
        if isinstance(found, batch.NoBatch):
            self._one_by_one(works, packed)
        new = [replica for work in packed for replica in work.replicas[seated[work.order.key] :]]
        opened = self._board.alone_on(name for replica in new for name in replica.seat.devices)
        bound = None
        limited = (found.reason,) if isinstance(found, batch.NoBatch) else found.limited
        if isinstance(found, batch.Batch) or not opened:
            bound = found.bound if isinstance(found, batch.Batch) else 0
        return PackingReport(replicas=len(new), cards=opened, bound=bound, limited=limited)

    def elastic(self, works: Sequence[Work]) -> None:
        """Give what is left to orders that may have more than they are entitled to, max-min fair."""
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
        replicas.split(claimants, lambda key: self._place(self._seating.works[key], 1) == 0)

    def _at_once(self, works: Sequence[Work]) -> batch.Batch | batch.NoBatch:
        """All of `works` on the fewest cards that hold them by their first offers; NoBatch: nothing was changed.

        Those that no packing can judge come first, one by one: replicas of several devices, or held by their volume.
        """
        marks = _marked(works)
        apart = [work for work in works if not self._packable(work)]
        found: batch.Batch | batch.NoBatch = batch.NoBatch("a replica that is placed by itself has no room")
        if not any(self._place(work, self.missing(work)) for work in apart):
            found = self._packed([work for work in works if self.missing(work) > 0])
        if isinstance(found, batch.NoBatch):
            self._undo(works, marks)
        elif apart:
            return replace(found, bound=0, limited=(*found.limited, "replicas of several devices, or held by a volume"))
        return found

    def _undo(self, works: Sequence[Work], marks: Mapping[Key, tuple[Offer | None, int]]) -> None:
        """Bring orders back to their marks."""
        for work in works:
            offer, before = marks[work.order.key]
            self._unseat_to(work, before)
            work.offer = offer

    def _unseat_to(self, work: Work, count: int) -> None:
        while len(work.replicas) > count:
            self._seating.unseat(work)

    def _packable(self, work: Work) -> bool:
        """Its replicas take one device each, any of the offer's shapes, on any node."""
        if work.outgoing or self._seating.has_volumes(work.order.key):
            return False
        offers = (work.offer,) if work.offer is not None else work.considered.offers[:1] if work.considered else ()
        return all(offer.wish.count == 1 and offer.wish.members is None for offer in offers)

    def _packed(self, works: Sequence[Work]) -> batch.Batch | batch.NoBatch:
        together: list[tuple[Work, tuple[Offer, ...], Wish]] = []
        alike: dict[tuple[int, int, int], tuple[tuple[Offer, ...], Wish]] = {}
        for work in works:
            about = id(work.offer), id(work.considered), self.missing(work)
            if about not in alike:
                offers = self._alike_offers(work)
                shapes = frozenset(shape for offer in offers for shape in offer.wish.shapes)
                alike[about] = offers, replace(offers[0].wish, shapes=shapes)
            together.append((work, *alike[about]))
        demand: dict[Wish, int] = {}
        for work, _, wish in together:
            demand[wish] = demand.get(wish, 0) + self.missing(work)
        found = batch.seat(self._board, list(demand), list(demand.values()))
        if isinstance(found, batch.NoBatch):
            return found
        seats = {wish: iter(row) for wish, row in zip(demand, found.seats, strict=True)}
        for work, offers, wish in together:
            for _ in range(self.missing(work)):
                seat = next(seats[wish])
                shape = self._inventory.by_id[seat.devices[0]].shape
                work.offer = next(offer for offer in offers if shape in offer.wish.shapes)
                self._seating.seat(work, seat, self._seating.next_ordinal(work))
        return found

    def _alike_offers(self, work: Work) -> tuple[Offer, ...]:
        """The first offer, and for a single replica those of its rank that hold a device in the same way."""
        if work.offer is not None:
            return (work.offer,)
        assert work.considered is not None
        offers = work.considered.offers
        if self.missing(work) > 1:
            return (next((offer for offer in self._ranked(work) if offer.wish.members is None), offers[0]),)
        return tuple(
            offer
            for offer in offers
            if offer.rank == offers[0].rank and replace(offer.wish, shapes=offers[0].wish.shapes) == offers[0].wish
        )

    def _one_by_one(self, works: Sequence[Work], packed: Sequence[Work]) -> None:
        marks = _marked(packed)
        complete = True
        for work in packed:
            if self._place(work, self.missing(work)) > 0:
                complete = False
                break
        if complete:
            return
        self._undo(packed, marks)
        had = {work.order.key: len(work.replicas) for work in works}
        for work in works:
            self._place(work, self.missing(work))
        self._repack([work for work in packed if len(work.replicas) > had[work.order.key]], had)
        for work in works:
            left = self._place(work, self.missing(work))
            if left > 0:
                self._place_instead(work, left)

    def _repack(self, works: Sequence[Work], had: Mapping[Key, int]) -> None:
        """The same orders again, largest first: who is served stays, more room may be left for those who are not."""
        before = {work.order.key: (work.offer, list(work.replicas)) for work in works}

        def clear() -> None:
            for work in works:
                self._unseat_to(work, had[work.order.key])
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
                self._seating.seat(work, replica.seat, replica.ordinal)

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
        with self._seating.outgoing_gone(work):
            return self._place_within(work, wanted)

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
                self._seating.unseat(work)
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
        nodes = self._seating.pinned(work, self._seating.next_ordinal(work))
        start = 0
        while start < len(offers):
            end = start
            while end < len(offers) and offers[end].rank == offers[start].rank:
                end += 1
            scored = []
            for place in range(start, end):
                found = self._board.find(offers[place].wish, nodes)
                if found is not None:
                    scored.append((found[0], place))
            yield from (offers[place] for _, place in sorted(scored))
            start = end

    def _place_by(self, work: Work, offer: Offer, wanted: int) -> int:
        before = work.offer
        work.offer = offer
        for placed in range(wanted):
            ordinal = self._seating.next_ordinal(work)
            found = self._board.find(offer.wish, self._seating.pinned(work, ordinal))
            if found is None:
                if placed == 0:
                    work.offer = before
                return placed
            self._seating.seat(work, found[1], ordinal)
        return wanted

    def _place_instead(self, work: Work, wanted: int) -> None:
        """Place entitled replicas on what is only reserved: elastic seats of others that nobody holds yet.

        The fewest reservations that suffice are given up, from the order with the most elastic replicas.
        """
        for _ in range(wanted):
            donors = sorted(
                (
                    donor
                    for donor in (self._seating.works[key] for key in self._seating.generous)
                    if donor is not work and len(donor.replicas) > donor.least and not donor.replicas[-1].seat.standing
                ),
                key=lambda donor: (-(len(donor.replicas) - donor.least), donor.age),
            )
            released: list[tuple[Work, Replica]] = []
            done = False
            for donor in donors:
                while len(donor.replicas) > donor.least and not donor.replicas[-1].seat.standing and not done:
                    replica = donor.replicas[-1]
                    self._seating.unseat(donor)
                    released.append((donor, replica))
                    done = self._place(work, 1) == 0
                if done:
                    break
            for donor, replica in reversed(released):
                # Given back where it still fits; what the entitled replica needed stays given up.
                if self._seating.all_fit(replica.seat.devices, replica.use):
                    self._seating.sit(donor, replica)
            if not done:
                return


def _marked(works: Sequence[Work]) -> dict[Key, tuple[Offer | None, int]]:
    """The offer and the number of replicas of each order, to come back to."""
    return {work.order.key: (work.offer, len(work.replicas)) for work in works}
