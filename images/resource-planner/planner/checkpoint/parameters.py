# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How many weights a checkpoint has, counted from the shapes of its layers."""

from collections.abc import Sequence
from typing import Final

from planner.architecture import Parameters
from planner.checkpoint import context, fields, layers, purpose, towers
from planner.checkpoint.fields import Config
from planner.units import UNKNOWN, Unknown, known

TIED: Final = frozenset(
    {"gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "gemma4", "gemma4_text", "cohere",
     "cohere2", "whisper", "gpt2", "bloom", "falcon", "phi4mm"}
)  # fmt: skip
"""Types whose head shares the embedding when the file does not say (transformers class defaults)."""

_QKV_BIAS: Final = frozenset({"qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_vl_text"})


def counted(text: Config, config: Config) -> Parameters | Unknown:
    """How many weights the checkpoint has, from the shapes of its layers; `UNKNOWN` when a shape is not stated."""
    hidden = fields.count(text, "hidden_size", "d_model", "n_embd")
    vocabulary = fields.count(text, "vocab_size", "padded_vocab_size")
    count = fields.layer_count(text)
    heads, kv_heads, width, inner = (
        fields.heads(text),
        fields.kv_heads(text),
        fields.head_dim(text),
        fields.intermediate(text),
    )
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
    if purpose.is_speech(text):
        return _speech_parameters(text, hidden, vocabulary)
    words = layers.layer_words(text, config)
    if words is UNKNOWN or text.get("block_configs"):
        return UNKNOWN  # each layer of a pruned model has a width of its own
    attention = kv_projection = replicated = 0
    full = sum(word in ("full", "none", "cross") for word in words)
    if isinstance(text.get("hybrid_override_pattern"), str):
        full = words.count("full")
    sliding, linear = words.count("sliding"), layers.state_layers(text, words)
    latent = fields.count(text, "kv_lora_rank")
    if latent is not UNKNOWN and latent > 0:
        rope = known(fields.count(text, "qk_rope_head_dim"), 64)
        plain = known(fields.count(text, "qk_nope_head_dim"), 128)
        value = known(fields.count(text, "v_head_dim"), 128)
        query_rank = known(fields.count(text, "q_lora_rank"), 0)
        query = (
            hidden * query_rank + query_rank * heads * (plain + rope) if query_rank else hidden * heads * (plain + rope)
        )
        down = hidden * (latent + rope) + hidden * query_rank
        index = fields.count(text, "index_head_dim")
        if index is not UNKNOWN:
            index_heads = known(fields.count(text, "index_n_heads"), 64)
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
        full_width = known(fields.count(text, "global_head_dim"), width)
        full_kv = known(fields.count(text, "num_global_key_value_heads"), kv_heads)
        value = fields.value_dim(text)
        for many, dim, kv in ((full, full_width, full_kv), (sliding, width, kv_heads)):
            value_dim = value or dim
            keys = hidden * kv * (dim + value_dim)
            biases = (heads * dim + kv * (dim + value_dim)) if bias else 0
            attention += many * (hidden * heads * dim * gate + keys + heads * value_dim * hidden + biases)
            kv_projection += many * keys
    if linear:
        attention += linear * _linear_parameters(text, hidden)
    mlp, experts, other = _feed_forward(text, words, hidden, inner)
    embedding = vocabulary * hidden
    positions = fields.count(text, "n_positions") if not context.is_rotary(text) else UNKNOWN
    if purpose.encoder_only(text, config) is True and not context.is_rotary(text):
        positions = fields.count(text, "max_position_embeddings")
    if positions is not UNKNOWN:
        other += positions * hidden
    if not _tied(text) and not purpose.is_headless(text, config):
        embedding *= 2
    layered = fields.count(text, "hidden_size_per_layer_input")
    if layered is not UNKNOWN and layered > 0:
        rows = known(fields.count(text, "vocab_size_per_layer_input"), vocabulary)
        other += rows * count * layered + hidden * count * layered + count * 2 * hidden * layered
    norms = 4 if fields.is_gemma(text) and str(text.get("model_type")) != "gemma" else 2
    other += count * norms * hidden + hidden
    if purpose.encoder_only(text, config) is True and "type_vocab_size" in text:
        # biases of every matrix, both halves of the norms, token types, the pooler
        other += count * (7 * hidden + inner) + (known(fields.count(text, "type_vocab_size"), 0) + 1) * hidden
        other += hidden * (hidden + 1) if not str(text.get("model_type")).startswith(("new", "nomic")) else 0
    tower = towers.tower(config, text)
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
    experts = known(fields.experts(text), 0)
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        dense_layers, expert_layers = pattern.count("-"), pattern.count("E")
    elif experts:
        expert_layers = _expert_layers(text, count)
        dense_layers = count - expert_layers
    else:
        expert_layers, dense_layers = 0, count
    dense_width = known(fields.count(text, "intermediate_size_mlp"), inner)
    mlp = dense_layers * matrices * hidden * dense_width
    if text.get("use_double_wide_mlp"):
        mlp += min(dense_layers, known(fields.count(text, "num_kv_shared_layers"), 0)) * matrices * hidden * dense_width
    if (
        not experts
        and (shared := fields.shared_width(text))
        and fields.count(text, "shared_intermediate_size") is not UNKNOWN
    ):
        mlp = dense_layers * matrices * hidden * shared
    width = known(fields.expert_width(text), 0)
    mixed = expert_layers * experts * matrices * hidden * width
    mlp += expert_layers * matrices * hidden * fields.shared_width(text) if experts else 0
    if text.get("enable_moe_block"):
        mlp += expert_layers * matrices * hidden * inner  # a dense feed-forward beside the experts in each layer
    routers = expert_layers * experts * hidden
    biases = expert_layers * experts * (2 * width + hidden) if str(text.get("model_type")) == "gpt_oss" else 0
    return mlp, mixed, routers + biases


def _expert_layers(text: Config, count: int) -> int:
    dense = text.get("mlp_only_layers")
    first = known(fields.count(text, "first_k_dense_replace", "num_dense_layers"), 0)
    step = known(fields.count(text, "decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period"), 1) or 1
    frequency = text.get("moe_layer_freq")
    if isinstance(frequency, Sequence) and not isinstance(frequency, str):
        return sum(1 for entry in frequency if entry)
    if fields.count(text, "expert_layer_period") is not UNKNOWN:
        offset = known(fields.count(text, "expert_layer_offset"), 0)
        return sum(1 for index in range(count) if index % step == offset)
    return sum(
        1
        for index in range(count)
        if index >= first and (index + 1) % step == 0 and not (isinstance(dense, Sequence) and index in dense)
    )


def _linear_parameters(text: Config, hidden: int) -> int:
    one = layers.linear_layers(text, 1)
    if one is UNKNOWN:
        return 0
    key_heads, value_heads = fields.count(text, "linear_num_key_heads"), fields.count(text, "linear_num_value_heads")
    if key_heads is not UNKNOWN and value_heads is not UNKNOWN:
        keys = key_heads * known(fields.count(text, "linear_key_head_dim"), 128)
        values = value_heads * known(fields.count(text, "linear_value_head_dim"), 128)
        return (
            hidden * (2 * keys + 2 * values)
            + hidden * 2 * value_heads
            + one.conv_width * (one.conv_positions + 1)
            + values * hidden
        )
    if one.state_elements == 0:
        return 4 * hidden * hidden
    state = known(fields.count(text, "mamba_d_state", "ssm_state_size", "state_size"), 16)
    heads = fields.count(text, "mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
    inner = one.state_elements // state
    projected = inner + one.conv_width + known(heads, 0)
    return hidden * projected + one.conv_width * (one.conv_positions + 1) + inner * hidden


def _speech_parameters(text: Config, hidden: int, vocabulary: int) -> Parameters:
    encoders = known(fields.count(text, "encoder_layers"), 0)
    decoders = known(fields.count(text, "decoder_layers", "num_hidden_layers"), 0)
    encoder_width = known(fields.count(text, "encoder_ffn_dim"), 4 * hidden)
    decoder_width = known(fields.count(text, "decoder_ffn_dim"), 4 * hidden)
    square = 4 * hidden * hidden
    mel = known(fields.count(text, "num_mel_bins"), 80)
    convolutions = 3 * mel * hidden + 3 * hidden * hidden
    source, target = (
        known(fields.count(text, "max_source_positions"), 1500),
        known(fields.count(text, "max_target_positions"), 448),
    )
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
        or fields.is_gemma(text)
        or "global_attn_every_n_layers" in text
        or str(text.get("model_type")) == "new"
    )


def _tied(text: Config) -> bool:
    stated = text.get("tie_word_embeddings")
    return bool(stated) if stated is not None else str(text.get("model_type")) in TIED
