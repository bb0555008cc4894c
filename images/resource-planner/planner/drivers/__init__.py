# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The adapters of DRA drivers: what a published device is, in the planner's words. A new driver is one line here."""

from __future__ import annotations

from collections.abc import Mapping

from planner.drivers import amd, deckhouse, generic, intel, nvidia
from planner.drivers.adapter import Adapter, Facts, Role

__all__ = ["ADAPTERS", "Adapter", "Facts", "Role", "adapter_of"]

ADAPTERS: Mapping[str, Adapter] = {
    amd.DRIVER: amd.ADAPTER,
    deckhouse.DRIVER: deckhouse.ADAPTER,
    intel.DRIVER: intel.ADAPTER,
    nvidia.DRIVER: nvidia.ADAPTER,
}


def adapter_of(driver: str) -> Adapter:
    """The adapter of `driver`; a driver nobody wrote one for is read by the names that most drivers use."""
    return ADAPTERS.get(driver, generic.ADAPTER)
