# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Slices and claims of real drivers → the summary in values, and capacity metrics."""

from __future__ import annotations

from typing import Any

import devices
import disable
import discovery
import pytest
import yaml

from tests.hooks import bindings

FIXTURES = bindings.ROOT / "tests" / "fixtures" / "dra"


def fixture(number: str) -> list[dict[str, Any]]:
    (path,) = FIXTURES.glob(f"{number}-*.yaml")
    documents = [item for item in yaml.safe_load_all(path.read_text()) if item]
    return [item for document in documents for item in document.get("items", [document])]


def claim(driver: str, pool: str, device: str, **result: Any) -> dict[str, Any]:
    results = [{"driver": driver, "pool": pool, "device": device, "request": "gpu", **result}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"claim-{device}", "namespace": "team-a"},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def run(objects: list[dict[str, Any]], initial: dict[str, Any] | None = None) -> Any:
    return bindings.run(devices.main, bindings.snapshots(devices.CONFIG, objects), initial=initial)


def series(out: Any, name: str = "d8_ai_inference_devices") -> dict[tuple[str, ...], float]:
    return {tuple(entry["labels"].values()): entry["value"] for entry in out.metrics.data if entry.get("name") == name}


def test_eight_cards_of_one_node() -> None:
    out = run(fixture("01"))
    assert out.values["aiInference"]["internal"]["devices"] == [{"driver": "gpu.nvidia.com", "devices": 8, "nodes": 1}]
    assert series(out) == {("gpu.nvidia.com", "NVIDIA H100 80GB HBM3", "gpu", "free"): 8}


def test_a_held_card_is_not_free_and_admin_access_holds_nothing() -> None:
    cards = fixture("01")
    pool = next(item for item in cards if item["kind"] == "ResourceSlice")["spec"]["pool"]["name"]
    held = [
        claim("gpu.nvidia.com", pool, "gpu-0"),
        claim("gpu.nvidia.com", pool, "gpu-1", adminAccess=True),
        claim("gpu.nvidia.com", "elsewhere", "gpu-2"),
    ]
    product = ("gpu.nvidia.com", "NVIDIA H100 80GB HBM3", "gpu")
    assert series(run(cards + held)) == {(*product, "held"): 1, (*product, "free"): 7}


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.yaml")), ids=lambda path: path.stem)
def test_filters_are_total_over_every_fixture(path: Any) -> None:
    """A filter that fails drops the event and leaves a stale snapshot; every device is counted exactly once."""
    objects = fixture(path.stem.split("-")[0])
    out = run(objects)
    total = sum(entry["devices"] for entry in out.values["aiInference"]["internal"]["devices"])
    assert sum(series(out).values()) == total


def test_what_is_already_in_values_is_not_patched_again() -> None:
    """A Helm run of the module follows every patch."""
    first = run(fixture("01"))
    second = run(fixture("01"), initial=first.values)
    assert second.values_patches.data == []


def test_metrics_begin_with_expire_and_nothing_is_left_when_devices_go() -> None:
    out = run([])
    assert out.metrics.data == [{"action": "expire", "group": "ai_inference_devices"}]
    assert out.values["aiInference"]["internal"]["devices"] == []


def test_discovery_takes_globals_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lib.ai_inference.release.clear_uninstalling", list)  # it asks a cluster: see test_execute
    out = bindings.run(discovery.main, binding="onStartup")
    assert out.values["aiInference"]["internal"]["discovery"] == {
        "clusterDomain": "cluster.local",
        "kubernetesVersion": "1.34.0",
    }
    again = bindings.run(discovery.main, binding="onStartup", initial=out.values)
    assert again.values_patches.data == []


def test_disable_does_nothing_for_another_reason() -> None:
    out = bindings.run(disable.main, binding="afterHelm")
    assert out.metrics.data == out.kube_operations.data == out.values_patches.data == []
