# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`gpu.amd.com` (ROCm/k8s-gpu-dra-driver): whole cards and static partitions, neither with counters nor shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.dra import Capacity, DeviceSpec
from planner.drivers import adapter
from planner.drivers.adapter import Adapter, Facts, Role
from planner.units import UNKNOWN

DRIVER = "gpu.amd.com"


def facts(driver: str, spec: DeviceSpec) -> Facts:
    """A published device as facts. A partition has no address of its own: its indices tell it apart."""
    address, parent = adapter.text(driver, spec, "pciAddr"), adapter.text(driver, spec, "parentPciAddr")
    profile = adapter.text(driver, spec, "partitionProfile")
    partition = adapter.text(driver, spec, "type") == "amdgpu-partition" or bool(parent)
    pins: tuple[str, ...] = ()
    if partition and parent:
        index = adapter.integer(driver, spec, "cardIndex")
        pins = (adapter.pin(driver, "parentPciAddr", parent),)
        if index is not UNKNOWN:
            pins = (*pins, adapter.pin(driver, "cardIndex", index))
        elif profile:
            pins = (*pins, adapter.pin(driver, "partitionProfile", profile))
    elif address:
        pins = (adapter.pin(driver, "pciAddr", address),)
    return Facts(
        partition=partition,
        profile=profile if partition else "",
        card=parent if partition else address,
        vendor="amd",
        product=adapter.text(driver, spec, "productName"),
        memory=adapter.memory(driver, spec),
        driver_version=adapter.text(driver, spec, "driverVersion"),
        identity=adapter.written(
            driver,
            spec,
            "pciAddr",
            "parentPciAddr",
            "cardIndex",
            "renderIndex",
            "deviceID",
            "parentDeviceID",
            "resource.kubernetes.io/pciBusID",
        ),
        pins=pins,
    )


def role(name: str, capacity: Capacity) -> Role:
    """`memory`; units of compute otherwise."""
    return {"memory": Role.MEMORY, "computeUnits": Role.COMPUTE, "simdUnits": Role.COMPUTE}.get(name, Role.OTHER)


def strategy(parameters: Mapping[str, Any]) -> str | None:
    """The driver knows no sharing strategies."""
    return None


ADAPTER = Adapter(facts=facts, role=role, strategy=strategy)
