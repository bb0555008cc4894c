# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`gpu.intel.com` (intel/intel-resource-drivers-for-kubernetes): whole cards, and virtual functions as partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.dra import Capacity, DeviceSpec
from planner.drivers import adapter
from planner.drivers.adapter import Adapter, Facts, Role

DRIVER = "gpu.intel.com"


def facts(driver: str, spec: DeviceSpec) -> Facts:
    """A published device as facts."""
    address, parent = adapter.text(driver, spec, "pciAddress"), adapter.text(driver, spec, "parentUID")
    partition = adapter.text(driver, spec, "type") == "vf" or bool(parent)
    return Facts(
        partition=partition,
        profile=adapter.text(driver, spec, "vfProfile") if partition else "",
        card=parent if partition else spec.name,
        vendor="intel",
        product=adapter.text(driver, spec, "model"),
        memory=adapter.memory(driver, spec),
        driver_version=adapter.text(driver, spec, "driverVersion"),
        identity=adapter.written(
            driver, spec, "pciAddress", "uid", "parentUID", "index", "resource.kubernetes.io/pciBusID"
        ),
        pins=(adapter.pin(driver, "pciAddress", address),) if address else (),
    )


def role(name: str, capacity: Capacity) -> Role:
    """`memory` and `millicores` (1000 are the whole card)."""
    return {"memory": Role.MEMORY, "millicores": Role.COMPUTE}.get(name, Role.OTHER)


def strategy(parameters: Mapping[str, Any]) -> str | None:
    """The driver knows no sharing strategies."""
    return None


ADAPTER = Adapter(facts=facts, role=role, strategy=strategy)
