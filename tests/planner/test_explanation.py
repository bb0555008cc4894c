# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Every refusal: its reason, its numbers, one sentence that holds them; alternatives; blocking sets."""

from __future__ import annotations

import re
from typing import Any

import pytest
from planner import launches
from planner.model import CatalogState, Decision, OrderPlan
from planner.plan import Planning, plan
from planner.units import MI

from tests import build
from tests.build import Object

DEVICES = build.any_device()
WHOLE = build.service_class(sharing=["Dedicated"], placement=["WholeDevice"])
L4 = build.l4_24g(1)
BUSY = build.claim("busy", [(build.NVIDIA, "node-l4", "gpu-0")])


def only(*world: Any, **about: Any) -> OrderPlan:
    found = plan(build.snapshot(*world, **about)).orders
    assert len(found) == 1
    return found[0]


SECRETS = [
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "empty", "namespace": "team-a"},
        "data": {"other": "eA=="},
    }
]

NO_PLACEMENT = (
    "Service class {} and the order admit no placement that could hold the model; {} of device class gpu could."
)
SHARE = "a share of a whole device"

STAGES: dict[str, tuple[list[Any], str, str]] = {
    "no such class": (
        [build.order("o", service_class="nobody")],
        "ClassNotFound",
        "Service class nobody does not exist.",
    ),
    "a namespace that the class does not admit": (
        [build.service_class("closed", namespaces=["team-b"]), build.order("o", service_class="closed")],
        "NamespaceNotAllowed",
        "Service class closed does not admit namespace team-a.",
    ),
    "a class whose device classes are all missing": (
        [build.service_class("lost", device_classes=["gone"]), build.order("o", service_class="lost")],
        "ClassNotReady",
        "Service class lost cannot be used now: none of its device classes exists (gone).",
    ),
    "no such model": ([build.order("o", model="gone")], "ModelNotFound", "ClusterModel gone does not exist."),
    "a model that is not published yet": (
        [build.model("slow", size=None, phase="Publishing"), build.order("o", model="slow")],
        "ModelNotReady",
        "ClusterModel slow is Publishing.",
    ),
    "no contract in common": (
        [build.model("emb", size=1, contracts=["Embeddings"]), build.order("o", model="emb")],
        "EndpointTypeNotAllowed",
        "Service class standard allows Chat; ClusterModel emb offers Embeddings.",
    ),
    "a checkpoint in a format that is not served": (
        [build.model("gguf", size=1, form="GGUF"), build.order("o", model="gguf")],
        "ModelFormatUnsupported",
        "The runtime does not serve checkpoints in GGUF.",
    ),
    "larger than the class allows": (
        [
            build.service_class("bounded", largest="1Gi"),
            build.model("big", size=3 << 30),
            build.order("o", model="big", service_class="bounded"),
        ],
        "ModelTooLarge",
        "The model has 3.0 GiB of weights, service class bounded allows 1.0 GiB: 2.0 GiB too much.",
    ),
    "of a size that nobody knows where the class bounds it": (
        [
            build.service_class("bounded", largest="1Gi"),
            build.model("dark", size=None),
            build.order("o", model="dark", service_class="bounded"),
        ],
        "ModelSizeUnknown",
        "Service class bounded bounds models at 1.0 GiB and nobody knows how many bytes this one has.",
    ),
    "a secret that is not there": (
        [SECRETS, build.order("o", model="Qwen/Qwen3-1.7B", hub=True, secret="gone")],
        "CredentialsMissing",
        "Secret gone does not exist in namespace team-a.",
    ),
    "a secret without a token": (
        [SECRETS, build.order("o", model="Qwen/Qwen3-1.7B", hub=True, secret="empty")],
        "CredentialsMissing",
        "Secret empty has none of the keys token, HF_TOKEN, HUGGING_FACE_HUB_TOKEN in namespace team-a.",
    ),
    "only partitions allowed where there is none": (
        [
            build.service_class("cut", sharing=["Dedicated"], placement=["Partition"]),
            build.order("o", service_class="cut"),
        ],
        "PlacementNotPermitted",
        NO_PLACEMENT.format("cut", SHARE).replace("model;", "model; no admitted device offers a partition;"),
    ),
    "class and order have nothing in common": (
        [
            build.service_class("one", device_classes=["gpu"]),
            build.order("o", service_class="one", device_classes=["other"]),
        ],
        "PlacementNotPermitted",
        NO_PLACEMENT.format("one", SHARE),
    ),
    "no device matches": (
        [build.device_class("amd", 'device.driver == "gpu.amd.com"'), build.order("o", device_classes=["amd"])],
        "PlacementNotPermitted",
        NO_PLACEMENT.format("standard", SHARE),
    ),
}


@pytest.mark.parametrize("case", STAGES.values(), ids=STAGES)
def test_the_first_stage_that_fails_gives_the_reason(case: tuple[list[Any], str, str]) -> None:
    world, reason, message = case
    found = only(DEVICES, build.service_class(), build.l40s_shared(1), build.tiny(), world)
    assert (found.decision, found.reason, found.message) == (Decision.REFUSED, reason, message)


@pytest.mark.parametrize(
    ("state", "words"), [(CatalogState.DISABLED, "switched off"), (CatalogState.ABSENT, "not installed")]
)
def test_without_a_catalog_only_hub_models_are_served(state: CatalogState, words: str) -> None:
    world = (DEVICES, build.service_class(), build.l40s_shared(1))
    refused = only(*world, build.order("o"), catalog=state)
    assert refused.reason == "CatalogDisabled"
    assert words in refused.message
    assert only(*world, build.order("o", model="Qwen/Qwen3-1.7B", hub=True), catalog=state).decision is Decision.PLACED


def test_secrets_that_nobody_may_read_are_not_missed() -> None:
    asked = build.order("o", model="Qwen/Qwen3-1.7B", hub=True, secret="gone")
    assert only(DEVICES, build.service_class(), build.l40s_shared(1), asked).decision is Decision.PLACED


EXHAUSTED: dict[str, tuple[list[Any], str, tuple[int, int], bool]] = {
    "the only device is held": (
        [WHOLE, L4, BUSY, build.needing("8Gi", "m")],
        "8192 MiB needed on one device, 0 MiB free at most, 8192 MiB short (closest: gpu.nvidia.com/node-l4/gpu-0). "
        "1 device of device class gpu tried: 1 device is held. It would fit if nobody used them.",
        (8192, 0),
        True,
    ),
    "the only device is tainted": (
        [WHOLE, build.tainted(L4, "gpu-0"), build.needing("8Gi", "m")],
        "8192 MiB needed on one device, 0 MiB free at most, 8192 MiB short (closest: gpu.nvidia.com/node-l4/gpu-0). "
        "1 device of device class gpu tried: 1 device is tainted: example.com/bad. "
        "It would not fit even if nobody used them.",
        (8192, 0),
        False,
    ),
}


@pytest.mark.parametrize("case", EXHAUSTED.values(), ids=EXHAUSTED)
def test_exhausted_says_needed_free_and_shortfall(case: tuple[list[Any], str, tuple[int, int], bool]) -> None:
    world, message, numbers, fits_empty = case
    found = only(DEVICES, world, build.order("o", model="m"))
    assert (found.reason, found.message) == ("ResourceClaimExhausted", message)
    assert found.refusal is not None
    assert isinstance(found.refusal.needed, int) and isinstance(found.refusal.free, int)
    assert (-(-found.refusal.needed // MI), found.refusal.free // MI) == numbers
    assert found.refusal.fits_empty is fits_empty


def test_a_model_that_no_device_holds_even_when_empty_says_so() -> None:
    found = only(DEVICES, WHOLE, L4, build.needing("40Gi", "m"), build.order("o", model="m"))
    assert found.reason == "ResourceClaimExhausted"
    told = re.match(r"(\d+) MiB needed on one device, (\d+) MiB offered at most, (\d+) MiB short ", found.message)
    assert told is not None
    needed, free, short = (int(number) for number in told.groups())
    assert needed == 40960 and 22000 < free <= 23034 and short == needed - free
    assert found.message.endswith("1 device tried; it would not fit even if nobody used them.")


def test_undecidable_outranks_exhausted() -> None:
    broken = build.device_class("broken", 'device.attributes["gpu.nvidia.com"].nosuch == "x"')
    world = (DEVICES, broken, WHOLE, L4, build.tiny(), build.order("o"))
    assert only(*world).device_class == "gpu"  # a pod of this class never meets the other class's expression
    assert only(*world, BUSY).reason == "PlacementUndecidable"


def test_a_node_without_memory_for_the_pod_is_its_own_reason() -> None:
    nodes = build.l4_24g(1)
    nodes[0] = build.node("node-l4", cpu="64", memory="2Gi")
    found = only(DEVICES, WHOLE, nodes, build.tiny(), build.order("o"))
    assert found.reason == "HostResourcesExhausted"
    assert found.message.startswith("Devices are free, their nodes are not: ")
    assert "of host memory needed, 2048 MiB free" in found.message and "on node node-l4" in found.message


def test_pods_of_others_take_the_nodes_memory() -> None:
    nodes = build.l4_24g(1)
    nodes[0] = build.node("node-l4", cpu="64", memory="64Gi")
    hungry = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hungry", "namespace": "x"},
        "spec": {"nodeName": "node-l4", "containers": [{"resources": {"requests": {"memory": "62Gi"}}}]},
        "status": {"phase": "Running"},
    }  # fmt: skip
    world = (DEVICES, WHOLE, nodes, build.tiny(), build.order("o"))
    assert only(*world).decision is Decision.PLACED
    assert only(*world, hungry).reason == "HostResourcesExhausted"


def test_our_own_replicas_share_the_nodes_memory() -> None:
    nodes = build.l4_24g(4)
    nodes[0] = build.node("node-l4", cpu="64", memory="24Gi")
    found = plan(build.snapshot(DEVICES, WHOLE, nodes, build.tiny(), build.orders(4)))
    host = next(item.host for item in found.orders if item.host is not None)
    fits = (24 << 30) // host.memory
    assert [item.decision is Decision.PLACED for item in found.orders] == [place < fits for place in range(4)]
    assert {item.reason for item in found.orders if item.refusal} == {"HostResourcesExhausted"}


def test_a_node_that_states_no_memory_is_not_judged() -> None:
    assert only(DEVICES, WHOLE, L4, build.tiny(), build.order("o")).decision is Decision.PLACED


def test_a_pool_that_is_not_whole_is_told_as_a_problem() -> None:
    half = [
        {**item, "spec": {**item["spec"], "pool": {**item["spec"]["pool"], "resourceSliceCount": 2}}}
        if item["kind"] == "ResourceSlice"
        else item
        for item in L4
    ]
    found = plan(build.snapshot(DEVICES, WHOLE, half, build.tiny(), build.order("o")))
    assert found.orders[0].reason == "ResourceClaimExhausted"
    assert found.capacity.problems == (
        "gpu.nvidia.com pool node-l4: 1 of 2 slices of generation 1 are there (IncompletePool)",
    )
    assert "1 pool gives nothing now" in found.orders[0].message


def test_alternatives_say_what_else_was_considered_and_why_it_lost() -> None:
    found = only(
        build.device_class("h100", 'device.attributes["gpu.nvidia.com"].productName.contains("H100")'),
        build.device_class("l40s", 'device.attributes["gpu.nvidia.com"].productName.contains("L40S")'),
        build.service_class(),
        build.h100_80g(1),
        build.l40s_shared(1),
        build.needing("5Gi", "m"),
        build.order("o", model="m"),
    )
    assert (found.device_class, found.share is not None) == ("l40s", True)
    assert [(item.device_class, item.sharing.value, item.reason, item.message) for item in found.alternatives] == [
        ("h100", "Dedicated", "NotSmallest", "It would take 79.6 GiB of a device, the chosen way 5.0 GiB."),
        ("l40s", "Dedicated", "NotSmallest", "It would take 45.0 GiB of a device, the chosen way 5.0 GiB."),
    ]


BLOCKING: dict[str, tuple[list[Any], list[str]]] = {
    "one holder of the only device": ([WHOLE, L4, BUSY], ["others/busy"]),
    "any one of two devices would do: the first": (
        [WHOLE, build.l4_24g(2), BUSY, build.claim("late", [(build.NVIDIA, "node-l4", "gpu-1")])],
        ["others/busy"],
    ),
    "two partitions that lie in the way of a large one": (
        [
            build.service_class(sharing=["Dedicated"], placement=["Partition"]),
            build.h100_mig(1),
            build.claim("low", [(build.NVIDIA, "node-h100", "gpu-0-mig-1g10gb-0-0")]),
            build.claim("high", [(build.NVIDIA, "node-h100", "gpu-0-mig-1g10gb-0-6")]),
        ],
        ["others/low"],
    ),
    "nobody, where no device is large enough": ([WHOLE, build.t4_16g(1)], []),
}


@pytest.mark.parametrize("case", BLOCKING.values(), ids=BLOCKING)
def test_blocking_set(case: tuple[list[Any], list[str]]) -> None:
    world, want = case
    need = "35Gi" if any("mig" in str(item) for item in world) else "20Gi"
    planning = Planning(
        build.snapshot(DEVICES, world, build.needing(need, "m"), build.order("o", model="m")), launches.shipped()
    )
    found = [holder.name for holder in planning.blocking(build.key("o"))]
    if want == ["others/low"]:
        assert found in (["others/low"], ["others/high"])
    else:
        assert found == want


def test_the_message_names_no_order_of_another_namespace() -> None:
    world: list[Object] = build.flat(
        DEVICES, WHOLE, L4, build.tiny(), build.order("a", namespace="secretive"), build.order("b", created=1)
    )
    refused = next(item for item in plan(build.snapshot(world)).orders if item.refusal)
    assert "secretive" not in refused.message + "".join(item.message for item in refused.alternatives)
