# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The oldest supported Kubernetes: what its API server stores decides what is offered, the rest is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed import devices
from testbed.cluster import Cluster

from tests.e2e.scene import Scene, results, running

pytestmark = pytest.mark.testbed

ORDERS = Path(__file__).parent / "floor.yaml"


@pytest.fixture(scope="module")
def floor(floor_cluster: Cluster) -> Iterator[Scene]:
    devices.storage(floor_cluster)
    devices.load(floor_cluster, "01", "05b")
    with running(floor_cluster, catalog=False, examples=False) as scene:
        scene.namespaces("floor")
        scene.cluster.apply(ORDERS.read_text())
        yield scene
        scene.delete_orders("floor")


def partitions(scene: Scene) -> bool:
    return "DRAPartitionableDevices" in scene.cluster.feature_gates


def test_a_whole_device_is_placed_and_allocated(floor: Scene) -> None:
    plan = floor.until_ready("floor", "whole", timeout=90)["plan"]
    assert (plan["deviceClassName"], plan["placementType"], plan["sharingMode"]) == (
        "h100-80g",
        "WholeDevice",
        "Dedicated",
    )
    planned = {(d["driver"], d["pool"], d["name"]) for d in plan["devices"]}
    allocated = results(floor.until_allocated("floor", "whole"))
    assert {(r["driver"], r["pool"], r["device"]) for r in allocated} <= planned


def test_a_partition_is_offered_only_where_its_counters_are_stored(floor: Scene) -> None:
    if partitions(floor):
        plan = floor.until_ready("floor", "partition", timeout=90)["plan"]
        assert plan["placementType"] == "Partition"
        planned = {d["name"] for d in plan["devices"]}
        assert {r["device"] for r in results(floor.until_allocated("floor", "partition"))} <= planned
    else:
        condition = floor.until_reason("floor", "partition", "Planned", "PlacementNotPermitted")
        assert "without counters" in condition["message"]
        assert floor.workload("floor", order="partition") == []


def test_an_order_that_needs_a_share_is_told_that_none_can_be_had(floor: Scene) -> None:
    condition = floor.until_reason("floor", "share", "Planned", "PlacementNotPermitted")
    assert "offers shares" in condition["message"]
    assert floor.workload("floor", order="share") == []
