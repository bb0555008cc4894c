# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Explain, what-if and capacity: an edited snapshot through the same `plan`. No rule of its own.

Answers are data (JSON objects as the CLI and the server print them); they change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner import launches, recipe, wire
from planner.model import ORDER_LABEL, Key, OrderPlan, Plan, Snapshot
from planner.plan import Planning
from planner.units import UNKNOWN
from planner.works import Work


class NoSuchOrder(LookupError):
    """The order that a question names is not in the snapshot."""


class BadEdit(ValueError):
    """An edit that names something that is not there, or cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change to try: objects added or replaced, removed (`Kind/namespace/name`), fields set, nodes drained."""

    add: tuple[wire.Document, ...] = ()
    remove: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    """`Kind/name:path=value` or `Kind/namespace/name:path=value`, the value in YAML."""


def explain(snapshot: Snapshot, order: Key, recipes: recipe.Recipes | None = None) -> dict[str, Any]:
    """Why the order is where it is, or why it has no place: its plan, what was considered, what holds it up.

    `blocking` is a minimal set: without all of its holders the order fits, with any one of them back it does not; empty
    where nobody's leaving would help. Raises NoSuchOrder.
    """
    planning = Planning(snapshot, recipes or launches.shipped())
    work = planning.works.get(order)
    if work is None:
        raise NoSuchOrder(f"there is no order {order} to plan")
    answer = planning.answer(work)
    told: dict[str, Any] = {"order": str(order), "plan": wire.plan_status(answer)}
    if answer.refusal is not None:
        told["refusal"] = _refusal(answer)
    if answer.seats:
        told["seats"] = [
            {"node": seat.node, "devices": [str(device) for device in seat.devices], "standing": seat.standing}
            for seat in answer.seats
        ]
    told["considered"] = _considered(planning, work)
    told["blocking"] = [
        {
            "holder": holder.name,
            "order": holder.order is not None,
            "devices": [str(device) for device in holder.devices],
        }
        for holder in planning.blocking(order)
    ]
    return told


def _refusal(answer: OrderPlan) -> dict[str, Any]:
    refusal = answer.refusal
    assert refusal is not None
    told: dict[str, Any] = {"reason": refusal.reason.word, "meaning": refusal.reason.meaning, "tried": refusal.tried}
    if refusal.lack is not None:
        told["lack"] = refusal.lack.word
    for name, value in (("needed", refusal.needed), ("free", refusal.free), ("shortfall", refusal.shortfall)):
        if value is not None and value is not UNKNOWN:
            told[name] = value
    if refusal.closest is not None:
        told["closest"] = str(refusal.closest)
    if refusal.device_class is not None:
        told["deviceClassName"] = refusal.device_class
    if refusal.fits_empty is not None:
        told["fitsWhenEmpty"] = refusal.fits_empty
    return told


def _considered(planning: Planning, work: Work) -> list[dict[str, Any]]:
    """Every offer of the order in rank order: what a replica would hold, and how many devices of the kind there are."""
    if work.considered is None:
        return []
    return [
        {
            "deviceClassName": offer.way.device_class,
            "placementType": offer.way.placement.value,
            "sharingMode": offer.way.sharing.value,
            "product": offer.example.product,
            "profile": offer.example.profile,
            "devices": offer.devices,
            "devicesPerReplica": offer.wish.count,
            "held": None if offer.held is UNKNOWN else offer.held,
            "recipe": offer.launch.recipe.name,
            "chosen": work.offer is not None
            and bool(work.replicas)
            and (work.offer.way, work.offer.wish.shapes) == (offer.way, offer.wish.shapes),
        }
        for offer in work.considered.offers
    ]


def capacity(snapshot: Snapshot, recipes: recipe.Recipes | None = None) -> dict[str, Any]:
    """What there is, who sits where, how well it is packed and what is wrong with the inventory, after the plan."""
    return wire.capacity_json(Planning(snapshot, recipes or launches.shipped()).capacity())


def what_if(before: Snapshot, after: Snapshot, recipes: recipe.Recipes | None = None) -> dict[str, Any]:
    """Whose plan differs between two snapshots, of which one is the other edited: order → before, after, in short.

    `after` should hold the plans of `before` (see `applied`), so that only what the edit forces moves.
    """
    shipped = recipes or launches.shipped()
    first = Planning(before, shipped).result()
    second = Planning(applied(after, first), shipped).result()
    one = {item.key: item for item in first.orders}
    two = {item.key: item for item in second.orders}
    changed = {
        str(key): {"before": _short(one.get(key)), "after": _short(two.get(key))}
        for key in sorted({*one, *two})
        if _short(one.get(key)) != _short(two.get(key))
    }
    verdicts = {item.name: wire.class_status(item) for item in second.classes}
    changed_classes = {item.name: verdicts[item.name] for item in second.classes if item not in first.classes}
    return {"changed": changed, "unchanged": len({*one, *two}) - len(changed), "classes": changed_classes}


def applied(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """`snapshot` with the plans of `plan` written into its orders, as if the planner had run."""
    plans = {item.key: item for item in plan.orders}
    return replace(
        snapshot,
        orders=tuple(replace(order, plan=plans.get(order.key, order.plan)) for order in snapshot.orders),
    )


def edited(documents: Sequence[wire.Document], edit: Edit) -> list[wire.Document]:
    """The objects of `documents` after `edit`. Raises BadEdit for a name that is not there."""
    kept = {_name(document.raw): document for document in wire.flatten(documents)}
    for wanted in edit.remove:
        key = _find(kept, wanted)
        del kept[key]
    for document in wire.flatten(edit.add):
        kept[_name(document.raw)] = document
    for wanted in edit.set:
        target, _, assignment = wanted.partition(":")
        path, equals, value = assignment.partition("=")
        if not equals or not path:
            raise BadEdit(f"{wanted}: Kind/namespace/name:path=value is expected")
        key = _find(kept, target)
        kept[key] = wire.Document(raw=_with(kept[key].raw, path.split("."), wire.parse_value(value)), source=wanted)
    for node in edit.drain:
        key = _find(kept, f"Node/{node}")
        raw = kept[key].raw
        emptied = {**raw, "spec": {**(raw.get("spec") or {}), "unschedulable": True}}
        kept[key] = wire.Document(raw=emptied, source=kept[key].source)
    there = _devices_on(set(edit.drain), kept.values())
    return [_left(document, there) for document in kept.values()] if there else list(kept.values())


def _devices_on(nodes: set[str], documents: Iterable[wire.Document]) -> set[tuple[str, str, str]]:
    """(driver, pool, device) of what the slices of `nodes` publish."""
    found: set[tuple[str, str, str]] = set()
    for document in documents:
        spec = document.raw.get("spec") or {}
        if document.raw.get("kind") == "ResourceSlice" and spec.get("nodeName") in nodes:
            driver, pool = str(spec.get("driver")), str((spec.get("pool") or {}).get("name"))
            found.update((driver, pool, str(device.get("name"))) for device in spec.get("devices") or ())
    return found


def _left(document: wire.Document, there: set[tuple[str, str, str]]) -> wire.Document:
    """A drained node's replicas leave it: the claim of an order holds nothing any more, that of anybody else stays."""
    raw = document.raw
    labels = (raw.get("metadata") or {}).get("labels") or {}
    if raw.get("kind") != "ResourceClaim" or ORDER_LABEL not in labels:
        return document
    status = raw.get("status") or {}
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    if not any((result.get("driver"), result.get("pool"), result.get("device")) in there for result in results):
        return document
    kept = {key: value for key, value in status.items() if key != "allocation"}
    return wire.Document(raw={**raw, "status": kept}, source=document.source)


def _name(raw: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = raw.get("metadata") or {}
    return str(raw.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name"))


def _find(kept: Mapping[tuple[str, str, str], wire.Document], wanted: str) -> tuple[str, str, str]:
    parts = wanted.split("/")
    if len(parts) not in (2, 3):
        raise BadEdit(f"{wanted}: Kind/name or Kind/namespace/name is expected")
    kind, name = parts[0].lower(), parts[-1]
    namespace = parts[1] if len(parts) == 3 else None
    found = [
        key
        for key in kept
        if key[0].lower() == kind and key[2] == name and (namespace is None or (key[1] or "default") == namespace)
    ]
    if len(found) != 1:
        raise BadEdit(f"{wanted}: {'no such object' if not found else 'in several namespaces: name one'}")
    return found[0]


def _with(raw: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    base = raw if isinstance(raw, Mapping) else {}
    return {**base, path[0]: _with(base.get(path[0]), path[1:], value)}


def _short(plan: OrderPlan | None) -> dict[str, Any] | None:
    """What matters of a plan to somebody who asks what would change."""
    if plan is None:
        return None
    told: dict[str, Any] = {"decision": plan.decision.value, "reason": plan.reason}
    if plan.device_class is not None and plan.placement is not None and plan.sharing is not None:
        told["deviceClassName"] = plan.device_class
        told["placementType"] = plan.placement.value
        told["sharingMode"] = plan.sharing.value
        told["devices"] = [str(device) for device in plan.devices]
    if plan.bounds is not None:
        told["bound"] = plan.bounds.bound
    if plan.refusal is not None:
        told["message"] = plan.message
    return told
