# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Model x hardware x strategy becomes launch parameters, and the floors below which an order is refused.

Recipes are data of a runtime release (`images/request-runtime/recipes/*.yaml`, schema `data/recipe.schema.json`). A
recipe wishes for a context and a concurrency; both shrink to what the device holds, never below the stated floors. The
context length, the number of sequences, the batched tokens, the bytes of the cache and the utilisation are always
pinned: the engine's own defaults depend on the memory it sees, which is wrong on partitions and shares.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import jsonschema
import yaml

from planner import quantity, sizing
from planner.architecture import ModelFacts, Source
from planner.model import EndpointType, LaunchStrategy
from planner.sizing import Estimate
from planner.units import UNKNOWN, Bytes, Maybe, Unknown

SCHEMA: Final = Path(__file__).parent / "data" / "recipe.schema.json"
UTILIZATION_STEPS: Final = 10_000
"""Utilisation has four digits, always rounded down."""
CONTEXT_STEP: Final = 512
"""A context that must shrink does so in these steps, so that equal devices of almost equal memory read alike."""
SPARE: Final = (92, 100)
"""Part of a device that an order alone on it may fill with cache: the engine's own default utilisation (vLLM 0.33)."""


class RecipeError(ValueError):
    """A recipe file that cannot be used; the message names the file and the path of the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What is wished and the least that is still useful."""

    wanted: int
    floor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What a replica takes from its node beside devices."""

    cpu_per_device: int
    memory: Bytes
    memory_per_device: Bytes
    shared_memory: Bytes
    shared_memory_ranks: Bytes
    startup_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one model, or any model of a contract, is started on some hardware for some strategy."""

    name: str
    release: str
    contract: EndpointType
    strategy: LaunchStrategy
    models: tuple[str, ...]
    """Repository ids in lower case; empty: any model of the contract."""
    vendors: tuple[str, ...]
    min_compute_capability: tuple[int, int] | Unknown
    min_memory: Bytes
    context: Range
    concurrency: Range
    batched_tokens: int
    capture_size: int
    dtype: str
    kv_cache_dtype: str
    tensor_parallel: tuple[int, ...]
    weights: Bytes | Unknown
    kv_budget: Range
    """Bytes of one device's cache where attention is unknown."""
    activation_budget: Bytes
    parameters: Mapping[str, str]
    host: Host

    @property
    def generic(self) -> bool:
        """Whether it was made for no model in particular."""
        return not self.models

    @property
    def pooling(self) -> bool:
        """Whether the engine returns vectors or scores and samples nothing."""
        return self.contract in (EndpointType.EMBEDDINGS, EndpointType.RERANK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipes:
    """All recipes of one release, in the order of their names."""

    release: str
    recipes: tuple[Recipe, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResources:
    """Milli-CPU and bytes that one replica requests from its node; shared memory counts within memory."""

    cpu_milli: int
    memory: Bytes
    shared_memory: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A start that fits: what the plan says about recipe, sizing and host."""

    recipe: Recipe
    context: int
    concurrency: int
    count: int
    kv_bytes: Bytes
    utilization: str
    """Part of the device's total that the engine may use, four digits, rounded down."""
    parameters: Mapping[str, str]
    host: HostResources
    estimate: Estimate
    needed: Maybe
    """Bytes taken on one device, the CUDA context included; `UNKNOWN` where the weights are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """A start that does not fit even at the recipe's floors: bytes of one device."""

    recipe: Recipe
    needed: Bytes
    free: Bytes
    estimate: Estimate

    @property
    def lacking(self) -> Bytes:
        """How many bytes are missing."""
        return self.needed - self.free


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    context: int
    concurrency: int
    estimate: Estimate


def load(folder: Path) -> Recipes:
    """The recipes of every `*.yaml` in `folder`.

    Raises RecipeError naming file and path when a file cannot be read, breaks the schema, states a floor above its
    wish, repeats a name, disagrees about the release, or when a contract has no generic recipe.
    """
    found: dict[str, Recipe] = {}
    release: str | None = None
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise RecipeError(f"{folder}: no recipes")
    for file in files:
        document = _document(file)
        if release is not None and document["release"] != release:
            raise RecipeError(f"{file.name}: release: {document['release']} beside {release}")
        release = document["release"]
        for number, raw in enumerate(document["recipes"]):
            where = f"{file.name}: recipes[{number}]"
            for recipe in _recipes(raw, release, where):
                key = f"{recipe.name}/{recipe.strategy.value}"
                if key in found:
                    raise RecipeError(f"{where}.name: {recipe.name} is there twice for {recipe.strategy.value}")
                found[key] = recipe
    general = {recipe.contract for recipe in found.values() if recipe.generic and _anywhere(recipe)}
    missing = [kind.value for kind in EndpointType if kind not in general]
    if missing:
        raise RecipeError(f"{folder.name}: no generic recipe for {', '.join(missing)}")
    assert release is not None
    return Recipes(release=release, recipes=tuple(found[key] for key in sorted(found)))


def _anywhere(recipe: Recipe) -> bool:
    return not recipe.vendors and recipe.min_compute_capability is UNKNOWN and recipe.min_memory == 0


def _document(file: Path) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(file.read_text(encoding="utf-8"), Loader=loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecipeError(f"{file.name}: {error}") from error
    errors = sorted(_validator().iter_errors(document), key=lambda error: [str(part) for part in error.absolute_path])
    if errors:
        raise RecipeError("; ".join(f"{file.name}: {_path(error.absolute_path)}: {error.message}" for error in errors))
    return document


@lru_cache(maxsize=1)
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _path(parts: Iterable[object]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the document"


def _recipes(raw: Mapping[str, Any], release: str, where: str) -> list[Recipe]:
    hardware = raw.get("hardware", {})
    capability: tuple[int, int] | Unknown = UNKNOWN
    if "minComputeCapability" in hardware:
        major, minor = hardware["minComputeCapability"].split(".")
        capability = int(major), int(minor)
    budgets, host = raw["budgets"], raw["host"]
    one = Recipe(
        name=raw["name"],
        release=release,
        contract=EndpointType(raw["contract"]),
        strategy=LaunchStrategy(raw["strategies"][0]),
        models=tuple(model.lower() for model in raw.get("models", ())),
        vendors=tuple(hardware.get("vendors", ())),
        min_compute_capability=capability,
        min_memory=_bytes(hardware.get("minMemory", "0")),
        context=_range(raw["context"], f"{where}.context"),
        concurrency=_range(raw["concurrency"], f"{where}.concurrency"),
        batched_tokens=raw["batchedTokens"],
        capture_size=raw.get("captureSize", min(512, raw["concurrency"]["wanted"])),
        dtype=raw.get("dtype", "auto"),
        kv_cache_dtype=raw.get("kvCacheDtype", "auto"),
        tensor_parallel=tuple(raw.get("tensorParallel", (1, 2, 4, 8))),
        weights=_bytes(raw["weights"]) if "weights" in raw else UNKNOWN,
        kv_budget=_range({key: _bytes(value) for key, value in budgets["kvCache"].items()}, f"{where}.budgets.kvCache"),
        activation_budget=_bytes(budgets["activation"]),
        parameters={key: _text(value) for key, value in sorted(raw.get("parameters", {}).items())},
        host=Host(
            cpu_per_device=host["cpuPerDevice"],
            memory=_bytes(host["memory"]),
            memory_per_device=_bytes(host["memoryPerDevice"]),
            shared_memory=_bytes(host["sharedMemory"]),
            shared_memory_ranks=_bytes(host.get("sharedMemoryRanks", host["sharedMemory"])),
            startup_seconds=host["startupSeconds"],
        ),
    )
    return [replace(one, strategy=LaunchStrategy(strategy)) for strategy in raw["strategies"]]


def _range(raw: Mapping[str, int], where: str) -> Range:
    if raw["floor"] > raw["wanted"]:
        raise RecipeError(f"{where}.floor: {raw['floor']} is more than what is wanted, {raw['wanted']}")
    return Range(wanted=raw["wanted"], floor=raw["floor"])


def _bytes(text: str) -> Bytes:
    return quantity.parse(text).bytes


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def choose(
    recipes: Recipes,
    facts: ModelFacts,
    *,
    contract: EndpointType,
    strategy: LaunchStrategy,
    model_name: str = "",
    device_memory: Maybe = UNKNOWN,
    vendor: str | Unknown = UNKNOWN,
    compute_capability: tuple[int, int] | Unknown = UNKNOWN,
) -> Recipe:
    """The recipe for this model on such a device; there always is one, since every contract has a generic one.

    The model comes first, then the strategy, then the more particular hardware, then the name. A model is recognised by
    `model_name` (a repository id) or by the name its facts carry. Hardware that a recipe asks for and nobody published
    does not match. A strategy that no recipe of the model has is served by the other one's.
    """
    names = {name.lower() for name in (model_name, facts.name) if name}
    fitting = [
        recipe
        for recipe in recipes.recipes
        if recipe.contract is contract
        and (recipe.generic or names.intersection(recipe.models))
        and _hardware_fits(recipe, device_memory, vendor, compute_capability)
    ]
    return min(
        fitting,
        key=lambda recipe: (
            recipe.generic,
            recipe.strategy is not strategy,
            -(recipe.min_compute_capability is not UNKNOWN) - bool(recipe.vendors),
            -recipe.min_memory,
            recipe.name,
        ),
    )


def _hardware_fits(recipe: Recipe, memory: Maybe, vendor: str | Unknown, capability: tuple[int, int] | Unknown) -> bool:
    if recipe.vendors and (vendor is UNKNOWN or vendor.lower() not in recipe.vendors):
        return False
    floor = recipe.min_compute_capability
    if floor is not UNKNOWN and (capability is UNKNOWN or capability < floor):
        return False
    return recipe.min_memory == 0 or (memory is not UNKNOWN and memory >= recipe.min_memory)


def counts(recipe: Recipe, facts: ModelFacts, maximum: int) -> tuple[int, ...]:
    """Device counts that the recipe names, `maximum` allows and the model's heads divide by, in the recipe's order.

    With heads unknown only one device is offered.
    """
    return tuple(
        count for count in recipe.tensor_parallel if count <= maximum and sizing.heads_divisible(facts, count) is True
    )


def stated(recipe: Recipe, facts: ModelFacts) -> ModelFacts:
    """The facts with what the recipe states about its model on top of them."""
    if recipe.weights is UNKNOWN:
        return facts
    tower = 0 if facts.tower is None else facts.tower.bytes
    source = Source.RECIPE if facts.kv_known else Source.PARTIAL
    return replace(facts, weights=recipe.weights - tower, source=source, origin=f"recipe {recipe.name}")


def effective_context(recipe: Recipe, facts: ModelFacts) -> Range:
    """The recipe's context, cut to what the model was made for; with attention unknown only the floor is tried."""
    longest = facts.max_context
    wanted = recipe.context.wanted if facts.kv_known else recipe.context.floor
    if longest is UNKNOWN:
        return Range(wanted=wanted, floor=recipe.context.floor)
    return Range(wanted=min(wanted, longest), floor=min(recipe.context.floor, longest))


def _estimate(
    recipe: Recipe, facts: ModelFacts, *, context: int, concurrency: int, count: int, dtype: str, kv: Bytes | None
) -> Estimate:
    return sizing.estimate(
        facts,
        context=context,
        concurrency=concurrency,
        batched_tokens=batched(recipe, facts, context),
        tensor_parallel=count,
        dtype=dtype,
        kv_dtype=recipe.kv_cache_dtype,
        pooling=recipe.pooling,
        enforce_eager=recipe.parameters.get("enforceEager") == "true",
        capture_size=recipe.capture_size,
        language_only=recipe.parameters.get("languageModelOnly") == "true",
        prefix_caching=recipe.parameters.get("enablePrefixCaching") != "false",
        kv_cache=kv,
        activation=recipe.activation_budget,
    )


def batched(recipe: Recipe, facts: ModelFacts, context: int) -> int:
    """Batched tokens to pin: the recipe's, and at least one whole request where prefill cannot be cut (encoders)."""
    return (
        max(recipe.batched_tokens, context)
        if facts.encoder_only is not False and recipe.pooling
        else recipe.batched_tokens
    )


def _at(
    recipe: Recipe, facts: ModelFacts, context: int, concurrency: int, count: int, dtype: str, *, floor: bool
) -> Estimate:
    budget = None if facts.kv_known else recipe.kv_budget.floor if floor else recipe.kv_budget.wanted
    return _estimate(recipe, facts, context=context, concurrency=concurrency, count=count, dtype=dtype, kv=budget)


def smallest(recipe: Recipe, facts: ModelFacts, *, count: int = 1, dtype: str = "auto") -> Maybe:
    """Bytes of one device that admit the model at the recipe's floors, with CUDA context; `UNKNOWN` with the weights.

    The context is counted on every device: the engine's utilisation is a part of the total, and its start check asks
    for that part free after the context was made.
    """
    facts = stated(recipe, facts)
    estimate = _at(
        recipe, facts, effective_context(recipe, facts).floor, recipe.concurrency.floor, count, dtype, floor=True
    )
    return UNKNOWN if estimate.total is UNKNOWN else estimate.total + estimate.context_per_process


def wanted(recipe: Recipe, facts: ModelFacts, *, count: int = 1, dtype: str = "auto") -> Maybe:
    """Bytes of one device at the recipe's full wish, CUDA context included; `UNKNOWN` with the weights."""
    facts = stated(recipe, facts)
    estimate = _at(
        recipe, facts, effective_context(recipe, facts).wanted, recipe.concurrency.wanted, count, dtype, floor=False
    )
    return UNKNOWN if estimate.total is UNKNOWN else estimate.total + estimate.context_per_process


def launch(
    recipe: Recipe,
    facts: ModelFacts,
    *,
    contract: EndpointType,
    memory: Bytes,
    device_total: Bytes,
    shared: bool,
    count: int,
    dtype: str = "auto",
) -> Launch | Shortfall:
    """The start on `count` devices that give this order `memory` bytes each, of a device that publishes `device_total`.

    Context and concurrency are the largest that fit: the wish, then less concurrency, then less context, never below
    the floors. `shared` says that others use the rest of the device; a chat model alone on it gets as cache what would
    lie idle, up to the engine's default part of the device. What CUDA does not have of the published memory stays free.
    With the weights unknown the recipe's budgets are pinned and everything the order has is given to the engine.
    Raises ValueError for sizes below 1.
    """
    if memory < 1 or device_total < 1 or count < 1:
        raise ValueError("memory, device total and count must be at least 1")
    facts = stated(recipe, facts)
    visible = device_total - min(sizing.HIDDEN_MOST, device_total * sizing.HIDDEN[0] // sizing.HIDDEN[1])
    usable = min(memory, visible) - sizing.CUDA_CONTEXT
    asked = effective_context(recipe, facts)
    fit = _largest(recipe, facts, asked, usable, count, dtype)
    if fit is None:
        least = _at(recipe, facts, asked.floor, recipe.concurrency.floor, count, dtype, floor=True)
        assert least.total is not UNKNOWN
        return Shortfall(
            recipe=recipe, needed=least.total + sizing.CUDA_CONTEXT, free=min(memory, visible), estimate=least
        )
    estimate = fit.estimate
    total, kv = estimate.total, estimate.kv_cache
    needed: Maybe = UNKNOWN
    if total is UNKNOWN or kv is UNKNOWN:
        total = max(0, usable)
        kv = max(recipe.kv_budget.floor, min(recipe.kv_budget.wanted, usable // 4))
    else:
        spare = min(usable, device_total * SPARE[0] // SPARE[1]) - total
        if kv and spare > 0 and not shared and contract is EndpointType.CHAT:
            kv, total = kv + spare, total + spare
            estimate = _estimate(
                recipe, facts, context=fit.context, concurrency=fit.concurrency, count=count, dtype=dtype, kv=kv
            )
        needed = total + sizing.CUDA_CONTEXT
    steps = max(1, total * UTILIZATION_STEPS // device_total)
    utilization = f"{steps // UTILIZATION_STEPS}.{steps % UTILIZATION_STEPS:04d}"
    return Launch(
        recipe=recipe,
        context=fit.context,
        concurrency=fit.concurrency,
        count=count,
        kv_bytes=kv,
        utilization=utilization,
        parameters=_parameters(recipe, facts, contract, fit, kv, utilization, count, dtype),
        host=_host(recipe, count),
        estimate=estimate,
        needed=needed,
    )


def _largest(recipe: Recipe, facts: ModelFacts, asked: Range, usable: Bytes, count: int, dtype: str) -> _Fit | None:
    """The most that fits into `usable` bytes: context first, then concurrency; None when the floors do not fit."""
    low, high = recipe.concurrency.floor, recipe.concurrency.wanted

    def at(context: int, concurrency: int, *, floor: bool = False) -> Estimate:
        return _at(recipe, facts, context, concurrency, count, dtype, floor=floor)

    def fits(estimate: Estimate) -> bool:
        return estimate.total is UNKNOWN or estimate.total <= usable

    if not fits(at(asked.floor, low, floor=True)):
        return None
    if fits(at(asked.wanted, high)):
        return _Fit(context=asked.wanted, concurrency=high, estimate=at(asked.wanted, high))
    if not facts.kv_known:
        least = at(asked.floor, low, floor=True)
        assert least.total is not UNKNOWN and least.kv_cache is not UNKNOWN
        kv = min(recipe.kv_budget.wanted, least.kv_cache + usable - least.total)
        estimate = _estimate(recipe, facts, context=asked.floor, concurrency=low, count=count, dtype=dtype, kv=kv)
        return _Fit(context=asked.floor, concurrency=low, estimate=estimate)
    if fits(at(asked.wanted, low)):
        concurrency = _most(low, high, lambda number: fits(at(asked.wanted, number)))
        return _Fit(context=asked.wanted, concurrency=concurrency, estimate=at(asked.wanted, concurrency))
    steps = (asked.wanted - asked.floor) // CONTEXT_STEP
    step = _most(0, steps, lambda number: fits(at(asked.floor + number * CONTEXT_STEP, low)))
    context = asked.floor + step * CONTEXT_STEP
    return _Fit(context=context, concurrency=low, estimate=at(context, low))


def _most(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The largest whole number from `low` (which fits) to `high` that fits, where fitting only ends once."""
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _parameters(
    recipe: Recipe,
    facts: ModelFacts,
    contract: EndpointType,
    fit: _Fit,
    kv: Bytes,
    utilization: str,
    count: int,
    dtype: str,
) -> dict[str, str]:
    """Engine arguments in camelCase, as text, sorted: the recipe's, the contract's, and everything that is pinned."""
    found = dict(recipe.parameters)
    if contract in (EndpointType.EMBEDDINGS, EndpointType.RERANK):
        found["runner"] = "pooling"
        if contract is EndpointType.EMBEDDINGS and _generates(facts):
            found["convert"] = "embed"
    found |= {
        "maxModelLen": str(fit.context),
        "maxNumSeqs": str(fit.concurrency),
        "maxNumBatchedTokens": str(batched(recipe, facts, fit.context)),
        "gpuMemoryUtilization": utilization,
        "tensorParallelSize": str(count),
        "dtype": dtype if dtype != "auto" else recipe.dtype,
    }
    if "enforceEager" not in found:
        found["maxCudagraphCaptureSize"] = str(max(1, min(recipe.capture_size, fit.concurrency)))
    if kv:
        found["kvCacheMemoryBytes"] = str(kv)
        found["kvCacheDtype"] = recipe.kv_cache_dtype
    return dict(sorted(found.items()))


def _generates(facts: ModelFacts) -> bool:
    return facts.architecture is not UNKNOWN and facts.architecture.endswith(
        ("ForCausalLM", "ForConditionalGeneration")
    )


def _host(recipe: Recipe, count: int) -> HostResources:
    host = recipe.host
    shm = host.shared_memory if count == 1 else host.shared_memory_ranks
    return HostResources(
        cpu_milli=1000 * host.cpu_per_device * count,
        memory=host.memory + host.memory_per_device * count + shm,
        shared_memory=shm,
    )


DEFAULT_BATCHED_TOKENS: Final = 2048
"""Batched tokens of a size report: what the generic recipes pin."""


def size_report(
    facts: ModelFacts,
    *,
    context: int | None = None,
    concurrency: int = 1,
    tensor_parallel: int = 1,
    dtype: str = "auto",
    kv_dtype: str = "auto",
    device_memory: Bytes | None = None,
    batched_tokens: int = DEFAULT_BATCHED_TOKENS,
    pooling: bool | None = None,
) -> dict[str, Any]:
    """The answer of `planner size`: bytes of one device by term, and `rows` that say where each number comes from.

    `{weights, kvPerToken, kvCache, activation, graphs, nonTorch, safety, total}`, with `device_memory` also `kvTokens`;
    None stands for what is unknown. Beside them `contextPerProcess`, `kvPerRequest`, `headsDivisible`, what was asked,
    and `rows`, a list of `{name, bytes, source}`. `context` None means the model's longest, 8192 where nobody states
    it; `pooling` None means: as the model's own contract has it. Raises ValueError as `sizing.estimate` does.
    """
    if context is None:
        context = 8192 if facts.max_context is UNKNOWN else facts.max_context
    if facts.speech and facts.max_context is not UNKNOWN:
        context = min(context, facts.max_context)
    if pooling is None:
        first = facts.endpoint_types[0] if facts.endpoint_types else None
        pooling = first in (EndpointType.EMBEDDINGS, EndpointType.RERANK)
    estimate = sizing.estimate(
        facts,
        context=context,
        concurrency=concurrency,
        batched_tokens=batched_tokens,
        tensor_parallel=tensor_parallel,
        dtype=dtype,
        kv_dtype=kv_dtype,
        pooling=pooling,
    )
    divisible = sizing.heads_divisible(facts, tensor_parallel)
    report: dict[str, Any] = {
        "model": facts.name,
        "source": facts.source.value,
        "context": context,
        "concurrency": concurrency,
        "batchedTokens": batched_tokens,
        "tensorParallel": tensor_parallel,
        "headsDivisible": None if divisible is UNKNOWN else divisible,
        "weights": _plain(estimate.weights),
        "kvPerToken": _plain(estimate.kv_per_token),
        "kvPerRequest": _plain(estimate.kv_per_request),
        "kvCache": _plain(estimate.kv_cache),
        "activation": _plain(estimate.activation),
        "graphs": _plain(estimate.graphs),
        "nonTorch": _plain(estimate.non_torch),
        "safety": _plain(estimate.safety),
        "total": _plain(estimate.total),
        "contextPerProcess": estimate.context_per_process,
    }
    if device_memory is not None:
        report["deviceMemory"] = device_memory
        report["kvTokens"] = _plain(
            sizing.kv_tokens(
                facts,
                device_memory,
                context=context,
                concurrency=concurrency,
                batched_tokens=batched_tokens,
                tensor_parallel=tensor_parallel,
                dtype=dtype,
                kv_dtype=kv_dtype,
                pooling=pooling,
            )
        )
    report["rows"] = [
        {"name": term.name, "bytes": _plain(term.bytes), "source": term.source} for term in estimate.terms
    ]
    return report


def _plain(value: Maybe) -> int | None:
    return None if value is UNKNOWN else value
