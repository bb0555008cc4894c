# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What an expression can call in each Kubernetes version: functions, their overloads, the names of types.

One line declares one overload: `id: function(arguments) -> result`, a member with its receiver in front
(`id: string.contains(string) -> bool`). Order matters where several overloads match.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from . import types
from .types import Type

Release = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function; `args` begins with the receiver of a member."""

    id: str
    function: str
    member: bool
    args: tuple[Type, ...]
    result: Type
    params: tuple[Type, ...]


_STANDARD: Final = """
conditional: _?_:_(bool, A, A) -> A
logical_and: _&&_(bool, bool) -> bool
logical_or: _||_(bool, bool) -> bool
logical_not: !_(bool) -> bool
not_strictly_false: @not_strictly_false(bool) -> bool
equals: _==_(A, A) -> bool
not_equals: _!=_(A, A) -> bool
add_bytes: _+_(bytes, bytes) -> bytes
add_double: _+_(double, double) -> double
add_duration_duration: _+_(duration, duration) -> duration
add_duration_timestamp: _+_(duration, timestamp) -> timestamp
add_timestamp_duration: _+_(timestamp, duration) -> timestamp
add_int64: _+_(int, int) -> int
add_list: _+_(list(A), list(A)) -> list(A)
add_string: _+_(string, string) -> string
add_uint64: _+_(uint, uint) -> uint
divide_double: _/_(double, double) -> double
divide_int64: _/_(int, int) -> int
divide_uint64: _/_(uint, uint) -> uint
modulo_int64: _%_(int, int) -> int
modulo_uint64: _%_(uint, uint) -> uint
multiply_double: _*_(double, double) -> double
multiply_int64: _*_(int, int) -> int
multiply_uint64: _*_(uint, uint) -> uint
negate_double: -_(double) -> double
negate_int64: -_(int) -> int
subtract_double: _-_(double, double) -> double
subtract_duration_duration: _-_(duration, duration) -> duration
subtract_int64: _-_(int, int) -> int
subtract_timestamp_duration: _-_(timestamp, duration) -> timestamp
subtract_timestamp_timestamp: _-_(timestamp, timestamp) -> duration
subtract_uint64: _-_(uint, uint) -> uint
index_list: _[_](list(A), int) -> A
index_map: _[_](map(A, B), A) -> B
optional_list_index_int: _[_](optional(list(V)), int) -> optional(V)
optional_map_index_value: _[_](optional(map(K, V)), K) -> optional(V)
list_optindex_optional_int: _[?_](list(V), int) -> optional(V)
optional_list_optindex_optional_int: _[?_](optional(list(V)), int) -> optional(V)
map_optindex_optional_value: _[?_](map(K, V), K) -> optional(V)
optional_map_optindex_optional_value: _[?_](optional(map(K, V)), K) -> optional(V)
in_list: @in(A, list(A)) -> bool
in_map: @in(A, map(A, B)) -> bool
size_bytes: size(bytes) -> int
bytes_size: bytes.size() -> int
size_list: size(list(A)) -> int
list_size: list(A).size() -> int
size_map: size(map(A, B)) -> int
map_size: map(A, B).size() -> int
size_string: size(string) -> int
string_size: string.size() -> int
type: type(A) -> type(A)
bool_to_bool: bool(bool) -> bool
string_to_bool: bool(string) -> bool
bytes_to_bytes: bytes(bytes) -> bytes
string_to_bytes: bytes(string) -> bytes
double_to_double: double(double) -> double
int64_to_double: double(int) -> double
string_to_double: double(string) -> double
uint64_to_double: double(uint) -> double
duration_to_duration: duration(duration) -> duration
int64_to_duration: duration(int) -> duration
string_to_duration: duration(string) -> duration
to_dyn: dyn(A) -> dyn
int64_to_int64: int(int) -> int
double_to_int64: int(double) -> int
duration_to_int64: int(duration) -> int
string_to_int64: int(string) -> int
timestamp_to_int64: int(timestamp) -> int
uint64_to_int64: int(uint) -> int
string_to_string: string(string) -> string
bool_to_string: string(bool) -> string
bytes_to_string: string(bytes) -> string
double_to_string: string(double) -> string
duration_to_string: string(duration) -> string
int64_to_string: string(int) -> string
timestamp_to_string: string(timestamp) -> string
uint64_to_string: string(uint) -> string
ip_to_string: string(ip) -> string
cidr_to_string: string(cidr) -> string
timestamp_to_timestamp: timestamp(timestamp) -> timestamp
int64_to_timestamp: timestamp(int) -> timestamp
string_to_timestamp: timestamp(string) -> timestamp
uint64_to_uint64: uint(uint) -> uint
double_to_uint64: uint(double) -> uint
int64_to_uint64: uint(int) -> uint
string_to_uint64: uint(string) -> uint
contains_string: string.contains(string) -> bool
ends_with_string: string.endsWith(string) -> bool
starts_with_string: string.startsWith(string) -> bool
matches: matches(string, string) -> bool
matches_string: string.matches(string) -> bool
"""

_OPTIONALS: Final = """
optional_of: optional.of(V) -> optional(V)
optional_ofNonZeroValue: optional.ofNonZeroValue(V) -> optional(V)
optional_none: optional.none() -> optional(V)
optional_value: optional(V).value() -> V
optional_hasValue: optional(V).hasValue() -> bool
optional_or_optional: optional(V).or(optional(V)) -> optional(V)
optional_orValue_value: optional(V).orValue(V) -> V
list_last: list(V).last() -> optional(V)
list_first: list(V).first() -> optional(V)
optional_unwrap: optional.unwrap(list(optional(V))) -> list(V)
optional_unwrapOpt: list(optional(V)).unwrapOpt() -> list(V)
cel_map_insert_key_value: cel.@mapInsert(map(K, V), K, V) -> map(K, V)
cel_map_insert_map: cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)
"""

_STRINGS: Final = """
string_char_at_int: string.charAt(int) -> string
list_a_index_of_int: list(A).indexOf(A) -> int
string_index_of_string: string.indexOf(string) -> int
string_index_of_string_int: string.indexOf(string, int) -> int
list_a_last_index_of_int: list(A).lastIndexOf(A) -> int
string_last_index_of_string: string.lastIndexOf(string) -> int
string_last_index_of_string_int: string.lastIndexOf(string, int) -> int
string_lower_ascii: string.lowerAscii() -> string
string_replace_string_string: string.replace(string, string) -> string
string_replace_string_string_int: string.replace(string, string, int) -> string
string_split_string: string.split(string) -> list(string)
string_split_string_int: string.split(string, int) -> list(string)
string_substring_int: string.substring(int) -> string
string_substring_int_int: string.substring(int, int) -> string
string_trim: string.trim() -> string
string_upper_ascii: string.upperAscii() -> string
string_format: string.format(list(dyn)) -> string
strings_quote: strings.quote(string) -> string
list_join: list(string).join() -> string
list_join_string: list(string).join(string) -> string
string_find_string: string.find(string) -> string
string_find_all_string: string.findAll(string) -> list(string)
string_find_all_string_int: string.findAll(string, int) -> list(string)
"""

_LISTS: Final = """
list_slice: list(T).slice(int, int) -> list(T)
list_flatten: list(list(T)).flatten() -> list(T)
list_flatten_int: list(dyn).flatten(int) -> list(dyn)
lists_range: lists.range(int) -> list(int)
list_reverse: list(T).reverse() -> list(T)
list_distinct: list(T).distinct() -> list(T)
list_sets_contains_list: sets.contains(list(T), list(T)) -> bool
list_sets_equivalent_list: sets.equivalent(list(T), list(T)) -> bool
list_sets_intersects_list: sets.intersects(list(T), list(T)) -> bool
"""

_KUBERNETES: Final = """
string_to_quantity: quantity(string) -> quantity
is_quantity_string: isQuantity(string) -> bool
quantity_sign: sign(quantity) -> int
quantity_is_greater_than: quantity.isGreaterThan(quantity) -> bool
quantity_is_less_than: quantity.isLessThan(quantity) -> bool
quantity_compare_to: quantity.compareTo(quantity) -> int
quantity_get_float: quantity.asApproximateFloat() -> double
quantity_get_int: quantity.asInteger() -> int
quantity_is_integer: quantity.isInteger() -> bool
quantity_add: quantity.add(quantity) -> quantity
quantity_add_int: quantity.add(int) -> quantity
quantity_sub: quantity.sub(quantity) -> quantity
quantity_sub_int: quantity.sub(int) -> quantity
string_to_semver: semver(string) -> semver
string_bool_to_semver: semver(string, bool) -> semver
is_semver_string: isSemver(string) -> bool
is_semver_string_bool: isSemver(string, bool) -> bool
semver_is_greater_than: semver.isGreaterThan(semver) -> bool
semver_is_less_than: semver.isLessThan(semver) -> bool
semver_compare_to: semver.compareTo(semver) -> int
semver_major: semver.major() -> int
semver_minor: semver.minor() -> int
semver_patch: semver.patch() -> int
string_to_url: url(string) -> url
url_get_scheme: url.getScheme() -> string
url_get_host: url.getHost() -> string
url_get_hostname: url.getHostname() -> string
url_get_port: url.getPort() -> string
url_get_escaped_path: url.getEscapedPath() -> string
url_get_query: url.getQuery() -> map(string, list(string))
is_url_string: isURL(string) -> bool
string_to_ip: ip(string) -> ip
cidr_ip: cidr.ip() -> ip
ip_family: ip.family() -> int
ip_is_canonical: ip.isCanonical(string) -> bool
ip_is_unspecified: ip.isUnspecified() -> bool
ip_is_loopback: ip.isLoopback() -> bool
ip_is_link_local_multicast: ip.isLinkLocalMulticast() -> bool
ip_is_link_local_unicast: ip.isLinkLocalUnicast() -> bool
ip_is_global_unicast: ip.isGlobalUnicast() -> bool
is_ip: isIP(string) -> bool
string_to_cidr: cidr(string) -> cidr
cidr_contains_ip_string: cidr.containsIP(string) -> bool
cidr_contains_ip_ip: cidr.containsIP(ip) -> bool
cidr_contains_cidr_string: cidr.containsCIDR(string) -> bool
cidr_contains_cidr: cidr.containsCIDR(cidr) -> bool
cidr_prefix_length: cidr.prefixLength() -> int
cidr_masked: cidr.masked() -> cidr
is_cidr: isCIDR(string) -> bool
format-validate: format.validate(string) -> optional(list(string))
format-named: format.named(string) -> optional(format)
authorizer_path: kubernetes.authorization.Authorizer.path(string) -> kubernetes.authorization.PathCheck
authorizer_group: kubernetes.authorization.Authorizer.group(string) -> kubernetes.authorization.GroupCheck
authorizer_serviceaccount: kubernetes.authorization.Authorizer.serviceAccount(string, string) -> kubernetes.authorization.Authorizer
groupcheck_resource: kubernetes.authorization.GroupCheck.resource(string) -> kubernetes.authorization.ResourceCheck
resourcecheck_subresource: kubernetes.authorization.ResourceCheck.subresource(string) -> kubernetes.authorization.ResourceCheck
resourcecheck_namespace: kubernetes.authorization.ResourceCheck.namespace(string) -> kubernetes.authorization.ResourceCheck
resourcecheck_name: kubernetes.authorization.ResourceCheck.name(string) -> kubernetes.authorization.ResourceCheck
authorizer_fieldselector: kubernetes.authorization.ResourceCheck.fieldSelector(string) -> kubernetes.authorization.ResourceCheck
authorizer_labelselector: kubernetes.authorization.ResourceCheck.labelSelector(string) -> kubernetes.authorization.ResourceCheck
pathcheck_check: kubernetes.authorization.PathCheck.check(string) -> kubernetes.authorization.Decision
resourcecheck_check: kubernetes.authorization.ResourceCheck.check(string) -> kubernetes.authorization.Decision
decision_errored: kubernetes.authorization.Decision.errored() -> bool
decision_error: kubernetes.authorization.Decision.error() -> string
decision_allowed: kubernetes.authorization.Decision.allowed() -> bool
decision_reason: kubernetes.authorization.Decision.reason() -> string
"""  # noqa: E501

_INCLUDES: Final = "dra_includes_dyn_dyn: dyn.includes(dyn) -> bool"

FORMATS: Final[Mapping[str, int]] = {
    "dns1123Label": 30,
    "dns1123Subdomain": 60,
    "dns1035Label": 30,
    "qualifiedName": 60,
    "dns1123LabelPrefix": 30,
    "dns1123SubdomainPrefix": 60,
    "dns1035LabelPrefix": 30,
    "labelValue": 40,
    "uri": 1103,
    "uuid": 70,
    "byte": 84,
    "date": 71,
    "datetime": 71,
}
"""Named formats and the size of their pattern, by which validating is charged."""

_ORDERED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = ("int", "uint", "double", "duration")

_TIME_PARTS: Final = {
    "getFullYear": "timestamp_to_year",
    "getMonth": "timestamp_to_month",
    "getDayOfYear": "timestamp_to_day_of_year",
    "getDayOfMonth": "timestamp_to_day_of_month",
    "getDate": "timestamp_to_day_of_month_1_based",
    "getDayOfWeek": "timestamp_to_day_of_week",
    "getHours": "timestamp_to_hours",
    "getMinutes": "timestamp_to_minutes",
    "getSeconds": "timestamp_to_seconds",
    "getMilliseconds": "timestamp_to_milliseconds",
}

TYPE_NAMES: Final[Mapping[str, Type]] = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "int": types.INT,
    "uint": types.UINT,
    "string": types.STRING,
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "null_type": types.NULL,
    "type": Type("type"),
    "dyn": types.DYN,
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "optional_type": types.optional_of(types.param("V")),
    "net.IP": types.IP,
    "net.CIDR": types.CIDR,
}
"""Identifiers that stand for a type."""


def _generated() -> str:
    lines: list[str] = []
    for name in _ORDERED:
        lines.append(f"list_{name}_is_sorted_bool: list({name}).isSorted() -> bool")
        lines.append(f"list_{name}_max_{name}: list({name}).max() -> {name}")
        lines.append(f"list_{name}_min_{name}: list({name}).min() -> {name}")
        lines.append(f"list_{name}_sort: list({name}).sort() -> list({name})")
        lines.append(f"list_{name}_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list({name})) -> list(T)")
    lines += [f"list_{name}_sum_{name}: list({name}).sum() -> {name}" for name in _SUMMABLE]
    lines += [f"format.{name}: format.{name}() -> format" for name in FORMATS]
    for function, overload in _TIME_PARTS.items():
        lines.append(f"{overload}: timestamp.{function}() -> int")
        lines.append(f"{overload}_with_tz: timestamp.{function}(string) -> int")
    for part in ("Hours", "Minutes", "Seconds", "Milliseconds"):
        lines.append(f"duration_to_{part.lower()}: duration.get{part}() -> int")
    numbers = ("int", "uint", "double")
    for sign, word in (("<", "less"), ("<=", "less_equals"), (">", "greater"), (">=", "greater_equals")):
        for one in ("bool", *numbers, "string", "bytes", "timestamp", "duration"):
            for other in numbers if one in numbers else (one,):
                suffix = one if one == other else f"{one}_{other}"
                lines.append(f"{word}_{suffix}: _{sign}_({one}, {other}) -> bool")
    return "\n".join(lines)


@lru_cache(maxsize=16)
def functions(release: Release) -> Mapping[str, tuple[Overload, ...]]:
    """Every function of that Kubernetes version, by name."""
    text = _STANDARD + _OPTIONALS + _STRINGS + _LISTS + _KUBERNETES + _generated()
    if release >= (1, 36):
        text += "\n" + _INCLUDES
    table: dict[str, list[Overload]] = defaultdict(list)
    for line in filter(None, text.splitlines()):
        overload = _overload(line)
        table[overload.function].append(overload)
    return {name: tuple(overloads) for name, overloads in table.items()}


_NAMESPACED: Final = re.compile(r"^(?:sets|strings|lists|optional|cel)\.[@A-Za-z]+$|^ip\.isCanonical$|^format\.")


def _overload(line: str) -> Overload:
    identity, _, rest = line.partition(": ")
    signature, _, result = rest.rpartition(" -> ")
    depth, at = 0, len(signature)
    while depth or at == len(signature):
        at -= 1
        depth += {")": 1, "(": -1}.get(signature[at], 0)
    head, inner = signature[:at], signature[at + 1 : -1]
    member, function = False, head
    arguments = [types.read(part) for part in _split(inner)]
    global_one = identity not in ("format-validate",) and bool(_NAMESPACED.match(head))
    if "." in head and not global_one:
        receiver, _, function = head.rpartition(".")
        member = True
        arguments.insert(0, types.read(receiver))
    elif identity == "format-validate":
        member, function = True, "validate"
        arguments.insert(0, types.FORMAT)
    output = types.read(result)
    found: dict[Type, None] = {}
    for one in (*arguments, output):
        _params(one, found)
    return Overload(identity, function, member, tuple(arguments), output, tuple(found))


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _params(one: Type, found: dict[Type, None]) -> None:
    if one.kind == "param":
        found[one] = None
    for inner in one.params:
        _params(inner, found)
