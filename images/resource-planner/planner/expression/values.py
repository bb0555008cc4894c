# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What an expression computes with, how values are equal and ordered, and how text becomes a value.

bool, int, float, str, bytes, None and list are Python's own; `Uint` is an int that is not CEL's int. Faults are
`Failure` (an error value: && and || may absorb it) or `Abort` (ends the evaluation, nothing absorbs it).
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final, Self, TypeAlias
from urllib.parse import unquote

import re2

from planner import quantity
from planner.semver import Version

from . import types
from .types import Type

Value: TypeAlias = Any
"""A CEL value; which classes it can have is this module's first paragraph."""

MIN_INT: Final = -(1 << 63)
MAX_INT: Final = (1 << 63) - 1
MAX_UINT: Final = (1 << 64) - 1
_BILLION: Final = 1_000_000_000
_MIN_TIME: Final = -62135596800
_MAX_TIME: Final = 253402300799


class Failure(Exception):
    """An error value of CEL."""


class Abort(Exception):
    """The evaluation ends with an error that nothing absorbs."""


class BeyondBudget(Abort):
    """Our own limit, not Kubernetes': nothing is known about the answer."""


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    nanos: int
    """Since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class TypeValue:
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """An optional with a value; `NONE` is the one without."""

    value: Value


class _Nothing:
    __slots__ = ()


NOTHING: Final = _Nothing()
NONE: Final = Optional(NOTHING)


class Amount:
    """A quantity within one evaluation. Comparing changes how upstream holds it, and `isInteger()` sees that."""

    __slots__ = ("computed", "held")

    def __init__(self, held: quantity.Quantity, *, computed: bool = False) -> None:
        self.held = held
        self.computed = computed
        """A result of add or sub: upstream cannot compare anything for equality *with* it."""


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    user: str
    host: str
    path: str
    escaped_path: str
    query: str
    fragment: str
    opaque: str
    forced_query: bool = False

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            if self.scheme or self.host or self.user:
                text += "//" if self.host or self.user or self.path.startswith("//") or self.path else ""
            text += (f"{self.user}@" if self.user else "") + self.host + self.escaped_path
        if self.query or self.forced_query:
            text += "?" + self.query
        return text + (f"#{self.fragment}" if self.fragment else "")


@dataclass(frozen=True, slots=True)
class Ip:
    address: IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Cidr:
    address: IPv4Address | IPv6Address
    bits: int


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    pattern_size: int


def map_key(key: Value) -> Value:
    """What a key is stored under: numbers of one value share a key, true is not 1."""
    kind = type(key)
    if kind is str:
        return key
    if kind is bool:
        return ("bool", key)
    if kind is int or kind is Uint or kind is float:
        return ("number", key)
    raise Abort(f"a {type_name(key)} cannot be a key of a map")


class Map:
    """A map in the order its entries were written."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[tuple[Value, Value]] = ()) -> None:
        self.entries: dict[Value, tuple[Value, Value]] = {map_key(key): (key, value) for key, value in entries}

    @classmethod
    def named(cls, entries: Iterable[tuple[str, Value]]) -> Self:
        """A map whose keys are texts."""
        found = cls.__new__(cls)
        found.entries = {entry[0]: entry for entry in entries}
        return found

    def find(self, key: Value) -> Value:
        """The value at `key`, or `NOTHING`."""
        kind = type(key)
        if kind is not str:
            if kind not in (bool, int, Uint, float):
                return NOTHING
            key = map_key(key)
        found = self.entries.get(key)
        return NOTHING if found is None else found[1]

    def has(self, key: Value) -> bool:
        return self.find(key) is not NOTHING

    def keys(self) -> Iterator[Value]:
        return (key for key, _ in self.entries.values())

    def items(self) -> Iterator[tuple[Value, Value]]:
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)


class DefaultMap(Map):
    """A map where looking up an unknown key gives an empty map, though `in` and iteration know better."""

    __slots__ = ()

    def find(self, key: Value) -> Value:
        found = self.entries.get(key) if type(key) is str else None
        return _EMPTY if found is None else found[1]

    def has(self, key: Value) -> bool:
        return True

    def member(self, key: Value) -> bool:
        return type(key) is str and key in self.entries


_EMPTY: Final = Map()


def contains_key(one: Map, key: Value) -> bool:
    """`key in one`."""
    return one.member(key) if isinstance(one, DefaultMap) else one.has(key)


_TYPES: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Amount: types.QUANTITY,
    Version: types.SEMVER,
    Url: types.URL,
    Ip: types.IP,
    Cidr: types.CIDR,
    Format: types.FORMAT,
}
_NAMES: Final[dict[type, str]] = {
    list: "list",
    Map: "map",
    DefaultMap: "map",
    TypeValue: "type",
    Optional: "optional_type",
} | {cls: one.name or one.kind for cls, one in _TYPES.items()}


def type_name(value: Value) -> str:
    return _NAMES.get(type(value), "device")


def no_overload(value: Value) -> Failure:
    return Failure(f"no such overload for a value of type {type_name(value)}")


def agrees(declared: Type, value: Value) -> bool:
    """The value may be handed to an argument of the declared type; of lists and maps the first element is looked at."""
    kind = declared.kind
    if kind in ("dyn", "any", "param"):
        return True
    cls = type(value)
    if kind == "list":
        return cls is list and (not value or agrees(declared.params[0], value[0]))
    if kind == "map":
        if not isinstance(value, Map):
            return False
        for key, inner in value.items():
            return agrees(declared.params[0], key) and agrees(declared.params[1], inner)
        return True
    if kind == "opaque" and declared.name == "optional_type":
        return cls is Optional
    if kind == "type":
        return cls is TypeValue
    return _TYPES.get(cls) == declared


_NUMBERS: Final = frozenset((int, Uint, float))


def equal(one: Value, other: Value) -> bool:
    """`one == other`. Raises `Failure` where upstream's types refuse to be compared with another type."""
    if one is None or other is None:
        return one is other
    cls, other_cls = type(one), type(other)
    if cls is str or cls is bool or cls is bytes or cls is Duration or cls is Timestamp or cls is TypeValue:
        return bool(cls is other_cls and one == other)
    if cls in _NUMBERS:
        return bool(other_cls in _NUMBERS and one == other)
    if cls is Amount:
        if other_cls is not Amount or other.computed:
            raise no_overload(other)
        return bool(one.held.compare(other.held) == 0)
    if cls in (Version, Url, Ip, Cidr, Format):
        if other_cls is not cls:
            raise no_overload(other)
        if cls is Url:
            return str(one) == str(other)
        if cls is Format:
            return bool(one.name == other.name)
        return bool(one == other)
    if cls is list:
        return other_cls is list and len(one) == len(other) and not any(map(_differ, one, other))
    if cls is Optional:
        if other_cls is not Optional:
            return False
        if one.value is NOTHING or other.value is NOTHING:
            return one.value is other.value
        return equal(one.value, other.value)
    if isinstance(one, Map):
        if not isinstance(other, Map) or len(one) != len(other):
            return False
        for key, value in one.items():
            theirs = other.find(key)
            if theirs is NOTHING or _differ(value, theirs):
                return False
        return True
    raise no_overload(one)


def _differ(one: Value, other: Value) -> bool:
    """Inside lists and maps only a plain "no" counts: upstream ignores errors there."""
    try:
        return not equal(one, other)
    except Failure:
        return False


def same(one: Value, other: Value) -> bool:
    """Equal, and comparable at all."""
    try:
        return equal(one, other)
    except Failure:
        return False


def compare(one: Value, other: Value) -> int:
    """-1, 0 or 1. Raises `Failure` when the two have no order."""
    cls, other_cls = type(one), type(other)
    if cls in _NUMBERS and other_cls in _NUMBERS:
        if one != one or other != other:
            raise Failure("NaN values cannot be ordered")
    elif cls is not other_cls or cls not in (str, bool, bytes, Duration, Timestamp):
        raise no_overload(other if cls in _NUMBERS or cls in (str, bool, bytes) else one)
    return int(one > other) - int(one < other)


def size(value: Value) -> int:
    """The size by which upstream charges a value."""
    cls = type(value)
    if cls is str or cls is bytes or cls is list or cls is Map or cls is DefaultMap:
        return len(value)
    if cls is Ip:
        return int(value.address.max_prefixlen // 8)
    if cls is Cidr:
        return -(-int(value.bits) // 8)
    if cls is Optional and value.value is not NOTHING:
        return size(value.value)
    return 1


def int64(number: int) -> int:
    """The number, or the failure that int64 overflowed."""
    if MIN_INT <= number <= MAX_INT:
        return number
    raise Failure("integer overflow")


def uint64(number: int) -> Uint:
    if 0 <= number <= MAX_UINT:
        return Uint(number)
    raise Failure("unsigned integer overflow")


@lru_cache(maxsize=4_096)
def pattern(text: str) -> Any:
    """The compiled RE2 expression. Raises `Failure` for a bad one."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options=options)
    except re2.error as error:
        raise Failure(f"illegal regex: {error}") from None


_UNITS: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9,
                 "h": 3600 * 10**9}  # fmt: skip


def duration_of(value: Value) -> Duration:
    """`duration(value)`."""
    cls = type(value)
    if cls is Duration:
        return value  # type: ignore[no-any-return]
    if cls is int:
        return Duration(value)
    if cls is not str:
        raise no_overload(value)
    sign = -1 if value[:1] == "-" else 1
    text = value[1:] if value[:1] in ("+", "-") else value
    if text == "0":
        return Duration(0)
    total, position = 0, 0
    for match in re.finditer(r"([0-9]*)(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)", text):
        if match.start() != position or (not match.group(1) and len(match.group(2) or ".") < 2):
            break
        unit = _UNITS[match.group(3)]
        whole = int(match.group(1) or "0")
        fraction = (match.group(2) or ".")[1:]
        total += whole * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        position = match.end()
    if not text or position != len(text) or total > MAX_INT:
        raise Failure(f"{value!r} is no duration")
    return Duration(sign * total)


_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)


def timestamp_of(value: Value) -> Timestamp:
    """`timestamp(value)`."""
    cls = type(value)
    if cls is Timestamp:
        return value  # type: ignore[no-any-return]
    if cls is int:
        if not _MIN_TIME <= value <= _MAX_TIME:
            raise Failure("timestamp overflow")
        return Timestamp(value * _BILLION)
    if cls is not str:
        raise no_overload(value)
    match = _TIME.fullmatch(value)
    if match is None:
        raise Failure(f"{value!r} is no timestamp")
    zone = UTC
    if match[8] != "Z":
        hours, minutes = int(match[8][1:3]), int(match[8][4:6])
        if hours > 24 or minutes > 60:
            raise Failure(f"{value!r} is no timestamp")
        shift = timedelta(hours=hours, minutes=minutes)
    else:
        shift = timedelta(0)
    try:
        moment = datetime(*(int(match[part]) for part in range(1, 7)), tzinfo=zone)  # type: ignore[misc, arg-type]
    except ValueError:
        raise Failure(f"{value!r} is no timestamp") from None
    seconds = round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    seconds -= round(shift.total_seconds()) * (-1 if match[8][0] == "-" else 1)
    if not _MIN_TIME <= seconds <= _MAX_TIME:
        raise Failure("timestamp overflow")
    fraction = (match[7] or ".")[1:10]
    return Timestamp(seconds * _BILLION + (int(fraction.ljust(9, "0")) if fraction else 0))


def moment(value: Timestamp, zone: tzinfo) -> datetime:
    """The calendar time at that moment in that zone, without fractions of a second."""
    return datetime(1970, 1, 1, tzinfo=UTC).astimezone(zone) + timedelta(seconds=value.nanos // _BILLION)


def text_of_double(number: float) -> str:
    """A double as Go prints it with %g."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    mantissa, _, exponent = f"{number:.17g}".partition("e")
    digits = repr(number)
    if "e" in digits:
        mantissa, _, exponent = digits.partition("e")
        power = int(exponent)
    else:
        whole, _, fraction = digits.lstrip("-").partition(".")
        stripped = (whole + ("" if fraction == "0" else fraction)).lstrip("0")
        if not stripped:
            return "-0" if digits.startswith("-") else "0"
        power = len(whole.lstrip("0")) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
        mantissa = ("-" if digits.startswith("-") else "") + stripped[0]
        rest = stripped[1:].rstrip("0")
        mantissa += f".{rest}" if rest else ""
    if power < -4 or power >= 6:
        return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    plain = f"{number:.340f}".rstrip("0").rstrip(".") if power < 0 else digits
    if power < 0 or "e" in digits:
        sign = "-" if mantissa.startswith("-") else ""
        figures = mantissa.lstrip("-").replace(".", "")
        if power < 0:
            plain = f"{sign}0.{'0' * (-power - 1)}{figures}"
        else:
            plain = sign + figures.ljust(power + 1, "0")
            if len(figures) > power + 1:
                plain = f"{sign}{figures[: power + 1]}.{figures[power + 1 :]}"
    return plain.removesuffix(".0")


def text_of_duration(value: Duration) -> str:
    """A duration as CEL prints it: seconds, as short as a double allows."""
    seconds = value.nanos / _BILLION
    text = text_of_double(seconds)
    if "e" in text:
        text = f"{seconds:.12f}".rstrip("0").rstrip(".")
    return text + "s"


def text_of_timestamp(value: Timestamp) -> str:
    """RFC 3339 in UTC with as many fractional digits as needed."""
    base = moment(value, UTC)
    fraction = f"{value.nanos % _BILLION:09d}".rstrip("0")
    return base.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + (f".{fraction}" if fraction else "") + "Z"


@lru_cache(maxsize=4_096)
def ip_of(text: str) -> Ip:
    """`ip(text)`: no zone, no IPv4 inside IPv6."""
    try:
        if "%" in text or "/" in text:
            raise ValueError
        address = ip_address(text)
    except ValueError:
        raise Failure(f"{text!r} is no IP address") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise Failure(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return Ip(address)


@lru_cache(maxsize=4_096)
def cidr_of(text: str) -> Cidr:
    """`cidr(text)`."""
    head, slash, tail = text.rpartition("/")
    if not slash or not re.fullmatch(r"0|[1-9][0-9]{0,2}", tail):
        raise Failure(f"{text!r} is no CIDR")
    address = ip_of(head).address
    if int(tail) > address.max_prefixlen:
        raise Failure(f"{text!r} is no CIDR")
    return Cidr(address, int(tail))


def masked(one: Cidr) -> Cidr:
    width = one.address.max_prefixlen
    mask = ((1 << one.bits) - 1) << (width - one.bits)
    return Cidr(type(one.address)(int(one.address) & mask), one.bits)


def within(one: Cidr, address: IPv4Address | IPv6Address) -> bool:
    if address.version != one.address.version:
        return False
    shift = address.max_prefixlen - one.bits
    return int(address) >> shift == int(one.address) >> shift


_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPED: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PATH_SAFE: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")
_HOST_SAFE: Final = frozenset("!$&'()*+,;=:[]<>\"-_.~")


@lru_cache(maxsize=4_096)
def url_of(text: str) -> Url:
    """`url(text)`: absolute, as Go's ParseRequestURI admits, then read as Go's Parse does."""
    failure = Failure(f"{text!r} is no URL")
    if not text or any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise failure
    if text == "*":
        return Url("", "", "", "*", "*", "", "", "")
    _read_url(text, failure, request=True)
    return _read_url(text, failure, request=False)


def _read_url(text: str, failure: Failure, *, request: bool) -> Url:
    fragment = ""
    if not request:
        text, _, fragment = text.partition("#")
        if _ESCAPED.search(fragment):
            raise failure
    scheme, rest = "", text
    match = _SCHEME.match(text)
    if match:
        scheme, rest = match[1].lower(), text[match.end() :]
    elif re.match(r":|[A-Za-z0-9+.-]*[^A-Za-z0-9+.\-/?#][^/?#]*:", text) and text[0] == ":":
        raise failure
    forced = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, "", "", "", "", query, fragment, rest, forced)
        if request:
            raise failure
        if ":" in rest.partition("/")[0]:
            raise failure
    user = host = ""
    if (scheme or (not request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(authority, failure)
    if _ESCAPED.search(rest):
        raise failure
    path = unquote(rest, errors="surrogateescape")
    plain = all(character in _PATH_SAFE or character in "!'()*[]%" for character in rest)
    escaped = rest if plain else "".join(_escape(character) for character in path)
    return Url(scheme, user, host, path, escaped, query, fragment, "", forced)


def _escape(character: str) -> str:
    if character in _PATH_SAFE:
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def _authority(text: str, failure: Failure) -> tuple[str, str]:
    user, at, host = text.rpartition("@")
    if at and (not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", user) or _ESCAPED.search(user)):
        raise failure
    if host.startswith("["):
        inner, bracket, port = host.rpartition("]")
        if not bracket or (port and not re.fullmatch(r":[0-9]*", port)):
            raise failure
        if _ESCAPED.search(inner.replace("%25", "")):
            raise failure
        return user, host
    if ":" in host and not re.fullmatch(r"[0-9]*", host.rpartition(":")[2]):
        raise failure
    if _ESCAPED.search(host) or (
        re.search(r"%[0-7]", host) and not re.search(r"%(?:2[1245689A-Fa-f]|3[BbDdAa])", host)
    ):
        raise failure
    if not all(character.isalnum() or character in _HOST_SAFE or character == "%" or ord(character) > 127
               for character in host):  # fmt: skip
        raise failure
    return user, unquote(host)


def hostname(url: Url) -> str:
    host = url.host
    if host.startswith("["):
        return host[1 : host.rindex("]")]
    return host.rpartition(":")[0] if ":" in host else host


def port(url: Url) -> str:
    tail = url.host.rpartition("]")[2] if url.host.startswith("[") else url.host
    return tail.rpartition(":")[2] if ":" in tail else ""
