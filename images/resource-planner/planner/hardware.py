# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What the shipped engine can run where, as data with sources, and the one question asked of it.

A device that nobody described is never unsuitable: `UNKNOWN` leaves the judgement to what is known. What is judged here
holds however free the device is; memory is no matter of this module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.architecture import ModelFacts
from planner.recipe import Recipe
from planner.units import UNKNOWN, Unknown

Capability = tuple[int, int]
Version = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least compute capability for something, and where that is written."""

    capability: Capability
    source: str


VENDORS: Final = ("nvidia",)
"""Whose devices the runtime image of this release drives: it is built for CUDA."""

IMAGE: Final = Floor(
    capability=(7, 5), source="CUDA 13 has no code for anything older than Turing (CUDA 13 release notes)"
)
DRIVER: Final[Version] = (580,)
"""Least driver branch for the CUDA 13 image (vLLM image since 0.20; CUDA 13 release notes)."""

BFLOAT16: Final = Floor(
    capability=(8, 0), source="vLLM refuses bfloat16 below 8.0 (config/model.py, platforms/cuda.py)"
)
FP8_CACHE: Final = Floor(capability=(8, 0), source="seen on 8.6 (club-3090 612); nothing older has the kernels")

QUANTIZATION: Final[Mapping[str, Floor]] = {
    "fp8": Floor(capability=(8, 0), source="native from 8.9, weight-only Marlin kernels from 8.0 (seen on 8.6)"),
    "nvfp4": Floor(capability=(8, 0), source="native from 10.0, weight-only Marlin kernels from 8.0 (seen on 9.0)"),
    "mxfp4": Floor(capability=(8, 0), source="native from 10.0, Triton on 9.0, weight-only Marlin kernels from 8.0"),
    "mxfp8": Floor(capability=(8, 0), source="weight-only Marlin kernels from 8.0"),
    "int4": Floor(capability=(7, 5), source="AWQ and GPTQ kernels from 7.5"),
    "int8": Floor(capability=(7, 5), source="CUTLASS int8 kernels from 7.5"),
}
"""Least compute capability by family of quantisation (vLLM 0.33 quantisation table)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsuitable:
    """Why a device cannot run a model, however free it is: what was needed, what is there, where the rule stands."""

    what: str
    needed: str
    found: str
    source: str

    def __str__(self) -> str:
        return f"{self.what} needs {self.needed}, the device has {self.found}"


def dtype_on(facts: ModelFacts, recipe: Recipe, capability: Capability | Unknown) -> str:
    """The data type to start the engine with: the recipe's, or float16 on a device without bfloat16.

    A model that must not run in float16 keeps bfloat16, and `unsuitable` then says no. `auto`: nothing is to be said.
    """
    wanted = recipe.dtype
    if wanted != "auto" or capability is UNKNOWN or capability >= BFLOAT16.capability:
        return wanted
    if facts.float16_forbidden:
        return "bfloat16"
    return "auto" if facts.dtype == "float16" else "float16"


def unsuitable(
    facts: ModelFacts,
    recipe: Recipe,
    *,
    compute_capability: Capability | Unknown = UNKNOWN,
    driver_version: Version | Unknown = UNKNOWN,
    vendor: str | Unknown = UNKNOWN,
) -> Unsuitable | None:
    """Why the device cannot run the model under the recipe; None when it can, or when nobody knows enough to say no.

    `vendor` is compared in lower case ("nvidia"), `driver_version` by its leading numbers.
    """
    if vendor is not UNKNOWN and vendor.lower() not in VENDORS:
        return Unsuitable(
            what="the runtime image",
            needed=f"a device of {' or '.join(VENDORS)}",
            found=f"vendor {vendor}",
            source="the image of this release is built for CUDA",
        )
    if driver_version is not UNKNOWN and driver_version[: len(DRIVER)] < DRIVER:
        return Unsuitable(
            what="the runtime image (CUDA 13)",
            needed=f"driver {_dotted(DRIVER)} or newer",
            found=f"driver {_dotted(driver_version)}",
            source="CUDA 13 release notes",
        )
    if compute_capability is UNKNOWN:
        return None
    for what, floor in _floors(facts, recipe, compute_capability):
        if compute_capability < floor.capability:
            return Unsuitable(
                what=what,
                needed=f"compute capability {_dotted(floor.capability)} or newer",
                found=f"compute capability {_dotted(compute_capability)}",
                source=floor.source,
            )
    return None


def _floors(facts: ModelFacts, recipe: Recipe, capability: Capability) -> list[tuple[str, Floor]]:
    floors = [("the runtime image", IMAGE)]
    quantization = facts.quantization
    if quantization is not None and not isinstance(quantization, Unknown) and quantization.family in QUANTIZATION:
        floors.append((f"{quantization.method or quantization.family} quantisation", QUANTIZATION[quantization.family]))
    if dtype_on(facts, recipe, capability) == "bfloat16":
        why = "the model, which must not run in float16," if facts.float16_forbidden else "data type bfloat16"
        floors.append((why, BFLOAT16))
    if recipe.kv_cache_dtype.startswith("fp8"):
        floors.append(("the FP8 key/value cache of the recipe", FP8_CACHE))
    if recipe.min_compute_capability is not UNKNOWN:
        source = f"recipe {recipe.name}"
        floors.append((source, Floor(capability=recipe.min_compute_capability, source=source)))
    return floors


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(str(number) for number in numbers)
