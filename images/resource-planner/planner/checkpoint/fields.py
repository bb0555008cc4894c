# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Single facts of a `config.json`, under all the keys that families spell them by.

A reader returns `UNKNOWN` where no key states the fact, and raises ValueError naming the key that holds a wrong type.
`text` is always the language model's own section, as `body` returns it; `config` is the whole file.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planner.architecture import DTYPE_BYTES
from planner.units import UNKNOWN, Maybe, Unknown, known

Config = Mapping[str, Any]

DEFAULTS: Final[Mapping[str, Config]] = {
    "gemma3_text": {
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208,
        "sliding_window": 4096, "sliding_window_pattern": 6, "max_position_embeddings": 131_072,
        "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
    },
    "gemma2": {"head_dim": 256, "vocab_size": 256_000, "sliding_window": 4096, "sliding_window_pattern": 2},
    "gemma": {"head_dim": 256, "vocab_size": 256_000},
    "gemma3n_text": {"sliding_window_pattern": 5},
    "cohere2": {"sliding_window_pattern": 4},
    "mistral": {"num_key_value_heads": 8},
    "siglip_vision_model": {
        "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "patch_size": 16, "image_size": 224,
    },
    "clip_vision_model": {
        "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "patch_size": 32, "image_size": 224,
    },
    "pixtral": {
        "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "patch_size": 16, "image_size": 1024,
    },
    "qwen2_5_vl": {
        "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "patch_size": 14, "spatial_merge_size": 2,
    },
    "qwen2_vl": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "patch_size": 14, "spatial_merge_size": 2},
}  # fmt: skip
"""Class defaults (transformers `configuration_*.py`) that published files of these types rely on."""

_NESTED: Final = ("text_config", "llm_config", "language_config", "language_model_config")


def body(config: Config) -> dict[str, Any]:
    """The language model's own section, with what only the outer object says and class defaults filled in."""
    inner: Any = None
    outer = config
    if isinstance(config.get("thinker_config"), Mapping):
        outer = config["thinker_config"]
    for key in _NESTED:
        if isinstance(outer.get(key), Mapping):
            inner = outer[key]
            break
    if inner is None:
        merged = dict(outer)
    else:
        merged = {key: value for key, value in outer.items() if not isinstance(value, Mapping)}
        merged.pop("model_type", None)
        merged.pop("tie_word_embeddings", None)
        if "tie_word_embeddings" in outer and "tie_word_embeddings" not in inner:
            merged["tie_word_embeddings"] = outer["tie_word_embeddings"]
        merged |= dict(inner)
        if "model_type" not in inner and config.get("model_type"):
            merged["model_type"] = f"{config['model_type']}_text"
    kind = str(merged.get("model_type") or "")
    for key, value in DEFAULTS.get(kind, {}).items():
        if merged.get(key) is None and not (key == "sliding_window_pattern" and merged.get("layer_types")):
            merged[key] = value
    return merged


def number(config: Config, key: str) -> int | None:
    """The whole number under `key`, of a list the largest; None: it is absent, null or a flag."""
    value = config.get(key)
    if value is None or value is False or value is True:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value == int(value):
        return int(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        whole = [entry for entry in value if isinstance(entry, int)]
        if whole and len(whole) == len(value):
            return max(whole)  # per-layer lists (OpenELM, Gemma 3n): the widest stands for all
    raise ValueError(f"config.json: {key}: a number is expected, got {value!r}")


def count(config: Config, *keys: str) -> Maybe:
    """The number under the first of `keys` that has one."""
    for key in keys:
        value = number(config, key)
        if value is not None:
            return value
    return UNKNOWN


def architecture(config: Config) -> str | Unknown:
    """The class that the engine loads the checkpoint as."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, Sequence) and not isinstance(names, str) and names else UNKNOWN


def dtype(text: Config, config: Config) -> str | Unknown:
    """The type the engine loads as for `auto`: float16 for float32 checkpoints, the checkpoint's own otherwise."""
    for place in (text, config):
        for key in ("torch_dtype", "dtype"):
            if isinstance(place.get(key), str):
                stated = str(place[key]).removeprefix("torch.")
                if stated == "float32":
                    return "float16"
                if stated in DTYPE_BYTES:
                    return stated
    return UNKNOWN


def is_gemma(text: Config) -> bool:
    """Whether the model is a Gemma of any version: several keys mean something else there."""
    return str(text.get("model_type", "")).startswith("gemma")


def layer_count(text: Config) -> Maybe:
    """Layers of the language model; of an encoder-decoder those of the decoder."""
    return count(text, "num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers")


def attention_of(block: Config) -> Config:
    """The attention section of a layer of a pruned model (`block_configs`)."""
    attention = block.get("attention")
    return attention if isinstance(attention, Mapping) else {}


def heads(text: Config) -> Maybe:
    """Heads that ask (queries) in one layer."""
    return count(text, "num_attention_heads", "n_head", "n_heads", "decoder_attention_heads", "num_heads")


def kv_heads(text: Config) -> Maybe:
    """Heads of keys and values in one layer: as many as queries have where no key says otherwise."""
    if text.get("multi_query_attention"):
        return count(text, "multi_query_group_num")
    stated = count(text, "num_key_value_heads", "n_head_kv", "num_kv_heads", "n_kv_heads")
    if stated is not UNKNOWN:
        return stated
    if text.get("multi_query") is True:
        return 1
    blocks = text.get("block_configs")
    queries = heads(text)
    if isinstance(blocks, Sequence) and queries is not UNKNOWN:
        groups = [value for block in blocks if (value := number(attention_of(block), "n_heads_in_group"))]
        return queries // min(groups) if groups else UNKNOWN
    return queries


def head_dim(text: Config) -> Maybe:
    """Elements of one head's key."""
    stated = count(text, "head_dim", "kv_channels", "attention_head_size")
    if stated is not UNKNOWN:
        return stated
    hidden, queries = count(text, "hidden_size", "d_model", "n_embd"), heads(text)
    return UNKNOWN if hidden is UNKNOWN or queries is UNKNOWN or queries == 0 else hidden // queries


def value_dim(text: Config) -> int:
    """Elements of one head's value; 0: as many as of its key."""
    return known(count(text, "v_head_dim"), 0)


def state_size(text: Config) -> Maybe:
    """Width of a Mamba layer's state."""
    return count(text, "mamba_d_state", "ssm_state_size", "state_size")


def intermediate(text: Config) -> Maybe:
    """Width of a dense feed-forward: four times the hidden size where no key says otherwise."""
    stated = count(text, "intermediate_size", "ffn_dim", "decoder_ffn_dim", "n_inner", "ffn_hidden_size", "d_ff")
    if stated is not UNKNOWN:
        return stated
    hidden = count(text, "hidden_size", "d_model", "n_embd")
    return UNKNOWN if hidden is UNKNOWN else 4 * hidden


def experts(text: Config) -> Maybe:
    """Experts of one layer, shared ones not counted; 0: none."""
    return known(count(text, "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"), 0)


def expert_width(text: Config) -> Maybe:
    """Width of one expert: that of a dense feed-forward where no key says otherwise."""
    stated = count(text, "moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
    return stated if stated is not UNKNOWN else intermediate(text)


def shared_width(text: Config) -> int:
    """Width of all shared experts of a layer together; 0: none."""
    stated = count(
        text, "shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"
    )
    if stated is not UNKNOWN:
        return stated
    shared = known(count(text, "n_shared_experts", "num_shared_experts"), 0)
    if text.get("model_type") in {"llama4", "llama4_text"}:
        shared = 1  # every expert layer of Llama 4 has one, no key says so
    return shared * known(expert_width(text), 0)


def _active_experts(text: Config) -> int:
    return known(
        count(text, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k_experts", "experts_per_token"),
        1,
    )


def active_width(text: Config) -> Maybe:
    """The widest feed-forward of one token: the dense one, or the active experts together with the shared one."""
    dense = intermediate(text)
    routed = experts(text)
    width = expert_width(text)
    if routed is UNKNOWN or routed == 0 or width is UNKNOWN:
        return dense
    active = _active_experts(text) * width + shared_width(text)
    return active if dense is UNKNOWN else max(dense, active)
