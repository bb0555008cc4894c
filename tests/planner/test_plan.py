# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The acceptance table of a planner (cases T1 … T12), with other numbers beside those it prints, and what stands."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from planner import launches, wire
from planner.model import ORDER_LABEL, Decision, EndpointType, PlacementType, Plan, SharingMode, Truth
from planner.plan import Planning, plan
from planner.questions import applied
from planner.units import MI

from tests import build
from tests.build import Object

PARTITIONS = (build.any_device(), build.service_class(sharing=["Dedicated"], placement=["Partition"]))


def cards(plan_: Plan) -> set[str]:
    """The cards that any replica sits on, by their place in the device's name ("gpu-0")."""
    return {"-".join(device.name.split("-")[:2]) for item in plan_.orders for device in item.devices}


def text(plan_: Plan) -> str:
    return json.dumps(wire.plan_json(plan_))


# T1

SEVEN = {
    "seven orders of 8 GiB fill one H100": (build.h100_mig, "8Gi", 7),
    "seven orders of 4.5 GiB fill one A100": (build.a100_mig, "4608Mi", 7),
    "four orders of 5.5 GiB fill one A30": (build.a30_mig, "5632Mi", 4),
    "three orders of 18 GiB fill one H100 but for a seventh": (build.h100_mig, "18Gi", 3),
    "two orders of 35 GiB fill one H100": (build.h100_mig, "35Gi", 2),
}


@pytest.mark.parametrize("case", SEVEN.values(), ids=SEVEN)
def test_small_orders_fill_one_card_and_leave_the_others_whole(
    case: tuple[Callable[[int], list[Object]], str, int],
) -> None:
    hardware, need, count = case
    found = plan(build.snapshot(PARTITIONS, hardware(4), build.needing(need, "m"), build.orders(count, model="m")))
    assert cards(found) == {"gpu-0"}
    assert all(item.decision is Decision.PLACED and len(item.seats) == 1 for item in found.orders)


def test_the_plan_does_not_depend_on_the_order_in_which_orders_were_submitted() -> None:
    names = [f"o{number}" for number in range(7)]
    texts = set()
    for seed in range(20):
        shuffled = random.Random(seed).sample(names, len(names))
        asked = [build.order(name, model="m", created=place) for place, name in enumerate(shuffled)]
        world = build.flat(PARTITIONS, build.h100_mig(4), build.needing("8Gi", "m"), asked)
        random.Random(seed).shuffle(world)
        texts.add(text(plan(build.snapshot(world))))
    assert len(texts) == 1


# T2

MIXES = {
    "35, 18 and 8 GiB on H100": (build.h100_mig, ("35Gi", "18Gi", "8Gi")),
    "19, 9 and 4.5 GiB on A100": (build.a100_mig, ("19Gi", "9Gi", "4608Mi")),
    "11, 5.5 and 5.5 GiB on A30": (build.a30_mig, ("11Gi", "5632Mi", "5630Mi")),
    "35, 8, 8 and 8 GiB on H100": (build.h100_mig, ("35Gi", "8Gi", "8189Mi", "8188Mi")),
}


@pytest.mark.parametrize("case", MIXES.values(), ids=MIXES)
def test_mixed_orders_share_one_card_in_every_order_of_arrival(
    case: tuple[Callable[[int], list[Object]], tuple[str, ...]],
) -> None:
    hardware, needs = case
    models = [build.needing(need) for need in needs]
    for arrival in itertools.permutations(models):
        asked = [
            build.order(f"o-{item['metadata']['name']}", model=item["metadata"]["name"], created=place)
            for place, item in enumerate(arrival)
        ]
        assert cards(plan(build.snapshot(PARTITIONS, hardware(4), models, asked))) == {"gpu-0"}


@pytest.mark.parametrize("needs", [("8Gi", "18Gi", "35Gi"), ("18Gi", "8Gi", "35Gi")])
def test_orders_that_come_one_after_another_share_one_card_too(needs: tuple[str, ...]) -> None:
    models = [build.needing(need) for need in needs]
    asked: list[Object] = []
    found = Plan()
    for place, item in enumerate(models):
        asked.append(build.order(f"o{place}", model=item["metadata"]["name"], created=place))
        standing = [made for done in found.orders for made in build.claims_of(done)]
        found = plan(build.snapshot(PARTITIONS, build.h100_mig(4), models, build.written(asked, found), standing))
    assert cards(found) == {"gpu-0"}


# T3

SMALLEST = {
    "5 GiB take a 1g.10gb, not the whole H100 that is listed first": (build.h100_mig, "5Gi", "gpu-0-mig-1g10gb"),
    "12 GiB take a 20gb, not a 40gb": (build.h100_mig, "12Gi", "gpu-0-mig-1g20gb"),
    "60 GiB take the largest partition, which is smaller than the card": (build.h100_mig, "60Gi", "gpu-0-mig-7g80gb"),
    "4.5 GiB take a 1g.5gb of an A100": (build.a100_mig, "4608Mi", "gpu-0-mig-1g5gb"),
}


@pytest.mark.parametrize("case", SMALLEST.values(), ids=SMALLEST)
def test_the_smallest_device_that_admits_the_model_is_taken(
    case: tuple[Callable[[int], list[Object]], str, str],
) -> None:
    hardware, need, device = case
    classes = (build.any_device(), build.service_class(sharing=["Dedicated"]))
    found = plan(build.snapshot(classes, hardware(1), build.needing(need, "m"), build.order("o", model="m")))
    assert build.outcome(found)["o"].startswith(device)


# T4

SHARES = {
    "24 shares of 2000 MiB on 46068 MiB": ("2000Mi", 24, 23, 2000, 68),
    "10 shares of 5000 MiB on 46068 MiB": ("5000Mi", 10, 9, 5000, 1068),
    "3 shares of 20000 MiB on 46068 MiB": ("20000Mi", 3, 2, 20000, 6068),
}


@pytest.mark.parametrize("case", SHARES.values(), ids=SHARES)
def test_the_share_that_no_longer_fits_says_what_it_lacks(case: tuple[str, int, int, int, int]) -> None:
    share, count, fit, needed, free = case
    found = plan(
        build.snapshot(
            build.any_device(),
            build.service_class(
                contracts=["Embeddings"], sharing=["Shared"], placement=["WholeDevice"], share=(share, share)
            ),
            build.l40s_shared(1),
            build.model("m", size=64 * MI, contracts=["Embeddings"]),
            build.orders(count, model="m"),
        )
    )
    placed = [item for item in found.orders if item.seats]
    refused = [item for item in found.orders if item.refusal]
    assert [item.key.name for item in placed] == [item["metadata"]["name"] for item in build.orders(count)][:fit]
    assert len(refused) == count - fit
    for item in refused:
        assert item.refusal is not None
        assert item.reason == "ResourceClaimExhausted"
        assert (item.refusal.needed, item.refusal.free, item.refusal.shortfall) == (
            needed * MI,
            free * MI,
            (needed - free) * MI,
        )
        assert item.refusal.fits_empty is True
        assert f"{needed} MiB needed on one device, {free} MiB free at most, {needed - free} MiB short" in item.message


# T5, T6: the arithmetic is in test_sizing; here is what it leads to


def test_a_small_model_does_not_book_a_card_of_24_gib() -> None:
    found = plan(
        build.snapshot(
            build.any_device(),
            build.service_class(),
            build.rtx3090_deckhouse(1),
            build.order("o", model="Qwen/Qwen3-1.7B", hub=True),
        )
    ).orders[0]
    assert found.share is not None and isinstance(found.share.memory, int)
    assert found.share.memory < 8 * 1024 * MI
    assert found.request is not None and set(found.request.capacity) == {"memory", "sharePercent"}


# T7

EMBEDDER = {
    "an embedder on a class for embeddings gets a small share": (["Embeddings"], True, EndpointType.EMBEDDINGS, False),
    "a bare hub model serves the class's first contract and says what it was made for": (
        ["Chat", "Embeddings"], True, EndpointType.CHAT, True,
    ),
    "a catalog model serves what the catalog says": (["Chat", "Embeddings"], False, EndpointType.EMBEDDINGS, False),
}  # fmt: skip


@pytest.mark.parametrize("case", EMBEDDER.values(), ids=EMBEDDER)
def test_contract_of_an_embedder(case: tuple[list[str], bool, EndpointType, bool]) -> None:
    contracts, hub, served, warned = case
    found = plan(
        build.snapshot(
            build.any_device(),
            build.service_class(contracts=contracts),
            build.l40s_shared(1),
            build.model("bge-m3", size=1_141_000_000, contracts=["Embeddings"]),
            build.order("e", model="BAAI/bge-m3" if hub else "bge-m3", hub=hub),
        )
    ).orders[0]
    assert found.decision is Decision.PLACED
    assert found.endpoint_type is served
    assert found.endpoint_type_guessed is hub
    assert ("made for Embeddings" in found.message) is warned
    assert found.share is not None and isinstance(found.share.memory, int) and found.share.memory < 4096 * MI


# T10

UNDECIDABLE = {
    "slices cannot be read": (None, ("ResourceSlice",), "ResourceSlice cannot be read now"),
    "claims cannot be read": (None, ("ResourceClaim",), "ResourceClaim cannot be read now"),
    "the class's expression names a missing attribute": (
        'device.attributes["gpu.nvidia.com"].nosuch == "x"', (), "no such key: nosuch",
    ),
    "the class's expression has a type error": ("device.driver > 1", (), "`device.driver > 1` of service class"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNDECIDABLE.values(), ids=UNDECIDABLE)
def test_what_cannot_be_judged_is_undecidable_and_never_exhausted(
    case: tuple[str | None, tuple[str, ...], str],
) -> None:
    selector, unreadable, words = case
    world = build.flat(
        build.any_device(),
        build.service_class("sound"),
        build.service_class("asked", selector=selector),
        build.l40s_shared(1),
        build.tiny(),
        build.order("fine", service_class="sound"),
        build.order("asks", service_class="asked"),
    )
    found = {item.key.name: item for item in plan(build.snapshot(world, unreadable=unreadable)).orders}
    assert found["asks"].decision is Decision.UNDECIDABLE
    assert found["asks"].reason == "PlacementUndecidable"
    assert words in found["asks"].message
    assert found["fine"].decision is (Decision.UNDECIDABLE if unreadable else Decision.PLACED)


def test_undecidable_names_the_expression_where_it_stands_the_device_and_the_error() -> None:
    expression = 'device.attributes["gpu.nvidia.com"].nosuch == "x"'
    found = plan(
        build.snapshot(
            build.device_class("gpu", expression),
            build.service_class(),
            build.l40s_shared(1),
            build.tiny(),
            build.order("o"),
        )
    ).orders[0]
    assert found.decision is Decision.UNDECIDABLE
    assert found.message == (
        f"The expression `{expression}` of device class gpu cannot be judged on device gpu.nvidia.com/node-l40s/gpu-0: "
        "no such key: nosuch."
    )


def test_nothing_that_serves_changes_while_nothing_can_be_judged() -> None:
    world = build.flat(
        build.any_device(),
        build.service_class(replicas=(1, 2)),
        build.l40s_shared(1),
        build.tiny(),
        build.orders(2),
    )
    first = plan(build.snapshot(world))
    standing = [made for item in first.orders for made in build.claims_of(item)]
    broken = [
        build.service_class(replicas=(1, 2), selector='device.attributes["x.y"].z == 1')
        if item["kind"] == "InferenceServiceClass"
        else item
        for item in build.written(world, first)
    ]
    second = plan(build.snapshot(broken, standing))
    assert wire.plan_json(second)["orders"] == wire.plan_json(first)["orders"]
    assert second.classes[0].validated.status is Truth.FALSE
    third = plan(build.snapshot(build.written(world, first), standing, unreadable=("ResourceSlice",)))
    assert wire.plan_json(third)["orders"] == wire.plan_json(first)["orders"]


# T11

TOGETHER = {
    "8 of 7": (8, build.h100_80g, "meta-llama/Llama-3.1-405B-Instruct-FP8"),
    "2 of 1": (2, build.h100_80g, "meta-llama/Llama-3.3-70B-Instruct"),
    "8 of 7 L4": (8, build.l4_24g, "meta-llama/Llama-3.3-70B-Instruct"),
}


@pytest.mark.parametrize("case", TOGETHER.values(), ids=TOGETHER)
def test_one_device_short_is_refused_with_the_count(case: tuple[int, Callable[[int], list[Object]], str]) -> None:
    count, hardware, model = case
    classes = (build.any_device(), build.service_class(sharing=["Dedicated"], placement=["WholeDevice"], count=count))
    asked = build.order("o", model=model, hub=True)
    short = plan(build.snapshot(classes, hardware(count - 1), asked)).orders[0]
    assert short.reason == "ResourceClaimExhausted"
    assert f"{count - 1} of {count} free" in short.message
    assert short.refusal is not None
    assert (short.refusal.needed, short.refusal.free, short.refusal.shortfall) == (count, count - 1, 1)
    whole = plan(build.snapshot(classes, hardware(count), asked)).orders[0]
    assert whole.accelerator_count == count
    assert len(whole.devices) == count


def test_devices_of_two_nodes_are_never_put_together() -> None:
    found = plan(
        build.snapshot(
            build.any_device(),
            build.service_class(sharing=["Dedicated"], placement=["WholeDevice"], count=2),
            build.h100_80g(1, "node-a"),
            build.h100_80g(1, "node-b"),
            build.order("o", model="meta-llama/Llama-3.3-70B-Instruct", hub=True),
        )
    ).orders[0]
    assert found.reason == "ResourceClaimExhausted"
    assert "1 of 2 free" in found.message


# T12


def test_a_volume_that_holds_the_order_to_a_full_node_is_the_reason() -> None:
    world = (
        build.any_device(),
        build.service_class(sharing=["Dedicated"]),
        build.l4_24g(1, "node-1"),
        build.l4_24g(1, "node-2"),
        build.volume("o", "node-1"),
        build.order("o", model="Qwen/Qwen3-1.7B", hub=True),
    )
    busy = build.claim("busy", [(build.NVIDIA, "node-1", "gpu-0")])
    planning = Planning(build.snapshot(*world, busy), launches.shipped())
    refused = planning.result().orders[0]
    assert refused.reason == "VolumePinned"
    assert "bound to node-1" in refused.message and "node-2/gpu-0" in refused.message
    assert [holder.name for holder in planning.blocking(build.key("o"))] == ["others/busy"]
    free = plan(build.snapshot(*world)).orders[0]
    assert free.nodes == ("node-1",)


# What stands


def standing_world(**about: Any) -> list[Object]:
    return build.flat(
        build.any_device(),
        build.service_class(replicas=(1, 2), **about),
        build.l40s_shared(2),
        build.h100_mig(2),
        build.needing("8Gi", "m"),
        build.orders(5, model="m"),
    )


@pytest.mark.parametrize("sharing", ["Shared", "Dedicated"])
def test_a_plan_that_is_applied_and_made_again_is_equal(sharing: str) -> None:
    world = standing_world(sharing=[sharing])
    snapshot = build.snapshot(world)
    first = plan(snapshot)
    assert text(plan(applied(snapshot, first))) == text(first)
    written = build.snapshot(build.written(world, first))
    assert text(plan(written)) == text(first)
    standing = [made for item in first.orders for made in build.claims_of(item)]
    held = plan(build.snapshot(build.written(world, first), standing))
    assert wire.plan_json(held)["orders"] == wire.plan_json(first)["orders"]
    assert all(seat.standing for item in held.orders for seat in item.seats)


def test_a_device_that_somebody_else_got_is_lost_and_the_replica_planned_elsewhere() -> None:
    world = build.flat(
        build.any_device(),
        build.service_class(sharing=["Dedicated"], placement=["WholeDevice"]),
        build.l4_24g(2),
        build.tiny(),
        build.order("o"),
    )
    first = plan(build.snapshot(world))
    assert build.outcome(first) == {"o": "gpu-0"}
    thief = build.claim("thief", [(build.NVIDIA, "node-l4", "gpu-0")])
    second = plan(build.snapshot(build.written(world, first), thief))
    assert build.outcome(second) == {"o": "gpu-1"}
    other = build.claim("other", [(build.NVIDIA, "node-l4", "gpu-1")])
    third = plan(build.snapshot(build.written(world, second), thief, other))
    assert build.outcome(third) == {"o": "ResourceClaimExhausted"}


def test_a_replica_that_the_scheduler_put_elsewhere_among_the_planned_devices_changes_nothing() -> None:
    world = build.flat(
        build.any_device(),
        build.service_class(
            sharing=["Shared"], replicas=(2, 2), share=("30000Mi", "30000Mi"), contracts=["Embeddings"]
        ),
        build.l40s_shared(2),
        build.model("m", size=64 * MI, contracts=["Embeddings"]),
        build.order("o", model="m"),
    )
    first = plan(build.snapshot(world))
    assert build.outcome(first) == {"o": "gpu-0 gpu-1"}
    one = build.claims_of(first.orders[0])[1]
    second = plan(build.snapshot(build.written(world, first), one))
    assert wire.plan_json(second)["orders"] == wire.plan_json(first)["orders"]
    assert [(seat.devices[0].name, seat.standing) for seat in second.orders[0].seats] == [
        ("gpu-0", False),
        ("gpu-1", True),
    ]


def test_an_edited_order_moves_when_its_device_class_changes_and_only_then() -> None:
    def world(generation: int, device_classes: list[str] | None) -> list[Object]:
        return build.flat(
            build.device_class("h100", 'device.attributes["gpu.nvidia.com"].productName.contains("H100")'),
            build.device_class("l4", 'device.attributes["gpu.nvidia.com"].productName.contains("L4")'),
            build.service_class(sharing=["Dedicated"]),
            build.h100_80g(1),
            build.l4_24g(1),
            build.tiny(),
            build.order("o", generation=generation, device_classes=device_classes),
        )

    first = plan(build.snapshot(world(1, ["h100"])))
    standing = build.claims_of(first.orders[0])
    widened = plan(build.snapshot(build.written(world(2, ["h100", "l4"]), first), standing))
    assert widened.orders[0].device_class == "h100"
    assert widened.orders[0].observed_generation == 2
    moved = plan(build.snapshot(build.written(world(2, ["l4"]), first), standing))
    assert moved.orders[0].device_class == "l4"


def test_a_narrowed_class_moves_nothing_that_serves_and_applies_where_nothing_does() -> None:
    def world(device_classes: list[str] | None) -> list[Object]:
        return build.flat(
            build.device_class("h100", 'device.attributes["gpu.nvidia.com"].productName.contains("H100")'),
            build.device_class("l4", 'device.attributes["gpu.nvidia.com"].productName.contains("L4")'),
            build.service_class(sharing=["Dedicated"], device_classes=device_classes),
            build.h100_80g(1),
            build.l4_24g(1),
            build.tiny(),
            build.order("o"),
        )

    first = plan(build.snapshot(world(["h100"])))
    serving = plan(build.snapshot(build.written(world(["l4"]), first), build.claims_of(first.orders[0])))
    assert wire.plan_json(serving)["orders"] == wire.plan_json(first)["orders"]
    pending = plan(build.snapshot(build.written(world(["l4"]), first)))
    assert pending.orders[0].device_class == "l4"


def test_a_slice_that_vanished_while_the_claim_stands_is_not_a_device_gone() -> None:
    world = build.flat(build.any_device(), build.service_class(), build.l40s_shared(1), build.tiny(), build.order("o"))
    first = plan(build.snapshot(world))
    claims = build.claims_of(first.orders[0])
    slices_gone = [item for item in build.written(world, first) if item["kind"] != "ResourceSlice"]
    found = plan(
        wire.snapshot(
            wire.by_kind(wire.Document(raw=item, source="x") for item in (*slices_gone, *claims)),
            kubernetes=(1, 37),
            now="",
            release="",
        )
    )
    assert wire.plan_json(found)["orders"] == wire.plan_json(first)["orders"]


def test_a_device_tainted_noexecute_is_lost_though_its_claim_still_holds_it() -> None:
    world = build.flat(
        build.any_device(),
        build.service_class(sharing=["Dedicated"], placement=["WholeDevice"]),
        build.l4_24g(2),
        build.tiny(),
        build.order("o"),
    )
    first = plan(build.snapshot(world))
    claims = build.claims_of(first.orders[0])
    sick = build.tainted(build.written(world, first), "gpu-0", "NoExecute")
    assert build.outcome(plan(build.snapshot(sick, claims))) == {"o": "gpu-1"}
    tired = build.tainted(build.written(world, first), "gpu-0", "NoSchedule")
    assert build.outcome(plan(build.snapshot(tired, claims))) == {"o": "gpu-0"}


def test_a_cordoned_node_gets_nothing_new() -> None:
    nodes = [{**item, "spec": {"unschedulable": True}} if item["kind"] == "Node" else item for item in build.l4_24g(1)]
    found = plan(
        build.snapshot(
            build.any_device(), build.service_class(sharing=["Dedicated"]), nodes, build.tiny(), build.order("o")
        )
    ).orders[0]
    assert found.reason == "ResourceClaimExhausted"
    assert "nodes that take no pods: node-l4" in found.message


# Shares and whole devices never mix


def test_dedicated_and_shared_orders_never_sit_on_one_card() -> None:
    found = plan(
        build.snapshot(
            build.any_device(),
            build.service_class("alone", sharing=["Dedicated"], placement=["WholeDevice"]),
            build.service_class("together", sharing=["Shared"], placement=["WholeDevice"]),
            build.rtx3090_deckhouse(2),
            build.tiny(),
            build.order("a", service_class="together"),
            build.order("b", service_class="alone", created=1),
            build.order("c", service_class="together", created=2),
        )
    )
    assert build.outcome(found) == {"a": "gpu-0000-01-00-0", "b": "gpu-0000-00-00-0", "c": "gpu-0000-01-00-0"} or (
        build.outcome(found) == {"a": "gpu-0000-00-00-0", "b": "gpu-0000-01-00-0", "c": "gpu-0000-00-00-0"}
    )
    alone = next(item for item in found.orders if item.key.name == "b")
    assert alone.request is not None
    assert dict(alone.request.capacity) == {"memory": "24Gi", "sharePercent": "100"}


def test_a_shared_card_is_not_cut_and_a_cut_card_is_not_shared() -> None:
    found = plan(
        build.snapshot(
            build.any_device(),
            build.service_class("parts", sharing=["Dedicated"], placement=["Partition"]),
            build.service_class("together", sharing=["Shared"], placement=["WholeDevice"]),
            build.a30_deckhouse(1),
            build.tiny(),
            build.order("a", service_class="parts"),
            build.order("b", service_class="together", created=1),
        )
    )
    told = {item.key.name: item for item in found.orders}
    assert sorted(item.decision.value for item in found.orders) == ["Placed", "Refused"]
    refused = next(item for item in told.values() if item.refusal)
    assert "blocked by another part of their card" in refused.message


def test_one_card_has_one_sharing_strategy() -> None:
    def strategy(name: str, kind: str) -> Object:
        config = {
            "opaque": {
                "driver": build.DECKHOUSE,
                "parameters": {
                    "apiVersion": "resource.gpu.deckhouse.io/v1alpha1",
                    "kind": "GpuConfig",
                    "sharing": {"strategy": kind},
                },
            }
        }
        return build.device_class(name, f'device.driver == "{build.DECKHOUSE}"', [config])

    found = plan(
        build.snapshot(
            strategy("mps", "MPS"),
            strategy("slices", "TimeSlicing"),
            build.service_class("a", sharing=["Shared"], device_classes=["mps"]),
            build.service_class("b", sharing=["Shared"], device_classes=["slices"]),
            build.rtx3090_deckhouse(1),
            build.tiny(),
            build.order("one", service_class="a"),
            build.order("two", service_class="b", created=1),
        )
    )
    told = {item.key.name: item for item in found.orders}
    assert told["one"].decision is Decision.PLACED
    assert told["two"].reason == "ResourceClaimExhausted"
    assert "another strategy: MPS" in told["two"].message


def test_what_a_claim_asks_pins_the_planned_devices() -> None:
    found = plan(
        build.snapshot(
            build.any_device(),
            build.service_class(sharing=["Dedicated"], replicas=(2, 2)),
            build.l4_24g(3),
            build.tiny(),
            build.order("o"),
        )
    ).orders[0]
    assert found.placement is PlacementType.WHOLE_DEVICE and found.sharing is SharingMode.DEDICATED
    assert found.request is not None
    guard = 'device.driver == "gpu.nvidia.com" && has(device.attributes["gpu.nvidia.com"].uuid) && '
    field = 'device.attributes["gpu.nvidia.com"].uuid == '
    assert found.request.selectors == (f'({guard}{field}"GPU-node-l4-0") || ({guard}{field}"GPU-node-l4-1")',)
    assert found.request.capacity == {}


def test_orders_that_fit_together_are_packed_even_when_others_do_not_fit() -> None:
    """The oldest first would cut the small ones across the card; packed, the same orders leave room for one more."""
    needs = {"a": "8Gi", "b": "35Gi", "c": "35Gi", "d": "60Gi"}
    world = build.flat(
        PARTITIONS,
        build.h100_mig(1),
        [build.needing(need, name) for name, need in needs.items()],
        [build.order(name, model=name, created=place) for place, name in enumerate(needs)],
    )
    found = plan(build.snapshot(world))
    assert {item.key.name for item in found.orders if item.seats} == {"a", "b"}
    served = {item.key.name: item.devices[0].name for item in found.orders if item.seats}
    assert served["b"].startswith("gpu-0-mig-3g40gb")
    refused = {item.key.name: item.refusal.fits_empty for item in found.orders if item.refusal}
    assert refused == {"c": True, "d": True}


def test_a_claim_that_somebody_else_wrote_under_our_label_disturbs_nobody() -> None:
    world = build.flat(
        build.any_device(),
        build.service_class(replicas=(1, 2)),
        build.l4_24g(2),
        build.l40s_shared(1),
        build.tiny(),
        build.order("o"),
        build.order("p", created=1),
    )
    forged = build.claim(
        "forged",
        [(build.NVIDIA, "node-l4", "gpu-0"), (build.NVIDIA, "node-l40s", "gpu-0")],
        namespace="team-a",
        labels={ORDER_LABEL: "o"},
    )
    result = forged["status"]["allocation"]["devices"]["results"][1]
    result.update(shareID="x", consumedCapacity={"memory": "40000Mi"})
    found = plan(build.snapshot(world, forged))
    assert {item.key.name: item.decision for item in found.orders} == {"o": Decision.PLACED, "p": Decision.PLACED}


def test_an_order_that_lost_all_it_was_planned_on_may_go_to_another_device_class() -> None:
    world = build.flat(
        build.device_class("h100", 'device.attributes["gpu.nvidia.com"].productName.contains("H100")'),
        build.device_class("l4", 'device.attributes["gpu.nvidia.com"].productName.contains("L4")'),
        build.service_class(sharing=["Dedicated"]),
        build.h100_80g(1),
        build.l4_24g(1),
        build.tiny(),
        build.order("o"),
    )
    first = plan(build.snapshot(world))
    assert first.orders[0].device_class == "l4"
    thief = build.claim("thief", [(build.NVIDIA, "node-l4", "gpu-0")])
    second = plan(build.snapshot(build.written(world, first), thief))
    assert second.orders[0].device_class == "h100"


def test_a_claim_that_cannot_be_read_may_hold_anything_so_nothing_is_placed() -> None:
    world = build.flat(build.any_device(), build.service_class(), build.l40s_shared(1), build.tiny(), build.order("o"))
    spoilt = build.claim("spoilt", [(build.NVIDIA, "node-l40s", "gpu-0")])
    del spoilt["status"]["allocation"]["devices"]["results"][0]["driver"]
    found = plan(
        wire.snapshot(
            wire.by_kind(wire.Document(raw=item, source="x") for item in (*world, spoilt)),
            kubernetes=(1, 37),
            now="",
            release="",
            strict=False,
        )
    )
    assert found.orders[0].decision is Decision.UNDECIDABLE
    assert any("ResourceClaim spoilt" in problem for problem in found.capacity.problems)
