# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""An order, its plan and what stands → the order's status: phase, six conditions, endpoint, replicas.

Each condition is a list of checks, read from the top; the first that answers is the condition. The lists are the
documentation. Nothing here reads a clock: `now` is given, and a condition keeps its time while its status stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lib.ai_inference import names, values
from lib.ai_inference.world import Order, Refused, Replica, ServiceClass, Workload

CLASS_REASONS: Final = ("ClassNotFound", "NamespaceNotAllowed", "ClassNotReady")
MODEL_REASONS: Final = (
    "ModelNotFound", "ModelNotReady", "CatalogDisabled", "EndpointTypeNotAllowed", "ModelTooLarge", "ModelSizeUnknown",
    "ModelFormatUnsupported", "CredentialsMissing",
)  # fmt: skip
PLAN_REASONS: Final = (
    "PlacementUndecidable", "ResourceClaimExhausted", "PlacementNotPermitted", "HardwareUnsuitable",
    "HostResourcesExhausted", "VolumePinned", "PlanPending",
)  # fmt: skip
WORKLOAD_REFUSALS: Final = ("WorkloadRefused", "NameConflict", "NamespaceTerminating", "CapabilityMissing")
REFUSALS: Final = (*WORKLOAD_REFUSALS, "CredentialsMissing")
"""What an attempt to write can end with; it stays the order's condition until an attempt ends otherwise.

Of `ModelResolved` when the Secret with the token for the model is missing, else of `WorkloadReady`.
"""

PASSING: Final = frozenset(
    {
        "PlanPending", "ClassNotReady", "ModelNotReady", "ResourceClaimExhausted", "HostResourcesExhausted",
        "VolumePinned", "WorkloadProgressing", "ModelDeliveryPending", "WorkloadRebuilding",
    }
)  # fmt: skip
"""Reasons that may go away without anybody changing the order or its class: phase `Pending` rather than `Failed`."""

TYPES: Final = ("ClassResolved", "ModelResolved", "Planned", "WorkloadReady", "RuntimeCurrent", "Ready")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How this run's attempt to write an order's workload ended; reason None: everything is applied."""

    reason: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything a condition of one order may be judged from."""

    order: Order
    service_class: ServiceClass | None
    workload: Workload | None
    replicas: tuple[Replica, ...]
    refused: tuple[Refused, ...]
    outcome: Outcome | None
    """None: nothing was attempted in this run."""
    unapplied: bool
    """What should stand is not what stands (an attempt is due, held back, or the set is not made yet)."""
    internal_url: str
    terminating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    status: str
    reason: str
    message: str


Check = Callable[[View], Verdict | None]


def _true(reason: str, message: str) -> Verdict:
    return Verdict(status="True", reason=reason, message=message)


def _false(reason: str, message: str) -> Verdict:
    return Verdict(status="False", reason=reason, message=message)


def _unknown(reason: str, message: str) -> Verdict:
    return Verdict(status="Unknown", reason=reason, message=message)


# ClassResolved, ModelResolved, Planned: read from the plan's reason, which is the first of the three that fails.


def _not_planned(view: View) -> Verdict | None:
    if view.order.planned is not None:
        return None
    return _unknown("PlanPending", "the planner has not answered this generation of the order yet")


def _plan_refuses(reasons: tuple[str, ...]) -> Check:
    def check(view: View) -> Verdict | None:
        plan = view.order.planned or {}
        if plan.get("decision") != "Placed" and plan.get("reason") in reasons:
            return _false(plan["reason"], plan.get("message") or plan["reason"])
        return None

    return check


def _earlier_refusal(reasons: tuple[str, ...]) -> Check:
    def check(view: View) -> Verdict | None:
        plan = view.order.planned or {}
        if plan.get("decision") != "Placed" and plan.get("reason") in reasons:
            return _unknown("PlanPending", f"not judged: {plan['reason']}")
        return None

    return check


def _without_credentials(view: View) -> Verdict | None:
    """Found at the attempt to write, and true until the next one: attempts are spaced, and most runs make none."""
    if view.outcome is not None:
        if view.outcome.reason == "CredentialsMissing":
            return _false(view.outcome.reason, view.outcome.message)
        return None
    return _kept(view, "ModelResolved", ("CredentialsMissing",))


def _kept(view: View, name: str, reasons: tuple[str, ...]) -> Verdict | None:
    """The condition as it is published, when it tells one of these reasons and what should stand still does not."""
    if view.unapplied:
        for condition in view.order.status.get("conditions") or ():
            if condition.get("type") == name and condition.get("reason") in reasons:
                return _false(condition["reason"], condition.get("message") or "")
    return None


def _unknown_refusal(view: View) -> Verdict | None:
    plan = view.order.planned or {}
    if plan.get("decision") != "Placed":
        return _false(plan.get("reason") or "PlacementUndecidable", plan.get("message") or "the plan gives no reason")
    return None


def _class_resolved(view: View) -> Verdict:
    return _true("ClassResolved", f"the class {view.order.spec.get('inferenceServiceClassName')} admits the order")


def _model_resolved(view: View) -> Verdict:
    plan = view.order.planned or {}
    contract = plan.get("endpointType") or "a contract that is not known yet"
    guess = " (a guess: the source states no contract)" if plan.get("endpointTypeGuessed") else ""
    return _true("ModelResolved", f"serves {plan.get('servedName') or 'the model'} as {contract}{guess}")


def _planned(view: View) -> Verdict:
    plan = view.order.planned or {}
    recipe = plan.get("recipe") or {}
    return _true(
        "LaunchPlanCalculated", f"{values.placement(plan)}; recipe {recipe.get('name')} {recipe.get('release')}"
    )


# WorkloadReady


def _being_written(view: View) -> Verdict | None:
    if view.outcome is not None and view.outcome.reason not in (None, "CredentialsMissing"):
        return _false(view.outcome.reason or "", view.outcome.message)
    return None


def _still_refused(view: View) -> Verdict | None:
    """A refusal stands until an attempt ends otherwise: attempts are spaced, and most runs make none."""
    return _kept(view, "WorkloadReady", WORKLOAD_REFUSALS) if view.outcome is None else None


def _namespace_goes(view: View) -> Verdict | None:
    if view.terminating and view.workload is None:
        return _false("NamespaceTerminating", f"the namespace {view.order.namespace} is being deleted")
    return None


def _nothing_stands(view: View) -> Verdict | None:
    if view.workload is not None:
        return None
    if view.order.placement is None:
        return _unknown("WorkloadProgressing", "no workload yet: the order is not placed")
    if _without_credentials(view) is not None:
        return _unknown("WorkloadProgressing", "no workload yet: the token for the model is missing")
    return _false("WorkloadProgressing", "the workload is being created")


def _delivery_blocked(view: View) -> Verdict | None:
    if view.workload is not None and view.workload.blocked is not None:
        return _false("ModelDeliveryBlocked", view.workload.blocked)
    return None


def _pods_refused(view: View) -> Verdict | None:
    if view.refused:
        return _false("ReplicasRefused", view.refused[-1].message)
    return None


def _enough_ready(view: View) -> Verdict | None:
    assert view.workload is not None
    needed = entitled(view)
    if view.workload.ready < needed:
        return None
    return _true("WorkloadReady", f"{view.workload.ready} of {view.workload.replicas} replicas are ready")


def _delivery_pending(view: View) -> Verdict | None:
    waiting = [pod.name for pod in view.replicas if names.DELIVERY_GATE in pod.gates]
    if not waiting:
        return None
    return _false("ModelDeliveryPending", f"ai-models is bringing the model for {', '.join(waiting)}")


def _progressing(view: View) -> Verdict:
    assert view.workload is not None
    causes = [f"{pod.name}: {cause}" for pod in view.replicas if (cause := pod.unschedulable or pod.waiting)]
    detail = f"; {causes[0]}" if causes else ""
    return _false(
        "WorkloadProgressing", f"{view.workload.ready} of {view.workload.replicas} replicas are ready{detail}"
    )


# RuntimeCurrent


def _held(view: View) -> Verdict | None:
    shipped = shipped_release(view)
    older = [pod for pod in view.replicas if pod.release not in (None, shipped) and not pod.deleting]
    if not older or shipped is None:
        return None
    current = sum(pod.release == shipped for pod in view.replicas)
    text = f"{current} of {len(view.replicas)} replicas run {shipped}; {len(older)} keep serving on {older[0].release}"
    return _false("ReplicasHeldOnPreviousRuntime", text)


def _rebuilding(view: View) -> Verdict | None:
    workload = view.workload
    if workload is None or not workload.observed or workload.strategy != "RollingUpdate":
        return None
    older = sum(pod.revision != workload.revision for pod in view.replicas)
    if not older:
        return None
    return _false("WorkloadRebuilding", f"{older} of {len(view.replicas)} replicas are still to be replaced")


def _current(view: View) -> Verdict:
    shipped = shipped_release(view)
    if shipped is None:
        return _unknown("WorkloadRebuilding", "no replica and no plan yet")
    return _true("RuntimeCurrent", f"no replica runs another release than {shipped}")


CHECKS: Final[Mapping[str, tuple[Check, ...]]] = {
    "ClassResolved": (_not_planned, _plan_refuses(CLASS_REASONS), _class_resolved),
    "ModelResolved": (
        _not_planned, _earlier_refusal(CLASS_REASONS), _plan_refuses(MODEL_REASONS), _without_credentials,
        _model_resolved,
    ),
    "Planned": (
        _not_planned, _earlier_refusal(CLASS_REASONS + MODEL_REASONS), _plan_refuses(PLAN_REASONS), _unknown_refusal,
        _planned,
    ),
    "WorkloadReady": (
        _being_written, _still_refused, _namespace_goes, _nothing_stands, _delivery_blocked, _enough_ready,
        _pods_refused, _delivery_pending, _progressing,
    ),
    "RuntimeCurrent": (_held, _rebuilding, _current),
}  # fmt: skip


def entitled(view: View) -> int:
    """Replicas that must be ready for the order to be Ready: its minimum, never more than the set was asked for."""
    assert view.workload is not None
    plan = view.order.plan or {}
    least = (plan.get("replicas") or {}).get("min") or 1
    return max(1, min(int(least), view.workload.replicas))


def shipped_release(view: View) -> str | None:
    """The runtime's release by the newest placing plan, else by the standing set; None: neither is there."""
    if view.order.placement is not None:
        return values.release(view.order.placement)
    return view.workload.release if view.workload is not None else None


def judge(view: View) -> dict[str, Verdict]:
    """The six conditions, in the order in which they are published."""
    verdicts = {
        name: next(verdict for check in checks if (verdict := check(view)) is not None)
        for name, checks in CHECKS.items()
    }
    verdicts["Ready"] = _ready(view, verdicts)
    return verdicts


def _ready(view: View, verdicts: Mapping[str, Verdict]) -> Verdict:
    for name, verdict in verdicts.items():
        if verdict.status == "True":
            continue
        if name == "RuntimeCurrent":
            # It answers as ordered; the reason still tells that something is held or being replaced.
            return _true(verdict.reason, verdict.message)
        return Verdict(status="False", reason=verdict.reason, message=verdict.message)
    blocked = scale_up_blocked(view)
    if blocked is not None:
        return _true("ScaleUpBlocked", blocked)
    return _true("Ready", verdicts["WorkloadReady"].message)


def scale_up_blocked(view: View) -> str | None:
    """Why an order that answers cannot grow to what its autoscaler asks for; None: it can or need not."""
    workload = view.workload
    if workload is None or workload.ready >= workload.replicas:
        return None
    for cause in [pod.unschedulable for pod in view.replicas] + [event.message for event in view.refused]:
        if cause:
            return f"{workload.ready} of {workload.replicas} replicas are ready; {cause}"
    return None


def phase(view: View, verdicts: Mapping[str, Verdict]) -> str:
    """`Ready`; `Degraded` (answers, but cannot grow or is not as ordered); `Pending` (may heal by itself); `Failed`."""
    ready = verdicts["Ready"]
    if ready.status == "True":
        return "Degraded" if ready.reason == "ScaleUpBlocked" else "Ready"
    if view.workload is not None and view.workload.ready > 0:
        return "Degraded"
    return "Pending" if ready.reason in PASSING else "Failed"


def status(view: View, now: str) -> dict[str, Any]:
    """The order's status without its plan. `now` (RFC 3339) is used where a condition's status has changed."""
    order, workload = view.order, view.workload
    verdicts = judge(view)
    before = {condition.get("type"): condition for condition in order.status.get("conditions") or ()}
    published: dict[str, Any] = {
        "observedGeneration": order.generation,
        "phase": phase(view, verdicts),
        "conditions": [
            condition(name, verdict, order.generation, before.get(name), now) for name, verdict in verdicts.items()
        ],
    }
    plan = order.planned or order.plan or {}
    published["model"] = _present(
        endpointType=plan.get("endpointType"), servedName=plan.get("servedName"), revision=plan.get("modelRevision")
    )
    if view.service_class is not None and (workload is not None or order.placement is not None):
        token = f"{order.name}-token" if view.service_class.authentication == "Token" else None
        published["endpoint"] = _present(
            # One address until routes are made: also of a class that is External.
            url=view.internal_url, internalURL=view.internal_url,
            authentication=view.service_class.authentication, tokenSecretName=token,
        )  # fmt: skip
    elif order.status.get("endpoint") and workload is not None:
        published["endpoint"] = order.status["endpoint"]
    bounds = plan.get("replicas") or {}
    published["replicas"] = _present(
        ready=workload.ready if workload is not None else 0,
        current=workload.current if workload is not None else 0,
        desired=workload.replicas if workload is not None else None,
        min=bounds.get("min"), max=bounds.get("max"), bound=bounds.get("bound"),
    )  # fmt: skip
    shipped = shipped_release(view)
    published["runtime"] = _present(
        shippedRelease=shipped,
        replicasOnShipped=sum(pod.release == shipped for pod in view.replicas) if shipped is not None else None,
    )
    return {name: part for name, part in published.items() if part != {}}


def condition(
    name: str, verdict: Verdict, generation: int, before: Mapping[str, Any] | None, now: str
) -> dict[str, Any]:
    """One entry of `status.conditions`; its time is that of the last change of its status."""
    same = before is not None and before.get("status") == verdict.status
    return {
        "type": name,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": verdict.message[:32768],
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if same and before is not None else now,
    }


def _present(**parts: Any) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if part is not None}
