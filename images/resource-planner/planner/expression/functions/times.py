# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Functions of timestamps and durations."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from ..values import Failure, moment
from .limits import Implementation


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


TIMES: Final[Mapping[str, Implementation]] = {
    "duration_to_hours": lambda one: _toward_zero(one.nanos, 3600 * 10**9),
    "duration_to_minutes": lambda one: _toward_zero(one.nanos, 60 * 10**9),
    "duration_to_seconds": lambda one: _toward_zero(one.nanos, 10**9),
    "duration_to_milliseconds": lambda one: _toward_zero(one.nanos, 10**6),
    **_moments(),
}
"""By overload."""
