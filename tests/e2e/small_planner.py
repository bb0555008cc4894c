# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`serve` around the smallest decision that is a decision: a process for tests of the serving part alone.

An order is placed on the first device class by name and refused while there is none; while a kind cannot be read every
order is undecidable. An order named `crash` breaks the planner, the plan of one named `odd` has a field that the schema
does not know. The message counts what was seen, so that a plan from a
partial view shows.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.kube.resources import Object
from planner.kube.snapshot import Circumstances
from planner.serve import Brain, Settings, serve
from planner.server import BadQuestion, UnknownOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The objects by kind and what else is known."""

    objects: Mapping[str, Sequence[Object]]
    circumstances: Circumstances


def snapshot(objects: Mapping[str, Sequence[Object]], circumstances: Circumstances) -> World:
    return World(objects=objects, circumstances=circumstances)


DECIDED: list[int] = []
"""How many orders the last decision had; empty while there is none, as after a failed one."""


def decide(world: World) -> dict[str, Any]:
    DECIDED.clear()
    classes = sorted(item["metadata"]["name"] for item in world.objects.get("DeviceClass", ()))
    seen = ", ".join(f"{len(found)} {kind}" for kind, found in sorted(world.objects.items()) if found and kind != "Pod")
    orders: dict[str, Any] = {}
    for order in world.objects.get("InferenceService", ()):
        metadata = order["metadata"]
        if metadata["name"] == "crash":
            raise ZeroDivisionError("an order that breaks the planner")
        plan: dict[str, Any] = {"observedGeneration": metadata["generation"]}
        if world.circumstances.unreadable:
            names = ", ".join(world.circumstances.unreadable)
            plan |= {"decision": "Undecidable", "reason": "PlacementUndecidable", "message": f"cannot read {names}"}
        elif classes:
            plan |= {
                "decision": "Placed",
                "reason": "LaunchPlanCalculated",
                "message": f"version {world.circumstances.kubernetes}",
                "deviceClassName": classes[0],
            }
        else:
            plan |= {"decision": "Refused", "reason": "ResourceClaimExhausted", "message": seen}
        if metadata["name"] == "odd":
            plan["strange"] = "of another release"
        orders[f"{metadata['namespace']}/{metadata['name']}"] = plan
    verdicts = {
        item["metadata"]["name"]: {
            "observedGeneration": item["metadata"]["generation"],
            "validated": {"status": "True", "reason": "Validated", "message": ""},
            "ready": {"status": "True", "reason": "Ready", "message": ""},
        }
        for item in world.objects.get("InferenceServiceClass", ())
    }
    DECIDED.append(len(orders))
    return {"orders": orders, "classes": verdicts}


def left() -> dict[str, Any]:
    total = DECIDED[0]
    return {"deviceClasses": {"all": {"": {"total": total, "held": 0, "free": 0, "freeMemory": None}}}}


def explain(world: World, order: str) -> dict[str, Any]:
    plan = decide(world)["orders"].get(order)
    if plan is None:
        raise UnknownOrder(f"there is no order {order}")
    return {"order": order, "plan": plan}


def what_if(world: World, question: Mapping[str, Any]) -> dict[str, Any]:
    if "orders" not in question:
        raise BadQuestion("orders: is missing")
    return decide(world)


def capacity(world: World) -> dict[str, Any]:
    return {"deviceClasses": len(world.objects.get("DeviceClass", ()))}


def replay(objects: Sequence[Object], circumstances: Circumstances) -> dict[str, Any]:
    return {"now": circumstances.now, "objects": list(objects)}


BRAIN = Brain(
    snapshot=snapshot, decide=decide, left=left, explain=explain, what_if=what_if, capacity=capacity, replay=replay
)


def main() -> int:
    given = json.loads(os.environ["SETTINGS"])
    if given.get("replays"):
        given["replays"] = Path(given["replays"])
    return serve(BRAIN, Settings(**given))


if __name__ == "__main__":
    sys.exit(main())
