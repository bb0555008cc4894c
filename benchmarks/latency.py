# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How long a user waits: from `kubectl apply` of an order to its StatefulSet and to its pod on a node.

Real API server, scheduler, addon-operator and planner of the test bed, three times side by side: 10, 100 and 300 orders
stand there. What is asked of the numbers is that they do not grow with the standing orders, so the orders that are
measured are made in the three by turns: whatever else the machine does, and how fast it is at the moment, is the same
for all rows. Each cluster has the same nodes. kwok plays the kubelets.

    python -m benchmarks.latency [STANDING …]
"""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from testbed import devices
from testbed.cluster import Cluster
from testbed.process import until

from tests.e2e.scene import Scene, hugging_face, running

RESULTS = Path(__file__).parent / "results" / "latency.json"
STANDING = (10, 100, 300)
SAMPLES = 20
STEPS = ("plan", "statefulSet", "scheduled")
PAUSE = 2.0
"""Seconds after an order is deleted, in which its cluster comes to rest."""
NAMESPACE = "bench"
CARDS = 8


def main(standing: tuple[int, ...]) -> None:
    console = Console()
    with ExitStack() as stack:
        scenes = {count: stack.enter_context(populated(count, max(standing), console)) for count in standing}
        found: dict[int, list[dict[str, float]]] = {count: [] for count in standing}
        for number in range(SAMPLES):
            for count in random.Random(number).sample(standing, len(standing)):
                found[count].append(waits(scenes[count], f"probe-{number}"))
    rows = {
        str(count): {step: summary([wait[step] for wait in waited]) for step in STEPS}
        for count, waited in found.items()
    }
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "kubernetes": "1.37.2"}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine, "samples": SAMPLES, "standing": rows}, indent=2) + "\n")
    table = Table(title=f"seconds from kubectl apply, median / p95 of {SAMPLES}", title_justify="left")
    for heading in ("standing orders", "plan", "StatefulSet", "pod scheduled"):
        table.add_column(heading, justify="right")
    for label, row in rows.items():
        table.add_row(label, *(f"{row[step]['median']:.2f} / {row[step]['p95']:.2f}" for step in STEPS))
    console.print(table)


@contextmanager
def populated(count: int, most: int, console: Console) -> Iterator[Scene]:
    """A cluster with room for `most` orders and the probes, in which `count` stand."""
    with Cluster() as cluster:
        devices.storage(cluster)
        with running(cluster, catalog=False, examples=False) as scene:
            cards(scene, nodes=-(-(most + SAMPLES) // CARDS))
            scene.namespaces(NAMESPACE)
            stand(scene, count, console)
            yield scene


def summary(seconds: list[float]) -> dict[str, float]:
    return {"median": statistics.median(seconds), "p95": sorted(seconds)[int(len(seconds) * 0.95) - 1]}


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
    """`count` orders, each with a running pod."""
    begin = time.monotonic()
    orders = [hugging_face(NAMESPACE, f"standing-{number:03}", device_classes=["l4"]) for number in range(count)]
    single = {**service_class(), "metadata": {"name": "single"}}
    scene.cluster.apply(single, *(with_class(order) for order in orders))

    def all_run() -> bool:
        pods = scene.cluster.get("pods", "--namespace", NAMESPACE)["items"]
        return len([pod for pod in pods if pod["status"].get("phase") == "Running"]) >= count

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


def waits(scene: Scene, name: str) -> dict[str, float]:
    """Seconds to each of STEPS of one order, which is made and deleted again."""
    client = scene.cluster.client()
    base = f"/namespaces/{NAMESPACE}"

    def get(path: str) -> dict[str, Any]:
        try:
            answer = client.call_api(*client.param_serialize("GET", path, header_params={"Accept": "application/json"}))
        except Exception:  # noqa: BLE001 - the generated client raises its own types; absence is what is asked
            return {}
        body = answer.read()
        return dict(json.loads(body)) if answer.status == 200 else {}

    steps: dict[str, Callable[[], bool]] = {
        "plan": lambda: (
            "plan" in get(f"/apis/ai.deckhouse.io/v1alpha1{base}/inferenceservices/{name}").get("status", {})
        ),
        "statefulSet": lambda: bool(get(f"/apis/apps/v1{base}/statefulsets/{name}")),
        "scheduled": lambda: bool(get(f"/api/v1{base}/pods/{name}-0").get("spec", {}).get("nodeName")),
    }
    begin = time.monotonic()
    scene.cluster.apply(with_class(hugging_face(NAMESPACE, name, device_classes=["l4"])))
    found: dict[str, float] = {}
    for step in STEPS:
        until(f"{name}: {step}", steps[step], timeout=120, interval=0.02)
        found[step] = time.monotonic() - begin
    scene.cluster.kubectl("delete", "inferenceservice", name, "--namespace", NAMESPACE, "--wait=false")
    time.sleep(PAUSE)
    return found


if __name__ == "__main__":
    main(tuple(int(part) for part in sys.argv[1:]) or STANDING)
