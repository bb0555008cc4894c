# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How objects become records: once each, and one that cannot be read is refused or left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from planner import dra
from planner.memory import Once
from planner.wire.documents import BadInput, Document, Raw, metadata_of

T = TypeVar("T")


class Reading:
    """One reading of some objects. `skipped`: what was left out of it, as "Kind name: path: message"."""

    def __init__(self, *, once: Once, strict: bool) -> None:
        self.once = once
        self._strict = strict
        self.skipped: list[str] = []

    def records(self, documents: Iterable[Document], read: Callable[[Raw], T]) -> Iterator[T]:
        """The records of the documents that can be read. Raises `BadInput` for another one when strict."""
        for document in documents:
            try:
                yield self.once(read, document.raw)
            except dra.Malformed as error:
                self._leave_out(document, error)

    def record(self, document: Document, make: Callable[..., T], *parts: object) -> T | None:
        """What `make` gives for the parts of the document; None: it cannot be read. Raises `BadInput` when strict."""
        try:
            return self.once(make, *parts)
        except dra.Malformed as error:
            self._leave_out(document, error)
        return None

    def _leave_out(self, document: Document, error: dra.Malformed) -> None:
        if self._strict:
            raise BadInput(document.source, error.path, error.message) from error
        name = metadata_of(document.raw).get("name", "?")
        self.skipped.append(f"{document.raw['kind']} {name}: {error.path}: {error.message}")
