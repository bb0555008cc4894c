# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Who sits where: planned replicas take their seats on the board and give them back.

Everything that seats or unseats a replica goes through here, so that it is always known who sits on a device and who
has more than the order is entitled to. Which seat is a good one is not asked here: `filling` and `retention` choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from planner.dra import DeviceId
from planner.model import Key, Seat, Volume
from planner.placement import Board, Use
from planner.works import Replica, Work, ordinal_of


class Seating:
    """The seats of all orders. `works` is shared with the planning: orders that come later are seated as well."""

    def __init__(self, board: Board, works: Mapping[Key, Work], volumes: Iterable[Volume]) -> None:
        self.board = board
        self.works = works
        self.generous: dict[Key, None] = {}
        """Orders with planned seats above what they are entitled to."""
        self.moved: dict[Key, None] = {}
        """Orders that got or lost a seat since somebody last cleared this."""
        self._seated: dict[DeviceId, list[tuple[Key, Replica]]] = {}
        self._volumes: dict[Key, dict[int, frozenset[str]]] = {}
        self.pin(volumes)

    def pin(self, volumes: Iterable[Volume]) -> list[Key]:
        """The standing model volumes are these; orders whose replicas may go elsewhere than before."""
        before, self._volumes = self._volumes, {}
        for volume in volumes:
            ordinal = ordinal_of(volume.name)
            if volume.nodes is not None and ordinal is not None:
                self._volumes.setdefault(volume.order, {})[ordinal] = frozenset(volume.nodes)
        return sorted(key for key in {*before, *self._volumes} if before.get(key) != self._volumes.get(key))

    def seat(self, work: Work, seat: Seat, ordinal: int) -> None:
        """A new replica of the order takes `seat` by the order's offer."""
        assert work.offer is not None
        wish = work.offer.wish
        self.sit(work, Replica(seat, wish.use, wish.host, ordinal))

    def sit(self, work: Work, replica: Replica) -> None:
        """A planned replica takes its seat."""
        self.moved[work.order.key] = None
        self.board.take(replica.seat.devices, replica.use, replica.seat.node, replica.host)
        work.replicas.append(replica)
        if len(work.replicas) > work.least:
            self.generous[work.order.key] = None
        for name in replica.seat.devices:
            self._seated.setdefault(name, []).append((work.order.key, replica))

    def unseat(self, work: Work) -> None:
        """The order's last replica, a planned one, gives its seat back."""
        self.moved[work.order.key] = None
        replica = work.replicas.pop()
        self.board.give_back(replica.seat.devices, replica.use, replica.seat.node, replica.host)
        if len(work.replicas) <= work.least:
            self.generous.pop(work.order.key, None)
        for name in replica.seat.devices:
            left = [item for item in self._seated[name] if item[1] is not replica]
            if left:
                self._seated[name] = left
            else:
                del self._seated[name]

    def rise(self, work: Work) -> None:
        """All replicas of the order leave their seats; what claims hold stays held."""
        standing = [replica for replica in work.replicas if replica.seat.standing]
        work.replicas = [replica for replica in work.replicas if not replica.seat.standing]
        while work.replicas:
            self.unseat(work)
        for replica in standing:
            self.board.give_back((), replica.use, replica.seat.node or None, replica.host)
        self.generous.pop(work.order.key, None)

    def seated_on(self, device: DeviceId) -> Sequence[tuple[Key, Replica]]:
        """Who is planned on the device and not held by a claim yet."""
        return self._seated.get(device, ())

    def all_fit(self, devices: Sequence[DeviceId], use: Use) -> bool:
        """Whether each of `devices` can be used so now."""
        return all(self.board.can_take(name, use) for name in devices)

    def next_ordinal(self, work: Work) -> int:
        """The smallest number that no replica of the order has."""
        taken = {replica.ordinal for replica in work.replicas}
        return next(number for number in range(len(taken) + 1) if number not in taken)

    def pinned(self, work: Work, ordinal: int) -> frozenset[str] | None:
        """The nodes that the replica's standing model volume allows; None: any."""
        return self._volumes.get(work.order.key, {}).get(ordinal)

    def has_volumes(self, key: Key) -> bool:
        """Whether some replica of the order is held by its model volume."""
        return key in self._volumes

    @contextmanager
    def outgoing_gone(self, work: Work) -> Iterator[None]:
        """The order's own outgoing claims make room for it: a replica is ended before its successor starts.

        To everybody else they hold until they are really gone.
        """
        for item in work.outgoing:
            self.board.give_back(item.devices, item.use, None, None)
        yield
        for item in work.outgoing:
            self.board.take(item.devices, item.use, None, None)
