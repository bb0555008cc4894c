# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What was computed from objects that have not changed since: a decision pays for what changed, not for what stands.

Objects are known by identity, so this is for records that nobody changes in place: the view of `planner serve` keeps an
object until a newer version of it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Once(Protocol):
    """`once(make, *parts)`: what `make(*parts)` gave the last time, if it was called with these very parts then.

    What `make` raises is raised and not remembered.
    """

    def __call__(self, make: Callable[..., R], /, *parts: object) -> R: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    inputs: tuple[object, ...]
    result: Any
    notes: dict[tuple[object, ...], tuple[tuple[object, ...], Any]]
    """By the identities of the parts: the parts themselves, which keeps them alive and identities unique, and what came
    of them."""


class Memory:
    """The last result of each named computation and of its parts. Not for use from two threads at once."""

    def __init__(self) -> None:
        self._pages: dict[str, _Page] = {}

    def result(self, name: str, inputs: tuple[object, ...], compute: Callable[[Once], R]) -> R:
        """What `compute` gives; not called when the inputs are the same objects as the last time under this name.

        What the last computation did not ask for through its `once` is forgotten.
        """
        before = self._pages.get(name)
        if before is not None and _same(before.inputs, inputs):
            known: R = before.result
            return known
        old = before.notes if before is not None else {}
        notes: dict[tuple[object, ...], tuple[tuple[object, ...], Any]] = {}

        def once(make: Callable[..., Any], /, *parts: object) -> Any:
            key = (make, *map(id, parts))
            note = old.get(key)
            value = make(*parts) if note is None else note[1]
            notes[key] = (parts, value)
            return value

        result = compute(once)
        self._pages[name] = _Page(inputs=inputs, result=result, notes=notes)
        return result


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
