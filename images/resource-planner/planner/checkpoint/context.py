# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How long a request may be, and what the positions cost: the limits of the file and the rope that stretches them."""

from collections.abc import Mapping

from planner.architecture import DTYPE_BYTES
from planner.checkpoint import fields
from planner.checkpoint.fields import Config
from planner.units import UNKNOWN, Bytes, Maybe, Unknown


def max_context(text: Config, config: Config) -> Maybe:
    """The longest context the engine accepts without being told to ignore the checkpoint.

    The smallest of the stated limits, multiplied where a rope rule stretches it. RoBERTa counts positions from its
    padding index on, so two of them are no tokens (514 → 512, 8194 → 8192).
    """
    limits = [
        value
        for key in ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length",
                    "n_ctx", "max_target_positions", "model_max_length")
        if (value := fields.number(text, key)) is not None
    ]  # fmt: skip
    if not limits:
        return UNKNOWN
    limit = min(limits)
    rope = text.get("rope_scaling") or text.get("rope_parameters")
    if isinstance(rope, Mapping):
        kind = rope.get("rope_type", rope.get("type"))
        factor = rope.get("factor")
        if (
            kind == "yarn"
            and isinstance(factor, int | float)
            and isinstance(original := rope.get("original_max_position_embeddings"), int)
        ):
            return max(limit, int(original * factor)) if limit >= original * factor else int(original * factor)
        if kind in ("linear", "dynamic") and isinstance(factor, int | float) and not fields.is_gemma(text):
            return int(limit * factor)
    architecture = fields.architecture(config)
    if "roberta" in str(text.get("model_type", "")).lower() or (
        architecture is not UNKNOWN and "Roberta" in architecture
    ):
        limit -= 2
    return limit


def rope_cache(text: Config, context: Maybe, dtype: str | Unknown) -> Bytes:
    """Cosines and sines of every position, which each rank holds whole: positions x rotary width x element."""
    if context is UNKNOWN or not is_rotary(text):
        return 0
    width = fields.count(text, "qk_rope_head_dim")
    if width is UNKNOWN:
        share = text.get("partial_rotary_factor")
        rope = text.get("rope_parameters")
        if share is None and isinstance(rope, Mapping):
            share = rope.get("partial_rotary_factor")
        full = fields.head_dim(text)
        if full is UNKNOWN:
            return 0
        width = int(full * share) if isinstance(share, int | float) else full
    return context * width * (2 if dtype is UNKNOWN else DTYPE_BYTES[dtype])


def is_rotary(text: Config) -> bool:
    """Whether positions are turned into keys and queries; otherwise they are learnt as an embedding of their own."""
    return any(
        key in text
        for key in ("rope_theta", "rope_parameters", "rope_scaling", "rotary_emb_base", "rotary_pct", "rope_ratio")
    )
