# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What the search answers: a verdict, and with it the devices given or the cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from planner.dra import Amount, DeviceId


class Verdict(Enum):
    """The answer of the search."""

    ALLOCATED = "allocated"
    NONE = "none"
    ERROR = "error"
    """Cannot be decided: `cause` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One device given to one request; `consumed` is what a share takes of each capacity, None: not a share."""

    claim: int
    request: str
    device: DeviceId
    consumed: Mapping[str, Amount] | None = None
    admin_access: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer; with ALLOCATED the first solution in the scheduler's order, with ERROR the cause."""

    verdict: Verdict
    cause: str = ""
    given: tuple[Given, ...] = ()
    steps: int = 0
    """Devices tried."""
    bounded: bool = False
    """ERROR because the search hit its bound."""


class Undecidable(Exception):
    """Inside the search: the answer is ERROR with this cause."""

    def __init__(self, cause: str, *, bounded: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.bounded = bounded
