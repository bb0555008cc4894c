# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The view's objects as a `Snapshot`, or as a replay file: read by `wire`, as the dumps of a command line are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from planner import launches, wire
from planner.kube.resources import Object
from planner.memory import Memory
from planner.model import CatalogState, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a snapshot holds besides objects."""

    kubernetes: tuple[int, int]
    now: str
    """RFC 3339, UTC, whole seconds."""
    catalog: bool
    """The module's setting `catalog.mode`."""
    absent: tuple[str, ...]
    """Optional kinds that are not served."""
    unreadable: tuple[str, ...]
    """Kinds that could be read once and cannot be now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A snapshot together with the objects it was read from, which a what-if question edits."""

    kinds: Mapping[str, Sequence[wire.Document]]
    circumstances: Circumstances
    snapshot: Snapshot

    @property
    def documents(self) -> list[wire.Document]:
        """All objects of all kinds."""
        return [document for documents in self.kinds.values() for document in documents]


def kubernetes(version: Mapping[str, Any]) -> tuple[int, int]:
    """Major and minor of a /version answer; managed clusters add a plus sign. Raises ValueError."""
    major, minor = (re.match(r"\d+", str(version.get(name, ""))) for name in ("major", "minor"))
    if major is None or minor is None:
        raise ValueError(f"the API server states no version: {dict(version)}")
    return int(major[0]), int(minor[0])


def now() -> str:
    """The time as a snapshot holds it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Reader:
    """Reads one view again and again: what did not change since the last look is not read again."""

    def __init__(self) -> None:
        self._memory = Memory()

    def see(self, objects: Mapping[str, Sequence[Object]], circumstances: Circumstances) -> Seen:
        """The snapshot of a view in which every kind was listed. `objects` by kind, each once.

        An object that cannot be read is left out and named in `unreadable`, so that a broken one stops nobody else's
        plan. Secrets are never read here (`secrets` is None): whether a token exists is not the planner's to say.
        """
        kinds = {kind: self._documents(kind, found) for kind, found in objects.items()}
        return Seen(kinds=kinds, circumstances=circumstances, snapshot=_read(kinds, circumstances, memory=self._memory))

    def _documents(self, kind: str, objects: Sequence[Object]) -> Sequence[wire.Document]:
        return self._memory.result(f"documents of {kind}", tuple(objects), lambda once: tuple(
            once(_document, item) for item in objects))  # fmt: skip


def read(documents: Sequence[wire.Document], circumstances: Circumstances, *, strict: bool = False) -> Snapshot:
    """The snapshot of `documents` under the same circumstances; see `Reader.see`.

    `strict`: raises `wire.BadInput` for an object that cannot be read, instead of leaving it out.
    """
    return _read(wire.by_kind(documents), circumstances, strict=strict)


def _read(
    kinds: Mapping[str, Sequence[wire.Document]],
    circumstances: Circumstances,
    *,
    strict: bool = False,
    memory: Memory | None = None,
) -> Snapshot:
    found = wire.snapshot(
        kinds,
        kubernetes=circumstances.kubernetes,
        now=circumstances.now,
        release=launches.shipped().release,
        catalog=_catalog(circumstances),
        unreadable=circumstances.unreadable,
        strict=strict,
        memory=memory,
    )
    # The kind is watched, so an empty list says that there is no storage class, not that nobody knows.
    return found if found.storage_classes is not None else replace(found, storage_classes=())


def replay(objects: Iterable[Object], circumstances: Circumstances) -> Mapping[str, Any]:
    """The same as a replay file."""
    return wire.replay(
        map(_document, objects),
        kubernetes=circumstances.kubernetes,
        now=circumstances.now,
        release=launches.shipped().release,
        catalog=_catalog(circumstances),
        unreadable=circumstances.unreadable,
    )


def _document(raw: Object) -> wire.Document:
    return wire.Document(raw=raw, source=f"{raw['kind']} {raw['metadata']['name']}")


def _catalog(circumstances: Circumstances) -> CatalogState:
    if not circumstances.catalog:
        return CatalogState.DISABLED
    return CatalogState.ABSENT if {"Model", "ClusterModel"} & set(circumstances.absent) else CatalogState.ENABLED
