# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What a call costs: what Kubernetes charges at run time.

That is cel-go's runtimecost.go, the list and set libraries, and apiserver/pkg/cel/library/cost.go; a pattern or a text
is charged by its length, a call nobody prices costs 1.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from planner import semver

from ..values import Amount, Cidr, Format, Ip, Map, Url, Value, size


def _tenth(length: int) -> int:
    return math.ceil(length * 0.1)


def _first_tenth(args: Sequence[Value], _: Value) -> int:
    return _tenth(size(args[0]))


def _two_tenths(args: Sequence[Value], _: Value) -> int:
    return math.ceil(size(args[0]) * 2 * 0.1)


def traversal(value: Value) -> int:
    cls = type(value)
    if cls is str:
        return int(len(value.encode("utf-8", "replace")) * 0.1)
    if cls is bytes:
        return int(len(value) * 0.1)
    if cls is list:
        return sum(map(traversal, value))
    if isinstance(value, Map):
        return sum(traversal(key) + traversal(inner) for key, inner in value.items())
    return 1


def smaller_cost(args: Sequence[Value], _: Value) -> int:
    return _tenth(min(size(args[0]), size(args[1])))


def equality_cost(args: Sequence[Value], _: Value) -> int:
    if type(args[0]) in (Amount, Ip, Cidr, Format, Url, semver.Version):
        return 1
    return smaller_cost(args, _)


def _search(args: Sequence[Value], _: Value) -> int:
    return math.ceil((1.0 + size(args[0])) * 0.1) * math.ceil(size(args[1]) * 0.25)


def _validation(args: Sequence[Value], _: Value) -> int:
    pattern_size: int = args[0].pattern_size
    return math.ceil((1.0 + size(args[1])) * 0.1) * math.ceil(pattern_size * 0.25)


def _contains(args: Sequence[Value], _: Value) -> int:
    return _tenth(size(args[0])) * _tenth(size(args[1]))


def _holds(args: Sequence[Value], _: Value) -> int:
    cost = _tenth(2 * size(args[0]))
    return cost + _tenth(size(args[1])) if type(args[1]) is str else cost


def _holds_cidr(args: Sequence[Value], _: Value) -> int:
    return _holds(args, _) + _tenth(size(args[0])) + 1


def _allocation(factor: float, length: int) -> int:
    return int(length * factor) + 1 + 10


def _self_comparison(parts: Value) -> int:
    factor = 2.1 if parts and type(parts[0]) in (str, bytes) else 2.0
    return _allocation(factor, len(parts) * len(parts))


Cost = Callable[[Sequence[Value], Value], int]

_BY_OVERLOAD: Final[Mapping[str, Cost]] = {
    "list_sets_contains_list": lambda args, _: 1 + len(args[0]) * len(args[1]),
    "list_sets_intersects_list": lambda args, _: 1 + len(args[0]) * len(args[1]),
    "list_sets_equivalent_list": lambda args, _: 1 + 2 * len(args[0]) * len(args[1]),
    "list_slice": lambda _, result: _allocation(1, size(result)),
    "lists_range": lambda _, result: _allocation(1, size(result)),
    "list_reverse": lambda _, result: _allocation(1, size(result)),
    "list_flatten": lambda args, _: _allocation(1, size(args[0])),
    "list_flatten_int": lambda args, _: _allocation(float(args[1]), size(args[0])),
    "list_distinct": lambda args, _: _self_comparison(args[0]),
    **{f"list_{name}_sort": lambda args, _: _self_comparison(args[0]) for name in ("int", "uint", "double", "bool",
        "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes")},
    **{f"list_{name}_sortByAssociatedKeys": lambda args, _: _self_comparison(args[1]) for name in ("int", "uint",
        "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes")},
}  # fmt: skip

_BY_FUNCTION: Final[Mapping[str, Cost]] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda args, _: traversal(args[0])
    ),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR",
         "quantity", "isQuantity", "semver", "isSemver"),
        _first_tenth,
    ),
    "replace": _two_tenths,
    "split": _two_tenths,
    "ip.isCanonical": _two_tenths,
    "join": lambda _, result: math.ceil(size(result) * 2 * 0.1),
    "find": _search,
    "findAll": _search,
    "containsIP": _holds,
    "containsCIDR": _holds_cidr,
    "validate": _validation,
    "_==_": equality_cost,
}  # fmt: skip

_BY_KIND: Final[Mapping[str, Cost]] = {
    **dict.fromkeys(
        ("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote",
         "string_format"),
        _first_tenth,
    ),
    **dict.fromkeys(
        tuple(f"{word}_{kind}" for word in ("less", "less_equals", "greater", "greater_equals")
              for kind in ("string", "bytes")),
        smaller_cost,
    ),
    "equals": smaller_cost,
    "not_equals": smaller_cost,
    "in_list": lambda args, _: size(args[1]),
    "add_string": lambda args, _: _tenth(size(args[0]) + size(args[1])),
    "add_bytes": lambda args, _: _tenth(size(args[0]) + size(args[1])),
    "matches_string": _search,
    "contains_string": _contains,
}  # fmt: skip


def cost_of(function: str, overload: str) -> Cost | None:
    """How a call is charged; None: it costs 1. `overload` is empty when several were possible."""
    if overload in _BY_OVERLOAD:
        return _BY_OVERLOAD[overload]
    if function == "ip":
        return None if overload == "cidr_ip" else _first_tenth
    return _BY_FUNCTION.get(function) or _BY_KIND.get(overload)
