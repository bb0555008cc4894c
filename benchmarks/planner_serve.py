# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How long an order waits for its plan: from the answer to its creation until `status.plan` can be read.

A real API server with the CRDs, recorded devices of 8 H100 per node on as many nodes as are asked for, and the planner
as a process with its own decision. Every standing order has its plan before the measured ones are created, one by one.
Prints one JSON line per size: seconds (median, 95th percentile, worst of 20), the planner's resident memory and its own
count of the time one plan takes; CPU seconds beside them, because a shared machine makes everything wait.

    python -m benchmarks.planner_serve 10 100 300
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from planner.kube.client import Client, connect
from testbed import devices
from testbed.cluster import Cluster
from testbed.process import Process, free_port, until

ROOT: Final = Path(__file__).resolve().parents[1]
ORDERS: Final = "/apis/ai.deckhouse.io/v1alpha1/namespaces/bench/inferenceservices"
PROGRAM: Final = (
    "import os, sys; from planner.serve import Settings, brain, serve; "
    "sys.exit(serve(brain(), Settings(listen=os.environ['LISTEN'])))"
)
CLASS: Final = {
    "apiVersion": "ai.deckhouse.io/v1alpha1",
    "kind": "InferenceServiceClass",
    "metadata": {"name": "bench"},
    "spec": {
        "modelPolicy": {"allowedEndpointTypes": ["Chat"]},
        "acceleratorPolicy": {"allowedSharingModes": ["Dedicated"], "allowedPlacementTypes": ["WholeDevice"]},
    },
}


def order(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "ai.deckhouse.io/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": f"order-{number}", "namespace": "bench"},
        "spec": {
            "inferenceServiceClassName": "bench",
            "model": {"src": "HuggingFace", "ref": {"name": "Qwen/Qwen3-0.6B"}},
        },
    }


def node(number: int, example: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The example's node and slices under another node name."""
    found = []
    for item in copy.deepcopy(example):
        name = item["metadata"]["name"]
        if item["kind"] == "Node":
            item["metadata"]["name"] = f"node-{number}"
            item["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = f"node-{number}"
            item["status"] = {
                "allocatable": {"cpu": "256", "memory": "2Ti", "pods": "250"},
                "capacity": {"cpu": "256", "memory": "2Ti", "pods": "250"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
            }
        elif item["kind"] == "ResourceSlice":
            item["metadata"]["name"] = f"{name}-{number}"
            item["spec"]["nodeName"] = f"node-{number}"
            item["spec"]["pool"]["name"] = f"node-{number}"
        found.append(item)
    return found


def world(cluster: Cluster, client: Client, nodes: int) -> None:
    for kind in ("inferenceservice", "inferenceserviceclass"):
        cluster.apply((ROOT / "crds" / f"{kind}.yaml").read_text())
        cluster.wait(f"crd/{kind}s.ai.deckhouse.io".replace("classs", "classes"), "--for=condition=Established")
    for name in ("bench", "d8-ai-inference"):
        cluster.kubectl("create", "namespace", name)
    cluster.apply(CLASS)
    example = devices.objects("01")
    for item in (item for item in example if item["kind"] == "DeviceClass"):
        cluster.apply(item)
    for number in range(nodes):
        for item in node(number, example):
            if item["kind"] == "Node":
                status = item.pop("status")
                made = client.request("POST", "/api/v1/nodes", body=item)
                made["spec"].pop("taints", None)  # the API server's own, until a kubelet is ready
                made = client.request("PUT", f"/api/v1/nodes/node-{number}", body=made)
                client.request("PUT", f"/api/v1/nodes/node-{number}/status", body={**made, "status": status})
            elif item["kind"] == "ResourceSlice":
                client.request("POST", "/apis/resource.k8s.io/v1/resourceslices", body=item)


def planned(client: Client, number: int) -> bool:
    found = client.request("GET", f"{ORDERS}/order-{number}")
    plan = (found.get("status") or {}).get("plan")
    if plan and plan["decision"] != "Placed":
        raise AssertionError(f"order-{number}: {plan['reason']}: {plan['message']}")
    return bool(plan)


def create(client: Client, number: int) -> float:
    """Seconds from the answer to the creation until the plan can be read; looked for every 5 ms."""
    client.request("POST", ORDERS, body=order(number))
    started = time.perf_counter()
    while not planned(client, number):
        if time.perf_counter() - started > 60:
            raise TimeoutError(f"order-{number} has no plan after 60 s")
        time.sleep(0.005)
    return time.perf_counter() - started


def metrics(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def resident(process: Process) -> float:
    """Resident memory in MiB."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def spent(process: Process) -> float:
    """CPU seconds of the process so far: tells a slow plan from a busy machine."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="+", help="standing orders, ascending")
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--samples", type=int, default=20)
    given = parser.parse_args()
    with Cluster(kwok=False) as cluster:
        # Nodes without a kubelet would be called unreachable after 40 s.
        cluster.process("kube-controller-manager").kill9()
        client = connect(str(cluster.kubeconfig))
        world(cluster, client, given.nodes)
        port = free_port()
        process = Process(
            "planner",
            [sys.executable, "-c", PROGRAM],
            log=cluster.logs / "planner.log",
            cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT / "images" / "resource-planner"),
                "KUBECONFIG": str(cluster.kubeconfig),
                "LISTEN": f"127.0.0.1:{port}",
            },
        )
        process.start()
        try:
            standing = 0
            for size in given.sizes:
                for number in range(standing, size):
                    client.request("POST", ORDERS, body=order(number))
                if size > standing:
                    until("all plans", lambda last=size - 1: planned(client, last), process=process, timeout=300)  # type: ignore[misc]
                standing = size
                before, cpu = metrics(port), spent(process)
                seconds = sorted(create(client, standing + sample) for sample in range(given.samples))
                after, cpu = metrics(port), spent(process) - cpu
                name = "ai_inference_planner_plan_duration_seconds"
                plans = after[f"{name}_count"] - before[f"{name}_count"]
                for sample in range(given.samples):
                    client.request("DELETE", f"{ORDERS}/order-{standing + sample}")
                print(
                    json.dumps(
                        {
                            "standing": size,
                            "nodes": given.nodes,
                            "devices": given.nodes * 8,
                            "median_s": round(statistics.median(seconds), 3),
                            "p95_s": round(seconds[int(len(seconds) * 0.95) - 1], 3),
                            "worst_s": round(seconds[-1], 3),
                            "plan_s": round((after[f"{name}_sum"] - before[f"{name}_sum"]) / max(plans, 1), 3),
                            "plans": plans,
                            "cpu_s_per_order": round(cpu / given.samples, 3),
                            "resident_mib": round(resident(process)),
                        }
                    ),
                    flush=True,
                )
        except BaseException:
            print(process.tail(40), file=sys.stderr)
            raise
        finally:
            process.kill9()


if __name__ == "__main__":
    main()
