# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Model facts become bytes of one device, term by term, each with its source.

    need = weights / TP x padding + non-torch + max(forward peak, sampler peak) + graphs + KV + safety

plus a CUDA context, which the engine does not count, for each process. Constants belong to the engine that the module
ships (vLLM 0.33); the points that hold them are in `benchmarks/sizing.py`. Nothing here looks at hardware or policy,
and nothing is guessed: a term whose facts are unknown is `UNKNOWN`, and so is the total.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from planner.architecture import DTYPE_BYTES, Attention, Layers, ModelFacts, Quantization, Source
from planner.units import GI, UNKNOWN, Bytes, Maybe, Unknown

BLOCK_TOKENS: Final = 16
"""Tokens of one block of the key/value cache on CUDA; hybrids choose a larger one (`Cache.block_tokens`)."""
SAMPLER_BYTES: Final = 39
"""Sampler peak per sequence and vocabulary entry: 38.4 to 39.6 on five models, 0.6B to 70B (llm-d-benchmark)."""
NON_TORCH: Final = 15 * GI // 100
NON_TORCH_RANKS: Final = 60 * GI // 100
"""Memory outside the allocator, alone and with ranks that talk: 0.13-0.15, 0.55-0.6 GiB (llm-d-benchmark)."""
CUDA_CONTEXT: Final = 60 * GI // 100
"""What a process takes before the engine counts: 78.57 of 79.18 GiB free at start on an H100 (llm-d-benchmark)."""
SAFETY: Final = 15 * GI // 100
"""The engine's own margin. Source: vLLM `v1/worker/gpu_worker.py`."""
PADDING: Final = (1003, 1000)
PADDING_MXFP4: Final = (1060, 1000)
"""Loaded ÷ stored bytes. Source: dense 1.000-1.003; gpt-oss 20b 12.82→13.47, 120b 60.77→64.38 GiB (llm-d-benchmark)."""
GRAPHS_LEAST: Final = GI // 10
GRAPHS_LAYER_DENSE: Final = 36 * GI // 100 // 80
GRAPHS_LAYER_EXPERTS: Final = 103 * GI // 100 // 36
"""Graphs of one layer at all capture sizes: 0.36 GiB on 80 dense layers, 1.03 GiB on 36 layers of 128 experts."""
CAPTURE_SIZES: Final = 51
"""How many batch sizes the engine captures up to 512 (1, 2, 4, then every 8 to 256, every 16 beyond)."""
TOWER_FACTOR: Final = (3, 2)
"""Forward peak of a tower against the language model's law: Mistral-Small 3.2 took 2.12 GiB with two images."""
HIDDEN: Final = (15, 1000)
HIDDEN_MOST: Final = GI // 2
"""Of what a driver publishes, the part CUDA does not have: 0.47 of 79.65 GiB on an H100, 0.31 of 24 on an RTX 3090."""
CONCURRENT_BATCHES: Final = 2
"""Batches in flight with asynchronous scheduling and no pipeline (vLLM Model Runner V2: PP + 1)."""


class UnknownType(ValueError):
    """A data type that this engine does not have; the message names it and what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One summand: bytes of one device and where the number comes from."""

    name: str
    bytes: Maybe
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one device must hold, in bytes. `total` is what the engine is given; `context_per_process` comes on top."""

    source: Source
    weights: Maybe
    kv_per_token: Maybe
    """Bytes that one more token costs: layers that keep every token, padding of layer groups apart."""
    kv_per_request: Maybe
    """Bytes of one request at full context, blocks and group padding included."""
    kv_cache: Maybe
    activation: Maybe
    graphs: Maybe
    non_torch: Maybe
    safety: Maybe
    total: Maybe
    context_per_process: Bytes
    terms: tuple[Term, ...]

    @property
    def overhead(self) -> Maybe:
        """Everything of the total that is neither weights nor key/value cache."""
        if self.total is UNKNOWN or self.weights is UNKNOWN or self.kv_cache is UNKNOWN:
            return UNKNOWN
        return self.total - self.weights - self.kv_cache

    @property
    def fixed(self) -> Maybe:
        """The total without the key/value cache."""
        if self.total is UNKNOWN or self.kv_cache is UNKNOWN:
            return UNKNOWN
        return self.total - self.kv_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The key/value cache of one device as the engine lays it out: equal blocks for groups of equally many layers.

    Layers of several kinds are cut into groups as large as the rarest kind; what is missing in the last group is
    padding that every block pays. Source: vLLM `v1/core/kv_cache_utils.py`; held by the engine's answers for Gemma 3,
    gpt-oss, Qwen3.5 and Qwen3.6 in `test_sizing`.
    """

    per_token: Bytes
    block_bytes: Bytes
    block_tokens: int
    groups: tuple["Group", ...]
    spare_blocks: int = 1
    """The block that the engine keeps for itself."""

    def blocks(self, context: int) -> int:
        """Blocks that one request of `context` tokens holds at most."""
        return sum(group.blocks(context) for group in self.groups)

    def bytes(self, context: int, concurrency: int) -> Bytes:
        """Bytes for `concurrency` requests of `context` tokens each, and the engine's spare block; 0 without layers."""
        if not self.groups:
            return 0
        return (concurrency * self.blocks(context) + self.spare_blocks) * self.block_bytes

    def tokens(self, given: Bytes, context: int) -> int:
        """Tokens that `given` bytes hold as the engine counts them, for requests of `context` tokens; 0 without cache.

        One kind of layer: blocks x block size. Several kinds: requests at full context x context.
        """
        if not self.groups or given <= 0:
            return 0
        count = given // self.block_bytes
        if len(self.groups) == 1 and self.groups[0].plain:
            return count * self.block_tokens
        return count * context // self.blocks(context)

    def requests(self, given: Bytes, context: int) -> int:
        """How many requests of `context` tokens `given` bytes hold at once, the spare block set apart."""
        if not self.groups:
            return 0
        return max(0, given // self.block_bytes - self.spare_blocks) // self.blocks(context)

    def sequences(self, given: Bytes) -> int | None:
        """The most requests that can run at all, by their states; None when nothing of the model keeps a state.

        Every running request of a hybrid holds its state blocks and one block of each other group, however short it is.
        """
        if not any(group.states for group in self.groups):
            return None
        least = sum(group.count * max(1, group.states) for group in self.groups)
        return max(0, given // self.block_bytes - self.spare_blocks) // least


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal groups of one kind of layer: how many there are, and which tokens of a request they keep."""

    count: int
    block_tokens: int
    kept: int = 0
    """Tokens kept at most (sliding window with what is in flight); 0: all of them."""
    fixed: int = 0
    """Tokens kept whatever the request's length (encoder positions)."""
    states: int = 0
    """Blocks a request holds whatever its length (linear layers)."""

    @property
    def plain(self) -> bool:
        """Whether the group keeps every token and nothing else."""
        return not (self.kept or self.fixed or self.states)

    def blocks(self, context: int) -> int:
        """Blocks of one request of `context` tokens in all groups of this kind."""
        if self.states:
            return self.count * self.states
        if self.fixed:
            return self.count * -(-self.fixed // self.block_tokens)
        if self.kept:
            return self.count * (-(-min(self.kept, context) // self.block_tokens) + 1)
        return self.count * -(-context // self.block_tokens)


def heads_divisible(facts: ModelFacts, tensor_parallel: int) -> bool | Unknown:
    """Whether `tensor_parallel` ranks can divide attention heads, key/value heads (or a multiple) and linear heads.

    `UNKNOWN` where the head count is not known and there is more than one rank. Raises ValueError below 1.
    """
    if tensor_parallel < 1:
        raise ValueError(f"tensor parallel size must be at least 1, got {tensor_parallel}")
    if tensor_parallel == 1:
        return True
    if facts.attention_heads is UNKNOWN:
        return UNKNOWN
    if facts.attention_heads % tensor_parallel:
        return False
    if any(heads % tensor_parallel for heads in facts.linear_heads):
        return False
    latent = facts.layers is not UNKNOWN and any(layers.kind is Attention.LATENT for layers in facts.layers)
    if facts.kv_heads is UNKNOWN or latent:
        return True
    return facts.kv_heads % tensor_parallel == 0 or tensor_parallel % facts.kv_heads == 0


def element_bytes(facts: ModelFacts, dtype: str) -> int:
    """Bytes of one element of activations; `auto` is the checkpoint's own type, two bytes where nobody stated it.

    Raises UnknownType.
    """
    if dtype == "auto":
        return 2 if facts.dtype is UNKNOWN else DTYPE_BYTES[facts.dtype]
    wanted = {"half": "float16", "float": "float32"}.get(dtype, dtype)
    if wanted not in DTYPE_BYTES:
        raise UnknownType(f"data type {dtype!r} is none of auto, {', '.join(sorted(DTYPE_BYTES))}")
    return DTYPE_BYTES[wanted]


def _kv_sixteenths(facts: ModelFacts, dtype: str, kv_dtype: str) -> int:
    """Bytes of sixteen key or value elements. Raises UnknownType."""
    if kv_dtype == "auto":
        return 16 * element_bytes(facts, dtype)
    if kv_dtype in DTYPE_BYTES:
        return 16 * DTYPE_BYTES[kv_dtype]
    if kv_dtype.startswith("fp8") or kv_dtype == "int8":
        return 16
    if kv_dtype.startswith("nvfp4"):
        return 9
    raise UnknownType(f"cache data type {kv_dtype!r} is none of auto, bfloat16, float16, float32, fp8, int8, nvfp4")


def token_bytes(layers: Layers, sixteenths: int, ranks: int) -> Bytes:
    """Bytes that one layer of this kind keeps on one of `ranks` devices for one token; 0 for linear layers.

    Heads split over ranks and are repeated when there are fewer than ranks; a latent vector is whole on every rank.
    """
    if layers.kind is Attention.LINEAR:
        return 0
    if layers.kind is Attention.LATENT:
        return -(-layers.latent * sixteenths // 16) + layers.extra_token_bytes
    heads = max(1, -(-layers.kv_heads // ranks))
    return -(-heads * (layers.head_dim + (layers.value_dim or layers.head_dim)) * sixteenths // 16)


def state_bytes(layers: Layers, element: int, ranks: int, speculative_tokens: int = 0) -> Bytes:
    """Bytes of one state of one linear layer on one of `ranks` devices; drafted tokens lengthen its convolution."""
    convolution = layers.conv_width * (layers.conv_positions + speculative_tokens) * element
    return -(-convolution // ranks) + -(-layers.state_elements * layers.state_element_bytes // ranks)


def cache(
    facts: ModelFacts,
    *,
    batched_tokens: int,
    tensor_parallel: int = 1,
    dtype: str = "auto",
    kv_dtype: str = "auto",
    concurrent_batches: int = CONCURRENT_BATCHES,
    prefix_caching: bool = True,
    speculative_tokens: int = 0,
    block_tokens: int = BLOCK_TOKENS,
) -> Cache | Unknown:
    """The layout of the key/value cache on one device; `UNKNOWN` where the layers are.

    A sliding layer keeps min(window - 1 + tokens in flight, context) and one block more, tokens in flight being
    `batched_tokens` x `concurrent_batches`; a linear layer keeps one state, two with prefix caching, one more per
    drafted token. Raises ValueError for sizes below 1, UnknownType for a type the engine does not have.
    """
    if tensor_parallel < 1 or batched_tokens < 1:
        raise ValueError("tensor parallel size and batched tokens must be at least 1")
    if facts.layers is UNKNOWN:
        return UNKNOWN
    return _laid_out(
        facts.layers,
        _kv_sixteenths(facts, dtype, kv_dtype),
        element_bytes(facts, dtype),
        tensor_parallel,
        batched_tokens,
        concurrent_batches,
        (2 if prefix_caching else 1) + speculative_tokens,
        speculative_tokens,
        block_tokens,
    )


@lru_cache(maxsize=4096)
def _laid_out(
    layers_of: tuple[Layers, ...],
    sixteenths: int,
    element: int,
    ranks: int,
    batched: int,
    batches: int,
    states: int,
    drafted: int,
    block_tokens: int,
) -> Cache:
    kinds = [layers for layers in layers_of if layers.count > 0]
    if not kinds:
        return Cache(per_token=0, block_bytes=0, block_tokens=block_tokens, groups=())
    each = [token_bytes(layers, sixteenths, ranks) for layers in kinds]
    growing = sum(
        layers.count * size
        for layers, size in zip(kinds, each, strict=True)
        if layers.kind in (Attention.FULL, Attention.LATENT)
    )
    if growing == 0:
        growing = sum(layers.count * size for layers, size in zip(kinds, each, strict=True))
    smallest = min((size for size in each if size), default=0)
    state = max(
        (state_bytes(layers, element, ranks, drafted) for layers in kinds if layers.kind is Attention.LINEAR),
        default=0,
    )
    largest = max(each)
    page = largest * block_tokens
    if state and largest:
        page = -(-max(page, state) // (largest * block_tokens)) * largest * block_tokens
    elif state:
        page = state
    counts = [layers.count for layers in kinds]
    size = max(counts) if max(counts) < 1.25 * min(counts) else min(counts)
    groups = tuple(
        _group(layers, one, page, -(-layers.count // size), batched * batches, batched, states)
        for layers, one in zip(kinds, each, strict=True)
    )
    tokens = page // smallest if smallest else block_tokens
    return Cache(per_token=growing, block_bytes=size * page, block_tokens=tokens, groups=groups)


def _group(layers: Layers, token: Bytes, page: Bytes, count: int, in_flight: int, batched: int, states: int) -> Group:
    tokens = page // token if token else 1
    if layers.kind is Attention.LINEAR:
        return Group(count=count, block_tokens=tokens, states=states)
    if layers.kind is Attention.SLIDING:
        return Group(count=count, block_tokens=tokens, kept=layers.window - 1 + in_flight)
    if layers.kind is Attention.CROSS:
        return Group(count=count, block_tokens=tokens, fixed=max(layers.positions, batched))
    return Group(count=count, block_tokens=tokens)


def estimate(
    facts: ModelFacts,
    *,
    context: int,
    concurrency: int,
    batched_tokens: int,
    tensor_parallel: int = 1,
    dtype: str = "auto",
    kv_dtype: str = "auto",
    pooling: bool = False,
    enforce_eager: bool = False,
    capture_size: int | None = None,
    language_only: bool = False,
    concurrent_batches: int = CONCURRENT_BATCHES,
    prefix_caching: bool = True,
    speculative_tokens: int = 0,
    kv_cache: Bytes | None = None,
    activation: Bytes | None = None,
) -> Estimate:
    """Bytes of one of `tensor_parallel` devices for `concurrency` requests of `context` tokens.

    `kv_cache` replaces the computed cache (what is given), `activation` stands in where shapes are unknown (a recipe's
    budget). `pooling` says that nothing is sampled, `capture_size` bounds the graphs (default: twice the concurrency,
    512 at most), `language_only` leaves the towers out. Facts that are unknown give unknown terms and an unknown total.
    Raises ValueError for sizes below 1, UnknownType for a type the engine does not have.
    """
    if context < 1 or concurrency < 1:
        raise ValueError("context and concurrency must be at least 1")
    ranks = tensor_parallel
    element = element_bytes(facts, dtype)
    layout = cache(
        facts,
        batched_tokens=batched_tokens,
        tensor_parallel=ranks,
        dtype=dtype,
        kv_dtype=kv_dtype,
        concurrent_batches=concurrent_batches,
        prefix_caching=prefix_caching,
        speculative_tokens=speculative_tokens,
    )
    weights = _weights(facts, dtype, ranks, language_only=language_only)
    kv = _kv(facts, layout, context, concurrency, kv_cache)
    working = _activation(
        facts, context, concurrency, batched_tokens, ranks, element, pooling, language_only, activation
    )
    graphs = _graphs(facts, concurrency, enforce_eager, capture_size)
    outside = Term(
        name="nonTorch",
        bytes=NON_TORCH if ranks == 1 else NON_TORCH_RANKS,
        source="0.15 GiB alone, 0.6 GiB with ranks that talk (llm-d-benchmark)",
    )
    safety = Term(name="safety", bytes=SAFETY, source="the engine's own margin (vLLM gpu_worker)")
    terms = (weights, kv, working, graphs, outside, safety)
    total: Maybe = 0
    for term in terms:
        total = UNKNOWN if total is UNKNOWN or term.bytes is UNKNOWN else total + term.bytes
    return Estimate(
        source=facts.source,
        weights=weights.bytes,
        kv_per_token=UNKNOWN if layout is UNKNOWN else layout.per_token,
        kv_per_request=UNKNOWN if layout is UNKNOWN else layout.blocks(context) * layout.block_bytes,
        kv_cache=kv.bytes,
        activation=working.bytes,
        graphs=graphs.bytes,
        non_torch=outside.bytes,
        safety=safety.bytes,
        total=total,
        context_per_process=CUDA_CONTEXT,
        terms=terms,
    )


def _weights(facts: ModelFacts, dtype: str, ranks: int, *, language_only: bool) -> Term:
    if facts.weights is UNKNOWN:
        return Term(name="weights", bytes=UNKNOWN, source=f"nobody states the bytes ({facts.origin})")
    stored = facts.weights
    note = ""
    if (
        facts.quantization is None
        and facts.dtype is not UNKNOWN
        and element_bytes(facts, dtype) != DTYPE_BYTES[facts.dtype]
    ):
        stored = stored * element_bytes(facts, dtype) // DTYPE_BYTES[facts.dtype]
        note = f", as {dtype}"
    share = -(-stored // ranks)
    repeated = facts.replicated - facts.replicated // ranks
    if facts.kv_heads is not UNKNOWN and 0 < facts.kv_heads < ranks:
        repeated += facts.kv_projection // facts.kv_heads - facts.kv_projection // ranks
    share += repeated
    up, down = PADDING
    if isinstance(facts.quantization, Quantization) and facts.quantization.family == "mxfp4":
        up, down = PADDING_MXFP4
    padded = max(-(-share * up // down), share + facts.rope_cache)
    tower = 0 if facts.tower is None or language_only else facts.tower.bytes
    source = f"{facts.origin}{note}; ÷ {ranks} × {padded / max(1, share):.4f}"
    if repeated:
        source += f", {repeated} repeated on each rank"
    if tower:
        source += f", tower {tower} whole on each rank"
    return Term(name="weights", bytes=padded + tower, source=source)


def _kv(facts: ModelFacts, layout: Cache | Unknown, context: int, concurrency: int, given: Bytes | None) -> Term:
    if given is not None:
        return Term(name="kvCache", bytes=given, source="stated budget")
    if layout is UNKNOWN:
        return Term(name="kvCache", bytes=UNKNOWN, source=f"attention unknown ({facts.origin})")
    if not layout.groups:
        return Term(name="kvCache", bytes=0, source="an encoder keeps nothing between steps")
    return Term(
        name="kvCache",
        bytes=layout.bytes(context, concurrency),
        source=f"{concurrency} requests × {layout.blocks(context)} blocks of {layout.block_bytes} B, and one spare",
    )


def _activation(
    facts: ModelFacts,
    context: int,
    concurrency: int,
    batched_tokens: int,
    ranks: int,
    element: int,
    pooling: bool,
    language_only: bool,
    given: Bytes | None,
) -> Term:
    if facts.hidden is UNKNOWN or facts.intermediate is UNKNOWN or facts.vocabulary is UNKNOWN:
        if given is None:
            return Term(name="activation", bytes=UNKNOWN, source=f"shapes unknown ({facts.origin})")
        return Term(name="activation", bytes=given, source="stated budget")
    tokens = max(batched_tokens, context) if facts.encoder_only is True else batched_tokens
    forward = element * tokens * (4 * facts.hidden + -(-2 * facts.intermediate // ranks))
    sampler = 0 if pooling or facts.encoder_only is True else SAMPLER_BYTES * concurrency * facts.vocabulary
    tower = 0
    source = f"forward {element} B × {tokens} × (4·{facts.hidden} + 2·{facts.intermediate}/{ranks})"
    if facts.tower is not None and not language_only:
        items = max(1, min(batched_tokens // facts.tower.tokens, concurrency))
        peak = element * items * facts.tower.positions * (4 * facts.tower.hidden + 2 * facts.tower.intermediate)
        tower = peak * TOWER_FACTOR[0] // TOWER_FACTOR[1]
        source += f" + tower peak of {items} items {tower}"
    if sampler > forward + tower:
        source = f"sampler {SAMPLER_BYTES} B × {concurrency} sequences × {facts.vocabulary} vocabulary"
    return Term(name="activation", bytes=max(forward + tower, sampler), source=source)


def _graphs(facts: ModelFacts, concurrency: int, enforce_eager: bool, capture_size: int | None) -> Term:
    if enforce_eager:
        return Term(name="graphs", bytes=0, source="eager mode captures none")
    largest = min(512, 2 * concurrency) if capture_size is None else capture_size
    sizes = captured(largest)
    layers = 0 if facts.layers is UNKNOWN else sum(layers.count for layers in facts.layers)
    each = GRAPHS_LAYER_EXPERTS if facts.experts is UNKNOWN or facts.experts > 0 else GRAPHS_LAYER_DENSE
    size = max(GRAPHS_LEAST, each * layers * sizes // CAPTURE_SIZES)
    return Term(name="graphs", bytes=size, source=f"{layers} layers × {sizes} captured sizes, 0.1 GiB at least")


@lru_cache(maxsize=1024)
def captured(largest: int) -> int:
    """How many batch sizes are captured up to `largest` (0: none)."""
    sizes = [1, 2, 4, *range(8, 257, 8), *range(272, 1025, 16)]
    return sum(size <= largest for size in sizes)


def kv_tokens(
    facts: ModelFacts,
    device_memory: Bytes,
    *,
    context: int,
    concurrency: int,
    batched_tokens: int,
    tensor_parallel: int = 1,
    dtype: str = "auto",
    kv_dtype: str = "auto",
    pooling: bool = False,
    concurrent_batches: int = CONCURRENT_BATCHES,
) -> Maybe:
    """Tokens that fit beside everything else on devices of `device_memory` bytes; 0 when nothing is left or kept.

    The CUDA context is set apart, since no engine can use it. `UNKNOWN` where a term is.
    """
    size = estimate(
        facts,
        context=context,
        concurrency=concurrency,
        batched_tokens=batched_tokens,
        tensor_parallel=tensor_parallel,
        dtype=dtype,
        kv_dtype=kv_dtype,
        pooling=pooling,
        concurrent_batches=concurrent_batches,
    )
    layout = cache(
        facts,
        batched_tokens=batched_tokens,
        tensor_parallel=tensor_parallel,
        dtype=dtype,
        kv_dtype=kv_dtype,
        concurrent_batches=concurrent_batches,
    )
    if layout is UNKNOWN or size.fixed is UNKNOWN:
        return UNKNOWN
    return layout.tokens(device_memory - size.fixed - size.context_per_process, context)
