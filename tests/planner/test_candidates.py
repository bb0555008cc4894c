# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Class ∩ order ∩ inventory: what is offered, in which order, and why the rest is not."""

from __future__ import annotations

from typing import Any

import pytest
from planner import launches
from planner.candidates import Considered
from planner.plan import Planning
from planner.units import GI, MI

from tests import build
from tests.build import Object

NVIDIA = build.device_class("nvidia", 'device.driver == "gpu.nvidia.com"')
PARTS = build.device_class(
    "parts", 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig"'
)
BROKEN = build.device_class("broken", 'device.attributes["gpu.nvidia.com"].nosuch == "x"')


def considered(*world: Object | list[Object]) -> Considered:
    planning = Planning(build.snapshot(*world), launches.shipped())
    found = next(iter(planning.works.values())).considered
    assert found is not None
    return found


def offered(found: Considered) -> list[tuple[str, str, str, str]]:
    """Offers in rank order: device class, sharing, profile or product, bytes held in MiB."""
    return [
        (
            offer.way.device_class,
            offer.way.sharing.value,
            offer.example.profile or offer.example.product,
            f"{offer.held // MI}",
        )
        for offer in found.offers
        if isinstance(offer.held, int)
    ]


def lost(found: Considered) -> dict[str, set[str]]:
    """Lacks by device class."""
    told: dict[str, set[str]] = {}
    for way, miss in found.misses:
        told.setdefault(way.device_class if way else "", set()).add(miss.lack.word)
    return told


def test_offers_rise_with_what_a_replica_holds() -> None:
    found = considered(
        NVIDIA,
        build.service_class(),
        build.h100_mig(1),
        build.l40s_shared(1),
        build.needing("5Gi", "m"),
        build.order("o", model="m"),
    )
    assert offered(found) == [
        ("nvidia", "Shared", "NVIDIA L40S", "5120"),
        ("nvidia", "Dedicated", "1g.10gb", "9984"),
        ("nvidia", "Dedicated", "1g.20gb", "20096"),
        ("nvidia", "Dedicated", "2g.20gb", "20096"),
        ("nvidia", "Dedicated", "3g.40gb", "40448"),
        ("nvidia", "Dedicated", "4g.40gb", "40448"),
        ("nvidia", "Dedicated", "NVIDIA L40S", "46068"),
        ("nvidia", "Dedicated", "7g.80gb", "81008"),
        ("nvidia", "Dedicated", "NVIDIA H100 80GB HBM3", "81559"),
    ]
    assert found.tried == 20


NARROWINGS: dict[str, tuple[list[str] | None, list[str] | None, set[str]]] = {
    "nobody narrows: every device class": (None, None, {"nvidia", "parts"}),
    "the class narrows": (["parts"], None, {"parts"}),
    "the order narrows": (None, ["parts"], {"parts"}),
    "the order never widens": (["nvidia"], ["parts", "nvidia"], {"nvidia"}),
    "nothing in common": (["nvidia"], ["parts"], set()),
    "a device class that is not there": (None, ["parts", "absent"], {"parts"}),
}


@pytest.mark.parametrize("case", NARROWINGS.values(), ids=NARROWINGS)
def test_device_classes_are_those_of_class_and_order_that_exist(
    case: tuple[list[str] | None, list[str] | None, set[str]],
) -> None:
    of_class, of_order, want = case
    found = considered(
        NVIDIA, PARTS, build.service_class(device_classes=of_class), build.h100_mig(1), build.tiny(),
        build.order("o", device_classes=of_order),
    )  # fmt: skip
    assert {offer.way.device_class for offer in found.offers} == want


SHARES: dict[str, tuple[tuple[str | None, str | None] | None, str, int | str]] = {
    "no bounds: the smallest share": (None, "5Gi", 5 * GI),
    "the lower bound lifts it": (("8Gi", None), "5Gi", 8 * GI),
    "the upper bound lets it": ((None, "5Gi"), "5Gi", 5 * GI),
    "the upper bound forbids it": ((None, "5119Mi"), "5Gi", "ShareBound"),
    "larger than the card": (None, "46Gi", "TooSmall"),
}


@pytest.mark.parametrize("case", SHARES.values(), ids=SHARES)
def test_a_share_is_the_smallest_that_admits_the_model_within_bounds(
    case: tuple[tuple[str | None, str | None] | None, str, int | str],
) -> None:
    bounds, need, want = case
    found = considered(
        NVIDIA, build.service_class(sharing=["Shared"], share=bounds), build.l40s_shared(1),
        build.needing(need, "m"), build.order("o", model="m"),
    )  # fmt: skip
    if isinstance(want, str):
        assert found.offers == ()
        assert want in lost(found)["nvidia"]
    else:
        assert [offer.held for offer in found.offers] == [want]


def test_both_capacities_of_a_deckhouse_share_are_requested() -> None:
    found = considered(
        build.any_device(),
        build.service_class(sharing=["Shared"]),
        build.rtx3090_deckhouse(1),
        build.needing("6Gi", "m"),
        build.order("o", model="m"),
    )
    assert [dict(offer.capacity) for offer in found.offers] == [{"memory": "6Gi", "sharePercent": "25"}]


def test_an_expression_of_the_class_that_errs_blocks_every_way() -> None:
    found = considered(
        NVIDIA,
        build.service_class(selector='device.attributes["a.b"].c == 1'),
        build.l4_24g(1),
        build.tiny(),
        build.order("o"),
    )
    assert found.offers == ()
    assert found.blocked is not None
    assert found.blocked.detail.startswith('the expression `device.attributes["a.b"].c == 1` of service class standard')


def test_a_device_class_that_errs_bars_its_own_nodes_and_nothing_else() -> None:
    found = considered(
        NVIDIA, BROKEN, build.service_class(sharing=["Dedicated"]), build.l4_24g(1), build.tiny(), build.order("o")
    )
    assert {offer.way.device_class for offer in found.offers} == {"nvidia"}
    assert "SelectorError" in lost(found)["broken"]


def test_a_selector_that_names_an_identity_is_judged_device_by_device() -> None:
    one = build.device_class("one", 'device.attributes["gpu.nvidia.com"].uuid == "GPU-node-l4-2"')
    found = considered(one, build.service_class(sharing=["Dedicated"]), build.l4_24g(4), build.tiny(), build.order("o"))
    assert [offer.devices for offer in found.offers] == [1]
    assert [sorted(device.name for device in offer.wish.members or ()) for offer in found.offers] == [["gpu-2"]]


UNSUITABLE: dict[str, tuple[Any, str]] = {
    "bfloat16 only models on Turing": (build.order("o", model="google/gemma-3-4b-it", hub=True), "HardwareUnsuitable"),
    "FP8 on Turing": (
        build.order("o", model="RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", hub=True),
        "HardwareUnsuitable",
    ),
}


@pytest.mark.parametrize("case", UNSUITABLE.values(), ids=UNSUITABLE)
def test_hardware_that_cannot_run_the_model_is_no_offer(case: tuple[Object, str]) -> None:
    asked, word = case
    planning = Planning(build.snapshot(NVIDIA, build.service_class(), build.t4_16g(1), asked), launches.shipped())
    found = planning.result().orders[0]
    assert found.reason == word
    assert "compute capability" in found.message


def test_several_devices_only_where_one_is_too_small() -> None:
    model = "meta-llama/Llama-3.3-70B-Instruct"
    pair = build.service_class(sharing=["Dedicated"], count=4)
    on_h100 = considered(NVIDIA, pair, build.h100_80g(4), build.order("o", model=model, hub=True))
    assert [offer.wish.count for offer in on_h100.offers] == [2]
    small = considered(NVIDIA, pair, build.h100_80g(4), build.order("o", model="Qwen/Qwen3-8B", hub=True))
    assert [offer.wish.count for offer in small.offers] == [1]


def test_a_model_of_unknown_size_gets_a_whole_device_the_largest_first() -> None:
    found = considered(
        NVIDIA,
        build.service_class(sharing=["Dedicated"]),
        build.l4_24g(1),
        build.h100_80g(1),
        build.model("m", size=None),
        build.order("o", model="m"),
    )
    assert [offer.example.product for offer in found.offers] == ["NVIDIA H100 80GB HBM3", "NVIDIA L4"]
    assert all(not offer.sized for offer in found.offers)


def test_a_model_of_unknown_size_gets_the_largest_share_that_the_class_admits() -> None:
    found = considered(
        NVIDIA, build.service_class(sharing=["Shared"], share=(None, "12Gi")), build.l40s_shared(1),
        build.model("m", size=None), build.order("o", model="m"),
    )  # fmt: skip
    assert [offer.held for offer in found.offers] == [12 * GI]
