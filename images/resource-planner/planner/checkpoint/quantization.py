# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How a checkpoint is compressed, which parts are left out of it, and the bytes that result."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from planner.architecture import DTYPE_BYTES, Parameters, Quantization
from planner.checkpoint import fields
from planner.checkpoint.fields import Config
from planner.units import UNKNOWN, Bytes, Unknown, known

RATIO: Final[Mapping[str, float]] = {"fp8": 1.0, "int8": 1.0, "int4": 0.5195, "mxfp4": 0.53125, "nvfp4": 0.5625}
"""Bytes an element of a quantised matrix, scales included (groups of 128 for int4, 32 for MXFP4, 16 for NVFP4)."""


def stated(config: Config, text: Config) -> Quantization | None:
    """The quantisation that the file names; None: it names none."""
    section = _section(config, text)
    if section is None:
        return None
    method = str(section.get("quant_method") or section.get("quant_algo") or "").lower()
    family = _family(method, section)
    return Quantization(method=method or family, family=family)


def _section(config: Config, text: Config) -> Config | None:
    for place in (config, text):
        for key in ("quantization_config", "compression_config"):
            if isinstance(place.get(key), Mapping) and place[key]:
                return place[key]  # type: ignore[no-any-return]
    return None


def _family(method: str, section: Config) -> str:
    algorithm = str(section.get("quant_algo") or section.get("format") or "").lower()
    if method in ("mxfp4", "gpt_oss_mxfp4") or "mxfp4" in algorithm:
        return "mxfp4"
    if "nvfp4" in algorithm or "nvfp4" in method or "fp4" in algorithm:
        return "nvfp4"
    if (
        method in ("fp8", "fbgemm_fp8", "modelopt_fp8")
        or "fp8" in algorithm
        or ("float" in algorithm and "float-quantized" in algorithm)
    ):
        return "fp8"
    bits, kind = _compressed_bits(section)
    if bits is None:
        bits = section.get("bits") or section.get("w_bit")
    if section.get("load_in_4bit") or bits == 4:
        return (
            "nvfp4"
            if kind == "float" and method == "compressed-tensors" and section.get("format") == "nvfp4-pack-quantized"
            else "int4"
        )
    if section.get("load_in_8bit") or bits == 8:
        return "fp8" if kind == "float" else "int8"
    if method == "modelopt":
        return "fp8"
    return method


def _compressed_bits(section: Config) -> tuple[int | None, str]:
    groups = section.get("config_groups")
    if isinstance(groups, Mapping):
        for group in groups.values():
            weights = group.get("weights") if isinstance(group, Mapping) else None
            if isinstance(weights, Mapping) and isinstance(weights.get("num_bits"), int):
                return weights["num_bits"], str(weights.get("type", "int"))
    return None, "int"


def untouched(config: Config, text: Config) -> frozenset[str]:
    """Which parts a quantised checkpoint leaves in sixteen bits, beside embeddings, head and norms: `attention`, `mlp`.

    A part counts when a pattern or at least half of the layers' own entries name it.
    """
    section = _section(config, text)
    if section is None:
        return frozenset()
    entries: list[str] = []
    for key in ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"):
        value = section.get(key)
        if isinstance(value, Sequence) and not isinstance(value, str):
            entries.extend(str(entry) for entry in value)
    count = known(fields.layer_count(text), 1)
    found = set()
    for part, words in (
        ("attention", ("attn", "attention")),
        ("linear", ("linear_attn", "mamba", "mixer")),
        ("mlp", ("mlp", "feed_forward")),
    ):
        named = [entry for entry in entries if any(word in entry for word in words) and "gate." not in entry
                 and not entry.endswith("gate") and "visual" not in entry and "vision" not in entry]  # fmt: skip
        layers = {match.group(1) for entry in named if (match := re.search(r"layers\.(\d+)\.", entry))}
        pattern = any(not re.search(r"\.\d+\.", entry) for entry in named)
        if pattern or 2 * len(layers) >= count:
            found.add(part)
    if known(fields.experts(text), 0) == 0 or "mlp" not in found:
        return frozenset(found)
    experts = any("expert" in entry for entry in entries)
    return frozenset(found if experts else found - {"mlp"})


def loaded_bytes(
    parameters: Parameters,
    quantization: Quantization | None,
    dtype: str | Unknown,
    untouched: frozenset[str] = frozenset(),
) -> Bytes:
    """Bytes the engine loads, towers included.

    Quantised checkpoints are mixed: embeddings, head, norms and towers stay in sixteen bits, MXFP4 covers experts only.
    Held by test_modelfacts: Llama-3.1-8B as FP8 8.46 GiB, as AWQ 5.33 GiB.
    """
    plain = 2 if dtype is UNKNOWN else DTYPE_BYTES[dtype]
    attention = linear_bytes(quantization, dtype, "attention" in untouched)
    mlp = linear_bytes(quantization, dtype, "mlp" in untouched)
    experts = mlp
    if quantization is not None and quantization.family == "mxfp4":
        experts = RATIO["mxfp4"]
    whole = parameters.embedding + parameters.other + parameters.tower
    mixed = parameters.attention * attention + parameters.mlp * mlp + parameters.experts * experts
    return whole * plain + int(mixed)


def linear_bytes(quantization: Quantization | None, dtype: str | Unknown, untouched: bool) -> float:
    """Bytes an element of a quantised matrix; `untouched`: the file leaves this one in its plain type."""
    plain = 2.0 if dtype is UNKNOWN else float(DTYPE_BYTES[dtype])
    if quantization is None or untouched or quantization.family == "mxfp4":
        return plain
    return RATIO.get(quantization.family, plain)
