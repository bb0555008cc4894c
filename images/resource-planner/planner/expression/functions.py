# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What each overload computes and what it costs.

Costs are those Kubernetes charges at run time (cel-go's runtimecost.go, the list and set libraries, and
apiserver/pkg/cel/library/cost.go); a pattern or a text is charged by its length, a call nobody prices costs 1.
"""

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, timedelta, timezone, tzinfo
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final
from urllib.parse import unquote_plus
from zoneinfo import ZoneInfo

from planner import quantity, semver

from . import formatting, library
from .values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NONE,
    NOTHING,
    Abort,
    Amount,
    BeyondBudget,
    Cidr,
    Duration,
    Failure,
    Format,
    Ip,
    Map,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Url,
    Value,
    cidr_of,
    compare,
    contains_key,
    duration_of,
    hostname,
    int64,
    ip_of,
    map_key,
    masked,
    moment,
    no_overload,
    pattern,
    port,
    same,
    size,
    text_of_double,
    text_of_duration,
    text_of_timestamp,
    timestamp_of,
    type_name,
    uint64,
    url_of,
    within,
)

COST_LIMIT: Final = 1_000_000
"""What one evaluation of a device selector may cost (resource.k8s.io, CELSelectorExpressionMaxCost)."""

LONGEST: Final = 1 << 22
"""Our own bound on characters or elements of one value: beyond it an answer is not attempted."""

Implementation = Callable[..., Value]


class CostExceeded(Abort):
    """Kubernetes' own limit: a run-time error there, and here."""


def _bounded(length: int) -> None:
    if length > LONGEST:
        raise BeyondBudget(f"a value of {length} characters or elements")


def _affordable(cost: int) -> None:
    """Spares computing what will cost more than an evaluation may."""
    if cost > COST_LIMIT:
        raise CostExceeded("cost limit exceeded")


# Operators: dispatched by value, because upstream's are.


def add(one: Value, other: Value) -> Value:
    cls, other_cls = type(one), type(other)
    if cls is other_cls:
        if cls is int:
            return int64(one + other)
        if cls is str or cls is bytes or cls is list:
            _bounded(len(one) + len(other))
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
        raise Failure(f"{'index out of bounds' if type(one) is list else 'no such key'}: {_shown(key)}")
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


def _shown(key: Value) -> str:
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
    if cls is str:
        return str(one)
    if cls is bool:
        return "true" if one else "false"
    if cls is int or cls is Uint:
        return str(int(one))
    if cls is float:
        return text_of_double(one)
    if cls is bytes:
        return formatting.text_of(one)
    if cls is Duration:
        return text_of_duration(one)
    if cls is Timestamp:
        return text_of_timestamp(one)
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


# Texts.


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise Failure(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise Failure(f"index out of range: {offset}")
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    if len(text.encode("utf-8", "replace")) < len(part.encode("utf-8", "replace")):
        return -1
    return _last_index_from(text, part, len(text) - 1)


def _last_index_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise Failure(f"index out of range: {offset}")
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_UPPER: Final = {code: code - 32 for code in range(97, 123)}


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = len(text) + 1 if not old else text.count(old)
    found = found if count < 0 else min(found, count)
    _bounded(len(text) + found * len(new))
    return text.replace(old, new, found)


def _split(text: str, separator: str, count: int = -1) -> list[Value]:
    if count == 0:
        return []
    if not separator:
        characters = list(text)
        if 0 < count < len(characters):
            return [*characters[: count - 1], "".join(characters[count - 1 :])]
        return characters
    return list(text.split(separator, -1 if count < 0 else count - 1))


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if end is not None and start > end:
        raise Failure(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise Failure(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise Failure(f"index out of range: {stop}")
    return text[start:stop]


_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTES: Final = str.maketrans(
    {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\",
     '"': '\\"'}
)  # fmt: skip


def _join(parts: Sequence[Value], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            raise Failure(f"join: invalid input of type {type_name(part)}")
    _bounded(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _find(text: str, expression: str) -> str:
    match = pattern(expression).search(text)
    return match.group() if match else ""


def _find_all(text: str, expression: str, limit: int = -1) -> list[Value]:
    """Go's FindAllString: an empty match right after another match does not count."""
    compiled = pattern(expression)
    found: list[Value] = []
    position, previous = 0, -1
    while position <= len(text) and (limit < 0 or len(found) < limit):
        match = compiled.search(text, position)
        if match is None:
            break
        start, end = match.span()
        if end > start or start != previous:
            found.append(match.group())
        previous = end
        position = end if end > position else position + 1
        if end == start and end >= position:
            position = end + 1
    return found


# Lists.


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
    _affordable(count)
    return list(range(count))


def _distinct(parts: Sequence[Value]) -> list[Value]:
    _affordable(2 * len(parts) * len(parts))
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
    _affordable(len(parts) * len(wanted))
    return all(any(same(one, part) for part in parts) for one in wanted)


def _sets_equivalent(one: Sequence[Value], other: Sequence[Value]) -> bool:
    return _sets_contain(one, other) and _sets_contain(other, one)


def _sets_intersect(one: Sequence[Value], other: Sequence[Value]) -> bool:
    _affordable(len(one) * len(other))
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
            raise Failure(f"insert failed: key {_shown(key)} already exists")
        found.entries[map_key(key)] = (key, value)
    return found


# Quantities.


def _quantity(text: str) -> Amount:
    try:
        return Amount(quantity.parse(text))
    except quantity.QuantityError as error:
        raise Failure(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def _compared(one: Amount, other: Amount) -> int:
    if one.held.slow or other.held.slow:
        one.held = one.held.as_slow()
    return one.held.compare(other.held)


def _as_integer(one: Amount) -> int:
    found = one.held.as_int64()
    if found is None:
        raise Failure("cannot convert value to integer")
    return found


def _whole(number: int) -> quantity.Quantity:
    return quantity.Quantity(number, 0, quantity.Format.DECIMAL_EXPONENT)


# Versions.


def _semver(text: str, normalize: bool = False) -> semver.Version:
    try:
        return semver.parse(text, normalize)
    except semver.VersionError as error:
        raise Failure(str(error)) from None


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        semver.parse(text, normalize)
    except semver.VersionError:
        return False
    return True


def _signed(number: int) -> int:
    """A version's number as int64: upstream converts without a look."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


# Addresses.


def _is(reader: Callable[[str], Value]) -> Implementation:
    def test(text: str) -> bool:
        try:
            reader(text)
        except Failure:
            return False
        return True

    return test


def _query(one: Url) -> Map:
    found: dict[str, list[Value]] = {}
    for part in one.query.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.partition("=")
        if re.search(r"%(?![0-9A-Fa-f]{2})", key + "\0" + value):
            continue
        found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return Map(found.items())


def _contains_cidr(one: Cidr, other: Cidr) -> bool:
    return one.bits <= other.bits and within(one, other.address)


def _global_unicast(one: Ip) -> bool:
    address = one.address
    broadcast = address.version == 4 and int(address) == 0xFFFFFFFF
    local = address.is_loopback or address.is_multicast or address.is_link_local or address.is_unspecified
    return not (broadcast or local)


def _local_multicast(one: Ip) -> bool:
    address = one.address
    if address.version == 4:
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


# Named formats.

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_OLD_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_DATETIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.IGNORECASE)


def _label(text: str, expression: re.Pattern[str], longest: int, *, prefix: bool = False) -> bool:
    if prefix and len(text) > 1 and text.endswith("-"):
        text = text[:-2] + "a"
    return len(text) <= longest and bool(expression.fullmatch(text))


def _qualified(text: str) -> bool:
    parts = text.split("/")
    if len(parts) > 2:
        return False
    if len(parts) == 2 and not _label(parts[0], _SUBDOMAIN, 253):
        return False
    return bool(parts[-1]) and len(parts[-1]) <= 63 and bool(_NAME.fullmatch(parts[-1]))


def _date(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text)) and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _datetime(text: str) -> bool:
    if len(text) < 4 or text.upper().count("T") != 1:
        return False
    day, _, time = text.upper().partition("T")
    if not _date(day):
        return False
    match = _DATETIME.fullmatch(time)
    return match is not None and int(match[1]) <= 23 and int(match[2]) <= 59 and int(match[3]) <= 59


def _base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(text) % 4 == 0


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "dns1123Label": lambda text: _label(text, _LABEL, 63),
    "dns1123Subdomain": lambda text: _label(text, _SUBDOMAIN, 253),
    "dns1035Label": lambda text: _label(text, _OLD_LABEL, 63),
    "qualifiedName": _qualified,
    "dns1123LabelPrefix": lambda text: _label(text, _LABEL, 63, prefix=True),
    "dns1123SubdomainPrefix": lambda text: _label(text, _SUBDOMAIN, 253, prefix=True),
    "dns1035LabelPrefix": lambda text: _label(text, _OLD_LABEL, 63, prefix=True),
    "labelValue": lambda text: not text or (len(text) <= 63 and bool(_NAME.fullmatch(text))),
    "uri": _is(url_of),
    "uuid": lambda text: bool(_UUID.fullmatch(text)),
    "byte": _base64,
    "date": _date,
    "datetime": _datetime,
}


def _validated(one: Format, text: str) -> Optional:
    """Upstream lists what is wrong in its own words, which nothing here repeats."""
    return NONE if _FORMATS[one.name](text) else Optional([f"{text!r} is no {one.name}"])


def _named(name: str) -> Optional:
    return Optional(Format(name, library.FORMATS[name])) if name in library.FORMATS else NONE


def _constant(name: str) -> Implementation:
    return lambda: Format(name, library.FORMATS[name])


# Times.


def _zone(name: str) -> tzinfo:
    match = re.fullmatch(r"([+-]?)([0-9]{2}):([0-9]{2})", name)
    if match:
        minutes = int(match[2]) * 60 + int(match[3])
        try:
            return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
        except ValueError:
            raise Failure(f"unknown time zone {name!r}") from None
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except Exception:  # noqa: BLE001 (zoneinfo raises several unrelated classes for a bad name)
        raise Failure(f"unknown time zone {name!r}") from None


_MOMENT: Final[Mapping[str, Callable[[Any], int]]] = {
    "timestamp_to_year": lambda at: at.year,
    "timestamp_to_month": lambda at: at.month - 1,
    "timestamp_to_day_of_year": lambda at: at.timetuple().tm_yday - 1,
    "timestamp_to_day_of_month": lambda at: at.day - 1,
    "timestamp_to_day_of_month_1_based": lambda at: at.day,
    "timestamp_to_day_of_week": lambda at: at.isoweekday() % 7,
    "timestamp_to_hours": lambda at: at.hour,
    "timestamp_to_minutes": lambda at: at.minute,
    "timestamp_to_seconds": lambda at: at.second,
}


def _moments() -> dict[str, Implementation]:
    found: dict[str, Implementation] = {
        "timestamp_to_milliseconds": lambda one: one.nanos % 10**9 // 10**6,
        "timestamp_to_milliseconds_with_tz": lambda one, zone: _zone(zone) and one.nanos % 10**9 // 10**6,
    }
    for name, part in _MOMENT.items():
        found[name] = lambda one, part=part: part(moment(one, UTC))
        found[f"{name}_with_tz"] = lambda one, zone, part=part: part(moment(one, _zone(zone)))
    return found


def _toward_zero(nanos: int, unit: int) -> int:
    return nanos // unit if nanos >= 0 else -(-nanos // unit)


IMPLEMENTATIONS: Final[Mapping[str, Implementation]] = {
    "contains_string": lambda text, part: part in text,
    "starts_with_string": lambda text, part: text.startswith(part),
    "ends_with_string": lambda text, part: text.endswith(part),
    "matches": lambda text, expression: pattern(expression).search(text) is not None,
    "matches_string": lambda text, expression: pattern(expression).search(text) is not None,
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_from,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring,
    "string_trim": lambda text: text.strip(_SPACE),
    "string_format": formatting.formatted,
    "strings_quote": lambda text: '"' + text.translate(_QUOTES) + '"',
    "list_join": _join,
    "list_join_string": _join,
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
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
    "string_to_quantity": _quantity,
    "is_quantity_string": _is_quantity,
    "quantity_sign": lambda one: one.held.sign,
    "quantity_is_greater_than": lambda one, other: _compared(one, other) > 0,
    "quantity_is_less_than": lambda one, other: _compared(one, other) < 0,
    "quantity_compare_to": _compared,
    "quantity_get_float": lambda one: one.held.as_approximate_float(),
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda one: one.held.as_int64() is not None,
    "quantity_add": lambda one, other: Amount(one.held.add(other.held), computed=True),
    "quantity_add_int": lambda one, number: Amount(one.held.add(_whole(number)), computed=True),
    "quantity_sub": lambda one, other: Amount(one.held.sub(other.held), computed=True),
    "quantity_sub_int": lambda one, number: Amount(one.held.sub(_whole(number)), computed=True),
    "string_to_semver": _semver,
    "string_bool_to_semver": _semver,
    "is_semver_string": _is_semver,
    "is_semver_string_bool": _is_semver,
    "semver_is_greater_than": lambda one, other: one > other,
    "semver_is_less_than": lambda one, other: one < other,
    "semver_compare_to": lambda one, other: one.compare(other),
    "semver_major": lambda one: _signed(one.major),
    "semver_minor": lambda one: _signed(one.minor),
    "semver_patch": lambda one: _signed(one.patch),
    "string_to_url": url_of,
    "is_url_string": _is(url_of),
    "url_get_scheme": lambda one: one.scheme,
    "url_get_host": lambda one: one.host,
    "url_get_hostname": hostname,
    "url_get_port": port,
    "url_get_escaped_path": lambda one: one.escaped_path,
    "url_get_query": _query,
    "string_to_ip": ip_of,
    "is_ip": _is(ip_of),
    "ip_is_canonical": lambda text: str(ip_of(text).address) == text,
    "ip_family": lambda one: one.address.version,
    "ip_is_unspecified": lambda one: one.address.is_unspecified,
    "ip_is_loopback": lambda one: one.address.is_loopback,
    "ip_is_link_local_multicast": _local_multicast,
    "ip_is_link_local_unicast": lambda one: one.address.is_link_local,
    "ip_is_global_unicast": _global_unicast,
    "string_to_cidr": cidr_of,
    "is_cidr": _is(cidr_of),
    "cidr_ip": lambda one: Ip(one.address),
    "cidr_contains_ip_string": lambda one, text: within(one, ip_of(text).address),
    "cidr_contains_ip_ip": lambda one, other: within(one, other.address),
    "cidr_contains_cidr_string": lambda one, text: _contains_cidr(one, cidr_of(text)),
    "cidr_contains_cidr": _contains_cidr,
    "cidr_prefix_length": lambda one: one.bits,
    "cidr_masked": masked,
    "format-validate": _validated,
    "format-named": _named,
    "duration_to_hours": lambda one: _toward_zero(one.nanos, 3600 * 10**9),
    "duration_to_minutes": lambda one: _toward_zero(one.nanos, 60 * 10**9),
    "duration_to_seconds": lambda one: _toward_zero(one.nanos, 10**9),
    "duration_to_milliseconds": lambda one: _toward_zero(one.nanos, 10**6),
    **{f"format.{name}": _constant(name) for name in library.FORMATS},
    **{f"list_{name}_max_{name}": _extreme("max", -1) for name in ("int", "uint", "double", "bool", "duration",
                                                                  "timestamp", "string", "bytes")},
    **{f"list_{name}_min_{name}": _extreme("min", 1) for name in ("int", "uint", "double", "bool", "duration",
                                                                 "timestamp", "string", "bytes")},
    **{f"list_{name}_is_sorted_bool": _is_sorted for name in ("int", "uint", "double", "bool", "duration",
                                                             "timestamp", "string", "bytes")},
    **_moments(),
}  # fmt: skip
"""By overload; one that is missing here exists upstream but has no values a selector could reach."""

UNGUARDED: Final[Mapping[str, Implementation]] = {
    "flatten": _flatten,
    "sort": _sorted,
    "@sortByAssociatedKeys": _sorted_by,
}
"""Functions upstream lets look at their values themselves."""


# Costs.


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
