# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Bytes, percent, `UNKNOWN`, and arithmetic that never guesses.

Memory is a whole number of bytes everywhere in the planner. A fact nobody published is `UNKNOWN`, never zero and never
`None`: the type checker then asks about it, and a sum with one unknown part is unknown.
"""

from enum import Enum
from typing import Final, Literal, TypeAlias


class Unknown(Enum):
    """The type of a fact nobody published; its one value is `UNKNOWN`, and `is UNKNOWN` narrows the type."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final[Literal[Unknown.UNKNOWN]] = Unknown.UNKNOWN

Bytes: TypeAlias = int
"""A whole number of bytes."""

Percent: TypeAlias = int
"""A whole number of hundredths."""

Maybe: TypeAlias = int | Unknown
"""A whole number (bytes, percent, a count) or `UNKNOWN`."""

KI: Final = 1 << 10
MI: Final = 1 << 20
GI: Final = 1 << 30
TI: Final = 1 << 40

_BINARY: Final = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


def binary(amount: Bytes) -> str:
    """`amount` bytes as a quantity in the largest binary unit that states it exactly: 81559Mi, 40Gi, 1000."""
    if amount != 0:
        for suffix, shift in _BINARY:
            if amount % (1 << shift) == 0:
                return f"{amount >> shift}{suffix}"
    return str(amount)


def human(amount: Maybe) -> str:
    """`amount` bytes for a reader, one decimal in the largest fitting unit ("23.4 GiB"); `UNKNOWN` reads "unknown".

    The decimal is rounded half up, so the text may differ from the amount by half of it: it is never parsed back.
    """
    if amount is UNKNOWN:
        return "unknown"
    size = abs(amount)
    sign = "-" if amount < 0 else ""
    for suffix, shift in _BINARY:
        if size >= 1 << shift:
            tenths = (size * 10 + (1 << (shift - 1))) >> shift
            return f"{sign}{tenths // 10}.{tenths % 10} {suffix}B"
    return f"{sign}{size} B"


def add(*values: Maybe) -> Maybe:
    """The sum; `UNKNOWN` as soon as one part is; 0 without parts."""
    total = 0
    for value in values:
        if value is UNKNOWN:
            return UNKNOWN
        total += value
    return total


def subtract(value: Maybe, *parts: Maybe) -> Maybe:
    """`value` less every part, possibly negative; `UNKNOWN` as soon as one of them is."""
    taken = add(*parts)
    if value is UNKNOWN or taken is UNKNOWN:
        return UNKNOWN
    return value - taken


def multiply(*values: Maybe) -> Maybe:
    """The product; `UNKNOWN` as soon as one factor is, even beside a zero; 1 without factors."""
    product = 1
    for value in values:
        if value is UNKNOWN:
            return UNKNOWN
        product *= value
    return product


def divide_up(value: Maybe, by: Maybe) -> Maybe:
    """`value` ÷ `by` rounded up to a whole number; `UNKNOWN` when either is. Raises ZeroDivisionError for `by` = 0."""
    if value is UNKNOWN or by is UNKNOWN:
        return UNKNOWN
    return -(-value // by)


def round_up(value: Maybe, step: int) -> Maybe:
    """`value` rounded up to a multiple of `step` (> 0); `UNKNOWN` stays unknown."""
    if value is UNKNOWN:
        return UNKNOWN
    return -(-value // step) * step


def maximum(*values: Maybe) -> Maybe:
    """The largest; `UNKNOWN` as soon as one is. Raises ValueError without values."""
    known: list[int] = []
    for value in values:
        if value is UNKNOWN:
            return UNKNOWN
        known.append(value)
    return max(known)


def minimum(*values: Maybe) -> Maybe:
    """The smallest; `UNKNOWN` as soon as one is. Raises ValueError without values."""
    known: list[int] = []
    for value in values:
        if value is UNKNOWN:
            return UNKNOWN
        known.append(value)
    return min(known)


def share(value: Maybe, percent: Maybe) -> Maybe:
    """`percent` hundredths of `value`, rounded down to a whole number; `UNKNOWN` when either is."""
    if value is UNKNOWN or percent is UNKNOWN:
        return UNKNOWN
    return value * percent // 100


def known(value: Maybe, otherwise: int) -> int:
    """`value`, or `otherwise` where nobody published it: the one place where a caller says what it assumes."""
    return otherwise if value is UNKNOWN else value
