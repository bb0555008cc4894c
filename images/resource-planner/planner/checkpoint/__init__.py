# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A checkpoint's own `config.json` becomes model facts, by what its keys say and not by the model's name.

Families differ in how they spell a fact, not in what it means; each reader lists the spellings. A model type is asked
for only where published files leave a fact to the class default (`fields.DEFAULTS`) or where two families give one key
two meanings; each such place says so. What no key states becomes `UNKNOWN`, never a guess.

`fields` reads single keys, `purpose` says what the model is for, `context` how long a request may be, `layers` what
each layer keeps, `parameters` how many weights there are, `towers` what sees and hears beside the language model,
`quantization` how many bytes a weight takes; `facts` is the way in.

Held by tests: the counted parameters agree with the published counts of the shipped table, and key/value bytes with
what the engine itself answered.
"""

from collections.abc import Mapping
from typing import Final

from planner.architecture import ModelFacts, Source
from planner.checkpoint import context, fields, layers, parameters, purpose, quantization, towers
from planner.checkpoint.fields import Config
from planner.units import UNKNOWN, Bytes, Unknown

FLOAT16_FORBIDDEN: Final = frozenset({"gemma2", "gemma3", "gemma3_text", "plamo2", "glm4"})
"""Types that the engine refuses in float16 for numerical instability (vLLM `config/model.py`)."""


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
    text = fields.body(config)
    weighed = parameters.counted(text, config)
    dtype = fields.dtype(text, config)
    method = quantization.stated(config, text)
    tower = towers.tower(config, text)
    loaded = weights
    replicated = kv_projection = 0
    if not isinstance(weighed, Unknown):
        untouched = quantization.untouched(config, text)
        if loaded is UNKNOWN:
            loaded = quantization.loaded_bytes(weighed, method, dtype, untouched)
        width = quantization.linear_bytes(method, dtype, "attention" in untouched)
        replicated = int(weighed.replicated * width)
        kv_projection = int(weighed.kv_projection * width)
    if loaded is not UNKNOWN and tower is not None:
        loaded = max(0, loaded - tower.bytes)
    longest = context.max_context(text, config)
    return ModelFacts(
        name=name or str(config.get("_name_or_path") or ""),
        source=source,
        origin=origin or "config.json of the checkpoint",
        architecture=fields.architecture(config),
        family=str(text["model_type"]) if text.get("model_type") else UNKNOWN,
        layers=layers.kept(text, config),
        hidden=fields.count(text, "hidden_size", "d_model", "n_embd"),
        intermediate=fields.active_width(text),
        vocabulary=fields.count(text, "vocab_size", "padded_vocab_size"),
        attention_heads=fields.heads(text),
        kv_heads=fields.kv_heads(text),
        linear_heads=layers.linear_heads(text),
        max_context=longest,
        dtype=dtype,
        quantization=method,
        weights=loaded,
        replicated=replicated,
        kv_projection=kv_projection,
        tower=tower,
        rope_cache=context.rope_cache(text, longest, dtype),
        experts=fields.experts(text),
        encoder_only=purpose.encoder_only(text, config),
        speech=purpose.is_speech(text),
        endpoint_types=purpose.endpoint_types(text, config),
        checkpoint_format="Safetensors",
        float16_forbidden=str(config.get("model_type")) in FLOAT16_FORBIDDEN
        or str(text.get("model_type")) in FLOAT16_FORBIDDEN,
        parameters=weighed,
    )
