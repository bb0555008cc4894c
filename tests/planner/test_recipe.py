# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Recipes: the shipped ones are whole, the choice is the particular one, a launch fits and is pinned, floors refuse."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from planner import modelfacts, recipe, sizing
from planner.architecture import ModelFacts, Source
from planner.model import EndpointType, LaunchStrategy
from planner.units import GI, MI, UNKNOWN

FOLDER = Path(__file__).parents[2] / "images" / "request-runtime" / "recipes"
RECIPES = recipe.load(FOLDER)
CHAT, THROUGHPUT = EndpointType.CHAT, LaunchStrategy.THROUGHPUT


def model(repository: str) -> ModelFacts:
    facts = modelfacts.known(repository)
    assert facts is not None, repository
    return facts


def chosen(facts: ModelFacts, contract: EndpointType = CHAT, **options: Any) -> recipe.Recipe:
    return recipe.choose(RECIPES, facts, contract=contract, **({"strategy": THROUGHPUT} | options))


def launched(facts: ModelFacts, memory: int, **options: Any) -> recipe.Launch | recipe.Shortfall:
    contract = options.pop("contract", CHAT)
    settings = {"device_total": memory, "shared": False, "count": 1, "contract": contract} | options
    return recipe.launch(chosen(facts, contract), facts, memory=memory, **settings)


def start(facts: ModelFacts, memory: int, **options: Any) -> recipe.Launch:
    found = launched(facts, memory, **options)
    assert isinstance(found, recipe.Launch), found
    return found


def test_the_shipped_recipes_belong_to_one_release_and_serve_every_contract() -> None:
    assert RECIPES.release == "0.33.0"
    own = {one.name for one in RECIPES.recipes if not one.generic}
    assert len({name for one in RECIPES.recipes for name in one.models}) >= 50
    assert own >= {"llama-3-8b", "qwen3", "gemma-3", "mistral", "gpt-oss", "bge-m3", "bge-reranker", "whisper"}
    assert {one.contract for one in RECIPES.recipes if one.generic} == set(EndpointType)


def test_every_model_that_a_recipe_names_is_known_and_serves_its_contract() -> None:
    for one in RECIPES.recipes:
        for name in one.models:
            assert one.contract in model(name).endpoint_types, (one.name, name)


ARGUMENTS = frozenset(
    {"enablePrefixCaching", "enableChunkedPrefill", "generationConfig", "safetensorsLoadStrategy", "shutdownTimeout",
     "enableAutoToolChoice", "toolCallParser", "reasoningParser", "languageModelOnly", "hfOverrides", "enforceEager",
     "runner", "convert", "maxModelLen", "maxNumSeqs", "maxNumBatchedTokens", "gpuMemoryUtilization", "dtype",
     "kvCacheMemoryBytes", "kvCacheDtype", "tensorParallelSize", "maxCudagraphCaptureSize"}
)  # fmt: skip
"""Arguments of `vllm serve --help=all` (0.32.0, same in 0.33.0) that recipes use; a new one is looked up there."""


def test_every_argument_of_a_start_is_one_that_the_release_has() -> None:
    for entry in modelfacts.table():
        facts = model(entry.repositories[0])
        contract = facts.endpoint_types[0]
        for strategy in LaunchStrategy:
            one = chosen(facts, contract, strategy=strategy)
            wish = recipe.wanted(one, facts)
            assert wish is not UNKNOWN
            found = recipe.launch(
                one, facts, contract=contract, memory=wish, device_total=2 * wish, shared=True, count=1
            )
            assert isinstance(found, recipe.Launch)
            assert set(found.parameters) <= ARGUMENTS, one.name


def test_every_known_model_starts_on_its_wish_for_memory() -> None:
    for entry in modelfacts.table():
        facts = model(entry.repositories[0])
        contract = facts.endpoint_types[0]
        one = chosen(facts, contract)
        wish = recipe.wanted(one, facts)
        least = recipe.smallest(one, facts)
        assert wish is not UNKNOWN and least is not UNKNOWN and least <= wish
        for memory, context, concurrency in (
            (wish, recipe.effective_context(one, facts).wanted, one.concurrency.wanted),
            (least, None, None),
        ):
            found = recipe.launch(
                one, facts, contract=contract, memory=memory, device_total=2 * memory, shared=True, count=1
            )
            assert isinstance(found, recipe.Launch), entry.repositories[0]
            assert found.needed is not UNKNOWN and found.needed <= memory
            if context is not None:
                assert (found.context, found.concurrency) == (context, concurrency)
        refused = recipe.launch(
            one, facts, contract=contract, memory=least - 1, device_total=2 * least, shared=True, count=1
        )
        assert isinstance(refused, recipe.Shortfall)
        assert (refused.needed, refused.free, refused.lacking) == (least, least - 1, 1)


CHOICES = {
    "a model of its own": ("Qwen/Qwen3-8B", CHAT, THROUGHPUT, "qwen3"),
    "the same for latency": ("Qwen/Qwen3-8B", CHAT, LaunchStrategy.LATENCY, "qwen3-latency"),
    "a strategy nobody wrote is served by the other": ("Qwen/Qwen3-0.6B", CHAT, LaunchStrategy.LATENCY, "qwen3-small"),
    "a model without a recipe": ("microsoft/phi-4", CHAT, THROUGHPUT, "generic-chat"),
    "the same for latency, generic": ("microsoft/phi-4", CHAT, LaunchStrategy.LATENCY, "generic-chat-latency"),
    "an embedder": ("BAAI/bge-m3", EndpointType.EMBEDDINGS, THROUGHPUT, "bge-m3"),
    "a reranker": ("BAAI/bge-reranker-v2-m3", EndpointType.RERANK, THROUGHPUT, "bge-reranker"),
    "speech": ("openai/whisper-large-v3", EndpointType.SPEECH_TO_TEXT, THROUGHPUT, "whisper"),
    "a chat model asked for vectors": ("Qwen/Qwen3-8B", EndpointType.EMBEDDINGS, THROUGHPUT, "generic-embeddings"),
}


@pytest.mark.parametrize(("repository", "contract", "strategy", "want"), CHOICES.values(), ids=CHOICES)
def test_the_particular_recipe_is_chosen(
    repository: str, contract: EndpointType, strategy: LaunchStrategy, want: str
) -> None:
    found = recipe.choose(RECIPES, model(repository), contract=contract, strategy=strategy)
    assert (found.name, found.strategy in (strategy, THROUGHPUT)) == (want, True)


def test_hardware_that_a_recipe_asks_for_must_be_published() -> None:
    base = chosen(model("Qwen/Qwen3-8B"))
    special = replace(base, name="qwen3-hopper", min_compute_capability=(9, 0), min_memory=60 * GI)
    recipes = recipe.Recipes(release="0.33.0", recipes=(*RECIPES.recipes, special))

    def name(**device: Any) -> str:
        facts = model("Qwen/Qwen3-8B")
        return recipe.choose(recipes, facts, contract=CHAT, strategy=THROUGHPUT, **device).name

    assert name(compute_capability=(9, 0), device_memory=80 * GI) == "qwen3-hopper"
    assert name(compute_capability=(8, 0), device_memory=80 * GI) == "qwen3"
    assert name(compute_capability=(9, 0), device_memory=40 * GI) == "qwen3"
    assert name() == "qwen3"


def test_everything_that_depends_on_seen_memory_is_pinned() -> None:
    found = start(model("Qwen/Qwen3-8B"), 40 * GI, device_total=80 * GI, shared=True)
    want = {
        "maxModelLen": "16384",
        "maxNumSeqs": str(found.concurrency),
        "maxNumBatchedTokens": "2048",
        "maxCudagraphCaptureSize": str(found.concurrency),
        "gpuMemoryUtilization": found.utilization,
        "kvCacheMemoryBytes": str(found.kv_bytes),
        "kvCacheDtype": "auto",
        "dtype": "auto",
        "tensorParallelSize": "1",
    }
    assert {key: found.parameters[key] for key in want} == want
    assert list(found.parameters) == sorted(found.parameters)
    assert all(isinstance(value, str) for value in found.parameters.values())


def test_the_utilisation_is_the_part_of_the_devices_total_rounded_down() -> None:
    found = start(model("Qwen/Qwen3-8B"), 30 * GI, device_total=80 * GI, shared=True)
    assert found.estimate.total is not UNKNOWN
    assert re.fullmatch(r"0\.\d{4}", found.utilization)
    assert 0 <= found.estimate.total / (80 * GI) - float(found.utilization) < 0.0001


def test_concurrency_shrinks_before_context_and_neither_below_its_floor() -> None:
    facts = model("Qwen/Qwen3-8B")
    one = chosen(facts)
    sizes = [(memory, launched(facts, memory * GI, device_total=80 * GI, shared=True)) for memory in range(16, 60, 2)]
    seen = [(found.context, found.concurrency) for _, found in sizes if isinstance(found, recipe.Launch)]
    assert seen == sorted(seen, key=lambda pair: (pair[1], pair[0]))
    assert seen[-1] == (one.context.wanted, one.concurrency.wanted)
    assert all(context >= one.context.floor and number >= one.concurrency.floor for context, number in seen)
    assert all(context == one.context.wanted or number == one.concurrency.floor for context, number in seen)
    assert isinstance(sizes[0][1], recipe.Shortfall)


def test_a_chat_model_alone_gets_the_idle_memory_as_cache_and_an_embedder_does_not() -> None:
    chat = start(model("Qwen/Qwen3-0.6B"), 80 * GI)
    assert chat.estimate.total is not UNKNOWN
    assert chat.estimate.total / (80 * GI) == pytest.approx(0.92, abs=0.001)
    shared = start(model("Qwen/Qwen3-0.6B"), 80 * GI, shared=True)
    assert shared.kv_bytes < chat.kv_bytes
    embedder = start(model("Qwen/Qwen3-Embedding-0.6B"), 80 * GI, contract=EndpointType.EMBEDDINGS)
    assert embedder.kv_bytes < 4 * GI


def test_two_orders_on_one_device_take_no_more_than_it_has() -> None:
    """The co-tenancy report (vllm 55827): pinned bytes leave nothing to what the neighbour does while it starts."""
    total = 32 * GI
    first = start(model("Qwen/Qwen3-1.7B"), total * 45 // 100, device_total=total, shared=True)
    second = start(model("Qwen/Qwen3-0.6B"), total * 35 // 100, device_total=total, shared=True)
    assert first.needed is not UNKNOWN and second.needed is not UNKNOWN
    assert first.needed + second.needed <= total
    assert first.kv_bytes > 0 and second.kv_bytes > 0
    assert float(first.utilization) + float(second.utilization) < 1


def test_an_embedder_takes_a_small_share_and_not_most_of_a_card() -> None:
    """gpustack 1047: bge-m3 needs about two gibibytes."""
    facts = model("BAAI/bge-m3")
    least = recipe.smallest(chosen(facts, EndpointType.EMBEDDINGS), facts)
    assert least is not UNKNOWN and least < 5 * GI // 2
    found = start(facts, 5 * GI // 2, device_total=24 * GI, shared=True, contract=EndpointType.EMBEDDINGS)
    assert found.parameters["runner"] == "pooling"
    assert "kvCacheMemoryBytes" not in found.parameters
    assert found.parameters["maxNumBatchedTokens"] == "8192"
    assert found.context == 8192


def test_a_context_is_never_longer_than_the_model() -> None:
    facts = model("intfloat/multilingual-e5-large")
    assert start(facts, 10 * GI, contract=EndpointType.EMBEDDINGS).context == 512
    assert start(model("openai/whisper-large-v3"), 24 * GI, contract=EndpointType.SPEECH_TO_TEXT).context == 448


def test_a_chat_model_that_embeds_is_converted() -> None:
    found = start(model("Qwen/Qwen3-8B"), 24 * GI, contract=EndpointType.EMBEDDINGS)
    assert (found.parameters["runner"], found.parameters["convert"]) == ("pooling", "embed")


def test_bytes_without_layers_stand_on_the_recipes_budget() -> None:
    facts = modelfacts.from_catalog(
        {
            "artifact": {"sizeBytes": 5 * GI},
            "resolved": {"architecture": "NewForCausalLM", "contextWindowTokens": 32_768},
        }
    )
    one = chosen(facts)
    found = start(facts, 12 * GI, device_total=80 * GI, shared=True)
    assert (found.estimate.source, found.context) == (Source.PARTIAL, one.context.floor)
    assert one.kv_budget.floor <= found.kv_bytes <= one.kv_budget.wanted
    assert found.parameters["kvCacheMemoryBytes"] == str(found.kv_bytes)
    assert found.needed is not UNKNOWN and found.needed <= 12 * GI
    assert isinstance(launched(facts, 8 * GI, device_total=80 * GI, shared=True), recipe.Shortfall)


def test_a_model_of_unknown_bytes_gets_all_it_is_given() -> None:
    facts = modelfacts.from_catalog({})
    one = chosen(facts)
    assert recipe.smallest(one, facts) is UNKNOWN
    found = start(facts, 24 * GI)
    assert (found.needed, found.estimate.total, found.estimate.source) == (UNKNOWN, UNKNOWN, Source.UNKNOWN)
    assert float(found.utilization) == pytest.approx((24 * 0.985 - 0.6) / 24, abs=0.001)
    assert found.kv_bytes == 4 * GI


def test_ranks_divide_what_one_device_must_hold() -> None:
    facts = model("Qwen/Qwen3-32B")
    one = chosen(facts)
    assert recipe.counts(one, facts, 8) == (1, 2, 4, 8)
    assert recipe.counts(one, facts, 3) == (1, 2)
    least = [recipe.smallest(one, facts, count=count) for count in (1, 2, 4)]
    assert [round(size / GI) for size in least if size is not UNKNOWN] == [66, 34, 18]
    found = start(facts, 48 * GI, count=2)
    assert found.parameters["tensorParallelSize"] == "2"
    assert (found.host.cpu_milli, found.host.shared_memory) == (4000, 2 * GI)
    assert found.host.memory == 4 * GI + 2 * 8 * GI + 2 * GI


def test_heads_that_nobody_knows_are_not_divided() -> None:
    facts = modelfacts.from_catalog({"artifact": {"sizeBytes": 5 * GI}})
    assert recipe.counts(chosen(facts), facts, 8) == (1,)


def test_what_cuda_does_not_have_of_a_card_is_not_given_away() -> None:
    facts = model("Qwen/Qwen3-14B")
    found = start(facts, 81_559 * MI)
    assert found.needed is not UNKNOWN
    assert found.needed <= 81_559 * MI - GI // 2


@settings(deadline=None)  # the machine is shared
@given(
    repository=st.sampled_from([entry.repositories[0] for entry in modelfacts.table()]),
    memory=st.integers(2 * GI, 90 * GI),
    shared=st.booleans(),
    count=st.sampled_from([1, 2]),
)
def test_a_launch_never_takes_more_than_it_was_given(repository: str, memory: int, shared: bool, count: int) -> None:
    facts = model(repository)
    found = launched(
        facts, memory, device_total=90 * GI if shared else memory, shared=shared, count=count,
        contract=facts.endpoint_types[0],
    )  # fmt: skip
    if isinstance(found, recipe.Shortfall):
        assert found.needed > found.free
        return
    assert found.needed is not UNKNOWN and found.needed <= memory
    layout = sizing.cache(
        facts, batched_tokens=int(found.parameters["maxNumBatchedTokens"]), tensor_parallel=count,
        kv_dtype=found.recipe.kv_cache_dtype,
    )  # fmt: skip
    assert layout is not UNKNOWN
    assert found.kv_bytes >= layout.bytes(found.context, found.concurrency)
    sequences = layout.sequences(found.kv_bytes)
    assert sequences is None or found.concurrency <= sequences


def document(**changes: Any) -> dict[str, Any]:
    raw: dict[str, Any] = yaml.safe_load((FOLDER / "generic.yaml").read_text(encoding="utf-8"))
    raw["recipes"][0] |= changes
    return raw


BROKEN = {
    "an unknown field": (document(colour="blue"), "generic.yaml: recipes[0]: Additional properties are not allowed"),
    "a wrong type": (document(batchedTokens="many"), "generic.yaml: recipes[0].batchedTokens: 'many' is not of type"),
    "a floor above the wish": (
        document(context={"wanted": 2048, "floor": 4096}),
        "generic.yaml: recipes[0].context.floor: 4096 is more than what is wanted, 2048",
    ),
    "an argument that the planner computes": (
        document(parameters={"maxModelLen": 8192}),
        "generic.yaml: recipes[0].parameters: ",
    ),
    "an argument that is no argument": (document(parameters={"--x": 1}), "generic.yaml: recipes[0].parameters: "),
    "a name twice": (document(name="generic-rerank", strategies=["Latency"]), "generic-rerank is there twice"),
    "no generic recipe for a contract": (
        document(models=["a/b"], contract="Chat", strategies=["Throughput"]) | {"release": "0.33.0"},
        "",
    ),
}


@pytest.mark.parametrize(("raw", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_with_its_path(raw: dict[str, Any], message: str, tmp_path: Path) -> None:
    if not message:
        raw["recipes"] = [one for one in raw["recipes"] if one["contract"] != "Chat"]
        message = "no generic recipe for Chat"
    (tmp_path / "generic.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    with pytest.raises(recipe.RecipeError, match=re.escape(message)):
        recipe.load(tmp_path)


def test_releases_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(document()), encoding="utf-8")
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(document() | {"release": "0.32.0"}), encoding="utf-8")
    with pytest.raises(recipe.RecipeError, match=re.escape("b.yaml: release: 0.32.0 beside 0.33.0")):
        recipe.load(tmp_path)


@pytest.mark.parametrize("text", ["{", "- 1", ""])
def test_a_file_that_is_no_document_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(recipe.RecipeError, match=r"x\.yaml: "):
        recipe.load(tmp_path)


def test_a_size_report_has_every_term_with_its_source() -> None:
    report = recipe.size_report(model("Qwen/Qwen3-1.7B"), context=1024, concurrency=1, device_memory=24 * GI)
    parts = ("weights", "kvCache", "activation", "graphs", "nonTorch", "safety")
    assert report["total"] == sum(report[part] for part in parts)
    assert [row["name"] for row in report["rows"]] == [
        "weights",
        "kvCache",
        "activation",
        "graphs",
        "nonTorch",
        "safety",
    ]
    assert all(row["source"] for row in report["rows"])
    assert report["kvPerToken"] == 114_688
    left = 24 * GI - (report["total"] - report["kvCache"]) - report["contextPerProcess"]
    assert report["kvTokens"] == left // (16 * 114_688) * 16


def test_a_size_report_says_null_where_nobody_knows() -> None:
    report = recipe.size_report(modelfacts.from_config({"model_type": "mystery"}), context=1024, device_memory=GI)
    assert (report["weights"], report["kvCache"], report["total"], report["kvTokens"]) == (None, None, None, None)
    assert report["safety"] == 15 * GI // 100
