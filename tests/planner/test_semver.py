# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Versions against recorded answers of blang/semver v4 and of Kubernetes' normalising, and their laws."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner import semver
from planner.semver import Version, VersionError

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "semver-golden.json").read_text())["cases"]


def parsed(text: str, *, normalize: bool = False) -> Version | None:
    try:
        return semver.parse(text, normalize)
    except VersionError as error:
        assert repr(text) in str(error)
        return None


def described(one: Version | None) -> dict[str, str] | None:
    return None if one is None else {"string": str(one), "numbers": f"{one.major} {one.minor} {one.patch}"}


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['text']!r} {case.get('other', '')!r}")
def test_reads_normalises_and_compares_as_the_real_libraries(case: dict[str, Any]) -> None:
    one = parsed(case["text"])
    found = {"read": described(one), "normalized": described(parsed(case["text"], normalize=True))}
    assert found == {"read": case["read"], "normalized": case.get("normalized")}
    if "compare" in case:
        assert one is not None
        assert one.compare(semver.parse(case["other"])) == case["compare"]


VERSIONS = st.builds(
    Version,
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 2**64 - 1),
    st.lists(st.one_of(st.integers(0, 12), st.from_regex(r"\A[0-9A-Za-z-]*[A-Za-z-]\Z"))).map(tuple),
    st.lists(st.from_regex(r"\A[0-9A-Za-z-]+\Z"), max_size=2).map(tuple),
)


@given(VERSIONS)
def test_what_is_printed_reads_as_the_same_version(one: Version) -> None:
    again = semver.parse(str(one))
    assert (again, again.pre, again.build) == (one, one.pre, one.build)
    assert semver.parse(f"v{one}", True) == one


@given(VERSIONS, VERSIONS, VERSIONS)
def test_the_order_is_total(one: Version, other: Version, third: Version) -> None:
    assert one.compare(other) == -other.compare(one)
    assert (one == other) == (one.compare(other) == 0)
    if one <= other <= third:
        assert one <= third
    if one == other:
        assert hash(one) == hash(other)


@given(st.text(max_size=20), st.booleans())
def test_no_text_makes_reading_fail_otherwise(text: str, normalize: bool) -> None:
    parsed(text, normalize=normalize)
