# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What `serve` counts, as Prometheus metrics; the one place where their names stand.

Orders appear as labels only where somebody must be told about that very order (capacity taken from or for it), never
for every order: 1,000 orders would be 1,000 series per metric. The labels of an order are `order_namespace` and
`order`, because `namespace` is the planner's own once scraped.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from planner import quantity

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Json = Mapping[str, Any]


class _Live(Collector):
    """Families computed at each scrape."""

    def __init__(self, families: Callable[[], list[GaugeMetricFamily | CounterMetricFamily]]) -> None:
        self._families = families

    def collect(self) -> list[GaugeMetricFamily | CounterMetricFamily]:
        return self._families()


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.plan_seconds = Histogram(
            "ai_inference_planner_plan_duration_seconds",
            "How long one plan of the whole cluster took.",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=self._registry,
        )
        self.plan_failures = Counter(
            "ai_inference_planner_plan_failures_total",
            "Plans that ended in an error of the planner itself; the last good plan stands meanwhile.",
            registry=self._registry,
        )
        self.writes = Counter("ai_inference_planner_writes_total", "Plans written to orders.", registry=self._registry)
        self.write_errors = Counter(
            "ai_inference_planner_write_errors_total",
            "Writes that the API server refused or did not answer, by what was written and the reason.",
            ("target", "reason"),
            registry=self._registry,
        )
        self.leader = Gauge(
            "ai_inference_planner_leader",
            "1 while this replica holds the lease and writes plans.",
            registry=self._registry,
        )
        self._plans: Mapping[str, Json] = {}
        self._capacity: Json = {}
        self._registry.register(_Live(self._decided))

    def live(self, families: Callable[[], list[GaugeMetricFamily | CounterMetricFamily]]) -> None:
        """Add families that are computed at each scrape."""
        self._registry.register(_Live(families))

    def decided(self, plans: Mapping[str, Json]) -> None:
        """Take over the newest plans (`namespace/name` → plan); none on a replica that does not lead."""
        self._plans = plans

    def left(self, capacity: Json) -> None:
        """Take over what a plan left of the capacity; empty on a replica that does not lead."""
        self._capacity = capacity

    def text(self) -> bytes:
        """The exposition text."""
        return generate_latest(self._registry)

    def _decided(self) -> list[GaugeMetricFamily | CounterMetricFamily]:
        orders = GaugeMetricFamily(
            "ai_inference_planner_orders",
            "Orders by the planner's decision and its reason.",
            labels=("decision", "reason"),
        )
        tally = Tally((str(plan.get("decision", "")), str(plan.get("reason", ""))) for plan in self._plans.values())
        for labels, count in sorted(tally.items()):
            orders.add_metric(labels, count)
        preempted = GaugeMetricFamily(
            "ai_inference_planner_capacity_preempted",
            "1 for an order whose entitled replicas run on capacity that was taken from others' elastic replicas.",
            labels=("order_namespace", "order", "device_class"),
        )
        lowered = GaugeMetricFamily(
            "ai_inference_planner_donor_lowered_by",
            "How many replicas an order may run less than its class allows, because it gave capacity up.",
            labels=("order_namespace", "order"),
        )
        for key, plan in sorted(self._plans.items()):
            role = (plan.get("preemption") or {}).get("role")
            namespace, _, name = key.partition("/")
            if role == "Recipient":
                preempted.add_metric((namespace, name, str(plan.get("deviceClassName", ""))), 1)
            elif role == "Donor":
                replicas = plan.get("replicas") or {}
                lowered.add_metric((namespace, name), float(replicas.get("max", 0)) - float(replicas.get("bound", 0)))
        return [orders, preempted, lowered, *capacity_families(self._capacity)]


def capacity_families(capacity: Json) -> list[GaugeMetricFamily | CounterMetricFamily]:
    """Gauges of the `capacity` part of a plan: devices and free memory by device class, all nodes together.

    A class with a node whose free memory nobody publishes has no memory series: a part of a sum is no sum.
    """
    devices = GaugeMetricFamily(
        "ai_inference_planner_devices",
        "Devices that a device class admits: all of them, held by anybody, and wholly free.",
        labels=("device_class", "state"),
    )
    memory = GaugeMetricFamily(
        "ai_inference_planner_free_memory_bytes",
        "Device memory that can still be given out, by device class.",
        labels=("device_class",),
    )
    classes: Mapping[str, Mapping[str, Json]] = capacity.get("deviceClasses") or {}
    for name, nodes in sorted(classes.items()):
        for state in ("total", "held", "free"):
            devices.add_metric((name, state), sum(int(row[state]) for row in nodes.values()))
        free = [row["freeMemory"] for row in nodes.values()]
        if all(amount is not None for amount in free):
            memory.add_metric((name,), sum(quantity.parse(str(amount)).bytes for amount in free))
    return [devices, memory]
