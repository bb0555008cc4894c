# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Planned orders land on their planned devices on the real scheduler, and what happens when one cannot.

The scheduler takes the first device that fits, and no driver tells where a partition starts, so a request names card
and profile. "As planned" therefore means: each order on the planned card with the planned profile, and all orders
together on exactly the devices that were planned (which of two equal orders gets which of two equal partitions is up to
the order in which pods come).
"""

from collections.abc import Iterator
from typing import Any

import pytest
from testbed import devices
from testbed.cluster import Cluster
from testbed.process import until

from tests.e2e.scene import Scene, hugging_face, results, running

pytestmark = pytest.mark.testbed

NAMESPACE = "landing"
CLASS: dict[str, Any] = {
    "apiVersion": "ai.deckhouse.io/v1alpha1",
    "kind": "InferenceServiceClass",
    "metadata": {"name": "one"},
    "spec": {
        "modelPolicy": {"allowedEndpointTypes": ["Chat", "Embeddings"]},
        "scalingPolicy": {"minReplicas": 1, "maxReplicas": 1},
        "acceleratorPolicy": {
            "allowedSharingModes": ["Shared", "Dedicated"],
            "allowedPlacementTypes": ["WholeDevice", "Partition"],
            "maxAcceleratorCount": 1,
        },
    },
}
ORDERED = (
    ("BAAI/bge-m3", "mig.nvidia.com", 8),
    ("Qwen/Qwen3-0.6B", "mig.nvidia.com", 3),
    ("Qwen/Qwen3-4B", "mig.nvidia.com", 2),
    ("Qwen/Qwen3-0.6B", "dh-rtx-3090-mps", 3),
    ("Qwen/Qwen3-32B", "gpu.nvidia.com", 2),
)
"""Model, device class, how many: partitions of A100 and A30, shares of a card, whole cards."""


@pytest.fixture(scope="module")
def scene(own_cluster: Cluster) -> Iterator[Scene]:
    with running(own_cluster, catalog=False, examples=False) as made:
        made.namespaces(NAMESPACE, "foreign")
        devices.load(own_cluster, "01", "03", "04", "05")
        own_cluster.apply(CLASS)
        yield made


def kind_of(device: str) -> str:
    """Card and profile of a partition, by the names that the drivers give; anything else is itself."""
    return device.rpartition("-")[0] if "-mig-" in device else device


def planned(scene: Scene, name: str) -> list[tuple[str, str]]:
    plan = scene.status(NAMESPACE, name).get("plan") or {}
    return [(d["pool"], d["name"]) for d in plan.get("devices", [])]


def landed(scene: Scene, name: str) -> list[tuple[str, str]]:
    return [(r["pool"], r["device"]) for r in results(scene.until_allocated(NAMESPACE, name, timeout=90))]


def test_eighteen_orders_land_as_planned(scene: Scene) -> None:
    orders = [
        hugging_face(NAMESPACE, f"order-{number:02}", "one", model, [device_class])
        for number, (model, device_class) in enumerate(
            (model, device_class) for model, device_class, count in ORDERED for _ in range(count)
        )
    ]
    names = [order["metadata"]["name"] for order in orders]
    scene.cluster.apply(*orders)
    for name in names:
        scene.until_ready(NAMESPACE, name, timeout=120)
    want = {name: planned(scene, name) for name in names}
    got = {name: landed(scene, name) for name in names}
    for name in names:
        assert [(pool, kind_of(device)) for pool, device in got[name]] == [
            (pool, kind_of(device)) for pool, device in want[name]
        ], name
    assert sorted(item for found in got.values() for item in found) == sorted(
        item for found in want.values() for item in found
    )
    cards = {(pool, device[:5]) for found in got.values() for pool, device in found if "-mig-" in device}
    assert len(cards) == 3, f"11 small and 2 larger partitions fill two A100 and one A30: {cards}"
    scene.delete_orders(NAMESPACE)


def grab(name: str, device_class: str, selector: str) -> list[dict[str, Any]]:
    """A foreign pod and the claim by which it takes a device."""
    request = {"deviceClassName": device_class, "selectors": [{"cel": {"expression": selector}}]}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "foreign"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "foreign"},
            "spec": {
                "containers": [{"name": "grab", "image": "grab", "resources": {"claims": [{"name": "gpu"}]}}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            },
        },
    ]


def release(scene: Scene, *names: str) -> None:
    for name in names:
        scene.cluster.kubectl("delete", "pod", name, "-n", "foreign", "--grace-period=0", "--force")
        scene.cluster.kubectl("delete", "resourceclaim", name, "-n", "foreign")


def taken(scene: Scene, name: str) -> bool:
    found = scene.cluster.get("resourceclaim", name, "-n", "foreign")
    return bool(found.get("status", {}).get("allocation"))


def test_an_order_whose_card_somebody_took_is_planned_elsewhere_and_refused_where_nothing_is_left(
    scene: Scene,
) -> None:
    """The larger partition of an A30 is planned; foreign pods take that card, then all that could replace it."""
    scene.operator.kill9()  # the order is planned but not applied yet
    scene.order(NAMESPACE, "late", service_class="one", model="Qwen/Qwen3-4B", device_classes=["mig.nvidia.com"])
    first = until("a plan", lambda: planned(scene, "late"), timeout=60)
    (pool, device), number = first[0], first[0][1].split("-")[1]
    cards = {
        (spec["nodeName"], item["name"].split("-")[1]): item["attributes"]["uuid"]["string"]
        for made in scene.cluster.get("resourceslices")["items"]
        for spec in [made["spec"]]
        for item in spec.get("devices", [])
        if spec["driver"] == "gpu.nvidia.com" and spec["nodeName"] in ("node-a100-b", "node-a30-a")
        and item["attributes"].get("type", {}).get("string") == "gpu"
    }  # fmt: skip
    attribute = 'device.attributes["gpu.nvidia.com"].uuid'
    scene.cluster.apply(*grab("first", "gpu.nvidia.com", f'{attribute} == "{cards[pool, number]}"'))
    until("the planned card taken", lambda: taken(scene, "first"), timeout=60)
    second = until(
        "another plan", lambda: found if (found := planned(scene, "late")) and found != first else None, timeout=60
    )
    assert (second[0][0], second[0][1].split("-")[1]) != (pool, number), f"{device} is gone, {second} is planned"
    scene.operator.start().wait_ready()
    scene.until_ready(NAMESPACE, "late", timeout=90)
    assert [(p, kind_of(d)) for p, d in landed(scene, "late")] == [(p, kind_of(d)) for p, d in second]
    scene.delete_orders(NAMESPACE)

    rest = [key for key in sorted(cards) if key != (pool, number)]
    for key in rest:
        scene.cluster.apply(*grab(f"rest-{key[0]}-{key[1]}", "gpu.nvidia.com", f'{attribute} == "{cards[key]}"'))
    names = [f"rest-{node}-{card}" for node, card in rest]
    until("every card taken", lambda: all(taken(scene, name) for name in names), timeout=60)
    scene.order(NAMESPACE, "none", service_class="one", model="Qwen/Qwen3-4B", device_classes=["mig.nvidia.com"])
    condition = scene.until_reason(NAMESPACE, "none", "Planned", "ResourceClaimExhausted", timeout=60)
    assert "mig.nvidia.com" in condition["message"]
    assert scene.workload(NAMESPACE, order="none") == []
    release(scene, "first", *names)
    scene.until_ready(NAMESPACE, "none", timeout=90)
    scene.delete_orders(NAMESPACE)
