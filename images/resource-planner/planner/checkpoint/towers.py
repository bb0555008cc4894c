# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The encoders beside the language model: vision and sound, with what joins them to it."""

from collections.abc import Mapping
from typing import Final

from planner.architecture import Tower
from planner.checkpoint import fields
from planner.checkpoint.fields import Config
from planner.units import UNKNOWN, known

_VISION: Final = ("vision_config", "vision_tower_config", "vit_config")

_AUDIO: Final = ("audio_config", "audio_encoder_config", "speech_config")


def tower(config: Config, text: Config) -> Tower | None:
    """The vision or audio tower with its projector, at two bytes an element; None when the file has no such section."""
    outer = config["thinker_config"] if isinstance(config.get("thinker_config"), Mapping) else config
    found: list[Tower] = []
    for keys, sound in ((_VISION, False), (_AUDIO, True)):
        for key in keys:
            if isinstance(outer.get(key), Mapping) and outer[key]:
                found.append(_read(outer[key], outer, text, sound=sound))
                break
    if not found:
        return None
    widest = max(found, key=lambda tower: tower.positions * (4 * tower.hidden + 2 * tower.intermediate))
    return Tower(
        bytes=sum(tower.bytes for tower in found),
        hidden=widest.hidden,
        intermediate=widest.intermediate,
        positions=widest.positions,
        tokens=widest.tokens,
    )


def _read(section: Config, outer: Config, text: Config, *, sound: bool) -> Tower:
    kind = str(section.get("model_type") or outer.get("model_type") or "")
    merged = {**fields.DEFAULTS.get(kind, {}), **section}
    hidden = known(fields.count(merged, "embed_dim", "d_model", "hidden_size", "width"), 1024)
    depth = known(fields.count(merged, "depth", "num_hidden_layers", "encoder_layers", "layers", "num_layers"), 24)
    stated = fields.count(merged, "intermediate_size", "encoder_ffn_dim")
    ratio = merged.get("mlp_ratio")
    inner = stated if stated is not UNKNOWN else int(hidden * ratio) if isinstance(ratio, int | float) else 4 * hidden
    gated = "silu" in str(merged.get("hidden_act", "")).lower()
    patch = known(fields.count(merged, "patch_size"), 14)
    merge = known(fields.count(merged, "spatial_merge_size"), known(fields.count(outer, "spatial_merge_size"), 1))
    out = known(fields.count(text, "hidden_size", "d_model"), hidden)
    weights = depth * (4 * hidden * hidden + (3 if gated else 2) * hidden * inner + 9 * hidden)
    weights += (
        3 * patch * patch * hidden
        if not sound
        else 3 * hidden * (known(fields.count(merged, "num_mel_bins"), 128) + hidden)
    )
    joined = hidden * merge * merge
    mergers = 1 + len(merged.get("deepstack_visual_indexes") or ())
    weights += (
        mergers * (joined * joined + joined * out) if merge > 1 else hidden * out + (out * out if not sound else 0)
    )
    weights += known(fields.count(merged, "num_position_embeddings"), 0) * hidden
    if sound:
        positions = known(fields.count(merged, "max_source_positions"), 1500)
        tokens = positions // 2
    else:
        image = fields.count(merged, "image_size")
        positions = 16_384 * merge * merge if image is UNKNOWN else (image // patch) ** 2
        stated_tokens = fields.count(outer, "mm_tokens_per_image", "vision_soft_tokens_per_image", "image_seq_length")
        tokens = positions // (merge * merge) if stated_tokens is UNKNOWN else stated_tokens
        ratio = outer.get("downsample_ratio")
        if isinstance(ratio, int | float):
            tokens = int(tokens * ratio * ratio)
        tiles = known(fields.count(outer, "max_dynamic_patch"), 0) + 1
        if outer.get("max_dynamic_patch") is None:
            tiles = known(fields.count(merged, "max_num_tiles"), 1)
        positions, tokens = positions * tiles, tokens * tiles
    return Tower(bytes=2 * weights, hidden=hidden, intermediate=inner, positions=positions, tokens=max(1, tokens))
