# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What the watches have seen so far, and how far it can be trusted.

One writer per kind (its watch) plus the planner's own applies, whose answers enter the view at once so that the next
plan starts from the last one. Readers take lists of objects that nobody changes afterwards. A kind is trusted while its
watch stands; when it fails, the last view is kept and the failure's age decides: at first nobody plans (`unsettled`),
later plans are made that call what depends on the kind undecidable (`unreadable`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from planner.kube.resources import Object, Resource

ObjectKey = tuple[str, str]
"""Namespace ("" for cluster-wide kinds) and name."""

Listed = dict[ObjectKey, tuple[int, Object]]
"""Objects of one kind, each with its resource version."""


class Standing(Enum):
    """How a kind's watch fares."""

    STARTING = "Starting"
    """Never listed yet."""
    SYNCED = "Synced"
    FAILING = "Failing"
    """Listed once, cannot be read now: forbidden, refused or out of reach."""
    ABSENT = "Absent"
    """An optional kind that this server does not know."""


@dataclass(slots=True)
class _Shelf:
    """The objects of one kind and the state of its watch."""

    objects: Listed = field(default_factory=dict)
    standing: Standing = Standing.STARTING
    failing_since: float | None = None
    detail: str = ""


def _key(raw: Object) -> ObjectKey:
    metadata = raw["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _version(raw: Object) -> int:
    """The resource version as a number: comparable within one kind, by the API conventions since Kubernetes 1.35 and by
    the storage of every earlier version."""
    return int(raw["metadata"].get("resourceVersion") or 0)


class View:
    """The last known objects of every watched kind."""

    def __init__(
        self,
        resources: tuple[Resource, ...],
        *,
        grace_seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`grace_seconds`: how long a kind that cannot be read holds up planning before it counts as unreadable."""
        self.resources = resources
        self._grace = grace_seconds
        self._clock = clock
        self._shelves = {resource.kind: _Shelf() for resource in resources}
        self._changed = threading.Condition()
        self._count = 0
        self._asked = 0
        self._changed_at = clock()

    # What watches and the writer report.

    def replace(self, resource: Resource, raws: Listed) -> None:
        """A whole list of the kind. An object that the view holds in a newer version stays as it is."""
        with self._changed:
            shelf = self._shelves[resource.kind]
            merged: Listed = {}
            for key, (version, new) in raws.items():
                old = shelf.objects.get(key)
                if old is not None and (old[0] >= version or old[1] == new):
                    merged[key] = (max(old[0], version), old[1])
                else:
                    merged[key] = (version, new)
            same = len(merged) == len(shelf.objects) and all(
                key in shelf.objects and shelf.objects[key][1] is entry[1] for key, entry in merged.items()
            )
            shelf.objects = merged
            settled = shelf.standing is Standing.SYNCED
            self._settle(shelf, Standing.SYNCED)
            if not (same and settled):
                self._notify(resource)

    def put(self, resource: Resource, raw: Object, version: str) -> bool:
        """One object, new or changed: whether it told anything new.

        A version older than the known one is dropped, and equal content wakes nobody.
        """
        key, number, new = _key(raw), _version(raw), resource.cut(raw, version)
        with self._changed:
            objects = self._shelves[resource.kind].objects
            old = objects.get(key)
            if old is not None and number and number <= old[0]:
                return False
            if old is not None and old[1] == new:
                objects[key] = (number, old[1])
                return False
            objects[key] = (number, new)
            self._notify(resource)
            return True

    def remove(self, resource: Resource, raw: Object) -> None:
        """One object is gone."""
        with self._changed:
            if self._shelves[resource.kind].objects.pop(_key(raw), None) is not None:
                self._notify(resource)

    def standing(self, resource: Resource, standing: Standing, detail: str = "") -> None:
        """The kind's watch stands, fails or learnt that the kind is not served (`detail`: why)."""
        with self._changed:
            shelf = self._shelves[resource.kind]
            before = shelf.standing
            shelf.detail = detail
            if standing is Standing.FAILING:
                if before is Standing.STARTING:
                    return  # never listed: still not to be planned from, whatever the failure
                if shelf.failing_since is None:
                    shelf.failing_since = self._clock()
                shelf.standing = standing
            else:
                self._settle(shelf, standing)
                if standing is Standing.ABSENT:
                    shelf.objects = {}
            if before is not shelf.standing:
                self._notify(resource)

    @staticmethod
    def _settle(shelf: _Shelf, standing: Standing) -> None:
        shelf.standing, shelf.failing_since, shelf.detail = standing, None, ""

    def _notify(self, resource: Resource | None = None) -> None:
        self._count += 1
        if resource is None or resource.asks:
            self._asked += 1
        self._changed_at = self._clock()
        self._changed.notify_all()

    # What planning reads.

    @property
    def count(self) -> int:
        """Grows with every change that can matter to a plan."""
        return self._count

    @property
    def asked(self) -> int:
        """Grows with those of these changes that somebody waits for an answer to."""
        return self._asked

    def wait(self, seen: int, seconds: float) -> int:
        """The change count, as soon as it differs from `seen` or after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != seen, timeout=max(seconds, 0.0))
            return self._count

    def wake(self) -> None:
        """Wake a waiting reader without a change (used to stop it)."""
        with self._changed:
            self._notify()

    def objects(self) -> dict[str, list[Object]]:
        """Every object by kind; the objects themselves are shared and never changed."""
        with self._changed:
            return {kind: [entry[1] for entry in shelf.objects.values()] for kind, shelf in self._shelves.items()}

    def of(self, resource: Resource) -> dict[ObjectKey, Object]:
        """The objects of one kind by namespace and name."""
        with self._changed:
            return {key: entry[1] for key, entry in self._shelves[resource.kind].objects.items()}

    def never_listed(self) -> dict[str, str]:
        """The kinds that were never seen whole, with the last failure: no plan can be made yet."""
        with self._changed:
            return {kind: s.detail for kind, s in self._shelves.items() if s.standing is Standing.STARTING}

    def unsettled(self) -> dict[str, str]:
        """The kinds that cannot be read for less than the grace period: worth waiting for."""
        return self._failing(lambda age: age < self._grace)

    def unreadable(self) -> dict[str, str]:
        """The kinds that cannot be read for longer than that, with the reason."""
        return self._failing(lambda age: age >= self._grace)

    def _failing(self, chosen: Callable[[float], bool]) -> dict[str, str]:
        with self._changed:
            now = self._clock()
            return {
                kind: shelf.detail
                for kind, shelf in self._shelves.items()
                if shelf.failing_since is not None and chosen(now - shelf.failing_since)
            }

    def absent(self) -> tuple[str, ...]:
        """The optional kinds that are not served here."""
        with self._changed:
            return tuple(kind for kind, shelf in self._shelves.items() if shelf.standing is Standing.ABSENT)

    def sizes(self) -> dict[str, int]:
        """Objects per kind."""
        with self._changed:
            return {kind: len(shelf.objects) for kind, shelf in self._shelves.items()}

    def state(self) -> dict[str, Any]:
        """Per kind its standing, size and last failure, for people."""
        with self._changed:
            return {
                kind: {"standing": s.standing.value, "objects": len(s.objects), "detail": s.detail}
                for kind, s in self._shelves.items()
            }
