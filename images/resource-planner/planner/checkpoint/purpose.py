# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What a model is for: whether it generates, encodes or listens, and the contracts it is served by."""

from typing import Final

from planner.checkpoint import fields
from planner.checkpoint.fields import Config
from planner.model import EndpointType
from planner.units import UNKNOWN, Unknown

_ENCODERS: Final = ("Bert", "Roberta", "Electra", "Deberta", "NewModel", "NomicBert", "GteModel", "NewForSequence")


def encoder_only(text: Config, config: Config) -> bool | Unknown:
    """Whether the model only encodes and keeps nothing per request."""
    architecture = fields.architecture(config)
    if is_speech(text) or text.get("is_encoder_decoder"):
        return False
    if text.get("is_decoder") is True:
        return False
    if text.get("use_bidirectional_attention") is True or text.get("is_causal") is False:
        return True
    if architecture is not UNKNOWN and any(word in architecture for word in _ENCODERS):
        return True
    if any(key in text for key in ("type_vocab_size", "global_attn_every_n_layers")):
        return True
    return UNKNOWN if fields.layer_count(text) is UNKNOWN else False


def is_speech(text: Config) -> bool:
    """Whether the model turns speech into text: an encoder-decoder that hears."""
    return (
        bool(text.get("is_encoder_decoder"))
        and fields.count(text, "max_source_positions", "num_mel_bins") is not UNKNOWN
    )


def is_headless(text: Config, config: Config) -> bool:
    """Whether the engine loads no output head: encoders, embedders and classifiers."""
    architecture = fields.architecture(config)
    return encoder_only(text, config) is True or (
        architecture is not UNKNOWN and (architecture.endswith(("Model", "ForSequenceClassification")))
    )


def endpoint_types(text: Config, config: Config) -> tuple[EndpointType, ...]:
    """The contracts that the model's class serves; empty: the file does not tell."""
    architecture = fields.architecture(config)
    if architecture is UNKNOWN:
        return ()
    if is_speech(text):
        return (EndpointType.SPEECH_TO_TEXT,)
    if architecture.endswith("ForSequenceClassification"):
        return (EndpointType.RERANK,)
    if encoder_only(text, config) is True or architecture.endswith("Model"):
        return (EndpointType.EMBEDDINGS,)
    if "ForCausalLM" in architecture or "ForConditionalGeneration" in architecture or "LMHead" in architecture:
        return (EndpointType.CHAT,)
    return ()
