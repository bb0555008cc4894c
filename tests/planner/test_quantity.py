# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Quantities against recorded answers of `k8s.io/apimachinery/pkg/api/resource`, and their laws."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner import quantity
from planner.quantity import Format, Quantity, QuantityError

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "quantity-golden.json").read_text())["cases"]
_INT64 = range(-(1 << 63), 1 << 63)


def test_there_are_enough_recorded_answers() -> None:
    assert len(GOLDEN) >= 300


def parsed(text: str) -> Quantity | None:
    try:
        return quantity.parse(text)
    except QuantityError as error:
        assert repr(text)[1:-1] in str(error) or "empty" in str(error)
        return None


def described(one: Quantity) -> dict[str, Any]:
    found: dict[str, Any] = {"string": str(one), "value": str(one.bytes)}
    if one.as_int64() is not None:
        found["int64"] = str(one.as_int64())
    number = one.as_approximate_float()
    found["float"] = ("+Inf" if number > 0 else "-Inf") if math.isinf(number) else f"{number:.17g}"
    if one.sign:
        found["sign"] = one.sign
    return found


def known_difference(one: Quantity) -> bool:
    """Upstream's Value() wraps near and beyond int64, and rounds negative fractions of its slow road toward zero."""
    return one.bytes not in _INT64 or (one.slow and one.sign < 0 and (not one.is_integer or one.bytes == -(1 << 63)))


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['text']!r} {case.get('other', '')!r}")
def test_reads_prints_compares_and_adds_as_the_real_library(case: dict[str, Any]) -> None:
    one = parsed(case["text"])
    wanted = case["read"]
    if one is None or wanted is None:
        assert (one is None) == (wanted is None) or too_wide(case["text"])
        return
    found = described(one)
    if known_difference(one):
        found.pop("value")
        wanted = {key: value for key, value in wanted.items() if key != "value"}
    assert found == wanted
    if "compare" in case:
        other = quantity.parse(case["other"])
        assert {
            "compare": one.compare(other),
            "sum": str(one.add(other)),
            "difference": str(one.sub(other)),
        } == {key: case[key] for key in ("compare", "sum", "difference")}


def too_wide(text: str) -> bool:
    """An exponent beyond our own bound."""
    return "e" in text.lower() and abs(int(text.lower().partition("e")[2] or 0)) > 4096


TEXTS = st.from_regex(
    r"\A[+-]?([0-9]{1,21}(\.[0-9]{0,12})?|\.[0-9]{1,12})(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})\Z"
)


@given(TEXTS)
def test_what_is_printed_reads_as_the_same_amount_unless_its_suffix_has_no_name(text: str) -> None:
    one = quantity.parse(text)
    exact = Quantity(one.unscaled, one.exponent, Format.DECIMAL_EXPONENT, one.slow)
    assert quantity.parse(str(exact)) == one
    assert quantity.parse(str(exact)).nano == one.nano


@given(TEXTS, TEXTS)
def test_the_order_is_that_of_the_amounts(one: str, other: str) -> None:
    first, second = quantity.parse(one), quantity.parse(other)
    assert first.compare(second) == -second.compare(first)
    assert (first < second, first == second) == (first.nano < second.nano, first.nano == second.nano)
    assert first.add(second).nano == first.nano + second.nano
    assert first.sub(second).nano == first.nano - second.nano


@given(st.text(max_size=30))
def test_no_text_makes_reading_fail_otherwise(text: str) -> None:
    parsed(text)


def test_json_numbers_and_spaces_are_read_as_the_api_server_reads_them() -> None:
    assert [quantity.of(raw) for raw in (5, " 1Gi\n", 1.5)] == list(map(quantity.parse, ("5", "1Gi", "1.5")))
    refused: list[object] = [None, True, [], float("nan")]
    for raw in refused:
        with pytest.raises(QuantityError):
            quantity.of(raw)


def test_bytes_become_a_binary_quantity() -> None:
    assert [str(quantity.of_bytes(amount)) for amount in (0, 1000, 81559 << 20, 40 << 30, 1 << 63)] == [
        "0",
        "1k",
        "81559Mi",
        "40Gi",
        "8Ei",
    ]
