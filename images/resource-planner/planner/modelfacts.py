# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Where model facts come from: a checkpoint's config, the catalog's object, the shipped table of known models.

The order in which they are believed is recipe, catalog, table. Catalog objects often know bytes and nothing else; the
table then adds the layers where architecture, family and bytes leave one known model only, and nothing otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from planner import checkpoint
from planner.architecture import (
    Attention,
    Layers,
    ModelFacts,
    Parameters,
    Quantization,
    Source,
    Tower,
)
from planner.model import EndpointType
from planner.units import UNKNOWN, Bytes, Unknown
from planner.units import known as known_or

__all__ = [
    "Attention",
    "Known",
    "Layers",
    "ModelFacts",
    "Parameters",
    "Quantization",
    "Source",
    "Tower",
    "from_catalog",
    "from_config",
    "known",
    "table",
]

TABLE: Final = Path(__file__).parent / "data" / "known-models.yaml"
SIZE_TOLERANCE: Final = 0.02
"""How much larger than a known checkpoint an artefact of it may be: tokenisers and small files add a little."""
SIZE_SHORT: Final = 0.005
"""How much smaller it may be: what is counted from shapes is not the file to the byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One entry of the shipped table."""

    repositories: tuple[str, ...]
    """Hugging Face repository ids with exactly these weights."""
    source: str
    """Where the published configuration stands."""
    published_parameters: int | Unknown
    """The parameter count the publisher states; a test holds our own count against it."""
    config: Mapping[str, Any]
    loaded: Bytes | Unknown
    """Bytes that an engine reported as loaded, where shapes do not tell them."""
    stored: Bytes | Unknown
    """Bytes of the published weight files, where they differ from what is loaded."""
    endpoint_types: tuple[EndpointType, ...]


def from_config(config: Mapping[str, Any], weights: Bytes | Unknown = UNKNOWN, *, name: str = "") -> ModelFacts:
    """Facts of a checkpoint's parsed `config.json`; see `checkpoint.facts`. Raises ValueError naming the bad key."""
    return checkpoint.facts(config, weights, name=name, origin="config.json of the checkpoint")


def known(repository: str) -> ModelFacts | None:
    """Facts of a Hugging Face repository id (any letter case) in the shipped table; None when it is not listed."""
    entry = _by_repository().get(repository.lower())
    return None if entry is None else _facts(entry)


def from_catalog(status: Mapping[str, Any], name: str = "") -> ModelFacts:
    """Facts of a catalog object's `status`: its bytes, and the layers from the table where one model alone fits.

    The source is `Catalog` when bytes and layers are known, `Partial` with bytes alone, `Unknown` without bytes (then
    the table is not asked: many sizes share one architecture). Fields of a wrong type are taken as absent.
    """
    resolved = _mapping(status.get("resolved"))
    artifact = _mapping(status.get("artifact"))
    size = artifact.get("sizeBytes", status.get("sizeBytes"))
    weights: Bytes | Unknown = size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else UNKNOWN
    architecture = _text(resolved.get("architecture"))
    family = _text(resolved.get("family"))
    context = resolved.get("contextWindowTokens")
    window = context if isinstance(context, int) and not isinstance(context, bool) and context > 0 else UNKNOWN
    if window is not UNKNOWN and architecture is not UNKNOWN and "Roberta" in architecture:
        window -= 2  # positions are counted from the padding index on
    method = _text(resolved.get("quantization"))
    stated = ModelFacts(
        name=name,
        source=Source.UNKNOWN if weights is UNKNOWN else Source.PARTIAL,
        origin="catalog object",
        architecture=architecture,
        family=family,
        max_context=window,
        weights=weights,
        quantization=None if method is UNKNOWN else Quantization(method=method.lower(), family=method_family(method)),
        endpoint_types=endpoint_types(resolved.get("supportedEndpointTypes")),
        checkpoint_format=_text(resolved.get("format")),
    )
    if method is UNKNOWN:
        stated = replace(stated, quantization=UNKNOWN)
    if weights is UNKNOWN or architecture is UNKNOWN:
        return stated
    fitting = _by_size(architecture, family, weights, "" if method is UNKNOWN else method_family(method))
    return _joined(stated, fitting, weights) if fitting else stated


def _joined(stated: ModelFacts, fitting: Sequence[ModelFacts], size: Bytes) -> ModelFacts:
    """The known shapes under the catalog's own statements; of models alike in layers, the larger numbers are taken."""
    shapes = max(fitting, key=lambda facts: (known_or(facts.weights, size), known_or(facts.vocabulary, 0)))
    longest = [facts.max_context for facts in fitting if facts.max_context is not UNKNOWN]
    return replace(
        shapes,
        name=stated.name,
        source=Source.CATALOG,
        origin=f"catalog object ({size} B), shapes of {shapes.name}",
        weights=known_or(shapes.weights, size),
        max_context=min(longest, default=UNKNOWN) if stated.max_context is UNKNOWN else stated.max_context,
        endpoint_types=stated.endpoint_types or shapes.endpoint_types,
        checkpoint_format=stated.checkpoint_format,
    )


def _by_size(architecture: str, family: str | Unknown, size: Bytes, quantization: str) -> tuple[ModelFacts, ...]:
    """Known models of this architecture with files of this size, when all of them have the same layers; else none.

    The catalog names a quantisation whenever the checkpoint has one, so an empty `quantization` means none: an 8B in
    sixteen bits and a 14B in eight have the same bytes.
    """
    found: list[ModelFacts] = []
    for entry in table():
        if architecture not in (entry.config.get("architectures") or ()):
            continue
        if family is not UNKNOWN and not _same_family(family, str(entry.config.get("model_type") or "")):
            continue
        if _family_of(_facts(entry)) != quantization:
            continue
        expected = file_bytes(entry)
        if expected is not UNKNOWN and expected * (1 - SIZE_SHORT) <= size <= expected * (1 + SIZE_TOLERANCE):
            found.append(_facts(entry))
    alike = {(facts.layers, facts.hidden, facts.intermediate, facts.quantization, facts.tower) for facts in found}
    return tuple(found) if len(alike) == 1 else ()


def _family_of(facts: ModelFacts) -> str:
    return facts.quantization.family if isinstance(facts.quantization, Quantization) else ""


def _same_family(one: str, other: str) -> bool:
    """Whether two names of a family are one, or one a coarser name of the other (qwen, qwen3)."""
    first, second = ("".join(filter(str.isalnum, name.lower())) for name in (one, other))
    return first.startswith(second) or second.startswith(first)


def file_bytes(entry: Known) -> Bytes | Unknown:
    """Bytes of the published weight files: stated, or what is loaded with all towers."""
    if entry.stored is not UNKNOWN:
        return entry.stored
    facts = _facts(entry)
    if facts.weights is UNKNOWN:
        return UNKNOWN
    return facts.weights + (0 if facts.tower is None else facts.tower.bytes)


def endpoint_types(raw: object) -> tuple[EndpointType, ...]:
    """The contracts of `raw` that this module serves, in its order; anything else is left out."""
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        return ()
    served = {kind.value: kind for kind in EndpointType}
    return tuple(dict.fromkeys(served[word] for word in raw if isinstance(word, str) and word in served))


def method_family(method: str) -> str:
    """The family that hardware minima go by, of a quantisation's name as catalogs and checkpoints write it."""
    word = method.lower()
    for family in ("mxfp4", "nvfp4", "fp8"):
        if family in word:
            return family
    if word in ("awq", "gptq", "awq_marlin", "gptq_marlin", "int4", "w4a16", "bitsandbytes"):
        return "int4"
    return "int8" if word in ("int8", "w8a8", "w8a16") else word


def table() -> tuple[Known, ...]:
    """The shipped table. Raises ValueError naming the entry when the file is wrong: that is a fault of ours."""
    return _read(TABLE)


@cache
def _read(path: Path) -> tuple[Known, ...]:
    raw = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    entries: dict[str, dict[str, Any]] = {}
    found: list[Known] = []
    for number, item in enumerate(raw["models"]):
        where = f"{path.name}: models[{number}]"
        repositories = item.get("repositories")
        if not repositories:
            raise ValueError(f"{where}: repositories: at least one is needed")
        base: dict[str, Any] = {}
        if like := item.get("like"):
            if like not in entries:
                raise ValueError(f"{where}: like: {like} does not stand above")
            base = entries[like]
        config = {**base.get("config", {}), **item.get("config", {})}
        config = {key: value for key, value in config.items() if value is not None}
        merged = {**{key: base[key] for key in ("parameters",) if key in base}, **item, "config": config}
        for repository in repositories:
            entries[repository] = merged
        found.append(
            Known(
                repositories=tuple(repositories),
                source=str(item.get("source") or f"https://huggingface.co/{repositories[0]}/blob/main/config.json"),
                published_parameters=merged.get("parameters", UNKNOWN),
                config=config,
                loaded=item.get("loaded", UNKNOWN),
                stored=item.get("stored", UNKNOWN),
                endpoint_types=endpoint_types(item.get("endpointTypes", base.get("endpointTypes"))),
            )
        )
    return tuple(found)


@cache
def _by_repository() -> dict[str, Known]:
    return {repository.lower(): entry for entry in table() for repository in entry.repositories}


@cache
def _facts_of(repository: str) -> ModelFacts:
    entry = _by_repository()[repository.lower()]
    facts = checkpoint.facts(
        entry.config, entry.loaded, name=repository, source=Source.KNOWN, origin=f"known models: {repository}"
    )
    return replace(facts, endpoint_types=entry.endpoint_types or facts.endpoint_types)


def _facts(entry: Known) -> ModelFacts:
    return _facts_of(entry.repositories[0])


def _mapping(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _text(raw: object) -> str | Unknown:
    return raw if isinstance(raw, str) and raw else UNKNOWN
