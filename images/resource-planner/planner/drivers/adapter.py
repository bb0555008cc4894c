# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What a driver's adapter says of a device, and how it says it. One adapter per driver; no stage ever names a driver.

An adapter reads facts; it decides nothing. A fact that the driver does not publish is `UNKNOWN` (or an empty text),
never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from planner.dra import Capacity, ClaimRequestConfig, DeviceSpec, lookup
from planner.semver import VersionError
from planner.semver import parse as parse_version
from planner.units import UNKNOWN, Bytes, Unknown


class Role(Enum):
    """What a capacity of a shareable device stands for, and so how much of it a share takes."""

    MEMORY = "memory"
    """Bytes: exactly what the share needs."""
    COMPUTE = "compute"
    """A part of the card's compute: what was asked in percent, else in proportion to the memory taken."""
    SEATS = "seats"
    """A count of tenants: one each."""
    OTHER = "other"
    """Anything else: in proportion to the memory taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One device as its driver describes it."""

    partition: bool = False
    """A part of a card; False: the card itself."""
    profile: str = ""
    """The partition's profile, exactly as published ("2g.12gb" and "2g.12gb+me" are two)."""
    card: str = ""
    """Which physical card of the pool it is or is cut from; empty: the driver does not say, the device stands alone."""
    vendor: str = ""
    product: str = ""
    memory: Bytes | Unknown = UNKNOWN
    compute_capability: tuple[int, int] | Unknown = UNKNOWN
    driver_version: str = ""
    identity: frozenset[str] = frozenset()
    """Names (as published) of the attributes that tell equal devices apart: ids, addresses, indices."""
    pins: tuple[str, ...] = ()
    """CEL conjuncts that select exactly this device, or its equals on the same card; empty: no identity published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One driver's meanings. `strategy` names the sharing strategy that opaque parameters set (None: they set none)."""

    facts: Callable[[str, DeviceSpec], Facts]
    """(driver, published device) → facts."""
    role: Callable[[str, Capacity], Role]
    """(capacity name without domain, capacity) → role."""
    strategy: Callable[[Mapping[str, Any]], str | None]
    default_strategy: str | None = None
    """What the driver applies to a shared device when nobody says; None: it knows no strategies."""
    config: Callable[[str, bool], ClaimRequestConfig | None] = lambda strategy, partition: None
    """(strategy, on a partition) → the opaque parameters that ask for it; None: this driver takes none."""


def text(driver: str, spec: DeviceSpec, name: str) -> str:
    """The string or version attribute `name`; empty when absent or of another type."""
    found = lookup(spec.attributes, driver, name)
    return found[1] if found is not None and isinstance(found[1], str) else ""


def integer(driver: str, spec: DeviceSpec, name: str) -> int | Unknown:
    """The int attribute `name`."""
    found = lookup(spec.attributes, driver, name)
    return found[1] if found is not None and found[0] == "int" and isinstance(found[1], int) else UNKNOWN


def memory(driver: str, spec: DeviceSpec, name: str = "memory") -> Bytes | Unknown:
    """The whole of capacity `name` in bytes, rounded down; `UNKNOWN` when the driver publishes none."""
    found = lookup(spec.capacity, driver, name)
    return UNKNOWN if found is None else int(found.value)


def capability(version: str) -> tuple[int, int] | Unknown:
    """Major and minor of a compute capability published as a version."""
    try:
        read = parse_version(version)
    except VersionError:
        return UNKNOWN
    return read.major, read.minor


def written(driver: str, spec: DeviceSpec, *names: str) -> frozenset[str]:
    """Those of `names` that the device publishes, as it writes them (with or without the driver's domain)."""
    spellings = {spelling for name in names for spelling in (name, f"{driver}/{name}")}
    return frozenset(spellings & spec.attributes.keys())


def pin(driver: str, attribute: str, value: str | int) -> str:
    """A conjunct true where a device of `driver` publishes `attribute` as `value`; elsewhere false, never an error.

    `attribute` is the name without its domain or, with a slash, with a domain of its own.
    """
    domain, slash, name = attribute.partition("/")
    if not slash:
        domain, name = driver, attribute
    field = f"device.attributes[{literal(domain)}].{name}"
    return f"device.driver == {literal(driver)} && has({field}) && {field} == {literal(value)}"


def literal(value: str | int) -> str:
    """A CEL literal."""
    return json.dumps(value)
