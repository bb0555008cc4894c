# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Functions of lists, sets, optionals and maps."""

from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from ..values import (
    NONE,
    NOTHING,
    Duration,
    Failure,
    Map,
    Optional,
    Timestamp,
    Uint,
    Value,
    compare,
    map_key,
    no_overload,
    same,
)
from .limits import Implementation, affordable
from .operators import add, shown


def _sum(zero: Value) -> Implementation:
    def total(parts: Sequence[Value]) -> Value:
        found = zero
        for part in parts:
            found = add(found, part)
        return found

    return total


def _extreme(name: str, sign: int) -> Implementation:
    def extreme(parts: Sequence[Value]) -> Value:
        found = NOTHING
        for part in parts:
            _comparable(part)
            if found is NOTHING or _ordering(found, part) == sign:
                found = part
        if found is NOTHING:
            raise Failure(f"{name} called on empty list")
        return found

    return extreme


def _comparable(one: Value) -> None:
    if type(one) not in (int, Uint, float, bool, str, bytes, Duration, Timestamp):
        raise no_overload(one)


def _ordering(one: Value, other: Value) -> int:
    """The order, 0 where there is none: upstream's list functions do not look closer."""
    try:
        return compare(one, other)
    except Failure:
        return 0


def _is_sorted(parts: Sequence[Value]) -> bool:
    for part in parts:
        _comparable(part)
    return all(_ordering(one, other) <= 0 for one, other in pairwise(parts))


def _list_index(parts: Sequence[Value], wanted: Value) -> int:
    return next((at for at, part in enumerate(parts) if same(part, wanted)), -1)


def _list_last_index(parts: Sequence[Value], wanted: Value) -> int:
    return next((at for at in range(len(parts) - 1, -1, -1) if same(parts[at], wanted)), -1)


def _slice(parts: list[Value], start: int, end: int) -> list[Value]:
    if start < 0 or end < 0:
        raise Failure(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise Failure(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(parts) < end:
        raise Failure(f"cannot slice({start}, {end}), list is length {len(parts)}")
    return parts[start:end]


def _flatten(parts: Value, depth: Value = 1) -> list[Value]:
    if type(parts) is not list or type(depth) is not int:
        raise no_overload(parts)
    if depth < 0:
        raise Failure("level must be non-negative")
    found: list[Value] = []
    for part in parts:
        if type(part) is list and depth > 0:
            found.extend(_flatten(part, depth - 1))
        else:
            found.append(part)
    return found


def _range(count: int) -> list[Value]:
    affordable(count)
    return list(range(count))


def _distinct(parts: Sequence[Value]) -> list[Value]:
    affordable(2 * len(parts) * len(parts))
    found: list[Value] = []
    for part in parts:
        if not any(same(part, other) for other in found):
            found.append(part)
    return found


def _sorted_by(parts: Value, keys: Value) -> list[Value]:
    if type(parts) is not list or type(keys) is not list:
        raise no_overload(parts)
    if len(parts) != len(keys):
        raise Failure("a list and its keys differ in size")
    if keys and type(keys[0]) not in (int, Uint, float, bool, str, bytes, Duration, Timestamp):
        raise Failure("list elements must be comparable")
    if len(keys) > 1 and any(type(key) is not type(keys[0]) for key in keys):
        raise Failure("list elements must have the same type")

    def order(one: int, other: int) -> int:
        return _ordering(keys[one], keys[other])

    return [parts[at] for at in sorted(range(len(parts)), key=cmp_to_key(order))]


def _sorted(parts: Value) -> list[Value]:
    return _sorted_by(parts, parts)


def _sets_contain(parts: Sequence[Value], wanted: Sequence[Value]) -> bool:
    affordable(len(parts) * len(wanted))
    return all(any(same(one, part) for part in parts) for one in wanted)


def _sets_equivalent(one: Sequence[Value], other: Sequence[Value]) -> bool:
    return _sets_contain(one, other) and _sets_contain(other, one)


def _sets_intersect(one: Sequence[Value], other: Sequence[Value]) -> bool:
    affordable(len(one) * len(other))
    return any(any(same(wanted, part) for part in other) for wanted in one)


def includes(target: Value, wanted: Value) -> bool:
    """Kubernetes 1.36: the value is, or the list has, `wanted`."""
    if type(target) is not list:
        return same(target, wanted)
    for at, part in enumerate(target):
        if at >= 48:
            raise Failure("'includes' function cannot be applied to lists longer than 48 values")
        if same(part, wanted):
            return True
    return False


# Optionals and maps.


def _value(one: Optional) -> Value:
    if one.value is NOTHING:
        raise Failure("optional.none() dereference")
    return one.value


def _non_zero(one: Value) -> Optional:
    cls = type(one)
    if one is None or (cls in (bool, int, Uint, float, str, bytes, list) and not one):
        return NONE
    if (isinstance(one, Map) and not one) or (cls is Duration and one.nanos == 0):
        return NONE
    if cls is Timestamp and one.nanos == -62135596800 * 10**9:
        return NONE
    if cls is Optional:
        return NONE if one.value is NOTHING else Optional(one)
    return Optional(one)


def _unwrapped(parts: Sequence[Value]) -> list[Value]:
    return [_inner(part) for part in parts if _inner(part) is not NOTHING]


def _inner(part: Value) -> Value:
    if type(part) is not Optional:
        raise Failure("value in list is not optional")
    return part.value


def _insert(one: Map, *entry: Value) -> Map:
    found = Map(one.items())
    additions = [(entry[0], entry[1])] if len(entry) == 2 else list(entry[0].items())
    for key, value in additions:
        if found.has(key):
            raise Failure(f"insert failed: key {shown(key)} already exists")
        found.entries[map_key(key)] = (key, value)
    return found


LISTS: Final[Mapping[str, Implementation]] = {
    "list_int_sum_int": _sum(0),
    "list_uint_sum_uint": _sum(Uint(0)),
    "list_double_sum_double": _sum(0.0),
    "list_duration_sum_duration": _sum(Duration(0)),
    "list_a_index_of_int": _list_index,
    "list_a_last_index_of_int": _list_last_index,
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": lambda parts: parts[::-1],
    "list_distinct": _distinct,
    "list_sets_contains_list": _sets_contain,
    "list_sets_equivalent_list": _sets_equivalent,
    "list_sets_intersects_list": _sets_intersect,
    "list_first": lambda parts: Optional(parts[0]) if parts else NONE,
    "list_last": lambda parts: Optional(parts[-1]) if parts else NONE,
    "dra_includes_dyn_dyn": includes,
    "optional_of": Optional,
    "optional_ofNonZeroValue": _non_zero,
    "optional_none": lambda: NONE,
    "optional_value": _value,
    "optional_hasValue": lambda one: one.value is not NOTHING,
    "optional_unwrap": _unwrapped,
    "optional_unwrapOpt": _unwrapped,
    "cel_map_insert_key_value": _insert,
    "cel_map_insert_map": _insert,
    **{f"list_{name}_max_{name}": _extreme("max", -1) for name in ("int", "uint", "double", "bool", "duration",
                                                                  "timestamp", "string", "bytes")},
    **{f"list_{name}_min_{name}": _extreme("min", 1) for name in ("int", "uint", "double", "bool", "duration",
                                                                 "timestamp", "string", "bytes")},
    **{f"list_{name}_is_sorted_bool": _is_sorted for name in ("int", "uint", "double", "bool", "duration",
                                                             "timestamp", "string", "bytes")},
}  # fmt: skip
"""By overload."""

UNGUARDED: Final[Mapping[str, Implementation]] = {
    "flatten": _flatten,
    "sort": _sorted,
    "@sortByAssociatedKeys": _sorted_by,
}
"""Functions upstream lets look at their values themselves."""
