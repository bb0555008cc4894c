# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What is known of a model: its layers by kind, its sizes, what it may run as. Records only, no rule.

Every fact may be `UNKNOWN` (nobody said). Zero and an empty tuple are facts of their own: a model with `layers == ()`
keeps nothing per request (an encoder), a `tower` of None means that there is none.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from planner.model import EndpointType
from planner.units import UNKNOWN, Bytes, Maybe, Unknown

DTYPE_BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of one element by the engine's name of the type."""


class Source(Enum):
    """Who stated the facts that a model was sized by: `status.plan.sizing.source`."""

    RECIPE = "Recipe"
    CATALOG = "Catalog"
    KNOWN = "Known"
    PARTIAL = "Partial"
    """Bytes are known, attention is not: the recipe's stated budgets stand in."""
    UNKNOWN = "Unknown"
    """Nobody knows the bytes."""


class Attention(Enum):
    """What a layer keeps for a running request."""

    FULL = "full"
    SLIDING = "sliding"
    LATENT = "latent"
    """Multi-head latent attention (MLA): one compressed vector a token, whole on every rank."""
    LINEAR = "linear"
    """A state of fixed size (gated delta nets, Mamba), whatever the length."""
    CROSS = "cross"
    """The encoder's positions, kept once for a request (speech)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """`count` layers that keep the same thing for a request; sizes are of the whole model, before ranks divide them."""

    kind: Attention
    count: int
    kv_heads: int = 0
    head_dim: int = 0
    """Elements of one key; a value has as many unless `value_dim` says otherwise."""
    value_dim: int = 0
    window: int = 0
    """Tokens that a sliding layer looks back on."""
    latent: int = 0
    """Elements a token of a latent layer: kv_lora_rank + qk_rope_head_dim."""
    extra_token_bytes: int = 0
    """Bytes a token beside keys and values (the index cache of sparse attention), whole on every rank."""
    positions: int = 0
    """Encoder positions of a cross-attention layer."""
    conv_width: int = 0
    """Elements of one position of a linear layer's convolution state."""
    conv_positions: int = 0
    """Positions that the convolution keeps: kernel - 1."""
    state_elements: int = 0
    """Elements of a linear layer's recurrent state."""
    state_element_bytes: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """An encoder beside the language model (vision, audio): whole on every rank, with a forward peak of its own."""

    bytes: Bytes
    hidden: int
    intermediate: int
    positions: int
    """Positions that one largest item (image, 30 s of sound) occupies inside the tower."""
    tokens: int
    """Tokens that the item becomes in the language model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How a checkpoint is compressed: the engine's name of the method and the family its hardware minimum goes by."""

    method: str
    family: str
    """`fp8`, `int8`, `int4`, `mxfp4`, `nvfp4`, or the method itself where it is none of these."""
    pretty: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How many weights a checkpoint has, by what happens to them under quantisation and under tensor parallelism."""

    attention: int
    kv_projection: int
    """Part of `attention`: keys and values, repeated when there are more ranks than key/value heads."""
    replicated: int
    """Part of `attention`: down-projections of latent attention, whole on every rank."""
    mlp: int
    experts: int
    embedding: int
    other: int
    """Norms, routers, biases: never quantised."""
    tower: int

    @property
    def total(self) -> int:
        """All of them, towers included."""
        return self.attention + self.mlp + self.experts + self.embedding + self.other + self.tower


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of one model. Bytes are totals over all ranks, of the language body unless said otherwise."""

    name: str
    source: Source
    origin: str
    """Where the facts were read, for a reader: a repository, "catalog object", a file."""
    architecture: str | Unknown = UNKNOWN
    family: str | Unknown = UNKNOWN
    layers: tuple[Layers, ...] | Unknown = UNKNOWN
    hidden: Maybe = UNKNOWN
    intermediate: Maybe = UNKNOWN
    """Width of the widest feed-forward that one token passes: for experts, all that are active for it."""
    vocabulary: Maybe = UNKNOWN
    attention_heads: Maybe = UNKNOWN
    kv_heads: Maybe = UNKNOWN
    linear_heads: tuple[int, ...] = ()
    """Head counts of linear layers that ranks must divide as well."""
    max_context: Maybe = UNKNOWN
    dtype: str | Unknown = UNKNOWN
    """The type the weights are loaded as when nobody asks for another: `bfloat16`, `float16`, `float32`."""
    quantization: Quantization | Unknown | None = UNKNOWN
    weights: Bytes | Unknown = UNKNOWN
    """Bytes of the language body as loaded, before the engine's padding."""
    replicated: Bytes = 0
    kv_projection: Bytes = 0
    tower: Tower | None = None
    rope_cache: Bytes = 0
    experts: Maybe = UNKNOWN
    encoder_only: bool | Unknown = UNKNOWN
    speech: bool = False
    endpoint_types: tuple[EndpointType, ...] = ()
    """Contracts the model was made for; empty: nobody said."""
    checkpoint_format: str | Unknown = UNKNOWN
    float16_forbidden: bool = False
    parameters: Parameters | Unknown = UNKNOWN

    def __hash__(self) -> int:
        """A hash of a few fields that tell models apart: facts are keys of what is remembered, and have many fields."""
        return hash((self.name, self.source, self.weights, self.max_context))

    @property
    def kv_known(self) -> bool:
        """Whether it is known what a request keeps (nothing, for an encoder, is known as well)."""
        return self.layers is not UNKNOWN
