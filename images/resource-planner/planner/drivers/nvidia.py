# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`gpu.nvidia.com` (kubernetes-sigs/dra-driver-nvidia-gpu).

`type` is gpu, mig or vfio; a partition names its card by `parentUUID` and has a `uuid` only once it exists, so a
partition not yet created is told by parent and profile. Dynamic partitions carry counters; static ones don't, and such
a node advertises the whole card beside them: what excludes what on one card is the ledger's rule for every driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.dra import Capacity, ClaimRequestConfig, DeviceSpec
from planner.drivers import adapter
from planner.drivers.adapter import Adapter, Facts, Role

DRIVER = "gpu.nvidia.com"
API = "resource.nvidia.com/v1beta1"
_BUS = "resource.kubernetes.io/pciBusID"


def facts(driver: str, spec: DeviceSpec) -> Facts:
    """A published device as facts."""
    kind = adapter.text(driver, spec, "type")
    uuid = adapter.text(driver, spec, "uuid")
    parent = adapter.text(driver, spec, "parentUUID")
    profile = adapter.text(driver, spec, "profile")
    partition = kind == "mig" or (not kind and bool(profile))
    pins: tuple[str, ...] = ()
    if uuid:
        pins = (adapter.pin(driver, "uuid", uuid),)
    elif parent and profile:
        pins = (adapter.pin(driver, "parentUUID", parent), adapter.pin(driver, "profile", profile))
    elif bus := adapter.text(driver, spec, _BUS):
        pins = (adapter.pin(driver, _BUS, bus), *((adapter.pin(driver, "type", kind),) if kind else ()))
    return Facts(
        partition=partition,
        profile=profile if partition else "",
        card=_card(spec.name) or (parent if partition else uuid),
        vendor="nvidia",
        product=adapter.text(driver, spec, "productName"),
        memory=adapter.memory(driver, spec),
        compute_capability=adapter.capability(adapter.text(driver, spec, "cudaComputeCapability")),
        driver_version=adapter.text(driver, spec, "driverVersion"),
        identity=adapter.written(
            driver, spec, "uuid", "parentUUID", "minor", "index", "parentIndex", "parentMinor", _BUS
        ),
        pins=pins,
    )


def role(name: str, capacity: Capacity) -> Role:
    """`memory` in memory mode, `shares` in the mode with a number of tenants."""
    return {"memory": Role.MEMORY, "shares": Role.SEATS}.get(name, Role.OTHER)


def strategy(parameters: Mapping[str, Any]) -> str | None:
    """The sharing strategy of a GpuConfig or MigDeviceConfig; another length of time slice is another strategy."""
    return sharing_strategy(parameters)


def sharing_strategy(parameters: Mapping[str, Any]) -> str | None:
    """`sharing.strategy`, with the interval where one other than the default is set; None when it is not set."""
    sharing = parameters.get("sharing")
    if not isinstance(sharing, Mapping) or not isinstance(sharing.get("strategy"), str):
        return None
    slicing = sharing.get("timeSlicingConfig")
    interval = slicing.get("interval") if isinstance(slicing, Mapping) else None
    chosen: str = sharing["strategy"]
    return f"{chosen}/{interval}" if chosen == "TimeSlicing" and interval not in (None, "Default") else chosen


def config(strategy: str, partition: bool) -> ClaimRequestConfig:
    """Opaque parameters that ask for `strategy`."""
    return sharing_config(DRIVER, API, strategy, partition)


def sharing_config(driver: str, api: str, strategy: str, partition: bool) -> ClaimRequestConfig:
    """A GpuConfig (on a partition a MigDeviceConfig) that sets `strategy` as `sharing_strategy` reads it."""
    chosen, _, interval = strategy.partition("/")
    sharing: dict[str, Any] = {"strategy": chosen}
    if interval:
        sharing["timeSlicingConfig"] = {"interval": interval}
    kind = "MigDeviceConfig" if partition else "GpuConfig"
    return ClaimRequestConfig(driver=driver, parameters={"apiVersion": api, "kind": kind, "sharing": sharing})


def _card(name: str) -> str:
    """`gpu-<minor>` of a whole card's or a partition's name; empty where the name has another form."""
    parts = name.split("-", 2)
    return f"gpu-{parts[1]}" if len(parts) > 1 and parts[0] == "gpu" and parts[1].isdigit() else ""


ADAPTER = Adapter(facts=facts, role=role, strategy=strategy, default_strategy="TimeSlicing", config=config)
