# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`gpu.deckhouse.io` (the Deckhouse GPU module).

A card and its MIG partitions share a `pciAddress`. The card consumes no counter, so nothing in the slices says that a
card in use excludes its partitions (the module's own allocator knows): the ledger's rule of one card says it. A shared
card offers `memory` (default 0: a request that names none reserves none) and `sharePercent` (default all): both are
always requested. Older snapshots write attribute names in snake case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.dra import Capacity, ClaimRequestConfig, DeviceSpec
from planner.drivers import adapter, nvidia
from planner.drivers.adapter import Adapter, Facts, Role
from planner.units import UNKNOWN, Unknown

DRIVER = "gpu.deckhouse.io"
API = "resource.gpu.deckhouse.io/v1alpha1"


def facts(driver: str, spec: DeviceSpec) -> Facts:
    """A published device as facts."""
    address_name, address = _either(driver, spec, "pciAddress", "pci_address")
    profile_name, profile = _either(driver, spec, "migProfile", "mig_profile")
    kind_name, kind = _either(driver, spec, "deviceType", "device_type")
    uuid = _either(driver, spec, "gpuUUID", "gpu_uuid")[1]
    partition = kind.upper() == "MIG" or (not kind and bool(profile))
    told = [(address_name, address), (kind_name, kind)] + ([(profile_name, profile)] if partition else [])
    return Facts(
        partition=partition,
        profile=profile if partition else "",
        card=address or uuid,
        vendor=adapter.text(driver, spec, "vendor"),
        product=adapter.text(driver, spec, "device"),
        memory=adapter.memory(driver, spec),
        compute_capability=_capability(driver, spec),
        driver_version=_either(driver, spec, "driverVersion", "driver_version")[1],
        identity=adapter.written(driver, spec, "pciAddress", "pci_address", "gpuUUID", "gpu_uuid", "index", "minor"),
        pins=tuple(adapter.pin(driver, name, value) for name, value in told) if all(v for _, v in told) else (),
    )


def role(name: str, capacity: Capacity) -> Role:
    """`memory` and `sharePercent`."""
    return {"memory": Role.MEMORY, "sharePercent": Role.COMPUTE}.get(name, Role.OTHER)


def config(strategy: str, partition: bool) -> ClaimRequestConfig:
    """Opaque parameters that ask for `strategy`; the kind must match the device type."""
    return nvidia.sharing_config(DRIVER, API, strategy, partition)


def strategy(parameters: Mapping[str, Any]) -> str | None:
    """The sharing strategy of a GpuConfig or MigDeviceConfig."""
    return nvidia.sharing_strategy(parameters)


def _capability(driver: str, spec: DeviceSpec) -> tuple[int, int] | Unknown:
    for major_name, minor_name in (("ccMajor", "ccMinor"), ("cc_major", "cc_minor")):
        major, minor = adapter.integer(driver, spec, major_name), adapter.integer(driver, spec, minor_name)
        if major is not UNKNOWN and minor is not UNKNOWN:
            return major, minor
    return UNKNOWN


def _either(driver: str, spec: DeviceSpec, name: str, older: str) -> tuple[str, str]:
    """The attribute's name as this snapshot of the driver writes it, and its value (empty when absent)."""
    value = adapter.text(driver, spec, name)
    return (name, value) if value else (older, adapter.text(driver, spec, older))


ADAPTER = Adapter(facts=facts, role=role, strategy=strategy, default_strategy="TimeSlicing", config=config)
