# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What runs where: floors refuse with numbers, the unknown never does."""

from pathlib import Path
from typing import Any

import pytest
from planner import hardware, modelfacts, recipe
from planner.architecture import ModelFacts
from planner.model import EndpointType, LaunchStrategy
from planner.units import UNKNOWN

RECIPES = recipe.load(Path(__file__).parents[2] / "images" / "request-runtime" / "recipes")


def model(repository: str) -> ModelFacts:
    facts = modelfacts.known(repository)
    assert facts is not None, repository
    return facts


def verdict(facts: ModelFacts, **device: Any) -> str | None:
    one = recipe.choose(RECIPES, facts, contract=facts.endpoint_types[0], strategy=LaunchStrategy.THROUGHPUT)
    found = hardware.unsuitable(facts, one, **device)
    return None if found is None else str(found)


NVFP4 = modelfacts.from_config(
    {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16",
        "hidden_size": 4096, "num_hidden_layers": 36,
        "num_attention_heads": 32, "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    }
)  # fmt: skip

SUITABLE = {
    "bfloat16 on an A100": (model("Qwen/Qwen3-8B"), (8, 0)),
    "a bfloat16 checkpoint runs in float16 on a T4": (model("Qwen/Qwen3-8B"), (7, 5)),
    "FP8 weights on an RTX 3090": (model("Qwen/Qwen3-8B-FP8"), (8, 6)),
    "FP8 weights on an H100": (model("Qwen/Qwen3-8B-FP8"), (9, 0)),
    "MXFP4 on an A100": (model("openai/gpt-oss-20b"), (8, 0)),
    "NVFP4 on an H100": (NVFP4, (9, 0)),
    "AWQ on a T4": (model("Qwen/Qwen3-8B-AWQ"), (7, 5)),
    "Gemma 3 on an A100": (model("google/gemma-3-4b-it"), (8, 0)),
}


@pytest.mark.parametrize(("facts", "capability"), SUITABLE.values(), ids=SUITABLE)
def test_a_device_that_can_run_it_is_not_refused(facts: ModelFacts, capability: tuple[int, int]) -> None:
    assert verdict(facts, compute_capability=capability, driver_version=(580, 82, 7), vendor="nvidia") is None


UNSUITABLE = {
    "nothing runs on Volta": (
        model("Qwen/Qwen3-8B"),
        (7, 0),
        "the runtime image needs compute capability 7.5 or newer, the device has compute capability 7.0",
    ),
    "FP8 on a T4": (
        model("Qwen/Qwen3-8B-FP8"),
        (7, 5),
        "fp8 quantisation needs compute capability 8.0 or newer, the device has compute capability 7.5",
    ),
    "NVFP4 on a T4": (
        NVFP4,
        (7, 5),
        "modelopt quantisation needs compute capability 8.0 or newer, the device has compute capability 7.5",
    ),
    "MXFP4 on a T4": (
        model("openai/gpt-oss-20b"),
        (7, 5),
        "mxfp4 quantisation needs compute capability 8.0 or newer, the device has compute capability 7.5",
    ),
    "Gemma 3, which must not run in float16, on a T4": (
        model("google/gemma-3-4b-it"),
        (7, 5),
        "the model, which must not run in float16, needs compute capability 8.0 or newer, "
        "the device has compute capability 7.5",
    ),
}


@pytest.mark.parametrize(("facts", "capability", "want"), UNSUITABLE.values(), ids=UNSUITABLE)
def test_a_device_that_cannot_run_it_says_what_it_lacks(
    facts: ModelFacts, capability: tuple[int, int], want: str
) -> None:
    assert verdict(facts, compute_capability=capability) == want


def test_an_old_driver_cannot_run_the_image() -> None:
    facts = model("Qwen/Qwen3-8B")
    want = "the runtime image (CUDA 13) needs driver 580 or newer, the device has driver 570.195.3"
    assert verdict(facts, driver_version=(570, 195, 3)) == want
    assert verdict(facts, driver_version=(580,)) is None


def test_another_vendors_device_cannot_run_the_image() -> None:
    facts = model("Qwen/Qwen3-8B")
    assert verdict(facts, vendor="AMD") == "the runtime image needs a device of nvidia, the device has vendor AMD"
    assert verdict(facts, vendor="NVIDIA") is None


def test_the_unknown_is_never_unsuitable() -> None:
    for entry in modelfacts.table():
        assert verdict(model(entry.repositories[0])) is None
    assert verdict(model("google/gemma-3-4b-it"), compute_capability=UNKNOWN, vendor=UNKNOWN) is None


@pytest.mark.parametrize(
    ("repository", "capability", "want"),
    [
        ("Qwen/Qwen3-8B", (9, 0), "auto"),
        ("Qwen/Qwen3-8B", (7, 5), "float16"),
        ("Qwen/Qwen3-8B-AWQ", (7, 5), "auto"),
        ("google/gemma-3-4b-it", (7, 5), "bfloat16"),
        ("Qwen/Qwen3-8B", UNKNOWN, "auto"),
    ],
)
def test_the_data_type_is_named_where_auto_would_fail(repository: str, capability: Any, want: str) -> None:
    facts = model(repository)
    one = recipe.choose(RECIPES, facts, contract=EndpointType.CHAT, strategy=LaunchStrategy.THROUGHPUT)
    assert hardware.dtype_on(facts, one, capability) == want
