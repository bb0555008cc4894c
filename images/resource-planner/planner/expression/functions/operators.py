# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Operators and conversions: dispatched by value, because upstream's are."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from .. import formatting
from ..values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NOTHING,
    Cidr,
    Duration,
    Failure,
    Ip,
    Map,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    compare,
    contains_key,
    duration_of,
    int64,
    no_overload,
    same,
    timestamp_of,
    type_name,
    uint64,
)
from .limits import Implementation, bounded


def add(one: Value, other: Value) -> Value:
    cls, other_cls = type(one), type(other)
    if cls is other_cls:
        if cls is int:
            return int64(one + other)
        if cls is str or cls is bytes or cls is list:
            bounded(len(one) + len(other))
            return one + other
        if cls is float:
            return one + other
        if cls is Uint:
            return uint64(int(one) + int(other))
        if cls is Duration:
            return Duration(int64(one.nanos + other.nanos))
    elif cls is Duration and other_cls is Timestamp:
        return _shifted(other, one.nanos)
    elif cls is Timestamp and other_cls is Duration:
        return _shifted(one, other.nanos)
    raise no_overload(other)


def _shifted(one: Timestamp, nanos: int) -> Timestamp:
    total = one.nanos + nanos
    if not -62135596800 * 10**9 <= total < 253402300800 * 10**9:
        raise Failure("timestamp overflow")
    return Timestamp(total)


def subtract(one: Value, other: Value) -> Value:
    cls, other_cls = type(one), type(other)
    if cls is other_cls:
        if cls is int:
            return int64(one - other)
        if cls is float:
            return one - other
        if cls is Uint:
            return uint64(int(one) - int(other))
        if cls is Duration or cls is Timestamp:
            return Duration(int64(one.nanos - other.nanos))
    elif cls is Timestamp and other_cls is Duration:
        return _shifted(one, -other.nanos)
    raise no_overload(other)


def multiply(one: Value, other: Value) -> Value:
    cls = type(one)
    if cls is type(other):
        if cls is int:
            return int64(one * other)
        if cls is float:
            return one * other
        if cls is Uint:
            return uint64(int(one) * int(other))
    raise no_overload(other)


def divide(one: Value, other: Value) -> Value:
    cls = type(one)
    if cls is type(other):
        if cls is float:
            if other == 0:
                return math.nan if one == 0 or one != one else math.copysign(math.inf, one) * math.copysign(1, other)
            return one / other
        if cls is int or cls is Uint:
            if other == 0:
                raise Failure("division by zero")
            found = abs(int(one)) // abs(int(other))
            return uint64(found) if cls is Uint else int64(found if (one < 0) == (other < 0) else -found)
    raise no_overload(other)


def modulo(one: Value, other: Value) -> Value:
    cls = type(one)
    if cls is type(other) and (cls is int or cls is Uint):
        if other == 0:
            raise Failure("modulus by zero")
        if one == MIN_INT and other == -1:
            raise Failure("integer overflow")
        found = abs(int(one)) % abs(int(other))
        return Uint(found) if cls is Uint else (-found if one < 0 else found)
    raise no_overload(other)


def negate(one: Value) -> Value:
    cls = type(one)
    if cls is int:
        return int64(-one)
    if cls is float:
        return -one
    if cls is Duration:
        return Duration(int64(-one.nanos))
    raise no_overload(one)


def invert(one: Value) -> Value:
    if one is True or one is False:
        return not one
    raise no_overload(one)


def member(one: Value, other: Value) -> bool:
    """`one in other`."""
    if type(other) is list:
        return any(same(one, element) for element in other)
    if isinstance(other, Map):
        return contains_key(other, one)
    raise no_overload(other)


def sized(one: Value) -> int:
    cls = type(one)
    if cls is str or cls is bytes or cls is list or isinstance(one, Map):
        return len(one)
    raise no_overload(one)


def index(one: Value, key: Value) -> Value:
    """`one[key]` and `one.key`. Raises `Failure` for a missing key."""
    found = lookup(one, key)
    if found is NOTHING:
        raise Failure(f"{'index out of bounds' if type(one) is list else 'no such key'}: {shown(key)}")
    return found


def lookup(one: Value, key: Value) -> Value:
    """`one[key]`, or `NOTHING`; a value without keys has nothing."""
    if isinstance(one, Map):
        return one.find(key)
    if type(one) is list:
        cls = type(key)
        if cls is float and key == key and abs(key) <= MAX_INT and int(key) == key:
            key = int(key)
        elif cls is not int and cls is not Uint:
            raise Failure(f"unsupported index type {type_name(key)} in a list")
        return one[key] if 0 <= key < len(one) else NOTHING
    return NOTHING


def shown(key: Value) -> str:
    try:
        return formatting.text_of(key)
    except Failure:
        return type_name(key)


# Conversions.


def to_int(one: Value) -> int:
    cls = type(one)
    if cls is int:
        return int(one)
    if cls is Uint:
        return int64(int(one))
    if cls is float:
        if one != one or not -(2.0**63) < one < 2.0**63:
            raise Failure("integer overflow")
        return int(one)
    if cls is str:
        if re.fullmatch(r"[+-]?[0-9]{1,40}", one):
            number = int(one)
            if MIN_INT <= number <= MAX_INT:
                return number
        raise Failure("type conversion error from 'string' to 'int'")
    if cls is Duration:
        return int(one.nanos)
    if cls is Timestamp:
        return int(one.nanos // 10**9)
    raise no_overload(one)


def to_uint(one: Value) -> Uint:
    cls = type(one)
    if cls is Uint:
        return Uint(one)
    if cls is int:
        return uint64(one)
    if cls is float:
        if one != one or not -1 < one < 2.0**64:
            raise Failure("unsigned integer overflow")
        return uint64(int(one)) if one >= 0 else _negative()
    if cls is str:
        if re.fullmatch(r"[0-9]{1,40}", one) and int(one) <= MAX_UINT:
            return Uint(int(one))
        raise Failure("type conversion error from 'string' to 'uint'")
    raise no_overload(one)


def _negative() -> Uint:
    raise Failure("unsigned integer overflow")


_DOUBLE: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_HEX_DOUBLE: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")


def to_double(one: Value) -> float:
    cls = type(one)
    if cls is float:
        return float(one)
    if cls is int or cls is Uint:
        return float(int(one))
    if cls is str:
        found = None
        if _DOUBLE.fullmatch(one) and not (one[1:].lower() == "nan" and one[0] in "+-"):
            found = float(one)
            if math.isinf(found) and "n" not in one.lower():
                found = None
        elif _HEX_DOUBLE.fullmatch(one):
            try:
                found = float.fromhex(one)
            except OverflowError:
                found = None
        if found is None:
            raise Failure("type conversion error from 'string' to 'double'")
        return found
    raise no_overload(one)


_BOOLEANS: Final = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)


def to_bool(one: Value) -> bool:
    if type(one) is bool:
        return one
    if type(one) is str:
        if one in _BOOLEANS:
            return _BOOLEANS[one]
        raise Failure("type conversion error from 'string' to 'bool'")
    raise no_overload(one)


def to_bytes(one: Value) -> bytes:
    if type(one) is bytes:
        return one
    if type(one) is str:
        return one.encode("utf-8", "surrogateescape")
    raise no_overload(one)


def to_string(one: Value) -> str:
    cls = type(one)
    if cls in (str, bool, int, Uint, float, bytes, Duration, Timestamp):
        return formatting.text_of(one)
    if cls is Ip:
        return str(one.address)
    if cls is Cidr:
        return f"{one.address}/{one.bits}"
    raise no_overload(one)


def to_type(one: Value) -> TypeValue:
    return TypeValue(type_name(one))


CONVERSIONS: Final[Mapping[str, Implementation]] = {
    "bool": to_bool,
    "bytes": to_bytes,
    "double": to_double,
    "duration": duration_of,
    "dyn": lambda one: one,
    "int": to_int,
    "string": to_string,
    "timestamp": timestamp_of,
    "type": to_type,
    "uint": to_uint,
}
"""Computed before evaluation when the argument is constant, as upstream does: a failure is then a compile error."""


def _ordered(test: Callable[[int], bool]) -> Implementation:
    return lambda one, other: test(compare(one, other))


OPERATORS: Final[Mapping[str, Implementation]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": invert,
    "@in": member,
    "size": sized,
    "_<_": _ordered(lambda found: found < 0),
    "_<=_": _ordered(lambda found: found <= 0),
    "_>_": _ordered(lambda found: found > 0),
    "_>=_": _ordered(lambda found: found >= 0),
    **CONVERSIONS,
}
"""Functions that look at their values themselves, whatever overload was found."""
