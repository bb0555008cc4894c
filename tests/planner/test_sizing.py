# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Sizing against what engines reported and answered: the 26 reports, the engine's own layouts, and laws."""

import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planner import modelfacts, sizing
from planner.architecture import Attention, Layers, ModelFacts, Source
from planner.units import GI, MI, UNKNOWN, Bytes

from benchmarks import sizing as reports


def model(repository: str) -> ModelFacts:
    facts = modelfacts.known(repository)
    assert facts is not None, repository
    return facts


def layout(facts: ModelFacts, batched: int = 2048, ranks: int = 1, **options: object) -> sizing.Cache:
    found = sizing.cache(facts, batched_tokens=batched, tensor_parallel=ranks, **options)  # type: ignore[arg-type]
    assert found is not UNKNOWN
    return found


def estimate(repository: str, **options: int | str | bool) -> sizing.Estimate:
    settings: dict[str, int | str | bool] = {"context": 8192, "concurrency": 1, "batched_tokens": 2048}
    return sizing.estimate(model(repository), **(settings | options))  # type: ignore[arg-type]


def test_every_report_of_an_engine_is_covered_and_no_complete_one_by_more_than_5_percent() -> None:
    judged = [reports.judge(point) for point in reports.POINTS]
    assert {one.point.number: one.faults for one in judged if one.faults} == {}
    numbers = {point.number.rstrip("ab") for point in reports.POINTS} | set(reports.UNSTATED)
    assert numbers == {str(number) for number in range(1, 27)}
    complete = [one.ratio for one in judged if one.complete and one.ratio is not None]
    assert len(complete) == 11
    assert min(complete) >= 1
    assert max(complete) <= 1.05


def test_the_formulas_of_others_are_those_they_publish() -> None:
    point = replace(reports.POINTS[0], cache=1.0)
    asked = reports.rivals(point, model(point.model))
    assert {name: round(value, 1) for name, value in asked.items()} == {"kaito": 23.0, "gpustack": 19.9}


PER_TOKEN = {
    "meta-llama/Llama-3.2-1B-Instruct": 32_768,
    "meta-llama/Llama-3.2-3B-Instruct": 114_688,
    "meta-llama/Llama-3.1-8B-Instruct": 131_072,
    "meta-llama/Llama-3.3-70B-Instruct": 327_680,
    "Qwen/Qwen3-0.6B": 114_688,
    "Qwen/Qwen3-1.7B": 114_688,
    "Qwen/Qwen3-4B": 147_456,
    "Qwen/Qwen3-8B": 147_456,
    "Qwen/Qwen3-14B": 163_840,
    "Qwen/Qwen3-32B": 262_144,
    "Qwen/Qwen3-30B-A3B": 98_304,
    "Qwen/Qwen3-235B-A22B": 192_512,
    "Qwen/Qwen3-Embedding-0.6B": 114_688,
    "Qwen/Qwen3-Embedding-4B": 147_456,
    "Qwen/Qwen3-Embedding-8B": 147_456,
    "BAAI/bge-m3": 0,
    "BAAI/bge-reranker-v2-m3": 0,
    "google/gemma-3-1b-it": 4_096,
    "google/gemma-3-4b-it": 20_480,
    "google/gemma-3-12b-it": 65_536,
    "google/gemma-3-27b-it": 81_920,
    "google/gemma-4-31b-it": 81_920,
    "google/gemma-4-26b-a4b-it": 20_480,
    "mistralai/Mistral-7B-Instruct-v0.3": 131_072,
    "mistralai/Mistral-Small-24B-Instruct-2501": 163_840,
    "mistralai/Mixtral-8x7B-Instruct-v0.1": 131_072,
    "deepseek-ai/DeepSeek-V3": 70_272,
    "openai/gpt-oss-20b": 24_576,
    "openai/gpt-oss-120b": 36_864,
    "Qwen/Qwen3-Next-80B-A3B-Instruct": 24_576,
    "openai/whisper-large-v3": 163_840,
    "openai/whisper-large-v3-turbo": 20_480,
    "microsoft/phi-4": 204_800,
    "microsoft/Phi-4-mini-instruct": 131_072,
}


@pytest.mark.parametrize("repository", PER_TOKEN)
def test_one_more_token_costs_what_the_engine_says(repository: str) -> None:
    assert layout(model(repository)).per_token == PER_TOKEN[repository]


def test_qwen3_1_7b_holds_exactly_the_tokens_the_engine_logged() -> None:
    """vllm 33263: 18.78 GiB are 175,856 tokens of 114,688 bytes."""
    cache = layout(model("Qwen/Qwen3-1.7B"))
    given = 175_856 * 114_688
    assert (cache.per_token, cache.tokens(given, 40_960), round(given / GI, 2)) == (114_688, 175_856, 18.78)


def test_one_short_request_does_not_book_a_card_of_24_gib() -> None:
    size = estimate("Qwen/Qwen3-1.7B", context=1024, concurrency=1)
    assert size.total is not UNKNOWN
    assert size.kv_cache == 113 * MI + 3 * MI // 4
    assert size.total + size.context_per_process < 5 * GI


def test_latent_attention_is_whole_on_every_rank() -> None:
    one, two = layout(model("deepseek-ai/DeepSeek-V3")), layout(model("deepseek-ai/DeepSeek-V3"), ranks=2)
    assert one.per_token == two.per_token == 61 * 576 * 2
    assert one.bytes(8192, 1) == two.bytes(8192, 1)


def test_heads_divide_over_ranks_and_are_repeated_when_there_are_fewer() -> None:
    facts = model("Qwen/Qwen3-30B-A3B")
    assert [layout(facts, ranks=ranks).per_token for ranks in (1, 2, 4, 8)] == [98_304, 49_152, 24_576, 24_576]


def test_an_fp8_cache_is_half_and_states_stay() -> None:
    dense, hybrid = model("meta-llama/Llama-3.1-8B-Instruct"), model("Qwen/Qwen3.6-35B-A3B")
    assert layout(dense, kv_dtype="fp8").per_token * 2 == layout(dense).per_token
    small, wide = layout(hybrid, kv_dtype="fp8"), layout(hybrid)
    assert (small.block_bytes, small.block_tokens) == (10 * 2_146_304, 2096)
    assert (wide.block_bytes, wide.block_tokens) == (10 * 2048 * 1056, 1056)


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """What the engine (0.32 on CPU, blocks of 128, one batch in flight) answered."""

    model: str
    context: int
    given: Bytes
    concurrency: float
    batched: int = 2048


ANSWERS = {
    "Gemma 3 27B holds 5.04 requests of 32768 in 20 GiB at 2048": Oracle(
        model="google/gemma-3-27b-it", context=32_768, given=20 * GI, concurrency=5.04
    ),
    "Gemma 3 27B holds 2.95 requests of 32768 in 20 GiB at 8192": Oracle(
        model="google/gemma-3-27b-it", context=32_768, given=20 * GI, concurrency=2.95, batched=8192
    ),
    "Whisper large holds 25.6 requests in 10 GiB": Oracle(
        model="openai/whisper-large-v3", context=448, given=10 * GI, concurrency=25.6
    ),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_layout_gives_the_concurrency_that_the_engine_answers(answer: Oracle) -> None:
    cache = layout(model(answer.model), answer.batched, block_tokens=128, concurrent_batches=1)
    assert (answer.given // cache.block_bytes) / cache.blocks(answer.context) == pytest.approx(
        answer.concurrency, abs=0.006
    )


def test_the_smallest_cache_is_the_one_the_engine_accepts() -> None:
    llama = layout(model("meta-llama/Llama-3.1-8B-Instruct"), block_tokens=128, concurrent_batches=1)
    assert llama.bytes(8192, 1) == GI + 128 * 131_072
    assert 2 * GI < llama.bytes(16_384, 1) <= 2.02 * GI
    oss = layout(model("openai/gpt-oss-20b"), block_tokens=128, concurrent_batches=1)
    assert oss.bytes(131_072, 1) / GI == pytest.approx(3.05, abs=0.02)
    gemma = layout(model("google/gemma-3-27b-it"), block_tokens=128, concurrent_batches=1)
    assert gemma.bytes(32_768, 1) / GI == pytest.approx(4.0, abs=0.05)


def test_rare_kinds_set_the_size_of_groups_and_the_last_group_is_padded() -> None:
    gemma = layout(model("google/gemma-3-27b-it"))
    assert [group.count for group in gemma.groups] == [1, 6]
    assert gemma.block_bytes == 10 * 16 * 2 * 16 * 128 * 2


def test_the_live_hybrid_has_the_blocks_it_reported() -> None:
    """Qwen3.5-9B on two RTX cards, fp8 cache, one drafted token: 617 blocks of 1056, 603,518 tokens at 131,072."""
    cache = layout(reports.with_draft(model("Qwen/Qwen3.5-9B")), ranks=2, kv_dtype="fp8", speculative_tokens=1)
    assert cache.block_tokens == 1056
    assert cache.tokens(617 * cache.block_bytes, 131_072) == 603_518


def test_states_bound_the_sequences_of_a_hybrid_however_short_they_are() -> None:
    cache = layout(model("Qwen/Qwen3-Next-80B-A3B-Instruct"))
    assert [group.states for group in cache.groups] == [0, 2]
    assert cache.sequences(71 * cache.block_bytes) == 10  # 7 blocks each: two states in three groups, one of tokens
    assert layout(model("Qwen/Qwen3-8B")).sequences(GI) is None
    plain = layout(model("Qwen/Qwen3-Next-80B-A3B-Instruct"), prefix_caching=False)
    assert [group.states for group in plain.groups] == [0, 1]


def test_the_state_of_a_gated_delta_net_layer_has_the_engines_bytes() -> None:
    layers = model("Qwen/Qwen3-Next-80B-A3B-Instruct").layers
    assert layers is not UNKNOWN
    linear = next(entry for entry in layers if entry.kind is Attention.LINEAR)
    assert (linear.count, sizing.state_bytes(linear, 2, 1)) == (36, 2_146_304)


def test_gemma_4_keeps_what_its_sites_computed() -> None:
    """128K in one request: 10.781 GiB for 31B, 774 MiB for E2B, whose last twenty layers share what others keep."""
    big, small = model("google/gemma-4-31b-it"), model("google/gemma-4-E2B-it")
    assert big.layers is not UNKNOWN and small.layers is not UNKNOWN

    def kept(layers: tuple[Layers, ...], context: int) -> int:
        return sum(
            entry.count
            * sizing.token_bytes(entry, 32, 1)
            * (min(entry.window, context) if entry.kind is Attention.SLIDING else context)
            for entry in layers
        )

    assert kept(big.layers, 131_072) / GI == pytest.approx(10.781, abs=0.001)
    assert kept(big.layers, 262_144) / GI == pytest.approx(20.781, abs=0.001)
    assert kept(small.layers, 131_072) == 774 * MI
    assert layout(small, ranks=2).per_token == layout(small).per_token


def test_a_speech_request_keeps_its_tokens_and_the_encoders_positions() -> None:
    cache = layout(model("openai/whisper-large-v3"))
    assert [(group.count, group.blocks(448)) for group in cache.groups] == [(1, 28), (1, 128)]
    assert cache.blocks(448) * cache.block_bytes / GI == pytest.approx(0.38, abs=0.01)


def test_an_encoder_keeps_nothing_and_samples_nothing() -> None:
    size = estimate("BAAI/bge-m3", concurrency=32)
    assert (size.kv_cache, size.kv_per_token) == (0, 0)
    assert size.activation == 2 * 8192 * (4 * 1024 + 2 * 4096)  # prefill is not cut: batched tokens are the context
    assert size.total is not UNKNOWN
    assert size.total < 2 * GI


def test_the_tower_is_whole_on_every_rank_and_has_a_peak_of_its_own() -> None:
    facts = model("google/gemma-3-27b-it")
    assert facts.tower is not None
    plain = replace(facts, tower=None)
    one, four = (
        sizing.estimate(facts, context=8192, concurrency=1, batched_tokens=2048, tensor_parallel=n) for n in (1, 4)
    )
    bare, bare_four = (
        sizing.estimate(plain, context=8192, concurrency=1, batched_tokens=2048, tensor_parallel=n) for n in (1, 4)
    )
    assert one.weights is not UNKNOWN and four.weights is not UNKNOWN
    assert bare.weights is not UNKNOWN and bare_four.weights is not UNKNOWN
    assert one.weights - bare.weights == four.weights - bare_four.weights == facts.tower.bytes
    assert one.activation is not UNKNOWN and bare.activation is not UNKNOWN
    assert one.activation > bare.activation


def test_the_terms_are_those_of_the_formula() -> None:
    size = estimate("meta-llama/Llama-3.1-8B-Instruct", context=8192, concurrency=64)
    assert {term.name: term.bytes for term in size.terms} == {
        "weights": math.ceil(8_030_261_248 * 2 * 1003 / 1000),
        "kvCache": 64 * GI + 16 * 131_072,
        "activation": 39 * 64 * 128_256,
        "graphs": GI // 10,
        "nonTorch": 15 * GI // 100,
        "safety": 15 * GI // 100,
    }
    assert sum(term.bytes for term in size.terms if term.bytes is not UNKNOWN) == size.total
    assert all(term.source for term in size.terms)


def test_ranks_that_talk_take_more_outside_the_allocator() -> None:
    assert estimate("Qwen/Qwen3-8B").non_torch == 15 * GI // 100
    assert estimate("Qwen/Qwen3-8B", tensor_parallel=2).non_torch == 60 * GI // 100


def test_eager_mode_captures_no_graphs() -> None:
    assert estimate("Qwen/Qwen3-8B", enforce_eager=True).graphs == 0


def test_mxfp4_is_padded_more_than_dense_weights() -> None:
    size = estimate("openai/gpt-oss-120b")
    assert size.weights is not UNKNOWN
    assert size.weights / GI == pytest.approx(60.77 * 1.06, rel=0.001)


def test_float32_doubles_weights_and_cache() -> None:
    half, full = estimate("Qwen/Qwen3-8B"), estimate("Qwen/Qwen3-8B", dtype="float32")
    assert half.weights is not UNKNOWN and full.weights is not UNKNOWN and half.kv_per_token is not UNKNOWN
    assert full.weights == pytest.approx(2 * half.weights, rel=1e-3)
    assert full.kv_per_token == 2 * half.kv_per_token


@pytest.mark.parametrize(
    ("repository", "ranks", "divisible"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", 4, True),
        ("Qwen/Qwen2.5-7B-Instruct", 8, False),
        ("Qwen/Qwen3-30B-A3B", 8, True),
        ("microsoft/phi-4", 2, True),
        ("microsoft/phi-4", 4, False),
        ("Qwen/Qwen3-0.6B", 3, False),
        ("deepseek-ai/DeepSeek-V3", 16, True),
    ],
)
def test_ranks_must_divide_the_heads(repository: str, ranks: int, divisible: bool) -> None:
    assert sizing.heads_divisible(model(repository), ranks) is divisible


def test_what_nobody_knows_stays_unknown() -> None:
    nothing = ModelFacts(name="x", source=Source.UNKNOWN, origin="nowhere")
    size = sizing.estimate(nothing, context=8192, concurrency=1, batched_tokens=2048)
    assert {term.name: term.bytes for term in size.terms if term.bytes is UNKNOWN} == {
        "weights": UNKNOWN,
        "kvCache": UNKNOWN,
        "activation": UNKNOWN,
    }
    assert size.total is UNKNOWN
    assert sizing.heads_divisible(nothing, 2) is UNKNOWN
    assert sizing.kv_tokens(nothing, 80 * GI, context=8192, concurrency=1, batched_tokens=2048) is UNKNOWN


@pytest.mark.parametrize("options", [{"context": 0}, {"concurrency": 0}, {"tensor_parallel": 0}, {"dtype": "int3"}])
def test_sizes_and_types_that_cannot_be_are_refused(options: dict[str, int | str]) -> None:
    with pytest.raises(ValueError):
        estimate("Qwen/Qwen3-8B", **options)


@settings(deadline=None)  # the machine is shared
@given(
    repository=st.sampled_from([entry.repositories[0] for entry in modelfacts.table()]),
    context=st.integers(1, 65_536),
    concurrency=st.integers(1, 64),
)
def test_more_asked_never_costs_less(repository: str, context: int, concurrency: int) -> None:
    facts = model(repository)
    totals = [
        sizing.estimate(facts, context=c, concurrency=n, batched_tokens=2048).total
        for c, n in ((context, concurrency), (context + 1, concurrency), (context, concurrency + 1))
    ]
    assert all(total is not UNKNOWN for total in totals)
    assert totals[0] <= totals[1]  # type: ignore[operator]
    assert totals[0] <= totals[2]  # type: ignore[operator]


@settings(deadline=None)  # the machine is shared
@given(
    repository=st.sampled_from(["Qwen/Qwen3-8B", "google/gemma-3-27b-it", "Qwen/Qwen3.6-27B", "openai/gpt-oss-20b"]),
    context=st.integers(64, 65_536),
    concurrency=st.integers(1, 64),
)
def test_the_bytes_for_some_requests_hold_those_requests(repository: str, context: int, concurrency: int) -> None:
    cache = layout(model(repository))
    given_bytes = cache.bytes(context, concurrency)
    assert cache.requests(given_bytes, context) == concurrency
    assert cache.requests(given_bytes - 1, context) == concurrency - 1
