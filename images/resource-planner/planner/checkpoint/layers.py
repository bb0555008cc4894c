# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What each layer of the language model keeps for a running request: keys and values, a window of them, a state."""

from collections.abc import Mapping, Sequence
from typing import Final

from planner.architecture import DTYPE_BYTES, Attention, Layers
from planner.checkpoint import fields, purpose
from planner.checkpoint.fields import Config
from planner.units import UNKNOWN, Maybe, Unknown, known

_WORDS: Final = (
    ("none", ("moe", "mlp", "-", "e")),
    ("sliding", ("sliding", "local", "chunk", "swa")),
    ("linear", ("linear", "mamba", "conv", "recurrent", "kda", "delta", "hybrid", "lightning")),
    ("full", ("full", "attention", "global", "*")),
)
"""What a layer keeps, by what its published word contains; the first that matches wins."""


def kept(text: Config, config: Config) -> tuple[Layers, ...] | Unknown:
    """The layers by what they keep; empty: an encoder, which keeps nothing; `UNKNOWN` when one kind is not stated."""
    encoder = purpose.encoder_only(text, config)
    if encoder is True:
        return ()
    if purpose.is_speech(text):
        return _speech_layers(text)
    count = fields.layer_count(text)
    if count is UNKNOWN or encoder is UNKNOWN:
        return UNKNOWN
    words = layer_words(text, config)
    if words is UNKNOWN:
        return UNKNOWN
    found: list[Layers] = []
    full, sliding, linear = words.count("full"), words.count("sliding"), state_layers(text, words)
    latent = fields.count(text, "kv_lora_rank")
    heads, width = fields.kv_heads(text), fields.head_dim(text)
    if latent is not UNKNOWN and latent > 0:
        index = fields.count(text, "index_head_dim")
        found.append(
            Layers(
                kind=Attention.LATENT,
                count=full,
                latent=latent + known(fields.count(text, "qk_rope_head_dim"), 64),
                extra_token_bytes=0 if index is UNKNOWN else index + 4 * -(-index // 128),
            )
        )
    elif full:
        far = _key_values(text, "num_global_key_value_heads", "global_head_dim")
        if far is UNKNOWN:
            return UNKNOWN
        found.append(
            Layers(
                kind=Attention.FULL,
                count=full,
                kv_heads=far[0],
                head_dim=far[1],
                value_dim=fields.value_dim(text),
            )
        )
    if sliding:
        near = _key_values(text, "swa_num_key_value_heads", "swa_head_dim")
        if near is UNKNOWN:
            return UNKNOWN
        found.append(
            Layers(kind=Attention.SLIDING, count=sliding, kv_heads=near[0], head_dim=near[1], window=_window(text))
        )
    if crossed := words.count("cross"):
        positions = _image_positions(config)
        if positions is UNKNOWN or heads is UNKNOWN or width is UNKNOWN:
            return UNKNOWN
        found.append(Layers(kind=Attention.CROSS, count=crossed, kv_heads=heads, head_dim=width, positions=positions))
    if linear:
        state = linear_layers(text, linear)
        if state is UNKNOWN:
            return UNKNOWN
        found.append(state)
    return tuple(found)


def _key_values(text: Config, heads_key: str, width_key: str) -> tuple[int, int] | Unknown:
    """Heads and head width of a kind of attention: by its own keys where it has them, else those of all layers."""
    heads, width = fields.count(text, heads_key), fields.count(text, width_key)
    heads = fields.kv_heads(text) if heads is UNKNOWN else heads
    width = fields.head_dim(text) if width is UNKNOWN else width
    return UNKNOWN if heads is UNKNOWN or width is UNKNOWN else (heads, width)


def _speech_layers(text: Config) -> tuple[Layers, ...] | Unknown:
    count = fields.count(text, "decoder_layers", "num_hidden_layers")
    heads = fields.count(text, "decoder_attention_heads", "num_attention_heads")
    hidden = fields.count(text, "d_model", "hidden_size")
    if count is UNKNOWN or heads is UNKNOWN or hidden is UNKNOWN:
        return UNKNOWN
    positions = known(fields.count(text, "max_source_positions"), 1500)
    return (
        Layers(kind=Attention.FULL, count=count, kv_heads=heads, head_dim=hidden // heads),
        Layers(kind=Attention.CROSS, count=count, kv_heads=heads, head_dim=hidden // heads, positions=positions),
    )


def layer_words(text: Config, config: Config) -> tuple[str, ...] | Unknown:
    """One word a layer, in the order of the model: `full`, `sliding`, `linear`, `cross`, `none` (keeps nothing)."""
    count = fields.layer_count(text)
    if count is UNKNOWN:
        return UNKNOWN
    blocks = text.get("block_configs")
    if isinstance(blocks, Sequence) and blocks and all(isinstance(block, Mapping) for block in blocks):
        pruned = [fields.attention_of(block) for block in blocks]
        return tuple("none" if own.get("no_op") or own.get("replace_with_linear") else "full" for own in pruned)
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
        shared = known(fields.count(text, "num_kv_shared_layers"), 0)
        return words[: len(words) - shared] + ("none",) * shared if shared else words
    interval = fields.count(text, "full_attention_interval")
    if interval is not UNKNOWN and interval > 0:
        return tuple("full" if (index + 1) % interval == 0 else "linear" for index in range(count))
    linear = text.get("linear_attn_config")
    if isinstance(linear, Mapping) and isinstance(linear.get("full_attn_layers"), Sequence):
        full = set(linear["full_attn_layers"])  # counted from one
        return tuple("full" if index + 1 in full else "linear" for index in range(count))
    period = fields.count(text, "attn_layer_period")
    if period is not UNKNOWN and period > 0:
        offset = known(fields.count(text, "attn_layer_offset"), 0)
        return tuple("full" if index % period == offset else "linear" for index in range(count))
    crossed = text.get("cross_attention_layers")
    if isinstance(crossed, Sequence) and not isinstance(crossed, str) and crossed:
        return tuple("cross" if index in crossed else "full" for index in range(count))
    listed = text.get("attn_layer_indices")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        return tuple("full" if index in listed else "linear" for index in range(count))
    if fields.count(text, "attention_chunk_size") is not UNKNOWN:
        plain = text.get("no_rope_layers") or [int((index + 1) % 4 != 0) for index in range(count)]
        return tuple("sliding" if kept else "full" for kept in plain)
    window = _window(text)
    if fields.heads(text) is UNKNOWN and fields.state_size(text) is not UNKNOWN:
        return ("linear",) * count
    if window == 0:
        return ("full",) * count
    repeat = fields.count(text, "sliding_window_pattern", "_sliding_window_pattern")
    if repeat is not UNKNOWN and repeat > 1:
        words = tuple("full" if (index + 1) % repeat == 0 else "sliding" for index in range(count))
        shared = known(fields.count(text, "num_kv_shared_layers"), 0)
        return words[: count - shared] + ("none",) * shared if shared else words
    first = fields.count(text, "max_window_layers")
    if first is not UNKNOWN:
        return tuple("sliding" if index >= first else "full" for index in range(count))
    return ("sliding",) * count


def _quiet_words(text: Config) -> tuple[str, ...]:
    words = layer_words(text, text)
    return () if words is UNKNOWN else words


def _word(word: str) -> str | None:
    lower = word.lower()
    for kind, parts in _WORDS:
        if any(lower == part if kind == "none" else part in lower for part in parts):
            return kind
    return None


def _window(text: Config) -> int:
    if text.get("use_sliding_window") is False:
        return 0
    window = known(fields.count(text, "sliding_window", "attention_chunk_size"), 0)
    if (
        text.get("use_sliding_window") is None
        and fields.count(text, "max_window_layers") is not UNKNOWN
        and not text.get("layer_types")
    ):
        return 0  # Qwen 2 files carry a window that their class default leaves switched off
    return window


def _image_positions(config: Config) -> Maybe:
    """Positions that cross-attention layers keep for an image: every patch and one more, of every tile."""
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return UNKNOWN
    image, patch = fields.count(vision, "image_size"), fields.count(vision, "patch_size")
    if image is UNKNOWN or patch is UNKNOWN:
        return UNKNOWN
    return known(fields.count(vision, "max_num_tiles"), 1) * ((image // patch) ** 2 + 1)


def state_layers(text: Config, words: tuple[str, ...]) -> int:
    """How many layers keep a state: those that say so, or every one where Mamba runs beside attention in each layer."""
    if "linear" not in words and words.count("full") == len(words) and fields.state_size(text) is not UNKNOWN:
        return len(words)
    return words.count("linear")


def linear_heads(text: Config) -> tuple[int, ...]:
    """Head counts of linear layers, which ranks must divide; empty: there are none, or no key states them."""
    if fields.count(text, "full_attention_interval", "attn_layer_period") is UNKNOWN and "linear" not in _quiet_words(
        text
    ):
        return ()
    counts = (
        fields.count(text, "linear_num_key_heads"),
        fields.count(text, "linear_num_value_heads", "mamba_n_heads", "mamba_num_heads"),
    )
    return tuple(count for count in counts if count is not UNKNOWN)


def linear_layers(text: Config, count: int) -> Layers | Unknown:
    """Gated delta nets (Qwen3-Next and after), KDA (Kimi), Mamba 1 and 2, short convolutions, told apart by keys."""
    element = _state_bytes(text, default=4)
    key_heads, value_heads = fields.count(text, "linear_num_key_heads"), fields.count(text, "linear_num_value_heads")
    if key_heads is not UNKNOWN and value_heads is not UNKNOWN:
        key_dim, value_dim = fields.count(text, "linear_key_head_dim"), fields.count(text, "linear_value_head_dim")
        if key_dim is UNKNOWN or value_dim is UNKNOWN:
            return UNKNOWN
        return Layers(
            kind=Attention.LINEAR,
            count=count,
            conv_width=2 * key_heads * key_dim + value_heads * value_dim,
            conv_positions=known(fields.count(text, "linear_conv_kernel_dim"), 4) - 1,
            state_elements=value_heads * key_dim * value_dim,
            state_element_bytes=element,
        )
    kda = text.get("linear_attn_config")
    if isinstance(kda, Mapping):
        heads, width = fields.count(kda, "num_heads"), fields.count(kda, "head_dim")
        if heads is UNKNOWN or width is UNKNOWN:
            return UNKNOWN
        return Layers(
            kind=Attention.LINEAR,
            count=count,
            conv_width=3 * heads * width,
            conv_positions=known(fields.count(kda, "short_conv_kernel_size"), 4) - 1,
            state_elements=heads * width * width,
            state_element_bytes=element,
        )
    hidden = fields.count(text, "hidden_size", "d_model")
    heads = fields.count(text, "mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
    state = fields.state_size(text)
    kernel = known(fields.count(text, "mamba_d_conv", "conv_kernel", "conv_kernel_size"), 4)
    if heads is not UNKNOWN and state is not UNKNOWN:
        width = fields.count(text, "mamba_d_head", "mamba_head_dim", "mamba_headdim")
        if width is UNKNOWN:
            if hidden is UNKNOWN:
                return UNKNOWN
            width = hidden * known(fields.count(text, "mamba_expand", "expand"), 2) // heads
        groups = known(fields.count(text, "mamba_n_groups", "n_groups", "mamba_ngroups"), 1)
        return Layers(
            kind=Attention.LINEAR,
            count=count,
            conv_width=heads * width + 2 * groups * state,
            conv_positions=kernel - 1,
            state_elements=heads * width * state,
            state_element_bytes=element,
        )
    if hidden is not UNKNOWN and state is not UNKNOWN:
        inner = hidden * known(fields.count(text, "mamba_expand", "expand"), 2)
        return Layers(
            kind=Attention.LINEAR,
            count=count,
            conv_width=inner,
            conv_positions=kernel - 1,
            state_elements=inner * state,
            state_element_bytes=element,
        )
    every, width = fields.heads(text), fields.head_dim(text)
    if text.get("attn_type_list") and every is not UNKNOWN and width is not UNKNOWN:
        return Layers(kind=Attention.LINEAR, count=count, state_elements=every * width * width)
    short = fields.count(text, "conv_L_cache")
    if hidden is not UNKNOWN and short is not UNKNOWN:
        return Layers(kind=Attention.LINEAR, count=count, conv_width=hidden, conv_positions=max(1, short - 1))
    return UNKNOWN


def _state_bytes(text: Config, default: int) -> int:
    """Bytes of a state element; four where the file does not say: the engine keeps states in float32 at most."""
    for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype", "ssm_dtype"):
        if isinstance(text.get(key), str):
            return DTYPE_BYTES.get(str(text[key]).removeprefix("torch."), default)
    return default
