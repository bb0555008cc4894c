# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`Plan` → the JSON that people and programs read."""

from __future__ import annotations

from typing import Any

from planner.model import CapacityReport, ClassVerdict, Plan, Verdict
from planner.units import UNKNOWN
from planner.wire.plans import bytes_text, plan_status


def plan_json(plan: Plan) -> dict[str, Any]:
    """What `planner plan -o json` prints: the status of every order, the verdict on every class, the capacity."""
    return {
        "orders": {str(item.key): plan_status(item) for item in plan.orders},
        "classes": {item.name: class_status(item) for item in plan.classes},
        "capacity": capacity_json(plan.capacity),
    }


def class_status(verdict: ClassVerdict) -> dict[str, Any]:
    """Both conditions of a service class and the generation they were judged at."""
    return {
        "observedGeneration": verdict.generation,
        "validated": _condition(verdict.validated),
        "ready": _condition(verdict.ready),
    }


def _condition(verdict: Verdict) -> dict[str, str]:
    return {"status": verdict.status.value, "reason": verdict.reason, "message": verdict.message}


def capacity_json(report: CapacityReport) -> dict[str, Any]:
    """Totals by device class and node, every device with who sits on it, and what is wrong with the inventory."""
    classes: dict[str, dict[str, Any]] = {}
    for item in report.classes:
        classes.setdefault(item.device_class, {})[item.node] = {
            "total": item.total,
            "held": item.held,
            "free": item.free,
            "freeMemory": bytes_text(item.free_memory),
        }
    told: dict[str, Any] = {
        "deviceClasses": classes,
        "devices": [
            {
                "driver": item.id.driver,
                "pool": item.id.pool,
                "name": item.id.name,
                "nodes": list(item.nodes),
                "deviceClasses": list(item.device_classes),
                "product": item.product,
                "placementType": item.placement.value,
                "memory": bytes_text(item.memory),
                "freeMemory": bytes_text(item.free),
                "blocked": item.blocked,
                "problem": item.problem,
                "holders": [
                    {
                        "name": sitting.holder,
                        "order": sitting.order is not None,
                        "memory": bytes_text(sitting.memory),
                        "computePercent": None if sitting.compute_percent is UNKNOWN else sitting.compute_percent,
                        "planned": sitting.planned,
                    }
                    for sitting in item.sittings
                ],
            }
            for item in report.devices
        ],
        "problems": list(report.problems),
    }
    packing = {
        name: {
            "replicas": item.replicas,
            "cards": item.cards,
            "bound": item.bound,
            "proven": item.proven,
            "limited": list(item.limited),
        }
        for name, item in (("placed", report.placed), ("standing", report.standing))
        if item is not None
    }
    return {**told, "packing": packing} if packing else told
