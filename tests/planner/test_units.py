# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Bytes and arithmetic that never guesses."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner import quantity, units
from planner.units import UNKNOWN, Maybe

MAYBE = st.one_of(st.just(UNKNOWN), st.integers(1, 2**70))
ARITHMETIC: dict[str, Callable[[Maybe, Maybe], Maybe]] = {
    "add": units.add,
    "subtract": units.subtract,
    "multiply": units.multiply,
    "divide_up": units.divide_up,
    "maximum": units.maximum,
    "minimum": units.minimum,
    "share": units.share,
}


@pytest.mark.parametrize(
    ("amount", "binary", "human"),
    [
        (0, "0", "0 B"),
        (1000, "1000", "1000 B"),
        (1024, "1Ki", "1.0 KiB"),
        (81559 << 20, "81559Mi", "79.6 GiB"),
        (40 << 30, "40Gi", "40.0 GiB"),
        ((40 << 30) + 1, "42949672961", "40.0 GiB"),
        (-(3 << 40), "-3Ti", "-3.0 TiB"),
        (1 << 60, "1Ei", "1.0 EiB"),
    ],
)
def test_bytes_are_shown_exactly_to_machines_and_shortly_to_readers(amount: int, binary: str, human: str) -> None:
    assert (units.binary(amount), units.human(amount)) == (binary, human)


def test_an_unknown_amount_says_so() -> None:
    assert units.human(UNKNOWN) == "unknown"


@given(st.integers(-(2**62), 2**62))
def test_a_binary_text_is_the_amount_and_canonical_where_it_has_a_unit(amount: int) -> None:
    read = quantity.parse(units.binary(amount))
    assert read.bytes == amount
    if abs(amount) >= 1024:
        assert units.binary(amount) == str(quantity.of_bytes(amount))


@pytest.mark.parametrize("name", ARITHMETIC)
@given(one=MAYBE, other=MAYBE)
def test_an_unknown_part_makes_the_result_unknown(name: str, one: Maybe, other: Maybe) -> None:
    unknown = one is UNKNOWN or other is UNKNOWN
    assert (ARITHMETIC[name](one, other) is UNKNOWN) == unknown


def test_known_parts_are_computed() -> None:
    assert [
        units.add(),
        units.add(1, 2, 3),
        units.subtract(10, 1, 2),
        units.multiply(2, 3, 4),
        units.multiply(0, 5),
        units.divide_up(7, 2),
        units.round_up(1025, 1024),
        units.maximum(1, 3, 2),
        units.minimum(2, 1, 3),
        units.share(1000, 45),
        units.known(5, 7),
        units.known(UNKNOWN, 7),
    ] == [0, 6, 7, 24, 0, 4, 2048, 3, 1, 450, 5, 7]
