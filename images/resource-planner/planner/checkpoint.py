# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A checkpoint's own `config.json` becomes model facts, by what its keys say and not by the model's name.

Families differ in how they spell a fact, not in what it means; each reader below lists the spellings. A model type is
asked for only where published files leave a fact to the class default (`DEFAULTS`) or where two families give one key
two meanings; each such place says so. What no key states becomes `UNKNOWN`, never a guess.

Held by tests: the counted parameters agree with the published counts of the shipped table, and key/value bytes with
what the engine itself answered.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from planner.architecture import (
    DTYPE_BYTES,
    Attention,
    Layers,
    ModelFacts,
    Parameters,
    Quantization,
    Source,
    Tower,
)
from planner.model import EndpointType
from planner.units import UNKNOWN, Bytes, Maybe, Unknown

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

TIED: Final = frozenset(
    {"gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "gemma4", "gemma4_text", "cohere",
     "cohere2", "whisper", "gpt2", "bloom", "falcon", "phi4mm"}
)  # fmt: skip
"""Types whose head shares the embedding when the file does not say (transformers class defaults)."""

FLOAT16_FORBIDDEN: Final = frozenset({"gemma2", "gemma3", "gemma3_text", "plamo2", "glm4"})
"""Types that the engine refuses in float16 for numerical instability (vLLM `config/model.py`)."""

_NESTED: Final = ("text_config", "llm_config", "language_config", "language_model_config")
_VISION: Final = ("vision_config", "vision_tower_config", "vit_config")
_AUDIO: Final = ("audio_config", "audio_encoder_config", "speech_config")
_ENCODERS: Final = ("Bert", "Roberta", "Electra", "Deberta", "NewModel", "NomicBert", "GteModel", "NewForSequence")
_QKV_BIAS: Final = frozenset({"qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_vl_text"})


def facts(
    config: Config,
    weights: Bytes | Unknown = UNKNOWN,
    *,
    name: str = "",
    source: Source = Source.KNOWN,
    origin: str = "",
) -> ModelFacts:
    """The facts that `config` (a parsed `config.json`) states.

    `weights` are the bytes the engine loads, all towers included; without them they are counted from the shapes and the
    quantisation the file names, and stay `UNKNOWN` where the shapes are incomplete. Raises ValueError when `config` is
    not an object or holds a wrong type where a number is needed; the message names the key.
    """
    if not isinstance(config, Mapping):
        raise ValueError("config.json: an object is expected")
    text = body(config)
    layers = _layers(text, config)
    parameters = _parameters(text, config)
    dtype = _dtype(text, config)
    quantization = _quantization(config, text)
    tower = _tower(config, text)
    loaded = weights
    replicated = kv_projection = 0
    if not isinstance(parameters, Unknown):
        counted = loaded_bytes(parameters, quantization, dtype, _untouched(config, text))
        if loaded is UNKNOWN:
            loaded = counted
        width = _linear_bytes(quantization, dtype, "attention" in _untouched(config, text))
        replicated = int(parameters.replicated * width)
        kv_projection = int(parameters.kv_projection * width)
    if loaded is not UNKNOWN and tower is not None:
        loaded = max(0, loaded - tower.bytes)
    context = max_context(text, config)
    rope = _rope_cache(text, context, dtype)
    return ModelFacts(
        name=name or str(config.get("_name_or_path") or ""),
        source=source,
        origin=origin or "config.json of the checkpoint",
        architecture=_architecture(config),
        family=str(text["model_type"]) if text.get("model_type") else UNKNOWN,
        layers=layers,
        hidden=_count(text, "hidden_size", "d_model", "n_embd"),
        intermediate=_active_width(text),
        vocabulary=_count(text, "vocab_size", "padded_vocab_size"),
        attention_heads=_heads(text),
        kv_heads=_kv_heads(text),
        linear_heads=_linear_heads(text),
        max_context=context,
        dtype=dtype,
        quantization=quantization,
        weights=loaded,
        replicated=replicated,
        kv_projection=kv_projection,
        tower=tower,
        rope_cache=rope,
        experts=_experts(text),
        encoder_only=encoder_only(text, config),
        speech=_speech(text),
        endpoint_types=_endpoint_types(text, config),
        checkpoint_format="Safetensors",
        float16_forbidden=str(config.get("model_type")) in FLOAT16_FORBIDDEN
        or str(text.get("model_type")) in FLOAT16_FORBIDDEN,
        parameters=parameters,
    )


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


# Plain readers --------------------------------------------------------------------------------------------------------


def _number(config: Config, key: str) -> int | None:
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


def _count(config: Config, *keys: str) -> Maybe:
    for key in keys:
        value = _number(config, key)
        if value is not None:
            return value
    return UNKNOWN


def _or(value: Maybe, otherwise: int) -> int:
    return otherwise if value is UNKNOWN else value


def _architecture(config: Config) -> str | Unknown:
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, Sequence) and not isinstance(names, str) and names else UNKNOWN


def _layer_count(text: Config) -> Maybe:
    return _count(text, "num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers")


def _heads(text: Config) -> Maybe:
    return _count(text, "num_attention_heads", "n_head", "n_heads", "decoder_attention_heads", "num_heads")


def _kv_heads(text: Config) -> Maybe:
    if text.get("multi_query_attention"):
        return _count(text, "multi_query_group_num")
    stated = _count(text, "num_key_value_heads", "n_head_kv", "num_kv_heads", "n_kv_heads")
    if stated is not UNKNOWN:
        return stated
    if text.get("multi_query") is True:
        return 1
    blocks = text.get("block_configs")
    heads = _heads(text)
    if isinstance(blocks, Sequence) and heads is not UNKNOWN:
        groups = [value for block in blocks if (value := _number(_block(block), "n_heads_in_group"))]
        return heads // min(groups) if groups else UNKNOWN
    return _heads(text)


def _head_dim(text: Config) -> Maybe:
    stated = _count(text, "head_dim", "kv_channels", "attention_head_size")
    if stated is not UNKNOWN:
        return stated
    hidden, heads = _count(text, "hidden_size", "d_model", "n_embd"), _heads(text)
    return UNKNOWN if hidden is UNKNOWN or heads is UNKNOWN or heads == 0 else hidden // heads


def _intermediate(text: Config) -> Maybe:
    stated = _count(text, "intermediate_size", "ffn_dim", "decoder_ffn_dim", "n_inner", "ffn_hidden_size", "d_ff")
    if stated is not UNKNOWN:
        return stated
    hidden = _count(text, "hidden_size", "d_model", "n_embd")
    return UNKNOWN if hidden is UNKNOWN else 4 * hidden


def _experts(text: Config) -> Maybe:
    return _or(_count(text, "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"), 0)


def _expert_width(text: Config) -> Maybe:
    stated = _count(text, "moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
    return stated if stated is not UNKNOWN else _intermediate(text)


def _shared_width(text: Config) -> int:
    stated = _count(
        text, "shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"
    )
    if stated is not UNKNOWN:
        return stated
    shared = _or(_count(text, "n_shared_experts", "num_shared_experts"), 0)
    if text.get("model_type") in {"llama4", "llama4_text"}:
        shared = 1  # every expert layer of Llama 4 has one, no key says so
    return shared * _or(_expert_width(text), 0)


def _active_experts(text: Config) -> int:
    return _or(
        _count(text, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k_experts", "experts_per_token"),
        1,
    )


def _active_width(text: Config) -> Maybe:
    """The widest feed-forward of one token: the dense one, or the active experts together with the shared one."""
    dense = _intermediate(text)
    experts = _experts(text)
    width = _expert_width(text)
    if experts is UNKNOWN or experts == 0 or width is UNKNOWN:
        return dense
    active = _active_experts(text) * width + _shared_width(text)
    return active if dense is UNKNOWN else max(dense, active)


def _dtype(text: Config, config: Config) -> str | Unknown:
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


def _speech(text: Config) -> bool:
    return bool(text.get("is_encoder_decoder")) and _count(text, "max_source_positions", "num_mel_bins") is not UNKNOWN


def encoder_only(text: Config, config: Config) -> bool | Unknown:
    """Whether the model only encodes and keeps nothing per request."""
    architecture = _architecture(config)
    if _speech(text) or text.get("is_encoder_decoder"):
        return False
    if text.get("is_decoder") is True:
        return False
    if text.get("use_bidirectional_attention") is True or text.get("is_causal") is False:
        return True
    if architecture is not UNKNOWN and any(word in architecture for word in _ENCODERS):
        return True
    if any(key in text for key in ("type_vocab_size", "global_attn_every_n_layers")):
        return True
    return UNKNOWN if _layer_count(text) is UNKNOWN else False


def _endpoint_types(text: Config, config: Config) -> tuple[EndpointType, ...]:
    architecture = _architecture(config)
    if architecture is UNKNOWN:
        return ()
    if _speech(text):
        return (EndpointType.SPEECH_TO_TEXT,)
    if architecture.endswith("ForSequenceClassification"):
        return (EndpointType.RERANK,)
    if encoder_only(text, config) is True or architecture.endswith("Model"):
        return (EndpointType.EMBEDDINGS,)
    if "ForCausalLM" in architecture or "ForConditionalGeneration" in architecture or "LMHead" in architecture:
        return (EndpointType.CHAT,)
    return ()


def max_context(text: Config, config: Config) -> Maybe:
    """The longest context the engine accepts without being told to ignore the checkpoint.

    The smallest of the stated limits, multiplied where a rope rule stretches it. RoBERTa counts positions from its
    padding index on, so two of them are no tokens (514 → 512, 8194 → 8192).
    """
    limits = [
        value
        for key in ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length",
                    "n_ctx", "max_target_positions", "model_max_length")
        if (value := _number(text, key)) is not None
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
        if kind in ("linear", "dynamic") and isinstance(factor, int | float) and not _gemma_like(text):
            return int(limit * factor)
    architecture = _architecture(config)
    if "roberta" in str(text.get("model_type", "")).lower() or (
        architecture is not UNKNOWN and "Roberta" in architecture
    ):
        limit -= 2
    return limit


def _gemma_like(text: Config) -> bool:
    return str(text.get("model_type", "")).startswith("gemma")


def _rope_cache(text: Config, context: Maybe, dtype: str | Unknown) -> Bytes:
    """Cosines and sines of every position, which each rank holds whole: positions x rotary width x element."""
    if context is UNKNOWN or not _rotary(text):
        return 0
    width = _count(text, "qk_rope_head_dim")
    if width is UNKNOWN:
        share = text.get("partial_rotary_factor")
        rope = text.get("rope_parameters")
        if share is None and isinstance(rope, Mapping):
            share = rope.get("partial_rotary_factor")
        full = _head_dim(text)
        if full is UNKNOWN:
            return 0
        width = int(full * share) if isinstance(share, int | float) else full
    return context * width * (2 if dtype is UNKNOWN else DTYPE_BYTES[dtype])


def _rotary(text: Config) -> bool:
    return any(
        key in text
        for key in ("rope_theta", "rope_parameters", "rope_scaling", "rotary_emb_base", "rotary_pct", "rope_ratio")
    )


# Layers ---------------------------------------------------------------------------------------------------------------

_WORDS: Final = (
    ("none", ("moe", "mlp", "-", "e")),
    ("sliding", ("sliding", "local", "chunk", "swa")),
    ("linear", ("linear", "mamba", "conv", "recurrent", "kda", "delta", "hybrid", "lightning")),
    ("full", ("full", "attention", "global", "*")),
)
"""What a layer keeps, by what its published word contains; the first that matches wins."""


def layer_words(text: Config, config: Config) -> tuple[str, ...] | Unknown:
    """One word a layer, in the order of the model: `full`, `sliding`, `linear`, `cross`, `none` (keeps nothing)."""
    count = _layer_count(text)
    if count is UNKNOWN:
        return UNKNOWN
    blocks = text.get("block_configs")
    if isinstance(blocks, Sequence) and blocks and all(isinstance(block, Mapping) for block in blocks):
        return tuple("none" if _block(block).get("no_op") or _block(block).get("replace_with_linear") else "full"
                     for block in blocks)  # fmt: skip
    lightning = text.get("attn_type_list")
    if isinstance(lightning, Sequence) and not isinstance(lightning, str) and lightning:
        return tuple("full" if entry else "linear" for entry in lightning)
    numbered = text.get("hybrid_layer_pattern")
    if isinstance(numbered, Sequence) and not isinstance(numbered, str) and numbered:
        return tuple("sliding" if entry else "full" for entry in numbered)
    stated = text.get("layer_types") or text.get("layers_block_type") or text.get("layer_block_type")
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        return tuple({"M": "linear", "*": "full"}.get(letter, "none") for letter in pattern)
    if isinstance(stated, Sequence) and not isinstance(stated, str) and stated:
        read = [_word(str(word)) for word in stated]
        words = tuple(word for word in read if word is not None)
        if len(words) < len(read) or len(words) > count:
            return UNKNOWN
        words = tuple(words[index % len(words)] for index in range(count))  # some files state one period only
        if "sliding" in words and _window(text) == 0:
            words = tuple("full" if word == "sliding" else word for word in words)
        shared = _or(_count(text, "num_kv_shared_layers"), 0)
        return words[: len(words) - shared] + ("none",) * shared if shared else words
    interval = _count(text, "full_attention_interval")
    if interval is not UNKNOWN and interval > 0:
        return tuple("full" if (index + 1) % interval == 0 else "linear" for index in range(count))
    linear = text.get("linear_attn_config")
    if isinstance(linear, Mapping) and isinstance(linear.get("full_attn_layers"), Sequence):
        full = set(linear["full_attn_layers"])  # counted from one
        return tuple("full" if index + 1 in full else "linear" for index in range(count))
    period = _count(text, "attn_layer_period")
    if period is not UNKNOWN and period > 0:
        offset = _or(_count(text, "attn_layer_offset"), 0)
        return tuple("full" if index % period == offset else "linear" for index in range(count))
    crossed = text.get("cross_attention_layers")
    if isinstance(crossed, Sequence) and not isinstance(crossed, str) and crossed:
        return tuple("cross" if index in crossed else "full" for index in range(count))
    listed = text.get("attn_layer_indices")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        return tuple("full" if index in listed else "linear" for index in range(count))
    if _count(text, "attention_chunk_size") is not UNKNOWN:
        plain = text.get("no_rope_layers") or [int((index + 1) % 4 != 0) for index in range(count)]
        return tuple("sliding" if kept else "full" for kept in plain)
    window = _window(text)
    if _heads(text) is UNKNOWN and _state_size(text) is not UNKNOWN:
        return ("linear",) * count
    if window == 0:
        return ("full",) * count
    repeat = _count(text, "sliding_window_pattern", "_sliding_window_pattern")
    if repeat is not UNKNOWN and repeat > 1:
        words = tuple("full" if (index + 1) % repeat == 0 else "sliding" for index in range(count))
        shared = _or(_count(text, "num_kv_shared_layers"), 0)
        return words[: count - shared] + ("none",) * shared if shared else words
    first = _count(text, "max_window_layers")
    if first is not UNKNOWN:
        return tuple("sliding" if index >= first else "full" for index in range(count))
    return ("sliding",) * count


def _block(block: Config) -> Config:
    """The attention section of a layer of a pruned model (`block_configs`)."""
    attention = block.get("attention")
    return attention if isinstance(attention, Mapping) else {}


def _word(word: str) -> str | None:
    lower = word.lower()
    for kind, parts in _WORDS:
        if any(lower == part if kind == "none" else part in lower for part in parts):
            return kind
    return None


def _window(text: Config) -> int:
    if text.get("use_sliding_window") is False:
        return 0
    window = _or(_count(text, "sliding_window", "attention_chunk_size"), 0)
    if (
        text.get("use_sliding_window") is None
        and _count(text, "max_window_layers") is not UNKNOWN
        and not text.get("layer_types")
    ):
        return 0  # Qwen 2 files carry a window that their class default leaves switched off
    return window


def _layers(text: Config, config: Config) -> tuple[Layers, ...] | Unknown:
    encoder = encoder_only(text, config)
    if encoder is True:
        return ()
    if _speech(text):
        return _speech_layers(text)
    count = _layer_count(text)
    if count is UNKNOWN or encoder is UNKNOWN:
        return UNKNOWN
    words = layer_words(text, config)
    if words is UNKNOWN:
        return UNKNOWN
    found: list[Layers] = []
    full, sliding, linear = words.count("full"), words.count("sliding"), _states(text, words)
    latent = _count(text, "kv_lora_rank")
    heads, width = _kv_heads(text), _head_dim(text)
    if latent is not UNKNOWN and latent > 0:
        index = _count(text, "index_head_dim")
        found.append(
            Layers(
                kind=Attention.LATENT,
                count=full,
                latent=latent + _or(_count(text, "qk_rope_head_dim"), 64),
                extra_token_bytes=0 if index is UNKNOWN else index + 4 * -(-index // 128),
            )
        )
    elif full:
        full_heads = _count(text, "num_global_key_value_heads")
        full_width = _count(text, "global_head_dim")
        full_heads = heads if full_heads is UNKNOWN else full_heads
        full_width = width if full_width is UNKNOWN else full_width
        if full_heads is UNKNOWN or full_width is UNKNOWN:
            return UNKNOWN
        found.append(
            Layers(
                kind=Attention.FULL, count=full, kv_heads=full_heads, head_dim=full_width, value_dim=_value_dim(text)
            )
        )
    if sliding:
        near_heads = _count(text, "swa_num_key_value_heads")
        near_width = _count(text, "swa_head_dim")
        near_heads = heads if near_heads is UNKNOWN else near_heads
        near_width = width if near_width is UNKNOWN else near_width
        if near_heads is UNKNOWN or near_width is UNKNOWN:
            return UNKNOWN
        found.append(
            Layers(
                kind=Attention.SLIDING, count=sliding, kv_heads=near_heads, head_dim=near_width, window=_window(text)
            )
        )
    if crossed := words.count("cross"):
        positions = _image_positions(config)
        if positions is UNKNOWN or heads is UNKNOWN or width is UNKNOWN:
            return UNKNOWN
        found.append(Layers(kind=Attention.CROSS, count=crossed, kv_heads=heads, head_dim=width, positions=positions))
    if linear:
        state = _linear_layers(text, linear)
        if state is UNKNOWN:
            return UNKNOWN
        found.append(state)
    return tuple(found)


def _state_size(text: Config) -> Maybe:
    return _count(text, "mamba_d_state", "ssm_state_size", "state_size")


def _states(text: Config, words: tuple[str, ...]) -> int:
    """How many layers keep a state: those that say so, or every one where Mamba runs beside attention in each layer."""
    if "linear" not in words and words.count("full") == len(words) and _state_size(text) is not UNKNOWN:
        return len(words)
    return words.count("linear")


def _image_positions(config: Config) -> Maybe:
    """Positions that cross-attention layers keep for an image: every patch and one more, of every tile."""
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return UNKNOWN
    image, patch = _count(vision, "image_size"), _count(vision, "patch_size")
    if image is UNKNOWN or patch is UNKNOWN:
        return UNKNOWN
    return _or(_count(vision, "max_num_tiles"), 1) * ((image // patch) ** 2 + 1)


def _value_dim(text: Config) -> int:
    return _or(_count(text, "v_head_dim"), 0)


def _speech_layers(text: Config) -> tuple[Layers, ...] | Unknown:
    count = _count(text, "decoder_layers", "num_hidden_layers")
    heads = _count(text, "decoder_attention_heads", "num_attention_heads")
    hidden = _count(text, "d_model", "hidden_size")
    if count is UNKNOWN or heads is UNKNOWN or hidden is UNKNOWN:
        return UNKNOWN
    positions = _or(_count(text, "max_source_positions"), 1500)
    return (
        Layers(kind=Attention.FULL, count=count, kv_heads=heads, head_dim=hidden // heads),
        Layers(kind=Attention.CROSS, count=count, kv_heads=heads, head_dim=hidden // heads, positions=positions),
    )


def _linear_heads(text: Config) -> tuple[int, ...]:
    if _count(text, "full_attention_interval", "attn_layer_period") is UNKNOWN and "linear" not in _quiet_words(text):
        return ()
    counts = (
        _count(text, "linear_num_key_heads"),
        _count(text, "linear_num_value_heads", "mamba_n_heads", "mamba_num_heads"),
    )
    return tuple(count for count in counts if count is not UNKNOWN)


def _quiet_words(text: Config) -> tuple[str, ...]:
    words = layer_words(text, text)
    return () if words is UNKNOWN else words


def _linear_layers(text: Config, count: int) -> Layers | Unknown:
    """Gated delta nets (Qwen3-Next and after), KDA (Kimi), Mamba 1 and 2, short convolutions, told apart by keys."""
    element = _state_bytes(text, default=4)
    key_heads, value_heads = _count(text, "linear_num_key_heads"), _count(text, "linear_num_value_heads")
    if key_heads is not UNKNOWN and value_heads is not UNKNOWN:
        key_dim, value_dim = _count(text, "linear_key_head_dim"), _count(text, "linear_value_head_dim")
        if key_dim is UNKNOWN or value_dim is UNKNOWN:
            return UNKNOWN
        return Layers(
            kind=Attention.LINEAR,
            count=count,
            conv_width=2 * key_heads * key_dim + value_heads * value_dim,
            conv_positions=_or(_count(text, "linear_conv_kernel_dim"), 4) - 1,
            state_elements=value_heads * key_dim * value_dim,
            state_element_bytes=element,
        )
    kda = text.get("linear_attn_config")
    if isinstance(kda, Mapping):
        heads, width = _count(kda, "num_heads"), _count(kda, "head_dim")
        if heads is UNKNOWN or width is UNKNOWN:
            return UNKNOWN
        return Layers(
            kind=Attention.LINEAR,
            count=count,
            conv_width=3 * heads * width,
            conv_positions=_or(_count(kda, "short_conv_kernel_size"), 4) - 1,
            state_elements=heads * width * width,
            state_element_bytes=element,
        )
    hidden = _count(text, "hidden_size", "d_model")
    heads = _count(text, "mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
    state = _state_size(text)
    kernel = _or(_count(text, "mamba_d_conv", "conv_kernel", "conv_kernel_size"), 4)
    if heads is not UNKNOWN and state is not UNKNOWN:
        width = _count(text, "mamba_d_head", "mamba_head_dim", "mamba_headdim")
        if width is UNKNOWN:
            if hidden is UNKNOWN:
                return UNKNOWN
            width = hidden * _or(_count(text, "mamba_expand", "expand"), 2) // heads
        groups = _or(_count(text, "mamba_n_groups", "n_groups", "mamba_ngroups"), 1)
        return Layers(
            kind=Attention.LINEAR,
            count=count,
            conv_width=heads * width + 2 * groups * state,
            conv_positions=kernel - 1,
            state_elements=heads * width * state,
            state_element_bytes=element,
        )
    if hidden is not UNKNOWN and state is not UNKNOWN:
        inner = hidden * _or(_count(text, "mamba_expand", "expand"), 2)
        return Layers(
            kind=Attention.LINEAR,
            count=count,
            conv_width=inner,
            conv_positions=kernel - 1,
            state_elements=inner * state,
            state_element_bytes=element,
        )
    every, width = _heads(text), _head_dim(text)
    if text.get("attn_type_list") and every is not UNKNOWN and width is not UNKNOWN:
        return Layers(kind=Attention.LINEAR, count=count, state_elements=every * width * width)
    short = _count(text, "conv_L_cache")
    if hidden is not UNKNOWN and short is not UNKNOWN:
        return Layers(kind=Attention.LINEAR, count=count, conv_width=hidden, conv_positions=max(1, short - 1))
    return UNKNOWN


def _state_bytes(text: Config, default: int) -> int:
    """Bytes of a state element; four where the file does not say: the engine keeps states in float32 at most."""
    for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype", "ssm_dtype"):
        if isinstance(text.get(key), str):
            return DTYPE_BYTES.get(str(text[key]).removeprefix("torch."), default)
    return default


# Weights --------------------------------------------------------------------------------------------------------------


def _gated(text: Config) -> bool:
    """Whether the feed-forward has three matrices: SiLU ones do, and GELU ones beside a root-mean-square norm."""
    act = str(
        text.get("hidden_act") or text.get("hidden_activation") or text.get("activation_function") or "silu"
    ).lower()
    if "silu" in act or "swiglu" in act or "geglu" in act:
        return True
    if "relu2" in act or act == "relu":
        return False
    return (
        "rms_norm_eps" in text
        or _gemma_like(text)
        or "global_attn_every_n_layers" in text
        or str(text.get("model_type")) == "new"
    )


def _parameters(text: Config, config: Config) -> Parameters | Unknown:
    """How many weights the checkpoint has, from the shapes of its layers; `UNKNOWN` when a shape is not stated."""
    hidden = _count(text, "hidden_size", "d_model", "n_embd")
    vocabulary = _count(text, "vocab_size", "padded_vocab_size")
    count = _layer_count(text)
    heads, kv_heads, width, inner = _heads(text), _kv_heads(text), _head_dim(text), _intermediate(text)
    if (
        hidden is UNKNOWN
        or vocabulary is UNKNOWN
        or count is UNKNOWN
        or heads is UNKNOWN
        or kv_heads is UNKNOWN
        or width is UNKNOWN
        or inner is UNKNOWN
    ):
        return UNKNOWN
    if _speech(text):
        return _speech_parameters(text, hidden, vocabulary)
    words = layer_words(text, config)
    if words is UNKNOWN or text.get("block_configs"):
        return UNKNOWN  # each layer of a pruned model has a width of its own
    attention = kv_projection = replicated = 0
    full = sum(word in ("full", "none", "cross") for word in words)
    if isinstance(text.get("hybrid_override_pattern"), str):
        full = words.count("full")
    sliding, linear = words.count("sliding"), _states(text, words)
    latent = _count(text, "kv_lora_rank")
    if latent is not UNKNOWN and latent > 0:
        rope = _or(_count(text, "qk_rope_head_dim"), 64)
        plain = _or(_count(text, "qk_nope_head_dim"), 128)
        value = _or(_count(text, "v_head_dim"), 128)
        query_rank = _or(_count(text, "q_lora_rank"), 0)
        query = (
            hidden * query_rank + query_rank * heads * (plain + rope) if query_rank else hidden * heads * (plain + rope)
        )
        down = hidden * (latent + rope) + hidden * query_rank
        index = _count(text, "index_head_dim")
        if index is not UNKNOWN:
            index_heads = _or(_count(text, "index_n_heads"), 64)
            extra = (query_rank or hidden) * index_heads * index + hidden * index + hidden * index_heads
            down += extra
            query += extra
        attention += full * (
            query + hidden * (latent + rope) + latent * heads * (plain + value) + heads * value * hidden
        )
        replicated += full * down
    else:
        gate = 2 if text.get("attn_output_gate", str(text.get("model_type")) in {"qwen3_next"}) else 1
        bias = (
            bool(text.get("attention_bias") or text.get("qkv_bias") or text.get("add_qkv_bias"))
            or str(text.get("model_type")) in _QKV_BIAS
        )
        full_width = _or(_count(text, "global_head_dim"), width)
        full_kv = _or(_count(text, "num_global_key_value_heads"), kv_heads)
        value = _value_dim(text)
        for layers, dim, kv in ((full, full_width, full_kv), (sliding, width, kv_heads)):
            value_dim = value or dim
            keys = hidden * kv * (dim + value_dim)
            biases = (heads * dim + kv * (dim + value_dim)) if bias else 0
            attention += layers * (hidden * heads * dim * gate + keys + heads * value_dim * hidden + biases)
            kv_projection += layers * keys
    if linear:
        attention += linear * _linear_parameters(text, hidden)
    mlp, experts, other = _feed_forward(text, words, hidden, inner)
    embedding = vocabulary * hidden
    positions = _count(text, "n_positions") if not _rotary(text) else UNKNOWN
    if encoder_only(text, config) is True and not _rotary(text):
        positions = _count(text, "max_position_embeddings")
    if positions is not UNKNOWN:
        other += positions * hidden
    if not _tied(text) and not _headless(text, config):
        embedding *= 2
    layered = _count(text, "hidden_size_per_layer_input")
    if layered is not UNKNOWN and layered > 0:
        rows = _or(_count(text, "vocab_size_per_layer_input"), vocabulary)
        other += rows * count * layered + hidden * count * layered + count * 2 * hidden * layered
    norms = 4 if _gemma_like(text) and str(text.get("model_type")) != "gemma" else 2
    other += count * norms * hidden + hidden
    if encoder_only(text, config) is True and "type_vocab_size" in text:
        # biases of every matrix, both halves of the norms, token types, the pooler
        other += count * (7 * hidden + inner) + (_or(_count(text, "type_vocab_size"), 0) + 1) * hidden
        other += hidden * (hidden + 1) if not str(text.get("model_type")).startswith(("new", "nomic")) else 0
    tower = _tower(config, text)
    return Parameters(
        attention=attention,
        kv_projection=kv_projection,
        replicated=replicated,
        mlp=mlp,
        experts=experts,
        embedding=embedding,
        other=other,
        tower=0 if tower is None else tower.bytes // 2,
    )


def _feed_forward(text: Config, words: tuple[str, ...], hidden: int, inner: int) -> tuple[int, int, int]:
    """Weights of dense feed-forwards, of experts (shared ones count as dense), and of routers."""
    matrices = 3 if _gated(text) else 2
    count = len(words)
    experts = _or(_experts(text), 0)
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        dense_layers, expert_layers = pattern.count("-"), pattern.count("E")
    elif experts:
        expert_layers = _expert_layers(text, count)
        dense_layers = count - expert_layers
    else:
        expert_layers, dense_layers = 0, count
    dense_width = _or(_count(text, "intermediate_size_mlp"), inner)
    mlp = dense_layers * matrices * hidden * dense_width
    if text.get("use_double_wide_mlp"):
        mlp += min(dense_layers, _or(_count(text, "num_kv_shared_layers"), 0)) * matrices * hidden * dense_width
    if not experts and (shared := _shared_width(text)) and _count(text, "shared_intermediate_size") is not UNKNOWN:
        mlp = dense_layers * matrices * hidden * shared
    width = _or(_expert_width(text), 0)
    mixed = expert_layers * experts * matrices * hidden * width
    mlp += expert_layers * matrices * hidden * _shared_width(text) if experts else 0
    if text.get("enable_moe_block"):
        mlp += expert_layers * matrices * hidden * inner  # a dense feed-forward beside the experts in each layer
    routers = expert_layers * experts * hidden
    biases = expert_layers * experts * (2 * width + hidden) if str(text.get("model_type")) == "gpt_oss" else 0
    return mlp, mixed, routers + biases


def _expert_layers(text: Config, count: int) -> int:
    dense = text.get("mlp_only_layers")
    first = _or(_count(text, "first_k_dense_replace", "num_dense_layers"), 0)
    step = _or(_count(text, "decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period"), 1) or 1
    frequency = text.get("moe_layer_freq")
    if isinstance(frequency, Sequence) and not isinstance(frequency, str):
        return sum(1 for entry in frequency if entry)
    if _count(text, "expert_layer_period") is not UNKNOWN:
        offset = _or(_count(text, "expert_layer_offset"), 0)
        return sum(1 for index in range(count) if index % step == offset)
    return sum(
        1
        for index in range(count)
        if index >= first and (index + 1) % step == 0 and not (isinstance(dense, Sequence) and index in dense)
    )


def _linear_parameters(text: Config, hidden: int) -> int:
    layers = _linear_layers(text, 1)
    if layers is UNKNOWN:
        return 0
    key_heads, value_heads = _count(text, "linear_num_key_heads"), _count(text, "linear_num_value_heads")
    if key_heads is not UNKNOWN and value_heads is not UNKNOWN:
        keys = key_heads * _or(_count(text, "linear_key_head_dim"), 128)
        values = value_heads * _or(_count(text, "linear_value_head_dim"), 128)
        return (
            hidden * (2 * keys + 2 * values)
            + hidden * 2 * value_heads
            + layers.conv_width * (layers.conv_positions + 1)
            + values * hidden
        )
    if layers.state_elements == 0:
        return 4 * hidden * hidden
    state = _or(_count(text, "mamba_d_state", "ssm_state_size", "state_size"), 16)
    heads = _count(text, "mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
    inner = layers.state_elements // state
    projected = inner + layers.conv_width + (_or(heads, 0))
    return hidden * projected + layers.conv_width * (layers.conv_positions + 1) + inner * hidden


def _speech_parameters(text: Config, hidden: int, vocabulary: int) -> Parameters:
    encoders = _or(_count(text, "encoder_layers"), 0)
    decoders = _or(_count(text, "decoder_layers", "num_hidden_layers"), 0)
    encoder_width = _or(_count(text, "encoder_ffn_dim"), 4 * hidden)
    decoder_width = _or(_count(text, "decoder_ffn_dim"), 4 * hidden)
    square = 4 * hidden * hidden
    mel = _or(_count(text, "num_mel_bins"), 80)
    convolutions = 3 * mel * hidden + 3 * hidden * hidden
    source, target = _or(_count(text, "max_source_positions"), 1500), _or(_count(text, "max_target_positions"), 448)
    return Parameters(
        attention=encoders * square + decoders * 2 * square + convolutions,
        kv_projection=0,
        replicated=0,
        mlp=encoders * 2 * hidden * encoder_width + decoders * 2 * hidden * decoder_width,
        experts=0,
        embedding=vocabulary * hidden,
        other=(source + target) * hidden + (encoders * 9 + decoders * 15) * hidden,
        tower=0,
    )


def _tied(text: Config) -> bool:
    stated = text.get("tie_word_embeddings")
    return bool(stated) if stated is not None else str(text.get("model_type")) in TIED


def _headless(text: Config, config: Config) -> bool:
    """Whether the engine loads no output head: encoders, embedders and classifiers."""
    architecture = _architecture(config)
    return encoder_only(text, config) is True or (
        architecture is not UNKNOWN and (architecture.endswith(("Model", "ForSequenceClassification")))
    )


def _tower(config: Config, text: Config) -> Tower | None:
    """The vision or audio tower with its projector, at two bytes an element; None when the file has no such section."""
    outer = config["thinker_config"] if isinstance(config.get("thinker_config"), Mapping) else config
    found: list[Tower] = []
    for keys, sound in ((_VISION, False), (_AUDIO, True)):
        for key in keys:
            if isinstance(outer.get(key), Mapping) and outer[key]:
                found.append(_one_tower(outer[key], outer, text, sound=sound))
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


def _one_tower(section: Config, outer: Config, text: Config, *, sound: bool) -> Tower:
    kind = str(section.get("model_type") or outer.get("model_type") or "")
    merged = {**DEFAULTS.get(kind, {}), **section}
    hidden = _or(_count(merged, "embed_dim", "d_model", "hidden_size", "width"), 1024)
    depth = _or(_count(merged, "depth", "num_hidden_layers", "encoder_layers", "layers", "num_layers"), 24)
    stated = _count(merged, "intermediate_size", "encoder_ffn_dim")
    ratio = merged.get("mlp_ratio")
    inner = stated if stated is not UNKNOWN else int(hidden * ratio) if isinstance(ratio, int | float) else 4 * hidden
    gated = "silu" in str(merged.get("hidden_act", "")).lower()
    patch = _or(_count(merged, "patch_size"), 14)
    merge = _or(_count(merged, "spatial_merge_size"), _or(_count(outer, "spatial_merge_size"), 1))
    out = _or(_count(text, "hidden_size", "d_model"), hidden)
    weights = depth * (4 * hidden * hidden + (3 if gated else 2) * hidden * inner + 9 * hidden)
    weights += (
        3 * patch * patch * hidden if not sound else 3 * hidden * (_or(_count(merged, "num_mel_bins"), 128) + hidden)
    )
    joined = hidden * merge * merge
    mergers = 1 + len(merged.get("deepstack_visual_indexes") or ())
    weights += (
        mergers * (joined * joined + joined * out) if merge > 1 else hidden * out + (out * out if not sound else 0)
    )
    weights += _or(_count(merged, "num_position_embeddings"), 0) * hidden
    if sound:
        positions = _or(_count(merged, "max_source_positions"), 1500)
        tokens = positions // 2
    else:
        image = _count(merged, "image_size")
        positions = 16_384 * merge * merge if image is UNKNOWN else (image // patch) ** 2
        stated_tokens = _count(outer, "mm_tokens_per_image", "vision_soft_tokens_per_image", "image_seq_length")
        tokens = positions // (merge * merge) if stated_tokens is UNKNOWN else stated_tokens
        ratio = outer.get("downsample_ratio")
        if isinstance(ratio, int | float):
            tokens = int(tokens * ratio * ratio)
        tiles = _or(_count(outer, "max_dynamic_patch"), 0) + 1
        if outer.get("max_dynamic_patch") is None:
            tiles = _or(_count(merged, "max_num_tiles"), 1)
        positions, tokens = positions * tiles, tokens * tiles
    return Tower(bytes=2 * weights, hidden=hidden, intermediate=inner, positions=positions, tokens=max(1, tokens))


# Quantisation ---------------------------------------------------------------------------------------------------------

RATIO: Final[Mapping[str, float]] = {"fp8": 1.0, "int8": 1.0, "int4": 0.5195, "mxfp4": 0.53125, "nvfp4": 0.5625}
"""Bytes an element of a quantised matrix, scales included (groups of 128 for int4, 32 for MXFP4, 16 for NVFP4)."""


def _quantization(config: Config, text: Config) -> Quantization | None:
    section = _quantization_section(config, text)
    if section is None:
        return None
    method = str(section.get("quant_method") or section.get("quant_algo") or "").lower()
    family = _family(method, section)
    return Quantization(method=method or family, family=family)


def _quantization_section(config: Config, text: Config) -> Config | None:
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


def _untouched(config: Config, text: Config) -> frozenset[str]:
    """Which parts a quantised checkpoint leaves in sixteen bits, beside embeddings, head and norms: `attention`, `mlp`.

    A part counts when a pattern or at least half of the layers' own entries name it.
    """
    section = _quantization_section(config, text)
    if section is None:
        return frozenset()
    entries: list[str] = []
    for key in ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"):
        value = section.get(key)
        if isinstance(value, Sequence) and not isinstance(value, str):
            entries.extend(str(entry) for entry in value)
    count = _or(_layer_count(text), 1)
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
    if (_or(_experts(text), 0)) == 0 or "mlp" not in found:
        return frozenset(found)
    experts = any("expert" in entry for entry in entries)
    return frozenset(found if experts else found - {"mlp"})


def _linear_bytes(quantization: Quantization | None, dtype: str | Unknown, untouched: bool) -> float:
    plain = 2.0 if dtype is UNKNOWN else float(DTYPE_BYTES[dtype])
    if quantization is None or untouched or quantization.family == "mxfp4":
        return plain
    return RATIO.get(quantization.family, plain)


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
    attention = _linear_bytes(quantization, dtype, "attention" in untouched)
    mlp = _linear_bytes(quantization, dtype, "mlp" in untouched)
    experts = mlp
    if quantization is not None and quantization.family == "mxfp4":
        experts = RATIO["mxfp4"]
    whole = parameters.embedding + parameters.other + parameters.tower
    mixed = parameters.attention * attention + parameters.mlp * mlp + parameters.experts * experts
    return whole * plain + int(mixed)
