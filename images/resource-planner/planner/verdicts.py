# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The verdict on a service class: whether its expressions can be judged, and whether all that it names exists."""

from __future__ import annotations

from collections.abc import Sequence

from planner import resolution
from planner.candidates import Judge
from planner.model import ClassVerdict, ServiceClass, Truth, Verdict
from planner.resolution import Index


def verdict(service_class: ServiceClass, known: Index, judge: Judge, *, unreadable: Sequence[str]) -> ClassVerdict:
    """The verdict on one class; `unreadable`: kinds without which nothing can be placed."""
    return ClassVerdict(
        name=service_class.name,
        generation=service_class.generation,
        validated=_validated(service_class, known, judge, unreadable),
        ready=_ready(service_class, known),
    )


def _validated(service_class: ServiceClass, known: Index, judge: Judge, unreadable: Sequence[str]) -> Verdict:
    selector = service_class.device_selector
    if selector is not None:
        program = judge.program(selector)
        if program.error is not None:
            return Verdict(
                status=Truth.FALSE,
                reason="SelectorBroken",
                message=f"deviceSelector `{selector}` does not compile: {program.error}",
            )
        for name in service_class.device_class_names or sorted(known.device_classes):
            found = known.device_classes.get(name)
            fatal = judge.admitted(found, selector).fatal if found is not None else None
            if fatal is not None:
                detail = fatal.detail.replace("the service class", f"service class {service_class.name}", 1)
                return Verdict(
                    status=Truth.FALSE, reason="SelectorBroken", message=detail[0].upper() + detail[1:] + "."
                )
    if unreadable:
        return Verdict(
            status=Truth.UNKNOWN,
            reason="Unreadable",
            message=f"{', '.join(unreadable)} cannot be read now.",
        )
    return Verdict(status=Truth.TRUE, reason="Validated", message="Every expression can be judged on every device.")


def _ready(service_class: ServiceClass, known: Index) -> Verdict:
    names = service_class.device_class_names or ()
    missing = [name for name in names if name not in known.device_classes]
    if "DeviceClass" in known.unreadable:
        return Verdict(status=Truth.UNKNOWN, reason="Unreadable", message="Device classes cannot be read now.")
    if missing:
        return Verdict(
            status=Truth.FALSE,
            reason="DeviceClassNotFound",
            message=f"Device class {', '.join(missing)} does not exist.",
        )
    storage = resolution.storage_missing(service_class, known)
    if storage:
        return Verdict(
            status=Truth.FALSE, reason="StorageClassNotFound", message=storage[0].upper() + storage[1:] + "."
        )
    return Verdict(status=Truth.TRUE, reason="Ready", message="Everything that the class names exists.")
