# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""DRA objects → a small summary for the module's values, and capacity metrics. Pure.

Counts, never decisions: what fits where is the planner's question. A device is `held` when an allocated claim names it
(admin access holds nothing), `tainted` when its driver taints it so that nothing new is scheduled there, else `free`.
A partition and its card are both counted, each under its own kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lib.ai_inference import kinds, metrics

SLICES: Final = kinds.Bound(
    name="slices", api_version="resource.k8s.io/v1", kind="ResourceSlice",
    jq="""{
      driver: (.spec.driver // ""), pool: (.spec.pool.name // ""), generation: (.spec.pool.generation // 0),
      node: (.spec.nodeName // ""),
      devices: [.spec.devices[]? | {
        name, node: (.nodeName // ""), shared: (.allowMultipleAllocations == true),
        tainted: ([.taints[]? | select(.effect == "NoSchedule" or .effect == "NoExecute")] | length > 0),
        attributes: ([(.attributes // {}) | to_entries[]
          | select(.key | test("(^|/)(productName|device|model|type|deviceType)$"))
          | {key: (.key | sub("^.*/"; "")), value: (.value.string // null)}] | from_entries)
      }]
    }""",
)  # fmt: skip
CLAIMS: Final = kinds.Bound(
    name="claims", api_version="resource.k8s.io/v1", kind="ResourceClaim",
    jq="""{held: [.status.allocation.devices.results[]? | select(.adminAccess != true)
      | {driver: (.driver // ""), pool: (.pool // ""), device: (.device // "")}]}""",
)  # fmt: skip
BOUND: Final = (SLICES, CLAIMS)

Snapshots = Mapping[str, Sequence[Mapping[str, Any]]]
Identity = tuple[str, str, str]


def summary(snapshots: Snapshots) -> list[dict[str, Any]]:
    """Devices and nodes of each driver, sorted by driver: what the module's own release may ask. Small and calm."""
    devices: Counter[str] = Counter()
    nodes: dict[str, set[str]] = defaultdict(set)
    for identity, device in _published(snapshots).items():
        devices[identity[0]] += 1
        nodes[identity[0]].add(device["node"])
    return [
        {"driver": driver, "devices": count, "nodes": len(nodes[driver] - {""})}
        for driver, count in sorted(devices.items())
    ]


def measure(sink: Any, snapshots: Snapshots) -> None:
    """Capacity metrics: devices by driver, product, kind and state; shares held on shared devices."""
    sink.expire(metrics.DEVICES)
    held = Counter(
        (entry["driver"], entry["pool"], entry["device"])
        for item in snapshots.get(CLAIMS.name, ())
        for entry in (item.get("filterResult") or {}).get("held") or ()
    )
    states: Counter[tuple[str, str, str, str]] = Counter()
    shares: Counter[tuple[str, str]] = Counter()
    for identity, device in _published(snapshots).items():
        attributes = device["attributes"]
        product = attributes.get("productName") or attributes.get("device") or attributes.get("model") or "unknown"
        kind = str(attributes.get("type") or attributes.get("deviceType") or "unknown")
        state = "tainted" if device["tainted"] else "held" if held[identity] else "free"
        states[identity[0], str(product), kind, state] += 1
        if device["shared"] and held[identity]:
            shares[identity[0], str(product)] += held[identity]
    for (driver, product, kind, state), count in sorted(states.items()):
        labels = {"driver": driver, "product": product, "kind": kind, "state": state}
        metrics.gauge(sink, metrics.DEVICES, "d8_ai_inference_devices", count, labels)
    for (driver, product), count in sorted(shares.items()):
        labels = {"driver": driver, "product": product}
        metrics.gauge(sink, metrics.DEVICES, "d8_ai_inference_shares_held", count, labels)


def _published(snapshots: Snapshots) -> dict[Identity, dict[str, Any]]:
    """Devices of the newest generation of each pool; slices of older ones are about to be removed by their driver."""
    slices = [found for item in snapshots.get(SLICES.name, ()) if (found := item.get("filterResult"))]
    newest: dict[tuple[str, str], int] = {}
    for found in slices:
        pool = found["driver"], found["pool"]
        newest[pool] = max(newest.get(pool, 0), found["generation"])
    return {
        (found["driver"], found["pool"], device["name"]): {**device, "node": device["node"] or found["node"]}
        for found in slices
        if found["generation"] == newest[found["driver"], found["pool"]]
        for device in found["devices"]
    }
