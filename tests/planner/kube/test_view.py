# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The view: what wakes the planner, what does not, and how long a failing kind is trusted."""

from __future__ import annotations

from typing import Any

import pytest
from planner.kube.resources import ORDERS, OWN, watched
from planner.kube.view import Standing, View


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def order(name: str, version: int, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "generation": 1,
            "resourceVersion": str(version),
            "managedFields": [{"manager": f"somebody-{version}"}],
        },
        "spec": {"inferenceServiceClassName": "a"},
        "status": status,
    }


def fresh() -> tuple[View, Clock]:
    clock = Clock()
    return View((ORDERS,), grace_seconds=30, clock=clock), clock


def names(view: View) -> list[str]:
    return sorted(name for _, name in view.of(ORDERS))


def listed(view: View, *orders: dict[str, Any]) -> None:
    view.replace(
        ORDERS,
        {("team", o["metadata"]["name"]): (int(o["metadata"]["resourceVersion"]), ORDERS.cut(o, OWN)) for o in orders},
    )


def test_a_kind_is_missing_until_it_was_listed_whole() -> None:
    view, _ = fresh()
    view.put(ORDERS, order("a", 5), OWN)
    view.standing(ORDERS, Standing.FAILING, "403")
    assert view.never_listed() == {"InferenceService": "403"}
    assert view.unreadable() == {}
    listed(view, order("a", 5))
    assert view.never_listed() == {}


def test_a_status_that_the_planner_does_not_read_wakes_nobody() -> None:
    view, _ = fresh()
    listed(view, order("a", 5, phase="Pending"))
    count = view.count
    assert view.put(ORDERS, order("a", 6, phase="Ready"), OWN) is False
    assert view.count == count
    assert view.put(ORDERS, order("a", 7, plan={"decision": "Placed"}), OWN) is True
    assert view.count == count + 1


def test_an_older_version_never_replaces_a_newer_one() -> None:
    view, _ = fresh()
    listed(view, order("a", 5))
    view.put(ORDERS, order("a", 9, plan={"message": "new"}), OWN)
    assert view.put(ORDERS, order("a", 7, plan={"message": "old"}), OWN) is False
    listed(view, order("a", 8, plan={"message": "older list"}))
    assert view.of(ORDERS)["team", "a"]["status"] == {"plan": {"message": "new"}}


def test_a_list_removes_what_it_does_not_name() -> None:
    view, _ = fresh()
    listed(view, order("a", 5), order("b", 6))
    listed(view, order("b", 6))
    assert names(view) == ["b"]


def test_an_equal_list_wakes_nobody_and_keeps_the_objects_themselves() -> None:
    view, _ = fresh()
    listed(view, order("a", 5))
    count, before = view.count, view.of(ORDERS)["team", "a"]
    listed(view, order("a", 6))
    assert view.count == count
    assert view.of(ORDERS)["team", "a"] is before


def test_a_failing_kind_is_first_waited_for_and_then_called_unreadable() -> None:
    view, clock = fresh()
    listed(view, order("a", 5))
    view.standing(ORDERS, Standing.FAILING, "connection lost")
    assert (view.unsettled(), view.unreadable()) == ({"InferenceService": "connection lost"}, {})
    clock.now += 29
    view.standing(ORDERS, Standing.FAILING, "still lost")
    assert view.unsettled() == {"InferenceService": "still lost"}
    clock.now += 1
    assert (view.unsettled(), view.unreadable()) == ({}, {"InferenceService": "still lost"})
    assert names(view) == ["a"]
    view.standing(ORDERS, Standing.SYNCED)
    assert (view.unsettled(), view.unreadable()) == ({}, {})


def test_an_absent_kind_is_settled_and_empty() -> None:
    view, _ = fresh()
    listed(view, order("a", 5))
    view.standing(ORDERS, Standing.ABSENT)
    assert (view.never_listed(), view.absent(), names(view)) == ({}, ("InferenceService",), [])


def test_waiting_returns_at_once_when_something_changed_before() -> None:
    view, _ = fresh()
    seen = view.count
    listed(view, order("a", 5))
    assert view.wait(seen, 60) == view.count != seen
    assert view.wait(view.count, 0.01) == view.count


@pytest.mark.parametrize("catalog", [True, False])
def test_the_catalog_is_watched_only_where_the_setting_allows_it(catalog: bool) -> None:
    kinds = {resource.kind for resource in watched(catalog)}
    assert ({"Model", "ClusterModel"} <= kinds) is catalog
    assert "Secret" not in kinds


RAW = {
    "Pod": (
        {
            "metadata": {
                "name": "p", "namespace": "n", "labels": {"app": "x", "ai-inference.deckhouse.io/managed": "true"},
            },
            "spec": {
                "nodeName": "node",
                "containers": [
                    {"name": "c", "image": "i", "env": [{"name": "PASSWORD", "value": "secret"}],
                     "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
                ],
                "initContainers": [{"name": "s", "restartPolicy": "Always"}],
            },
            "status": {"phase": "Running", "podIP": "10.0.0.1"},
        },
        {
            "metadata": {"name": "p", "namespace": "n", "labels": {"ai-inference.deckhouse.io/managed": "true"}},
            "spec": {
                "nodeName": "node",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
                "initContainers": [{"name": "s", "restartPolicy": "Always"}],
            },
            "status": {"phase": "Running"},
        },
    ),
    "Node": (
        {
            "metadata": {"name": "n", "labels": {"zone": "a"}, "annotations": {"big": "x"}},
            "spec": {"podCIDR": "10.0.0.0/24", "taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {
                "allocatable": {"cpu": "8"},
                "images": [{"names": ["i"]}],
                "conditions": [
                    {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-30T00:00:00Z"},
                    {"type": "DiskPressure", "status": "False"},
                ],
            },
        },
        {
            "metadata": {"name": "n", "labels": {"zone": "a"}},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
        },
    ),
    "StatefulSet": (
        {
            "metadata": {
                "name": "s", "namespace": "n",
                "ownerReferences": [{"kind": "X", "name": "o", "uid": "u", "blockOwnerDeletion": True}],
            },
            "spec": {"replicas": 0, "template": {"spec": {}}},
            "status": {"replicas": 2},
        },
        {
            "metadata": {"name": "s", "namespace": "n", "ownerReferences": [{"kind": "X", "name": "o", "uid": "u"}]},
            "spec": {"replicas": 0},
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", RAW)
def test_only_the_needed_fields_are_kept(kind: str) -> None:
    raw, kept = RAW[kind]
    resource = next(item for item in watched(True) if item.kind == kind)
    assert resource.cut(raw, resource.versions[0]) == {"apiVersion": resource.versions[0], "kind": kind, **kept}
