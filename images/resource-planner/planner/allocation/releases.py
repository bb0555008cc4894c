# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What a release of Kubernetes and the gates of a cluster change about allocation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.dra import Slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Which optional parts of DRA the scheduler obeys. By default all but list attributes."""

    admin: bool = True
    prioritized: bool = True
    partitionable: bool = True
    consumable: bool = True
    taints: bool = True
    binding: bool = True
    lists: bool = False

    @property
    def full(self) -> bool:
        """The variant of the allocator that knows shares runs; the smaller one overlooks capacity requests."""
        return self.binding or self.consumable or self.lists

    @staticmethod
    def named(names: Iterable[str]) -> Gates:
        """Exactly the named ones; a name unknown here is an ValueError."""
        chosen = set(names)
        unknown = chosen - set(Gates.__dataclass_fields__)
        if unknown:
            raise ValueError(f"unknown gates: {', '.join(sorted(unknown))}")
        return Gates(**{name: name in chosen for name in Gates.__dataclass_fields__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What differs between minor releases of Kubernetes."""

    split_counters: bool
    """Shared counters stand in slices of their own; before, beside the devices that use them, and only there."""
    ordered_pools: bool
    """Pools are tried in the order of driver and name; before, in an order that varies from run to run."""
    fractional_ranges: bool
    """Ranges of a capacity policy are exact; before, their numbers are rounded up to whole ones first."""


def release(kubernetes: tuple[int, int]) -> Release:
    """The release table, by what was measured on 1.34 to 1.37."""
    return Release(
        split_counters=kubernetes >= (1, 35),
        ordered_pools=kubernetes >= (1, 36),
        fractional_ranges=kubernetes >= (1, 37),
    )


def default_gates(kubernetes: tuple[int, int]) -> Gates:
    """What a cluster of that release obeys when nobody touched a gate."""
    if kubernetes >= (1, 36):
        return Gates()
    return Gates(partitionable=False, consumable=False, taints=False, binding=False)


def seen_gates(slices: Sequence[Slice], kubernetes: tuple[int, int]) -> Gates:
    """The release's defaults, and every feature whose fields are stored: without its gate they would be dropped."""
    specs = [spec for part in slices for spec in part.devices]
    base = default_gates(kubernetes)
    return replace(
        base,
        partitionable=base.partitionable
        or any(part.shared_counters or part.per_device for part in slices)
        or any(spec.consumes for spec in specs),
        consumable=base.consumable or any(spec.shareable for spec in specs),
        taints=base.taints or any(spec.taints for spec in specs),
        binding=base.binding or any(spec.binding_conditions for spec in specs),
    )
