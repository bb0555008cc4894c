# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How long a user waits: from `kubectl apply` of an order to its StatefulSet and to its pod on a node.

Real API server, scheduler, addon-operator and planner of the test bed; 10, 100, 300 and again 10 orders stand
meanwhile. What is asked of the numbers is that they do not grow with the standing orders: the second ten show how much
of a difference is the machine's. kwok plays the kubelets.

    python -m benchmarks.latency [STANDING …]
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from testbed import devices
from testbed.cluster import Cluster
from testbed.process import until

from tests.e2e.scene import Scene, hugging_face, running

RESULTS = Path(__file__).parent / "results" / "latency.json"
STANDING = (10, 100, 300, 10)
SAMPLES = 20
NAMESPACE = "bench"
CARDS = 8


def main(standing: tuple[int, ...]) -> None:
    console = Console()
    rows: dict[str, Any] = {}
    with Cluster() as cluster:
        devices.storage(cluster)
        with running(cluster, catalog=False, examples=False) as scene:
            cards(scene, nodes=-(-(max(standing) + SAMPLES) // CARDS))
            scene.namespaces(NAMESPACE)
            for count in standing:
                stand(scene, count, console)
                label = f"{count} again" if str(count) in rows else str(count)
                rows[label] = measured(scene, label.replace(" ", "-"))
                console.print(f"{label} standing: {rows[label]}")
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "kubernetes": "1.37.2"}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine, "samples": SAMPLES, "standing": rows}, indent=2) + "\n")
    table = Table(title=f"seconds from kubectl apply, median / p95 of {SAMPLES}", title_justify="left")
    for heading in ("standing orders", "plan", "StatefulSet", "pod scheduled"):
        table.add_column(heading, justify="right")
    for label, row in rows.items():
        cells = [f"{row[key]['median']:.2f} / {row[key]['p95']:.2f}" for key in ("plan", "statefulSet", "scheduled")]
        table.add_row(label, *cells)
    console.print(table)


def cards(scene: Scene, *, nodes: int) -> None:
    """`nodes` nodes with eight whole cards each, of one device class."""
    slices, names = [], []
    for number in range(nodes):
        name = f"gpu-{number:03}"
        names.append(name)
        devices.add_node(
            scene.cluster,
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            },
        )
        slices.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": {
                    "driver": "gpu.nvidia.com",
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [card(number, slot) for slot in range(CARDS)],
                },
            }
        )
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "l4"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}]},
    }
    scene.cluster.apply(device_class, *slices)
    devices.wait_nodes(scene.cluster, names, timeout=180)


def card(node: int, slot: int) -> dict[str, Any]:
    return {
        "name": f"gpu-{slot}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{node:08}-0000-4000-8000-{slot:012}"},
            "productName": {"string": "NVIDIA L4"},
            "architecture": {"string": "Ada Lovelace"},
            "cudaComputeCapability": {"version": "8.9.0"},
            "driverVersion": {"version": "580.95.5"},
        },
        "capacity": {"memory": {"value": "23034Mi"}},
    }


def stand(scene: Scene, count: int, console: Console) -> None:
    """`count` orders in all, each with a running pod; what stands beyond them is deleted."""
    begin = time.monotonic()
    orders = [hugging_face(NAMESPACE, f"standing-{number:03}", device_classes=["l4"]) for number in range(count)]
    single = {**service_class(), "metadata": {"name": "single"}}
    scene.cluster.apply(single, *(with_class(order) for order in orders))
    names = {order["metadata"]["name"] for order in orders}
    standing = scene.cluster.get("inferenceservices", "--namespace", NAMESPACE)["items"]
    surplus = [name for item in standing if (name := item["metadata"]["name"]) not in names]
    if surplus:
        scene.cluster.kubectl("delete", "inferenceservice", *surplus, "--namespace", NAMESPACE, "--wait=false")

    def all_run() -> bool:
        pods = scene.cluster.get("pods", "--namespace", NAMESPACE)["items"]
        return len(pods) == count == len([pod for pod in pods if pod["status"].get("phase") == "Running"])

    until(f"{count} orders running", all_run, timeout=900, interval=2)
    console.print(f"{count} orders stand after {time.monotonic() - begin:.1f} s")


def service_class() -> dict[str, Any]:
    return {
        "apiVersion": "ai.deckhouse.io/v1alpha1",
        "kind": "InferenceServiceClass",
        "metadata": {"name": "single"},
        "spec": {"modelPolicy": {"allowedEndpointTypes": ["Chat"]}, "acceleratorPolicy": {}},
    }


def with_class(order: dict[str, Any]) -> dict[str, Any]:
    return {**order, "spec": {**order["spec"], "inferenceServiceClassName": "single"}}


def measured(scene: Scene, label: str) -> dict[str, Any]:
    """Median and p95 of SAMPLES orders, made one after another and deleted again."""
    client = scene.cluster.client()
    found: dict[str, list[float]] = {"plan": [], "statefulSet": [], "scheduled": []}

    def read(path: str) -> Any:
        try:
            return client.call_api(*client.param_serialize("GET", path, header_params={"Accept": "application/json"}))
        except Exception as error:  # noqa: BLE001 - the generated client raises its own types; absence is what is asked
            return error

    def get(path: str) -> dict[str, Any] | None:
        answer = read(path)
        if isinstance(answer, Exception):
            return None
        body = answer.read()
        return dict(json.loads(body)) if answer.status == 200 else None

    base = f"/namespaces/{NAMESPACE}"
    for number in range(SAMPLES):
        name = f"probe-{label}-{number}"
        begin = time.monotonic()
        scene.cluster.apply(with_class(hugging_face(NAMESPACE, name, device_classes=["l4"])))

        def planned(order: str = name) -> bool:
            seen = get(f"/apis/ai.deckhouse.io/v1alpha1{base}/inferenceservices/{order}") or {}
            return "plan" in seen.get("status", {})

        def made(order: str = name) -> bool:
            return get(f"/apis/apps/v1{base}/statefulsets/{order}") is not None

        def scheduled(order: str = name) -> bool:
            pod = get(f"/api/v1{base}/pods/{order}-0") or {}
            return bool(pod.get("spec", {}).get("nodeName"))

        steps: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("plan", planned),
            ("statefulSet", made),
            ("scheduled", scheduled),
        )
        for key, seen in steps:
            until(f"{name}: {key}", seen, timeout=120, interval=0.03)
            found[key].append(time.monotonic() - begin)
        scene.cluster.kubectl("delete", "inferenceservice", name, "--namespace", NAMESPACE, "--wait=false")
        time.sleep(1.5)
    return {key: {"median": statistics.median(v), "p95": sorted(v)[int(len(v) * 0.95) - 1]} for key, v in found.items()}


if __name__ == "__main__":
    main(tuple(int(part) for part in sys.argv[1:]) or STANDING)
