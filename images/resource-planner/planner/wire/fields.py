# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Typed reads of a spec that name the path, with the rules of the CRDs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeVar

from planner import dra
from planner.wire.documents import Raw

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Fields:
    """One object of a spec: typed reads that name the path, and a check that nothing else is there."""

    def __init__(self, raw: object, path: str, *known: str) -> None:
        if not isinstance(raw, Mapping):
            raise dra.Malformed(path, "an object is expected")
        self.raw: Raw = raw
        self.path = path
        for key in raw:
            if key not in known:
                raise dra.Malformed(self.at(str(key)), "unknown field")

    def at(self, key: str) -> str:
        """The path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether the field is there; null is absent."""
        return self.raw.get(key) is not None

    def block(self, key: str, *known: str) -> Fields | None:
        """The object under `key`, which may have the `known` fields; absent is None. Reads raise `dra.Malformed`."""
        return Fields(self.raw[key], self.at(key), *known) if self.has(key) else None

    def text(self, key: str, pattern: re.Pattern[str] = _SUBDOMAIN, longest: int = 253) -> str:
        """A text of that form, which has to be there: a name as Kubernetes has them by default."""
        value = self.raw.get(key)
        if not isinstance(value, str) or not value:
            raise dra.Malformed(self.at(key), "a text is expected")
        if len(value) > longest or not pattern.fullmatch(value):
            raise dra.Malformed(self.at(key), f"{value!r} is no valid name")
        return value

    def maybe_text(self, key: str, pattern: re.Pattern[str] = _SUBDOMAIN, longest: int = 253) -> str | None:
        """The same; absent is None."""
        return self.text(key, pattern, longest) if self.has(key) else None

    def choice(self, key: str, kind: type[E], otherwise: E) -> E:
        """One of the words of an enum."""
        return choice_of(kind, self.raw[key], self.at(key)) if self.has(key) else otherwise

    def list_of(self, key: str, read: Callable[[object, str], T]) -> tuple[T, ...] | None:
        """The items of a list; absent is None, empty or repeating is refused."""
        if not self.has(key):
            return None
        items = self.raw[key]
        if not isinstance(items, Sequence) or isinstance(items, str):
            raise dra.Malformed(self.at(key), "a list is expected")
        if not items:
            raise dra.Malformed(self.at(key), "an empty list could mean all or none: leave it out or name something")
        found = tuple(read(item, f"{self.at(key)}[{index}]") for index, item in enumerate(items))
        for index, item in enumerate(found):
            if item in found[:index]:
                raise dra.Malformed(f"{self.at(key)}[{index}]", "named twice")
        return found

    def whole(self, key: str) -> int | None:
        """A count of at least 1; absent is None."""
        if not self.has(key):
            return None
        value = self.raw[key]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise dra.Malformed(self.at(key), "a whole number of at least 1 is expected")
        return value

    def amount(self, key: str) -> int | None:
        """A positive quantity in bytes, rounded up; absent is None."""
        if not self.has(key):
            return None
        value = dra.read_amount(self.raw[key], self.at(key))
        if value <= 0:
            raise dra.Malformed(self.at(key), "a positive quantity is expected")
        return -int(-value // 1)


def choice_of(kind: type[E], value: object, path: str) -> E:
    """One of the words of an enum. Raises `dra.Malformed`, which lists them."""
    try:
        return kind(value)
    except ValueError as error:
        words = ", ".join(str(item.value) for item in kind)
        raise dra.Malformed(path, f"{value!r} is none of {words}") from error


def name_item(value: object, path: str) -> str:
    """A name in a list. Raises `dra.Malformed`."""
    if not isinstance(value, str) or len(value) > 253 or not _SUBDOMAIN.fullmatch(value):
        raise dra.Malformed(path, f"{value!r} is no valid name")
    return value
