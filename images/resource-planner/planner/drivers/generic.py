# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Any other driver, by the names that most of them use; what they mean beyond that is `UNKNOWN`.

Covers dra-example-driver (`gpu.example.com`: memory, compute) and HAMi (memory, cores).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.dra import Capacity, DeviceSpec, lookup
from planner.drivers import adapter
from planner.drivers.adapter import Adapter, Facts, Role

_IDENTITIES = ("uuid", "UUID", "serial", "serialNumber", "resource.kubernetes.io/pciBusID", "pciAddress", "pciBusID")
_PLACES = ("index", "minor", "minorNumber", "parentUUID", "parentPciAddr", "parentUID", "numaNode")
_PARENTS = ("parentUUID", "parentPciAddr", "parentUID")
_PROFILES = ("profile", "partitionProfile", "migProfile")
_COMPUTE = frozenset({"compute", "cores", "sharePercent", "percent", "millicores", "computeUnits", "sms"})


def facts(driver: str, spec: DeviceSpec) -> Facts:
    """A published device as facts: a partition is what names a parent or a profile, or says so in its type."""
    own = _first(driver, spec, _IDENTITIES)
    parent, profile = _first(driver, spec, _PARENTS), _first(driver, spec, _PROFILES)
    kind = (adapter.text(driver, spec, "type") or adapter.text(driver, spec, "deviceType")).lower()
    partition = bool(parent or profile) or kind in ("partition", "mig")
    if own is not None:
        pins: tuple[str, ...] = (adapter.pin(driver, *own),)
    elif parent and profile:
        pins = (adapter.pin(driver, *parent), adapter.pin(driver, *profile))
    else:
        pins = ()
    card = parent[1] if parent else own[1] if own and not partition else ""
    return Facts(
        partition=partition,
        profile=profile[1] if profile else "",
        card=card,
        vendor=adapter.text(driver, spec, "vendor"),
        product=adapter.text(driver, spec, "productName") or adapter.text(driver, spec, "model"),
        memory=adapter.memory(driver, spec),
        compute_capability=adapter.capability(adapter.text(driver, spec, "cudaComputeCapability")),
        driver_version=adapter.text(driver, spec, "driverVersion"),
        identity=adapter.written(driver, spec, *_IDENTITIES, *_PLACES),
        pins=pins,
    )


def role(name: str, capacity: Capacity) -> Role:
    """By the names drivers use."""
    if name == "memory":
        return Role.MEMORY
    if name == "shares":
        return Role.SEATS
    return Role.COMPUTE if name in _COMPUTE else Role.OTHER


def strategy(parameters: Mapping[str, Any]) -> str | None:
    """`sharing.strategy` where the parameters have one."""
    sharing = parameters.get("sharing")
    chosen = sharing.get("strategy") if isinstance(sharing, Mapping) else None
    return chosen if isinstance(chosen, str) else None


def _first(driver: str, spec: DeviceSpec, names: tuple[str, ...]) -> tuple[str, str] | None:
    for name in names:
        found = lookup(spec.attributes, driver, name)
        if found is not None and found[0] == "string" and found[1]:
            return name, found[1]
    return None


ADAPTER = Adapter(facts=facts, role=role, strategy=strategy)
