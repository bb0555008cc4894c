# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Facts from a checkpoint's config, from the catalog and from the table: counts held against published ones."""

from typing import Any

import pytest
from planner import modelfacts, sizing
from planner.architecture import Attention, ModelFacts, Source
from planner.model import EndpointType
from planner.units import GI, UNKNOWN

COUNTED = [
    entry
    for entry in modelfacts.table()
    if entry.published_parameters is not UNKNOWN and entry.loaded is UNKNOWN and "VL" not in entry.repositories[0]
]


def model(repository: str) -> ModelFacts:
    facts = modelfacts.known(repository)
    assert facts is not None, repository
    return facts


def test_the_table_has_the_models_people_order() -> None:
    assert len(modelfacts.table()) >= 120
    repositories = [name.lower() for entry in modelfacts.table() for name in entry.repositories]
    families = {
        "llama-3.2", "llama-3.1-8b", "llama-3.3-70b", "vision", "qwen2.5-", "qwen2.5-vl", "qwen3-", "qwen3.5",
        "qwen3.6", "qwen3-next", "gemma-3", "gemma-4", "mistral", "mixtral", "phi-4", "gpt-oss", "glm-4", "deepseek-v3",
        "granite", "bge-", "e5-", "gte-", "jina-", "qwen3-embedding", "qwen3-reranker", "whisper",
    }  # fmt: skip
    assert {family for family in families if not any(family in name for name in repositories)} == set()


def test_a_repository_stands_in_the_table_once() -> None:
    names = [name for entry in modelfacts.table() for name in entry.repositories]
    lowered = [name.lower() for name in dict.fromkeys(names)]
    twice = {name for name in lowered if lowered.count(name) > 1}
    assert {name for name in names if names.count(name) > 1} == set()
    assert all(len({modelfacts.known(name.upper()) for name in names if name.lower() == one}) == 1 for one in twice)


@pytest.mark.parametrize("entry", COUNTED, ids=[entry.repositories[0] for entry in COUNTED])
def test_the_counted_parameters_are_the_published_ones(entry: modelfacts.Known) -> None:
    facts = model(entry.repositories[0])
    assert facts.parameters is not UNKNOWN
    assert facts.parameters.total == pytest.approx(entry.published_parameters, rel=0.004)


@pytest.mark.parametrize("entry", modelfacts.table(), ids=[entry.repositories[0] for entry in modelfacts.table()])
def test_every_entry_can_be_sized_and_says_where_it_stands(entry: modelfacts.Known) -> None:
    facts = model(entry.repositories[0])
    size = sizing.estimate(facts, context=512, concurrency=1, batched_tokens=2048)
    assert size.total is not UNKNOWN
    assert facts.max_context is not UNKNOWN
    assert facts.endpoint_types
    assert entry.source


LOADED = {
    "meta-llama/Llama-3.1-8B-Instruct": 14.96,
    "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8": 8.46,
    "hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4": 5.33,
    "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic": 67.67,
    "casperhansen/llama-3.3-70b-instruct-awq": 37.03,
    "Qwen/Qwen3-0.6B": 1.11,
    "Qwen/Qwen3-8B-FP8": 8.79,
    "Qwen/Qwen3-32B-AWQ": 18.00,
    "Qwen/Qwen3-235B-A22B-FP8": 220.11,
    "openai/gpt-oss-20b": 12.82,
    "openai/gpt-oss-120b": 60.77,
    "deepseek-ai/DeepSeek-V3": 627.0,
    "openai/whisper-large-v3": 2.87,
    "BAAI/bge-m3": 1.06,
    "Qwen/Qwen3-Next-80B-A3B-Instruct": 148.4,
}


@pytest.mark.parametrize("repository", LOADED)
def test_loaded_bytes_follow_the_quantisation(repository: str) -> None:
    facts = model(repository)
    assert facts.weights is not UNKNOWN
    assert facts.weights / GI == pytest.approx(LOADED[repository], rel=0.004, abs=0.006)


def test_the_405b_in_fp8_is_far_above_a_byte_a_parameter() -> None:
    facts = model("meta-llama/Llama-3.1-405B-Instruct-FP8")
    assert facts.weights is not UNKNOWN
    assert facts.weights / 8 / GI == pytest.approx(57.752, abs=0.001)


def config(**keys: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "architectures": ["SomethingForCausalLM"],
        "model_type": "something_new",
        "torch_dtype": "bfloat16",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "vocab_size": 32_000,
        "max_position_embeddings": 16_384,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
    }
    return base | keys


def kinds(facts: ModelFacts) -> list[tuple[Attention, int]]:
    assert facts.layers is not UNKNOWN
    return [(entry.kind, entry.count) for entry in facts.layers]


KINDS = {
    "plain layers keep everything": (config(), [(Attention.FULL, 24)]),
    "heads without a count of key heads are all key heads": (config(num_key_value_heads=None), [(Attention.FULL, 24)]),
    "a window without a pattern is in every layer": (config(sliding_window=4096), [(Attention.SLIDING, 24)]),
    "a window that is switched off is none": (
        config(sliding_window=4096, use_sliding_window=False),
        [(Attention.FULL, 24)],
    ),
    "a window with a pattern spares every sixth layer": (
        config(sliding_window=1024, sliding_window_pattern=6),
        [(Attention.FULL, 4), (Attention.SLIDING, 20)],
    ),
    "words for each layer win": (
        config(sliding_window=128, layer_types=["sliding_attention", "full_attention"] * 12),
        [(Attention.FULL, 12), (Attention.SLIDING, 12)],
    ),
    "a latent rank means latent attention": (
        config(kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128),
        [(Attention.LATENT, 24)],
    ),
    "every fourth layer attends in a gated delta net": (
        config(
            full_attention_interval=4, linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128,
            linear_value_head_dim=128, linear_conv_kernel_dim=4,
        ),
        [(Attention.FULL, 6), (Attention.LINEAR, 18)],
    ),
    "mamba and attention blocks by word": (
        config(
            layer_types=["mamba", "mamba", "attention"] * 8, mamba_n_heads=64, mamba_d_head=64, mamba_d_state=128,
            mamba_n_groups=1, mamba_d_conv=4,
        ),
        [(Attention.FULL, 8), (Attention.LINEAR, 16)],
    ),
    "a pattern of letters": (
        config(
            hybrid_override_pattern="M-M*-M", num_hidden_layers=6, mamba_num_heads=64, mamba_head_dim=64,
            ssm_state_size=128, n_groups=8, conv_kernel=4,
        ),
        [(Attention.FULL, 1), (Attention.LINEAR, 3)],
    ),
    "mamba beside attention in each layer": (
        config(mamba_n_heads=32, mamba_d_head=64, mamba_d_state=256, mamba_n_groups=1, mamba_d_conv=4),
        [(Attention.FULL, 24), (Attention.LINEAR, 24)],
    ),
    "mamba alone": (
        {"architectures": ["MambaForCausalLM"], "model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24,
         "state_size": 16, "vocab_size": 50_280, "conv_kernel": 4, "expand": 2},
        [(Attention.LINEAR, 24)],
    ),
    "lightning attention by a list of types": (
        config(attn_type_list=[0, 0, 1] * 8),
        [(Attention.FULL, 8), (Attention.LINEAR, 16)],
    ),
    "layers of a pruned model that attend to nothing": (
        config(
            num_key_value_heads=None,
            block_configs=[{"attention": {"n_heads_in_group": 8}}, {"attention": {"no_op": True}}] * 12,
        ),
        [(Attention.FULL, 12)],
    ),
    "cross attention keeps an image": (
        {
            "architectures": ["XForConditionalGeneration"], "text_config": config(cross_attention_layers=[3, 8]),
            "vision_config": {"hidden_size": 1280, "patch_size": 14, "image_size": 560, "max_num_tiles": 4},
        },
        [(Attention.FULL, 22), (Attention.CROSS, 2)],
    ),
    "chunks are windows": (
        config(attention_chunk_size=8192, layer_types=["chunked_attention", "full_attention"] * 12),
        [(Attention.FULL, 12), (Attention.SLIDING, 12)],
    ),
    "the last layers share what others keep": (
        config(sliding_window=512, sliding_window_pattern=4, num_kv_shared_layers=8),
        [(Attention.FULL, 4), (Attention.SLIDING, 12)],
    ),
    "an encoder keeps nothing": (config(architectures=["BertModel"], type_vocab_size=2), []),
    "a model made bidirectional keeps nothing": (config(use_bidirectional_attention=True), []),
    "the language section of a vision model": (
        {
            "architectures": ["SomeForConditionalGeneration"], "model_type": "some_vl", "text_config": config(),
            "vision_config": {
                "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
                "patch_size": 14, "image_size": 336,
            },
        },
        [(Attention.FULL, 24)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "want"), KINDS.values(), ids=KINDS)
def test_layers_are_read_by_keys_and_not_by_names(given: dict[str, Any], want: list[tuple[Attention, int]]) -> None:
    assert kinds(modelfacts.from_config(given)) == want


def test_a_kind_of_layer_nobody_knows_leaves_the_cache_unknown() -> None:
    facts = modelfacts.from_config(config(layer_types=["telepathy"] * 24))
    assert facts.layers is UNKNOWN
    assert sizing.cache(facts, batched_tokens=2048) is UNKNOWN


def test_bytes_that_were_given_are_believed_and_the_tower_is_taken_out() -> None:
    given = KINDS["the language section of a vision model"][0]
    facts = modelfacts.from_config(given, 10 * GI)
    assert facts.tower is not None and facts.weights is not UNKNOWN
    assert facts.weights + facts.tower.bytes == 10 * GI


def test_a_config_without_shapes_leaves_bytes_unknown() -> None:
    facts = modelfacts.from_config({"model_type": "mystery"})
    assert (facts.weights, facts.layers, facts.hidden) == (UNKNOWN, UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (config(), 16_384),
        (config(rope_scaling={"type": "linear", "factor": 4.0}), 65_536),
        (
            config(rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}),
            131_072,
        ),
        (config(rope_scaling={"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}), 16_384),
        (config(architectures=["XLMRobertaModel"], model_type="xlm-roberta", max_position_embeddings=514), 512),
    ],
)
def test_the_longest_context_is_the_one_the_engine_derives(given: dict[str, Any], want: int) -> None:
    assert modelfacts.from_config(given).max_context == want


@pytest.mark.parametrize(
    ("section", "family"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized",
          "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int"}}}}, "int4"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized",
          "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "int-quantized",
          "config_groups": {"g": {"weights": {"num_bits": 8, "type": "int"}}}}, "int8"),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized",
          "config_groups": {"g": {"weights": {"num_bits": 4, "type": "float"}}}}, "nvfp4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
    ],
)  # fmt: skip
def test_quantisation_is_named_by_its_family(section: dict[str, Any], family: str) -> None:
    facts = modelfacts.from_config(config(quantization_config=section))
    assert facts.quantization is not None and facts.quantization is not UNKNOWN
    assert facts.quantization.family == family


def test_attention_left_in_sixteen_bits_is_counted_so() -> None:
    whole = modelfacts.from_config(config(quantization_config={"quant_method": "fp8"}))
    partly = modelfacts.from_config(
        config(quantization_config={"quant_method": "fp8", "modules_to_not_convert": ["lm_head", "self_attn"]})
    )
    assert whole.parameters is not UNKNOWN and whole.weights is not UNKNOWN and partly.weights is not UNKNOWN
    assert partly.weights - whole.weights == whole.parameters.attention


def test_a_float32_checkpoint_is_loaded_in_sixteen_bits() -> None:
    assert modelfacts.from_config(config(torch_dtype="float32")).dtype == "float16"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "config.json: an object is expected"),
        (config(hidden_size="big"), "config.json: hidden_size: a number is expected, got 'big'"),
    ],
)
def test_a_config_that_cannot_be_read_names_the_key(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        modelfacts.from_config(given)


def status(size: int | None, **resolved: Any) -> dict[str, Any]:
    artifact = {} if size is None else {"artifact": {"sizeBytes": size}}
    return {"phase": "Ready", "resolved": {"format": "Safetensors", **resolved}, **artifact}


def test_a_catalog_object_with_bytes_alone_is_partial() -> None:
    facts = modelfacts.from_catalog(status(5 * GI, architecture="NobodyForCausalLM", contextWindowTokens=8192))
    assert (facts.source, facts.weights, facts.layers, facts.max_context) == (Source.PARTIAL, 5 * GI, UNKNOWN, 8192)


def test_a_catalog_object_without_bytes_is_unknown() -> None:
    facts = modelfacts.from_catalog(status(None, architecture="Qwen3ForCausalLM", family="qwen3"))
    assert (facts.source, facts.weights, facts.layers) == (Source.UNKNOWN, UNKNOWN, UNKNOWN)


def test_bytes_and_architecture_that_leave_one_model_bring_its_layers() -> None:
    size = 16_381_470_720 + 15_000_000
    facts = modelfacts.from_catalog(status(size, architecture="Qwen3ForCausalLM", family="qwen3"), "support")
    assert (facts.source, facts.name, facts.layers) == (Source.CATALOG, "support", model("Qwen/Qwen3-8B").layers)
    assert facts.weights == model("Qwen/Qwen3-8B").weights
    assert facts.max_context == 40_960


def test_a_float32_artefact_is_recognised_and_counts_as_loaded() -> None:
    facts = modelfacts.from_catalog(
        status(
            2_271_064_456 + 20_000_000, architecture="XLMRobertaModel", family="xlm-roberta",
            contextWindowTokens=8194, supportedEndpointTypes=["Embeddings"],
        )
    )  # fmt: skip
    assert (facts.source, facts.layers, facts.weights) == (Source.CATALOG, (), model("BAAI/bge-m3").weights)
    assert facts.endpoint_types == (EndpointType.EMBEDDINGS,)


def test_bytes_between_known_models_bring_nothing() -> None:
    facts = modelfacts.from_catalog(status(12 * GI, architecture="Qwen3ForCausalLM", family="qwen3"))
    assert (facts.source, facts.layers) == (Source.PARTIAL, UNKNOWN)


def test_fields_of_a_wrong_type_are_absent() -> None:
    facts = modelfacts.from_catalog(
        {"artifact": {"sizeBytes": "many"}, "resolved": {"architecture": 3, "supportedEndpointTypes": "Chat"}}
    )
    assert (facts.weights, facts.architecture, facts.endpoint_types) == (UNKNOWN, UNKNOWN, ())


def test_contracts_that_are_not_served_are_left_out() -> None:
    facts = modelfacts.from_catalog(status(GI, supportedEndpointTypes=["Chat", "ImageToText", "TextGeneration"]))
    assert facts.endpoint_types == (EndpointType.CHAT,)


def test_a_repository_nobody_listed_is_not_known() -> None:
    assert modelfacts.known("nobody/nothing") is None
    assert modelfacts.known("QWEN/qwen3-8b") == modelfacts.known("Qwen/Qwen3-8B")
