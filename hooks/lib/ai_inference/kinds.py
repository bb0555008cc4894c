# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Which kinds the hooks watch, with their jq filters, and under which paths the API server serves what they write.

Filters are total: a runtime error in one drops the event and leaves the snapshot stale (shell-operator logs it and goes
on). In jq `false // null` is `null`: things take `// null`, flags take `== true` or `!= null`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lib.ai_inference import names

_META: Final = f"""
  namespace: (.metadata.namespace // ""), name: .metadata.name, uid: .metadata.uid,
  deleting: (.metadata.deletionTimestamp != null),
  orderUid: (.metadata.annotations["{names.ORDER_UID}"] // null),
  hash: (.metadata.annotations["{names.HASH}"] // null)"""


def _record(order: str, record: str) -> str:
    """What belongs to an order is kept as a text under the order's key (null: nobody's).

    The operator writes out every snapshot for every run, and texts cost it little; a run reads only the texts of the
    orders in which something changed.
    """
    return f"{{order: ({order}), record: ({record} | tojson)}}"


def _labelled(record: str) -> str:
    order = f'.metadata.labels["{names.ORDER}"]'
    return _record(f'if {order} == null then null else (.metadata.namespace // "") + "/" + {order} end', record)


# How the planner sized the model, and what it might have chosen instead, is for people.
_ORDER: Final = _record(
    '.metadata.namespace + "/" + .metadata.name',
    """{
  namespace: .metadata.namespace, name: .metadata.name, uid: .metadata.uid, generation: (.metadata.generation // 0),
  deleting: (.metadata.deletionTimestamp != null), created: (.metadata.creationTimestamp // ""),
  spec: (.spec // {}), plan: (.status.plan // null | del(.alternatives, .sizing)),
  status: ((.status // {}) | del(.plan))
}""",
)

_CLASS: Final = """{
  name: .metadata.name, uid: .metadata.uid, generation: (.metadata.generation // 0),
  deleting: (.metadata.deletionTimestamp != null), spec: (.spec // {}), status: (.status // {})
}"""

_WORKLOAD: Final = _labelled(f"""{{{_META},
  edit: (.metadata.annotations["{names.EDIT}"] // null),
  pod: (.metadata.annotations["{names.POD}"] // null),
  inputs: (.metadata.annotations["{names.INPUTS}"] // null),
  placement: (.metadata.annotations["{names.PLACEMENT}"] // null),
  blockedReason: (.metadata.annotations["{names.DELIVERY_BLOCKED_REASON}"] // null),
  blockedMessage: (.metadata.annotations["{names.DELIVERY_BLOCKED_MESSAGE}"] // null),
  release: (.spec.template.metadata.labels["{names.RELEASE}"] // null),
  strategy: (.spec.updateStrategy.type // null),
  replicas: (if .spec.replicas == null then 1 else .spec.replicas end),
  current: (.status.replicas // 0), ready: (.status.readyReplicas // 0),
  revision: (.status.updateRevision // null),
  observed: ((.status.observedGeneration // 0) >= (.metadata.generation // 0)),
  storage: ([.spec.volumeClaimTemplates[]? | select(.metadata.name == "{names.VOLUME}")
    | {{apiVersion: "v1", kind: "PersistentVolumeClaim",
        metadata: (.metadata | {{name, labels: (.labels // {{}}), ownerReferences: (.ownerReferences // [])}}),
        spec: .spec}}][0] // null)
}}""")

_UNSCHEDULABLE: Final = """.status.conditions[]?
    | select(.type == "PodScheduled" and .status == "False" and .reason == "Unschedulable")"""

_POD: Final = _labelled(f"""{{
  namespace: .metadata.namespace, name: .metadata.name, uid: .metadata.uid,
  deleting: (.metadata.deletionTimestamp != null),
  owner: ([.metadata.ownerReferences[]? | select(.controller == true) | .uid][0] // null),
  release: (.metadata.labels["{names.RELEASE}"] // null),
  revision: (.metadata.labels["controller-revision-hash"] // null),
  phase: (.status.phase // "Pending"),
  ready: ([.status.conditions[]? | select(.type == "Ready" and .status == "True")] | length > 0),
  served: ([.status.containerStatuses[]?
    | select(.name == "{names.RUNTIME_CONTAINER}" and (.started == true or (.restartCount // 0) > 0))] | length > 0),
  gates: [.spec.schedulingGates[]?.name],
  unschedulable: ([{_UNSCHEDULABLE} | (.message // "")][0] // null),
  unschedulableSince: ([{_UNSCHEDULABLE} | .lastTransitionTime][0] // null),
  waiting: ([(.status.initContainerStatuses[]?, .status.containerStatuses[]?) | select(.state.waiting.reason != null)
    | select(.state.waiting.reason != "PodInitializing" and .state.waiting.reason != "ContainerCreating")
    | "\\(.name): \\(.state.waiting.reason)"][0] // null)
}}""")

_EVENT: Final = """{
  namespace: .metadata.namespace, name: .metadata.name,
  kind: (.involvedObject.kind // ""), subject: (.involvedObject.name // ""), uid: (.involvedObject.uid // ""),
  reason: (.reason // ""), message: (.message // ""), created: (.metadata.creationTimestamp // "")
}"""

_NAMESPACE: Final = """{name: .metadata.name, terminating: (.metadata.deletionTimestamp != null)}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A kind that a hook watches: the name of its snapshot, what of it is watched and what is kept of each object."""

    name: str
    api_version: str
    kind: str
    jq: str
    labels: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    namespace: str | None = None
    runs_when_added: bool = True
    """False: a new object asks for nothing; what is to be done about it shows in a later change of it or of another
    kind. A change that was missed (the watch was down) waits for the next scheduled run."""

    def binding(self, *, group: str, queue: str) -> dict[str, Any]:
        """The entry for the `kubernetes` list of a hook's configuration."""
        entry: dict[str, Any] = {
            "name": self.name,
            "apiVersion": self.api_version,
            "kind": self.kind,
            "jqFilter": " ".join(self.jq.split()),
            "group": group,
            "queue": queue,
            "keepFullObjectsInMemory": False,
            "executeHookOnEvent": ["Added"] * self.runs_when_added + ["Modified", "Deleted"],
        }
        if self.labels:
            entry["labelSelector"] = {"matchLabels": dict(self.labels)}
        if self.fields:
            entry["fieldSelector"] = {
                "matchExpressions": [
                    {"field": name, "operator": "Equals", "value": value} for name, value in self.fields.items()
                ]
            }
        if self.names:
            entry["nameSelector"] = {"matchNames": list(self.names)}
        if self.namespace is not None:
            entry["namespace"] = {"nameSelector": {"matchNames": [self.namespace]}}
        return entry


# A new order waits for its plan, which is a change of it: a run before that would only hold up the run that counts.
ORDERS: Final = Bound(
    name="orders", api_version="ai.deckhouse.io/v1alpha1", kind="InferenceService", jq=_ORDER, runs_when_added=False
)
CLASSES: Final = Bound(name="classes", api_version="ai.deckhouse.io/v1alpha1", kind="InferenceServiceClass", jq=_CLASS)
# What is ours was made by us; what its controllers make of it is a change.
WORKLOADS: Final = Bound(
    name="workloads", api_version="apps/v1", kind="StatefulSet", labels=names.OURS, jq=_WORKLOAD, runs_when_added=False
)


def _standing(name: str, api_version: str, kind: str) -> Bound:
    return Bound(
        name=name,
        api_version=api_version,
        kind=kind,
        labels=names.OURS,
        jq=_labelled(f"{{{_META}}}"),
        runs_when_added=False,
    )


STANDING: Final = (
    _standing("claimtemplates", "resource.k8s.io/v1", "ResourceClaimTemplate"),
    _standing("services", "v1", "Service"),
    # Metadata only: what a token is must never reach a snapshot, which is a file.
    _standing("tokens", "v1", "Secret"),
    _standing("budgets", "policy/v1", "PodDisruptionBudget"),
)
"""What else stands for an order, the StatefulSet apart; all are read alike."""

PODS: Final = Bound(name="pods", api_version="v1", kind="Pod", labels={names.MANAGED: "true"}, jq=_POD)
# Refused pods and claims leave no condition anywhere, only these two events.
REFUSED_PODS: Final = Bound(
    name="refusedpods", api_version="v1", kind="Event", jq=_EVENT,
    fields={"reason": "FailedCreate", "involvedObject.kind": "StatefulSet"},
)  # fmt: skip
REFUSED_CLAIMS: Final = Bound(
    name="refusedclaims", api_version="v1", kind="Event", jq=_EVENT,
    fields={"reason": "FailedResourceClaimCreation", "involvedObject.kind": "Pod"},
)  # fmt: skip
NAMESPACES: Final = Bound(name="namespaces", api_version="v1", kind="Namespace", jq=_NAMESPACE, runs_when_added=False)

OF_ORDERS: Final = (ORDERS, WORKLOADS, *STANDING, PODS)
"""Snapshots of records that each belong to one order; the order's own comes first."""
BOUND: Final = (*OF_ORDERS, CLASSES, REFUSED_PODS, REFUSED_CLAIMS, NAMESPACES)
"""What `orders.py` watches."""

PATHS: Final = {
    "StatefulSet": "apis/apps/v1/{namespace}statefulsets",
    "Service": "api/v1/{namespace}services",
    "Secret": "api/v1/{namespace}secrets",
    "Pod": "api/v1/{namespace}pods",
    "Event": "api/v1/{namespace}events",
    "ResourceClaimTemplate": "apis/resource.k8s.io/v1/{namespace}resourceclaimtemplates",
    "PodDisruptionBudget": "apis/policy/v1/{namespace}poddisruptionbudgets",
    "InferenceService": "apis/ai.deckhouse.io/v1alpha1/{namespace}inferenceservices",
    "InferenceServiceClass": "apis/ai.deckhouse.io/v1alpha1/{namespace}inferenceserviceclasses",
}

APPLIED: Final = ("ResourceClaimTemplate", "Service", "Secret", "PodDisruptionBudget", "StatefulSet")
"""In which sequence an order's objects are written: what a set names before it; the set, which holds devices, last."""


def path(kind: str, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    """The path of an object, or of the collection when `name` is None; `namespace` None: all namespaces, or none."""
    scope = f"namespaces/{namespace}/" if namespace else ""
    tail = "".join(f"/{part}" for part in (name, subresource) if part)
    return "/" + PATHS[kind].format(namespace=scope) + tail
