# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Metrics of the hooks. Each group is expired first: an operator keeps the last series of a group for ever."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from lib.ai_inference.world import Order

ORDERS: Final = "ai_inference_orders"
DEVICES: Final = "ai_inference_devices"
GROUPS: Final = (ORDERS, DEVICES)


def gauge(sink: Any, group: str, name: str, value: float, labels: dict[str, str]) -> None:
    sink.collect({"name": name, "group": group, "action": "set", "value": value, "labels": labels})


def orders(sink: Any, every: Iterable[Order]) -> None:
    """Bounds, preemption and phase of every order, keyed by namespace and order."""
    sink.expire(ORDERS)
    for order in every:
        plan = order.planned or order.plan or {}
        name = {"namespace": order.namespace, "inference_service": order.name}
        phase = str(order.status.get("phase") or "Pending")
        gauge(sink, ORDERS, "d8_ai_inference_order_phase", 1, {**name, "phase": phase})
        bounds = plan.get("replicas") or {}
        for bound in ("min", "max", "bound"):
            if bound in bounds:
                gauge(sink, ORDERS, "d8_ai_inference_order_replicas", bounds[bound], {**name, "bound": bound})
        role = (plan.get("preemption") or {}).get("role")
        device_class = str(plan.get("deviceClassName") or "")
        if role == "Recipient":
            labels = {**name, "device_class": device_class}
            gauge(sink, ORDERS, "d8_ai_inference_capacity_preempted", 1, labels)
        if role == "Donor" and bounds.get("bound", 0) < bounds.get("max", 0):
            gauge(
                sink, ORDERS, "d8_ai_inference_donor_held_at_lowered_bound", 1, {**name, "device_class": device_class}
            )
