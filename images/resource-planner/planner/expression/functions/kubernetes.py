# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Functions of Kubernetes' own libraries: quantities, versions, addresses and named formats."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final
from urllib.parse import unquote_plus

from planner import quantity, semver

from .. import library
from ..values import (
    NONE,
    Amount,
    Cidr,
    Failure,
    Format,
    Ip,
    Map,
    Optional,
    Url,
    Value,
    cidr_of,
    hostname,
    ip_of,
    masked,
    port,
    url_of,
    within,
)
from .limits import Implementation

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


KUBERNETES: Final[Mapping[str, Implementation]] = {
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
    **{f"format.{name}": _constant(name) for name in library.FORMATS},
}
"""By overload."""
