# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Intents → the API server, order by order, up to four orders at once. Knows the server and no rule of placement.

An order's objects are written in the order of `kinds.APPLIED`, the set last, so that an order that is refused holds no
device. Every refusal stays with its order. Names not known to be ours, and the Secret that the order names for access
to its model, are looked at before anything is written. What a Secret holds stays in `api`: here are its keys at most.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lib.ai_inference import decide, kinds, names, render, values
from lib.ai_inference.conditions import Outcome
from lib.ai_inference.decide import Apply, Delete, Nudge, Record, Scale, SetStatus
from lib.ai_inference.world import Key, Order, Replica, Workload

if TYPE_CHECKING:
    from lib.ai_inference.api import Api, Refusal
    from lib.ai_inference.classes import ClassStatus

WRITERS: Final = 4
RUN_SECONDS: Final = 10.0
"""A run begins no further order after this long: who orders while three hundred others are set up waits no longer, and
those others see what became of them."""
_STATUS_TRIES: Final = 3
T = TypeVar("T")


class Stopped(Exception):
    """The order's sequence ends here; `outcome` is what the order is told."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.outcome = Outcome(reason=reason, message=message)


def now(at: float | None = None) -> str:
    """A time as objects state it; `at` in seconds since the epoch, the present by default."""
    moment = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def run(work: decide.Work) -> dict[Key, Outcome]:
    """Write the workloads; how each attempted order ended. What the run did not come to is left to the next one.

    Raises api.Unreachable, after all orders were tried, when the server gave no answer.
    """
    from lib.ai_inference.api import Api, Refusal, Unreachable

    api = Api(WRITERS)
    outcomes: dict[Key, Outcome] = {}
    lost: list[Unreachable] = []
    end = time.monotonic() + RUN_SECONDS

    def write(apply: Apply) -> None:
        if time.monotonic() > end:
            return
        try:
            outcomes[apply.key] = _apply(api, apply)
        except Stopped as stopped:
            outcomes[apply.key] = stopped.outcome
        except Unreachable as error:
            lost.append(error)

    def scale(item: tuple[Order, Scale]) -> None:
        order, wanted = item
        try:
            _scale(api, order, wanted)
        except Refusal as refusal:
            outcomes[order.key] = _refused("StatefulSet", wanted.name, refusal).outcome
        except Unreachable as error:
            lost.append(error)

    def remove(item: Delete) -> None:
        try:
            api.delete(kinds.path(item.kind, item.namespace, item.name), uid=item.uid)
        except (Refusal, Unreachable) as error:
            _say(f"{item.kind} {item.namespace}/{item.name} is not deleted: {error}")

    def make_anew(item: tuple[Order, Replica]) -> None:
        try:
            _make_anew(api, *item)
        except (Refusal, Unreachable) as error:
            _say(f"Pod {item[1].namespace}/{item[1].name} is not made anew: {error}")

    def nudge(item: Nudge) -> None:
        body = {"metadata": {"annotations": {names.RETRIED: now()}}}
        try:
            _merge(api, kinds.path(item.kind, item.namespace, item.name), body, names.RETRY_MANAGER)
        except (Refusal, Unreachable) as error:
            _say(f"{item.kind} {item.namespace}/{item.name} is not retried: {error}")

    # The engine is not called from several threads: rendering takes about a millisecond, writing a hundred.
    _each(write, work.applies)
    _each(scale, work.scales)
    _each(remove, work.deletes)
    _each(nudge, work.nudges)
    _each(make_anew, work.stranded)
    if lost:
        raise lost[0]
    return outcomes


def report(statuses: Sequence[SetStatus], records: Sequence[Record]) -> None:
    """Publish statuses and events. A refused one is logged: the next run finds the difference again."""
    from lib.ai_inference.api import Api, Refusal, Unreachable

    api = Api(WRITERS)

    def publish(item: SetStatus) -> None:
        order = item.order
        body = {
            "apiVersion": "ai.deckhouse.io/v1alpha1",
            "kind": "InferenceService",
            "metadata": {"name": order.name, "namespace": order.namespace},
            "status": item.status,
        }
        try:
            _publish(api, kinds.path("InferenceService", order.namespace, order.name), order.uid, body)
        except Refusal as refusal:
            _say(f"status of {order.namespace}/{order.name} is refused: {refusal}")
        except Unreachable as error:
            _say(str(error))

    _each(publish, statuses)
    _each(lambda item: _note(api, item), records)


def report_classes(statuses: Sequence[ClassStatus]) -> None:
    """Publish the statuses of service classes. A refused one is logged, as with orders."""
    from lib.ai_inference.api import Api, Refusal

    api = Api(WRITERS)
    for item in statuses:
        body = {
            "apiVersion": "ai.deckhouse.io/v1alpha1",
            "kind": "InferenceServiceClass",
            "metadata": {"name": item.name},
            "status": item.status,
        }
        try:
            _publish(api, kinds.path("InferenceServiceClass", None, item.name), item.uid, body)
        except Refusal as refusal:
            _say(f"status of the class {item.name} is refused: {refusal}")


def _publish(api: Api, path: str, uid: str, body: Mapping[str, Any]) -> None:
    """Apply the status of exactly the object of that uid; one that is gone, or made again, gets nothing.

    A uid in the body does not help: the API server drops metadata from a status of a custom resource before it compares
    it. The resource version is compared, so the status is written to the very object that was looked at.
    """
    from lib.ai_inference.api import Refusal

    for _ in range(_STATUS_TRIES):
        found = api.metadata(path)
        if found is None or found.get("uid") != uid:
            return
        exact = {**body, "metadata": {**body["metadata"], "resourceVersion": found["resourceVersion"]}}
        try:
            api.apply(f"{path}/status", exact, manager=names.STATUS_MANAGER, force=True)
            return
        except Refusal as refusal:
            if refusal.missing:
                return
            if not refusal.conflict:
                raise
    # Somebody writes faster than we look: the event of that write makes the next run.


def record(api: Api, item: Record) -> None:
    """One Event, or one more count of the equal one: its name is made of what it says."""
    from lib.ai_inference.api import Refusal

    namespace = item.namespace or "default"
    text = hashlib.sha256(f"{item.uid}\0{item.reason}\0{item.message}".encode()).hexdigest()[:16]
    name, moment = f"{item.name}.{text}", now()
    body = {
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": "ai.deckhouse.io/v1alpha1", "kind": item.kind, "name": item.name, "uid": item.uid,
            **({"namespace": item.namespace} if item.namespace else {}),
        },
        "type": item.type, "reason": item.reason, "message": item.message[:1024],
        "count": 1, "firstTimestamp": moment, "lastTimestamp": moment,
        "source": {"component": "ai-inference"}, "reportingComponent": "ai-inference", "reportingInstance": "hooks",
    }  # fmt: skip
    try:
        api.request("POST", kinds.path("Event", namespace), body=body)
    except Refusal as refusal:
        if refusal.reason != "AlreadyExists":
            raise
        path = kinds.path("Event", namespace, name)
        count = int(api.request("GET", path).get("count") or 1) + 1
        _merge(api, path, {"count": count, "lastTimestamp": moment}, names.STATUS_MANAGER)


def _note(api: Api, item: Record) -> None:
    """Record an event; one that cannot be is logged, for what it tells has happened all the same."""
    from lib.ai_inference.api import Refusal, Unreachable

    try:
        record(api, item)
    except (Refusal, Unreachable) as error:
        _say(f"event {item.reason} of {item.namespace}/{item.name} is not recorded: {error}")


def _apply(api: Api, apply: Apply) -> Outcome:
    """The whole sequence of one order. Raises Stopped where it ends early, api.Unreachable when there is no answer."""
    from lib.ai_inference.api import Refusal

    try:
        objects = {item["kind"]: item for item in render.manifests(apply.values)}
    except render.Unfit as unfit:
        raise Stopped("WorkloadRefused", str(unfit)) from unfit
    _check_credentials(api, apply)
    contained = sorted(values.contained(apply.values), key=lambda identity: kinds.APPLIED.index(identity[0]))
    known = {identity: _known(api, apply, *identity) for identity in contained}
    if apply.rebuild is not None:
        set_ = apply.rebuild
        _guarded("StatefulSet", set_.name, lambda: api.delete(kinds.path(
            "StatefulSet", apply.order.namespace, set_.name), uid=set_.uid))  # fmt: skip
        raise Stopped("WorkloadProgressing", "the model volume changes: the workload is made anew")
    for kind, name in contained:
        if kind == "Secret":
            if known[kind, name] is None:
                _guarded(kind, name, lambda name=name: _make_token(api, apply, name))  # type: ignore[misc]
            continue
        _write(api, apply, objects[kind], known[kind, name])
        if kind == "StatefulSet" and known[kind, name] is None and apply.replicas != 1:
            birth = Scale(name=name, uid=None, replicas=apply.replicas)
            _guarded(kind, name, lambda birth=birth: _scale(api, apply.order, birth))  # type: ignore[misc]
    for item in decide.prunable(apply):
        try:
            api.delete(kinds.path(item.kind, item.namespace, item.name), uid=item.uid)
        except Refusal as refusal:
            raise _refused(item.kind, item.name, refusal) from refusal
    return Outcome()


def _check_credentials(api: Api, apply: Apply) -> None:
    """Look whether the Secret with the token for the model's source is there. Raises Stopped when it is not.

    The planner cannot look: it has no right to read Secrets. Of a set that stands as user and class asked for it the
    weights are fetched or about to be: what the module changes of it waits for no Secret.
    """
    secret = values.credentials(apply.order)
    standing = apply.standing.get(("StatefulSet", apply.order.name))
    edit = apply.values["workload"]["annotations"][names.EDIT]
    if secret is None or (isinstance(standing, Workload) and not standing.deleting and standing.edit == edit):
        return
    path = kinds.path("Secret", apply.order.namespace, secret)
    held = _guarded("Secret", secret, lambda: api.data_keys(path))
    keys = ", ".join(values.TOKEN_KEYS)
    if held is None:
        text = f"no Secret {secret} in the namespace {apply.order.namespace}; it has to hold a token as one of {keys}"
        raise Stopped("CredentialsMissing", text)
    if held.isdisjoint(values.TOKEN_KEYS):
        raise Stopped("CredentialsMissing", f"the Secret {secret} holds no token: none of the keys {keys} has a value")


def _known(api: Api, apply: Apply, kind: str, name: str) -> str | None:
    """The uid of the object when it stands and is this order's; None: the name is free. Raises Stopped otherwise."""
    standing = apply.standing.get((kind, name))
    if standing is not None and not standing.deleting:
        return standing.uid
    found = _guarded(kind, name, lambda: api.metadata(kinds.path(kind, apply.order.namespace, name)))
    if found is None:
        return None
    labels, annotations = found.get("labels") or {}, found.get("annotations") or {}
    if labels.get(names.MANAGED) != "true" or labels.get(names.ORDER) != apply.order.name:
        raise Stopped("NameConflict", f"{kind} {name} exists and does not belong to the order; it is left alone")
    if found.get("deletionTimestamp"):
        raise Stopped("WorkloadProgressing", f"waiting for the deletion of the former {kind} {name}")
    if annotations.get(names.ORDER_UID) != apply.order.uid:
        raise Stopped(
            "WorkloadProgressing", f"{kind} {name} is of a former order of this name; waiting for its deletion"
        )
    uid: str = found["uid"]
    return uid


def _write(api: Api, apply: Apply, manifest: Mapping[str, Any], uid: str | None) -> None:
    """Apply one object.

    Under a name that was free it is applied without force, so that a race shows as a conflict; over our own it carries
    the uid we know and takes back what somebody edited of it.
    """
    from lib.ai_inference.api import Refusal

    kind, name = manifest["kind"], manifest["metadata"]["name"]
    body = dict(manifest)
    if uid is not None:
        body["metadata"] = {**manifest["metadata"], "uid": uid}
    try:
        api.apply(
            kinds.path(kind, apply.order.namespace, name), body, manager=names.WORKLOAD_MANAGER, force=uid is not None
        )
    except Refusal as refusal:
        if refusal.conflict and uid is None and not refusal.terminating:
            raise Stopped("NameConflict", f"{kind} {name}: {refusal}") from refusal
        if refusal.replaced and uid is not None:
            raise Stopped("WorkloadProgressing", f"{kind} {name} was replaced meanwhile: {refusal}") from refusal
        raise _refused(kind, name, refusal) from refusal


def _make_token(api: Api, apply: Apply, name: str) -> None:
    """Create the order's token. Create, not apply: a token that is there is never written over."""
    from lib.ai_inference.api import Refusal

    order_values = apply.values
    body = {
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": name, "namespace": apply.order.namespace, "labels": order_values["labels"],
            "annotations": {names.ORDER_UID: apply.order.uid}, "ownerReferences": [order_values["ownerReference"]],
        },
        "stringData": {"token": secrets.token_urlsafe(32)},
    }  # fmt: skip
    query = {"fieldManager": names.WORKLOAD_MANAGER}
    try:
        api.request("POST", kinds.path("Secret", apply.order.namespace), query=query, body=body)
    except Refusal as refusal:
        if refusal.reason == "AlreadyExists":
            raise Stopped("NameConflict", f"Secret {name}: {refusal}") from refusal
        raise


def _scale(api: Api, order: Order, scale: Scale) -> None:
    body: dict[str, Any] = {"spec": {"replicas": scale.replicas}}
    if scale.uid is not None:
        body["metadata"] = {"uid": scale.uid}
    _merge(
        api, kinds.path("StatefulSet", order.namespace, scale.name, "scale"), body, f"{names.WORKLOAD_MANAGER}-scale"
    )


def _make_anew(api: Api, order: Order, pod: Replica) -> None:
    """Delete a pod that has no node, so that its set makes another one, which kube-scheduler looks at at once.

    It holds no device and runs nowhere. One that was given a node meanwhile is left: it is not the version looked at.
    """
    path = kinds.path("Pod", pod.namespace, pod.name)
    found = api.request("GET", path)
    metadata = found.get("metadata") or {}
    if metadata.get("uid") != pod.uid or (found.get("spec") or {}).get("nodeName"):
        return
    if api.delete(path, uid=pod.uid, version=metadata["resourceVersion"]):
        _note(api, decide.rescheduled(order, pod))


def _merge(api: Api, path: str, body: Mapping[str, Any], manager: str) -> None:
    from lib.ai_inference.api import MERGE

    api.request("PATCH", path, query={"fieldManager": manager}, body=body, content_type=MERGE)


def _guarded(kind: str, name: str, call: Callable[[], T]) -> T:
    from lib.ai_inference.api import Refusal

    try:
        return call()
    except Refusal as refusal:
        raise _refused(kind, name, refusal) from refusal


def _refused(kind: str, name: str, refusal: Refusal) -> Stopped:
    reason = "NamespaceTerminating" if refusal.terminating else "WorkloadRefused"
    return Stopped(reason, f"{kind} {name}: {refusal}")


def _each(call: Callable[[T], None], items: Iterable[T]) -> None:
    waiting = list(items)
    if len(waiting) < 2:
        for item in waiting:
            call(item)
        return
    with ThreadPoolExecutor(max_workers=WRITERS) as pool:
        list(pool.map(call, waiting))


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201
