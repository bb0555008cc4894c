# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What starts a model on a device, or the miss: recipe, hardware and sizing asked together, in the plan's own records.

Bytes are of one device. A device that publishes no memory cannot be sized: that is a miss of its own, never a guess.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from planner import hardware, recipe, sizing
from planner.architecture import ModelFacts
from planner.inventory import Device
from planner.model import EndpointType, HostResources, LaunchStrategy, RecipeUse, Sized
from planner.reasons import Lack, Miss
from planner.units import UNKNOWN, Bytes, Maybe, Unknown, subtract

FOLDER_VARIABLE: Final = "PLANNER_RECIPES"
BESIDE_US: Final = Path(__file__).resolve().parents[2] / "request-runtime" / "recipes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What a launch depends on beside the device; orders with equal models launch alike."""

    facts: ModelFacts
    repository: str
    """The Hugging Face repository that recipes know it by; empty: none."""
    endpoint_type: EndpointType
    strategy: LaunchStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A start that fits its device: recipe with effective parameters, host resources, and the bytes it was sized by."""

    recipe: RecipeUse
    host: HostResources
    sized: Sized


@lru_cache(maxsize=1)
def shipped() -> recipe.Recipes:
    """The recipes of the shipped release: from $PLANNER_RECIPES, else the runtime's folder in the repository.

    Raises `recipe.RecipeError` when they cannot be read.
    """
    return recipe.load(Path(os.environ.get(FOLDER_VARIABLE) or BESIDE_US))


class Launcher:
    """Launches by the recipes of one release; pure, answers remembered."""

    def __init__(self, recipes: recipe.Recipes) -> None:
        self._recipes = recipes
        self._chosen: dict[tuple[Model, Maybe, str, object], recipe.Recipe] = {}
        self._launches: dict[tuple[object, ...], Launch | Miss] = {}
        self._smallest: dict[tuple[object, ...], Maybe] = {}

    def unsuitable(self, model: Model, device: Device) -> str:
        """Why `device` cannot run `model` however free it is; empty: it can, or nobody knows that it cannot."""
        found = hardware.unsuitable(
            model.facts,
            self._recipe(model, device, shared=False),
            compute_capability=device.compute_capability,
            driver_version=_numbers(device.driver_version),
            vendor=device.vendor or UNKNOWN,
        )
        return "" if found is None else str(found)

    def smallest(self, model: Model, device: Device, *, shared: bool, count: int = 1) -> Maybe:
        """Bytes on each of `count` devices that admit `model` at its recipe's floors; UNKNOWN if unsized."""
        chosen = self._recipe(model, device, shared=shared)
        dtype = hardware.dtype_on(model.facts, chosen, device.compute_capability)
        key = (model, chosen.name, chosen.strategy, dtype, count)
        found = self._smallest.get(key)
        if found is None:
            found = self._smallest[key] = recipe.smallest(chosen, model.facts, count=count, dtype=dtype)
        return found

    def shared(self, model: Model, device: Device, memory: Bytes) -> Launch | Miss:
        """A launch within `memory` bytes of a device that others use too."""
        return self._launch(model, device, memory, 1, shared=True)

    def alone(self, model: Model, device: Device, count: int) -> Launch | Miss:
        """A launch on `count` equal devices of one node that nobody else uses."""
        if device.memory is UNKNOWN:
            return Miss(lack=Lack.MEMORY_UNPUBLISHED, device=str(device.id))
        return self._launch(model, device, device.memory, count, shared=False)

    def counts(self, model: Model, device: Device, most: int) -> tuple[int, ...]:
        """Device counts up to `most` that recipe and heads allow, rising; one device always is."""
        allowed = recipe.counts(self._recipe(model, device, shared=False), model.facts, most)
        return tuple(sorted({1, *allowed}))

    def indivisible(self, model: Model, most: int) -> int | None:
        """The largest count from 2 to `most` that the model's heads do not divide by; None: none, or heads unknown."""
        return next(
            (count for count in range(most, 1, -1) if sizing.heads_divisible(model.facts, count) is False), None
        )

    def _recipe(self, model: Model, device: Device, *, shared: bool) -> recipe.Recipe:
        memory = UNKNOWN if shared else device.memory  # a share is cut to the recipe, not the other way round
        key = (model, memory, device.vendor, device.compute_capability)
        found = self._chosen.get(key)
        if found is None:
            found = self._chosen[key] = recipe.choose(
                self._recipes,
                model.facts,
                contract=model.endpoint_type,
                strategy=model.strategy,
                model_name=model.repository,
                device_memory=memory,
                vendor=device.vendor or UNKNOWN,
                compute_capability=device.compute_capability,
            )
        return found

    def _launch(self, model: Model, device: Device, memory: Bytes, count: int, *, shared: bool) -> Launch | Miss:
        assert device.memory is not UNKNOWN
        chosen = self._recipe(model, device, shared=shared)
        dtype = hardware.dtype_on(model.facts, chosen, device.compute_capability)
        key = (model, chosen.name, chosen.strategy, dtype, memory, device.memory, count, shared)
        found = self._launches.get(key)
        if found is None:
            answer = recipe.launch(
                chosen,
                model.facts,
                contract=model.endpoint_type,
                memory=memory,
                device_total=device.memory,
                shared=shared,
                count=count,
                dtype=dtype,
            )
            found = self._launches[key] = (
                Miss(lack=Lack.TOO_SMALL, needed=answer.needed, free=answer.free)
                if isinstance(answer, recipe.Shortfall)
                else _launch(answer)
            )
        return found


def _launch(answer: recipe.Launch) -> Launch:
    estimate = answer.estimate
    return Launch(
        recipe=RecipeUse(
            name=answer.recipe.name,
            release=answer.recipe.release,
            strategy=answer.recipe.strategy,
            context_length=answer.context,
            concurrency=answer.concurrency,
            parameters=_sorted(answer.parameters),
        ),
        host=HostResources(
            cpu_milli=answer.host.cpu_milli, memory=answer.host.memory, shared_memory=answer.host.shared_memory
        ),
        sized=Sized(
            source=estimate.source.value,
            weights=estimate.weights,
            kv_cache=estimate.kv_cache,
            overhead=subtract(answer.needed, estimate.weights, estimate.kv_cache),
            total=answer.needed,
        ),
    )


def _sorted(parameters: Mapping[str, str]) -> Mapping[str, str]:
    return dict(sorted(parameters.items()))


def _numbers(version: str) -> tuple[int, ...] | Unknown:
    """The leading numbers of a driver version; UNKNOWN where it has none."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return UNKNOWN if found is None else tuple(int(part) for part in found[1].split("."))
