# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Snapshots → what is to be written: which orders are applied, what is deleted, which statuses and events are new.

Pure. Nothing goes because a list was empty: an object is deleted only after a complete apply of its own order, and an
order that is not placed at present, or whose plan is of an earlier generation, leaves what stands as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from lib.ai_inference import conditions, names, values
from lib.ai_inference.conditions import Outcome, View
from lib.ai_inference.world import Key, Order, Refused, Replica, Standing, Workload, World

NO_CLAIM: Final = "cannot allocate all claims"
"""kube-scheduler's words (1.34 to 1.37) for a pod that no node has the devices for."""
PLAN_ARRIVES_WITHIN: Final = timedelta(seconds=5)
"""How long a new order waits for its plan before it is told that it waits (a schedule runs at least every 30 s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A StatefulSet is to be given `replicas` through its scale subresource; `uid` None: it is about to be born."""

    name: str
    uid: str | None
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nudge:
    """A controller that backs off for minutes is made to look again: an annotation on what it failed at."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An Event on an order (or a class: namespace empty). Equal events share a name, so that they count up."""

    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """The workload of one order is to stand as `values` say. `standing`: what stands of it, by kind and name."""

    order: Order
    values: Mapping[str, Any]
    hash: str
    standing: Mapping[tuple[str, str], Standing]
    replicas: int
    """Of the set at its birth."""
    rebuild: Workload | None
    """A set that must go first, because a region that cannot be changed in place has to."""

    @property
    def key(self) -> Key:
        return self.order.key


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatus:
    order: Order
    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Everything to be written for the orders' workloads in one run."""

    wanted: Mapping[Key, Apply]
    """What should stand, of each order that is placed and is not known to stand exactly so."""
    unfit: Mapping[Key, Outcome]
    """Orders whose plan does not say what its contract promises."""
    applies: tuple[Apply, ...]
    scales: tuple[tuple[Order, Scale], ...]
    deletes: tuple[Delete, ...]
    nudges: tuple[Nudge, ...]
    stranded: tuple[tuple[Order, Replica], ...]
    """Replicas that kube-scheduler finds no device for, though the current plan has room for them."""
    busy: frozenset[Key]
    """Orders that any of this is for."""


def work(world: World, templates: str) -> Work:
    """What differs between what should stand and what stands. `templates` is the digest of the order templates.

    Serving orders come first, then the oldest names: a module upgrade is felt last by those who have nothing yet.
    """
    wanted_by_key: dict[Key, Apply] = {}
    unfit: dict[Key, Outcome] = {}
    applies: list[Apply] = []
    scales: list[tuple[Order, Scale]] = []
    deletes: list[Delete] = []
    nudges: list[Nudge] = []
    without_device: list[tuple[Order, Replica]] = []
    found: tuple[Sized, ...] = (applies, scales, deletes, nudges, without_device)
    busy: set[Key] = set()
    for order in world.orders:
        if order.deleting:
            continue
        workload = world.workload(order)
        try:
            apply = wanted(world, order, templates, always=False)
        except (KeyError, TypeError, ValueError) as error:
            unfit[order.key] = Outcome(reason="WorkloadRefused", message=f"the plan cannot be read: {error!r}")
            continue
        if apply is not None:
            wanted_by_key[order.key] = apply
        before = sum(map(len, found))
        if apply is not None and differs(apply):
            applies.append(apply)
        elif workload is not None:
            scale = clamped(order, workload)
            if scale is not None:
                scales.append((order, scale))
            without_device += ((order, pod) for pod in stranded(world, order, workload))
        if workload is not None:
            deletes += never_served(world, order, workload)
            nudges += refused_by_controllers(world, order, workload)
        if sum(map(len, found)) > before:
            busy.add(order.key)
    applies.sort(key=lambda item: -(_ready(world, item.order)))
    return Work(wanted=wanted_by_key, unfit=unfit, applies=tuple(applies), scales=tuple(scales), deletes=tuple(deletes),
                nudges=tuple(nudges), stranded=tuple(without_device), busy=frozenset(busy))  # fmt: skip


def wanted(world: World, order: Order, templates: str, *, always: bool = True) -> Apply | None:
    """What should stand for the order; None: leave everything as it is (no current placement, or no class to read).

    Unless `always`, None also when what stands is seen to have been made from the same inputs, without computing the
    values again: a run over a thousand orders must cost what changed.
    """
    plan = order.placement
    service_class = world.classes.get(order.spec.get("inferenceServiceClassName") or "")
    if plan is None or service_class is None:
        return None
    workload = world.workload(order)
    inputs = values.inputs(order, plan, service_class, world.platform, templates)
    if not always and workload is not None and stands(world, order, workload, inputs, service_class.strategy):
        return None
    outdated = workload is not None and bool(older_replicas(world, order, workload))
    order_values = values.stamped(
        values.of(order, plan, service_class, world.platform, standing=workload, outdated=outdated), templates, inputs
    )
    rebuild = workload
    if workload is not None and (workload.storage is None) == (not order_values["storage"]):
        rebuild = None
    return Apply(
        order=order,
        values=order_values,
        hash=order_values["annotations"][names.HASH],
        standing={(item.kind, item.name): item for item in world.own(order)},
        replicas=birth_replicas(plan),
        rebuild=rebuild,
    )


def stands(world: World, order: Order, workload: Workload, inputs: str, strategy: str) -> bool:
    """Whether the order's objects are complete, of one apply, and made from these inputs; held replicas excepted."""
    own = world.own(order)
    return (
        workload.inputs == f"{inputs}.{len(own)}"
        and workload.strategy == strategy
        and not any(item.deleting for item in own)
        and all(item.hash == workload.hash for item in own if item.kind != "Secret")
    )


def differs(apply: Apply) -> bool:
    """An object is missing, on its way out, made from other values, or stands without being contained any more."""
    for identity in values.contained(apply.values):
        standing = apply.standing.get(identity)
        if standing is None or standing.deleting:
            return True
        # The token Secret is created once and never applied again.
        if standing.hash != apply.hash and standing.kind != "Secret":
            return True
    return bool(prunable(apply))


def prunable(apply: Apply) -> tuple[Standing, ...]:
    """What stands of this order and is contained no longer. Tokens stay: clients hold them; they go with the order."""
    keep = values.contained(apply.values)
    return tuple(
        item
        for identity, item in apply.standing.items()
        if identity not in keep and item.kind != "Secret" and not item.deleting
    )


def birth_replicas(plan: Mapping[str, Any]) -> int:
    replicas = plan["replicas"]
    return max(1, min(int(replicas["min"]), int(replicas["bound"])))


def clamped(order: Order, workload: Workload) -> Scale | None:
    """Bring a set back between its bounds: a birth that was interrupted, an edited class, a lowered bound.

    Within the bounds the number belongs to the autoscaler (or to whoever scaled it) and is left alone.
    """
    plan = order.placement
    if plan is None or workload.deleting:
        return None
    least, most = birth_replicas(plan), max(1, int(plan["replicas"]["bound"]))
    replicas = min(max(workload.replicas, least), most)
    if replicas == workload.replicas:
        return None
    return Scale(name=workload.name, uid=workload.uid, replicas=replicas)


def older_replicas(world: World, order: Order, workload: Workload) -> tuple[Replica, ...]:
    """Replicas of an earlier template. A set whose status lags behind its spec is taken to have only such."""
    pods = world.replicas_of(workload, order)
    if not workload.observed:
        return pods
    return tuple(pod for pod in pods if pod.revision != workload.revision)


def never_served(world: World, order: Order, workload: Workload) -> tuple[Delete, ...]:
    """Pods of an earlier template that never served anybody: `OnDelete` alone would keep them pending for ever."""
    if not workload.observed or workload.deleting or workload.strategy != "OnDelete":
        return ()
    return tuple(
        Delete(kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
        for pod in older_replicas(world, order, workload)
        if not pod.served and not pod.ready and not pod.deleting
    )


def stranded(world: World, order: Order, workload: Workload) -> tuple[Replica, ...]:
    """Replicas without a device that the plan has room for.

    kube-scheduler (1.34 to 1.37, `GatherAllocatedState`) counts a share twice between seeing its claim allocated and
    dropping it from what it has in flight; devices that are not shared are a set, in which nothing counts twice. A pod
    that it judges in between waits until some claim is deallocated, or for five minutes, with the device free for it.
    """
    if order.placement is None or workload.deleting:
        return ()
    return tuple(
        pod
        for pod in world.replicas_of(workload, order)
        if not pod.deleting and not pod.served and NO_CLAIM in (pod.unschedulable or "")
    )


def refusals(world: World, order: Order, workload: Workload) -> tuple[Refused, ...]:
    """Events about pods and claims that could not be made and still are not; older ones are history."""
    found: list[Refused] = []
    if workload.current < workload.replicas:
        found += world.refused.get(workload.uid, ())
    for pod in world.replicas_of(workload, order):
        # A pod whose claim was refused has no condition at all; once it has one the claim is there.
        if not pod.ready and not pod.served and pod.unschedulable is None and not pod.waiting and not pod.gates:
            found += world.refused.get(pod.uid, ())
    return tuple(sorted(found, key=lambda event: (event.created, event.name)))


def refused_by_controllers(world: World, order: Order, workload: Workload) -> tuple[Nudge, ...]:
    subjects = {event.subject_uid for event in refusals(world, order, workload)}
    nudges = [Nudge(kind="StatefulSet", namespace=order.namespace, name=workload.name)] * (workload.uid in subjects)
    nudges += [
        Nudge(kind="Pod", namespace=pod.namespace, name=pod.name)
        for pod in world.replicas_of(workload, order)
        if pod.uid in subjects
    ]
    return tuple(nudges)


def reports(
    world: World, due: Work, outcomes: Mapping[Key, Outcome], now: str, left: Collection[Key] = ()
) -> tuple[tuple[SetStatus, ...], tuple[Record, ...]]:
    """Statuses that changed and the events that go with them.

    `outcomes`: of the orders that were attempted. `left`: orders that the run did not come to; the next reports them.
    """
    statuses: list[SetStatus] = []
    records: list[Record] = []
    for order in world.orders:
        # In a namespace in deletion an order held by a finalizer is told why it gets nothing, deleted or new as it is.
        if order.namespace not in world.terminating and (order.deleting or newborn(order, now)):
            continue
        if order.key in left:
            continue
        outcome = due.unfit.get(order.key) or outcomes.get(order.key)
        seen = view(world, order, due.wanted.get(order.key), outcome)
        status = conditions.status(seen, now)
        if status != dict(order.status):
            statuses.append(SetStatus(order=order, status=status))
        records += events(order, seen, status)
    return tuple(statuses), tuple(records)


def newborn(order: Order, now: str) -> bool:
    """Made a moment ago, neither planned nor reported: its plan is on the way, and a status before it costs a run."""
    if order.plan is not None or order.status or not order.created:
        return False
    return datetime.fromisoformat(now) - datetime.fromisoformat(order.created) < PLAN_ARRIVES_WITHIN


def view(world: World, order: Order, apply: Apply | None, outcome: Outcome | None) -> View:
    workload = world.workload(order)
    return View(
        order=order,
        service_class=world.classes.get(order.spec.get("inferenceServiceClassName") or ""),
        workload=workload,
        replicas=world.replicas_of(workload, order) if workload is not None else (),
        refused=refusals(world, order, workload) if workload is not None else (),
        outcome=outcome,
        unapplied=apply is not None and differs(apply),
        internal_url=f"http://{order.name}.{order.namespace}.svc.{world.platform.cluster_domain}:80",
        terminating=order.namespace in world.terminating,
    )


def events(order: Order, seen: View, status: Mapping[str, Any]) -> Sequence[Record]:
    """Events of one order in this run. Each follows a change written in the same run, so none repeats by itself."""
    found: list[tuple[str, str, str]] = []
    before = {item.get("type"): item for item in order.status.get("conditions") or ()}.get("WorkloadReady") or {}
    outcome, workload, plan = seen.outcome, seen.workload, order.placement
    if outcome is not None and outcome.reason == "WorkloadRefused" and outcome.message != before.get("message"):
        found.append(("Warning", "WorkloadRefused", outcome.message))
    applied = outcome is not None and outcome.reason is None
    if applied and workload is not None and plan is not None:
        placement = values.placement(plan)
        if workload.placement not in (None, placement):
            found.append(("Normal", "PlanChanged", f"{workload.placement} → {placement}"))
        settled = diverging(workload, plan)
        if settled is not None:
            found.append(("Warning", "SettledRegionKept", settled))
    old, new = ((part.get("replicas") or {}).get("bound") for part in (order.status, status))
    if old is not None and new is not None and old != new and _same_class_bounds(order.status, status):
        reason, kind = ("BoundLowered", "Warning") if new < old else ("BoundRestored", "Normal")
        found.append((kind, reason, f"replicas are bound to {new} (was {old})"))
    return [
        Record(
            kind="InferenceService", namespace=order.namespace, name=order.name, uid=order.uid,
            type=kind, reason=reason, message=message,
        )
        for kind, reason, message in found
    ]  # fmt: skip


def rescheduled(order: Order, pod: Replica) -> Record:
    """The event of a stranded replica that is made anew."""
    return Record(
        kind="InferenceService", namespace=order.namespace, name=order.name, uid=order.uid,
        type="Normal", reason="ReplicaRescheduled",
        message=f"{pod.name} is made anew, so that it is looked at again: its plan has room; {pod.unschedulable}",
    )  # fmt: skip


def diverging(workload: Workload, plan: Mapping[str, Any]) -> str | None:
    """How the settled model volume differs from what the plan asks for now; None: it does not."""
    volume = plan.get("volume")
    if not volume or workload.storage is None:
        return None
    spec = workload.storage["spec"]
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    storage_class = spec.get("storageClassName") or ""
    if (size, storage_class) == (str(volume["size"]), volume.get("storageClassName") or ""):
        return None
    return (
        f"the model volume keeps {size} of {storage_class or 'the default storage class'}; "
        f"the plan asks for {volume['size']} of {volume.get('storageClassName') or 'the default storage class'}"
    )


def _same_class_bounds(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return all(
        (old.get("replicas") or {}).get(name) == (new.get("replicas") or {}).get(name) for name in ("min", "max")
    )


def _ready(world: World, order: Order) -> int:
    workload = world.workload(order)
    return min(1, workload.ready) if workload is not None else 0
