# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What a claim's one request must say, so that the scheduler allocates a planned device or its equal and nothing else.

The scheduler takes the first device that fits, so the request pins the planned devices by the identity their driver
publishes. The class's selectors and config are the scheduler's own business and are not repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from planner.dra import Attribute, DeviceId, qualified
from planner.inventory import Device
from planner.model import DeviceRequest

MOST: int = 10 * 1024
"""Characters of one selector, by the API."""


def pinned(
    devices: Iterable[DeviceId],
    known: Mapping[DeviceId, Device],
    capacity: Mapping[str, str],
    narrowing: str | None,
) -> DeviceRequest:
    """The request for replicas on `devices` (of equal kind), each with `capacity`.

    Devices without a published identity, or too many to name in one selector, are asked for by what they have in common
    with their equals, `narrowing` (the service class's own selector) included.
    """
    wanted = [known[name] for name in sorted(set(devices)) if name in known]
    return DeviceRequest(selectors=_selectors(wanted, narrowing), capacity=dict(sorted(capacity.items())))


def _selectors(devices: Sequence[Device], narrowing: str | None) -> tuple[str, ...]:
    if devices and all(device.pins for device in devices):
        parts = list(dict.fromkeys(_conjunct(device.id.driver, device.pins) for device in devices))
        text = parts[0] if len(parts) == 1 else " || ".join(f"({part})" for part in parts)
        if len(text) <= MOST:
            return (text,)
    shapes = list(dict.fromkeys(_shape(device) for device in devices))
    text = shapes[0] if len(shapes) == 1 else " || ".join(f"({shape})" for shape in shapes)
    return tuple(part for part in (text, narrowing) if part and len(part) <= MOST)


@lru_cache(maxsize=65_536)
def _conjunct(driver: str, pins: tuple[str, ...]) -> str:
    """The device's pins as one conjunct; each names the driver as its guard, one guard is enough."""
    guard = f"device.driver == {json.dumps(driver)} && "
    first, *others = pins
    return " && ".join((first, *(pin.removeprefix(guard) for pin in others)))


def _shape(device: Device) -> str:
    """A conjunct that holds on `device` and its equals, and errs on no device."""
    driver = device.id.driver
    parts = [f"device.driver == {json.dumps(driver)}"]
    for name, value in sorted(device.spec.attributes.items()):
        if name in device.identity:
            continue
        literal = _literal(value)
        if literal is None:
            continue
        domain, _, bare = qualified(name, driver).partition("/")
        field = f"device.attributes[{json.dumps(domain)}].{bare}"
        parts.append(f"has({field}) && {field} == {literal}")
    return " && ".join(parts)


def _literal(attribute: Attribute) -> str | None:
    """The attribute's value in CEL; None for versions and lists, which compare in other ways."""
    kind, value = attribute
    if kind == "string":
        return json.dumps(value, ensure_ascii=False)
    if kind == "int":
        return str(value)
    if kind == "bool":
        return "true" if value else "false"
    return None
