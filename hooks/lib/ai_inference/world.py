# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What one run of `orders.py` sees: typed records of its snapshots and of the values the platform supplies.

Reading is total. Absent facts are None or empty, and an object that lacks what makes it ours (no label of an order) is
left out: it cannot belong to any order's workload. Everything that an order is judged by is summed up in its digest
first; of orders that are settled, by their digest, nothing more is read.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lib.ai_inference import kinds

Json = Mapping[str, Any]
Key = tuple[str, str]
"""Namespace and name of an order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An InferenceService; `plan` is None until the planner answered for the first time."""

    namespace: str
    name: str
    uid: str
    generation: int
    deleting: bool
    spec: Json
    plan: Json | None
    status: Json
    """The status without the plan: what this hook wrote last."""
    created: str = ""
    """RFC 3339; empty: not known."""

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def planned(self) -> Json | None:
        """The plan, when it answers the order as it stands now; else None."""
        if self.plan is not None and self.plan.get("observedGeneration") == self.generation:
            return self.plan
        return None

    @property
    def placement(self) -> Json | None:
        """The current plan, when it places the order; else None."""
        plan = self.planned
        return plan if plan is not None and plan.get("decision") == "Placed" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceClass:
    """What the hooks need of an InferenceServiceClass; the rest is the planner's."""

    name: str
    generation: int
    authentication: str
    strategy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An object that carries our labels; `order_uid` says whose it is, `hash` from which values it was made."""

    kind: str
    namespace: str
    name: str
    uid: str
    deleting: bool
    order_uid: str | None
    hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Standing):
    """An order's StatefulSet."""

    edit: str | None
    pod: str | None
    inputs: str | None
    placement: str | None
    release: str | None
    strategy: str | None
    replicas: int
    """What its spec asks for."""
    current: int
    """Pods it has made."""
    ready: int
    revision: str | None
    """Update revision; of the template as it stands only when `observed`."""
    observed: bool
    storage: Json | None
    blocked: str | None
    """Why ai-models does not deliver the model; None: it does or will."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A pod of an order."""

    namespace: str
    name: str
    uid: str
    deleting: bool
    owner: str | None
    release: str | None
    revision: str | None
    ready: bool
    served: bool
    """Its runtime has started at least once."""
    gates: tuple[str, ...]
    unschedulable: str | None
    """What kube-scheduler says of a pod that it found no node for."""
    unschedulable_since: str | None
    """RFC 3339."""
    waiting: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A pod or claim that a controller could not make: the only trace of it is an Event."""

    name: str
    subject_uid: str
    message: str
    created: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What the platform and the module's own build supply to every workload."""

    registry: str
    digests: Mapping[str, str]
    cluster_domain: str

    def image(self, name: str) -> str:
        return f"{self.registry}@{self.digests.get(name, '')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    orders: tuple[Order, ...]
    """Those that are not settled, by namespace and name."""
    digests: Mapping[Key, str]
    """Of every order, settled or not: the sum of what it is judged by."""
    classes: Mapping[str, ServiceClass]
    standing: Mapping[Key, tuple[Standing, ...]]
    replicas: Mapping[Key, tuple[Replica, ...]]
    refused: Mapping[str, tuple[Refused, ...]]
    """By the uid of the StatefulSet or pod that the event is about."""
    terminating: frozenset[str]
    platform: Platform

    def own(self, order: Order) -> tuple[Standing, ...]:
        """What stands for exactly this order (an order made again under an old name has another uid)."""
        return tuple(item for item in self.standing.get(order.key, ()) if item.order_uid == order.uid)

    def workload(self, order: Order) -> Workload | None:
        for item in self.own(order):
            if isinstance(item, Workload) and item.name == order.name:
                return item
        return None

    def replicas_of(self, workload: Workload, order: Order) -> tuple[Replica, ...]:
        return tuple(pod for pod in self.replicas.get(order.key, ()) if pod.owner == workload.uid)


def read(
    snapshots: Mapping[str, Sequence[Json]], values: Json, settled: Mapping[Key, str] | None = None, rules: str = ""
) -> World:
    """The world of one run, from filter results and the module's values.

    settled: digests of orders for which nothing was left to do; one that still has its digest is not read.
    rules: a digest of what the orders are judged with, templates and code; it is part of every order's digest.
    """
    texts: dict[str, list[tuple[kinds.Bound, str]]] = defaultdict(list)
    for bound in kinds.OF_ORDERS:
        for item in _items(snapshots, bound):
            # The order's own record comes first: without it nothing is done about what carries its label.
            if item["order"] and (bound is kinds.ORDERS or item["order"] in texts):
                texts[item["order"]].append((bound, item["record"]))
    classes = {item["name"]: service_class(item) for item in _items(snapshots, kinds.CLASSES)}
    events = [item for bound in (kinds.REFUSED_PODS, kinds.REFUSED_CLAIMS) for item in _items(snapshots, bound)]
    terminating = frozenset(item["name"] for item in _items(snapshots, kinds.NAMESPACES) if item["terminating"])
    supplied = platform(values)
    shared = repr((rules, sorted(classes.items()), supplied.registry, sorted(supplied.digests.items()),
                   supplied.cluster_domain))  # fmt: skip

    @functools.cache
    def around(namespace: str) -> str:
        refusals = sorted(repr(item) for item in events if item["namespace"] == namespace)
        return _digest(repr((shared, namespace in terminating, refusals)))

    digests: dict[Key, str] = {}
    orders: list[Order] = []
    standing: dict[Key, list[Standing]] = defaultdict(list)
    replicas: dict[Key, list[Replica]] = defaultdict(list)
    for joined, found in texts.items():
        namespace, _, name = joined.partition("/")
        key = namespace, name
        digests[key] = _digest("\0".join([around(namespace), *(text for _, text in found)]))
        if settled is not None and settled.get(key) == digests[key]:
            continue
        for bound, text in found:
            item = json.loads(text)
            if bound is kinds.ORDERS:
                orders.append(Order(**item))
            elif bound is kinds.WORKLOADS:
                standing[key].append(_workload(item))
            elif bound is kinds.PODS:
                replicas[key].append(_replica(item))
            else:
                standing[key].append(Standing(kind=bound.kind, **_common(item)))
    refused: dict[str, list[Refused]] = defaultdict(list)
    for item in events:
        refused[item["uid"]].append(
            Refused(name=item["name"], subject_uid=item["uid"], message=item["message"], created=item["created"])
        )
    return World(
        orders=tuple(sorted(orders, key=lambda order: order.key)),
        digests=digests,
        classes=classes,
        standing={key: tuple(items) for key, items in standing.items()},
        replicas={key: tuple(sorted(pods, key=lambda pod: pod.name)) for key, pods in replicas.items()},
        refused={uid: tuple(sorted(items, key=lambda event: event.created)) for uid, items in refused.items()},
        terminating=terminating,
        platform=supplied,
    )


def every_order(snapshots: Mapping[str, Sequence[Json]]) -> tuple[Order, ...]:
    """All orders, settled or not, by namespace and name."""
    orders = (Order(**json.loads(item["record"])) for item in _items(snapshots, kinds.ORDERS))
    return tuple(sorted(orders, key=lambda order: order.key))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _items(snapshots: Mapping[str, Sequence[Json]], bound: kinds.Bound) -> Iterable[Json]:
    return (found for entry in snapshots.get(bound.name, ()) if isinstance(found := entry.get("filterResult"), dict))


def service_class(item: Json) -> ServiceClass:
    """A class with the defaults of `api.md` for blocks that its author left out."""
    spec = item.get("spec") or {}
    return ServiceClass(
        name=item["name"],
        generation=item["generation"],
        authentication=(spec.get("exposurePolicy") or {}).get("authentication") or "Token",
        strategy=(spec.get("updatePolicy") or {}).get("strategy") or "RollingUpdate",
    )


def platform(values: Json) -> Platform:
    given = values.get("global") or {}
    images = given.get("modulesImages") or {}
    return Platform(
        registry=(images.get("registry") or {}).get("base") or "",
        digests=(images.get("digests") or {}).get("aiInference") or {},
        cluster_domain=(given.get("discovery") or {}).get("clusterDomain") or "cluster.local",
    )


def _common(item: Json) -> dict[str, Any]:
    return {
        "namespace": item["namespace"], "name": item["name"], "uid": item["uid"], "deleting": item["deleting"],
        "order_uid": item["orderUid"], "hash": item["hash"],
    }  # fmt: skip


def _workload(item: Json) -> Workload:
    blocked = None
    if item["blockedReason"]:
        blocked = ": ".join(part for part in (item["blockedReason"], item["blockedMessage"]) if part)
    same = (
        "edit",
        "pod",
        "inputs",
        "placement",
        "release",
        "strategy",
        "replicas",
        "current",
        "ready",
        "revision",
        "observed",
    )
    return Workload(
        kind="StatefulSet", **_common(item), **{name: item[name] for name in same},
        storage=item["storage"], blocked=blocked,
    )  # fmt: skip


def _replica(item: Json) -> Replica:
    same = ("namespace", "name", "uid", "deleting", "owner", "release", "revision", "ready", "served",
            "unschedulable", "waiting")  # fmt: skip
    return Replica(
        **{name: item[name] for name in same},
        gates=tuple(item["gates"]),
        unschedulable_since=item["unschedulableSince"],
    )
