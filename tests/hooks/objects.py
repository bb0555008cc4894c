# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Objects of tests about orders: small, valid, and changed by keyword. Plans are what the planner would write."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import orders
from lib.ai_inference import decide, names, render, world

from tests.hooks import bindings

NAMESPACE = "team-a"


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def plan(**changes: Any) -> dict[str, Any]:
    """A plan that places the order on a share of one device; a change of None takes a key away."""
    found: dict[str, Any] = {
        "observedGeneration": 1, "decision": "Placed", "reason": "LaunchPlanCalculated", "message": "placed",
        "endpointType": "Chat", "endpointTypeGuessed": False, "servedName": "qwen3",
        "deviceClassName": "a30", "placementType": "WholeDevice", "sharingMode": "Shared",
        "share": {"memory": "8Gi", "computePercent": 40}, "acceleratorCount": 1,
        "devices": [{"driver": "gpu.deckhouse.io", "pool": "gpus/n1", "name": "gpu-0"}], "nodes": [],
        "deviceRequest": {"selectors": [], "capacity": {"memory": "8Gi"}, "config": [], "tolerations": []},
        "recipe": {
            "name": "qwen3", "release": "1.0", "strategy": "Throughput", "contextLength": 8192, "concurrency": 8,
            "parameters": {"maxModelLen": "8192"},
        },
        "hostResources": {"cpu": "2", "memory": "12Gi", "sharedMemory": "1Gi"},
        "sizing": {"source": "Recipe", "weights": "3Gi", "kvCache": "3Gi", "overhead": "1Gi", "total": "7Gi"},
        "replicas": {"min": 1, "max": 1, "bound": 1},
    }  # fmt: skip
    return {key: value for key, value in {**found, **changes}.items() if value is not None}


def refused(reason: str, message: str = "because", **changes: Any) -> dict[str, Any]:
    found = {"observedGeneration": 1, "decision": "Refused", "reason": reason, "message": message, "alternatives": []}
    return {**found, **changes}


def order(
    name: str = "chat",
    *,
    namespace: str = NAMESPACE,
    number: int = 1,
    generation: int = 1,
    planned: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    service_class: str = "default",
    status: Mapping[str, Any] | None = None,
    deleting: bool = False,
) -> dict[str, Any]:
    """An InferenceService. `planned` None: the planner has not answered yet."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid(number), "generation": generation}
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-30T10:00:00Z"
    found = {**(status or {}), **({"plan": dict(planned)} if planned is not None else {})}
    return {
        "apiVersion": "ai.deckhouse.io/v1alpha1",
        "kind": "InferenceService",
        "metadata": metadata,
        "spec": {
            "inferenceServiceClassName": service_class,
            "model": dict(model or {"src": "ai-models", "ref": {"kind": "Model", "name": "qwen3"}}),
        },
        **({"status": found} if found else {}),
    }


HUGGING_FACE = {"src": "HuggingFace", "ref": {"name": "Qwen/Qwen3-1.7B"}}
VOLUME = {"size": "16Gi", "storageClassName": "fast"}


def service_class(name: str = "default", *, generation: int = 1, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ai.deckhouse.io/v1alpha1",
        "kind": "InferenceServiceClass",
        "metadata": {"name": name, "uid": uid(900), "generation": generation},
        "spec": {"modelPolicy": {"allowedEndpointTypes": ["Chat"]}, **spec},
    }


def stood(
    *objects: Mapping[str, Any],
    ready: bool = True,
    replicas: int = 1,
    served: bool | None = None,
    start: int = 100,
) -> list[dict[str, Any]]:
    """What a cluster would hold after the order's objects were applied and its pods made: input objects are returned
    with the workload of every placed order among them, its token Secret and its pods."""
    found = [dict(item) for item in objects]
    seen = world.read(bindings.snapshots(orders.CONFIG, found), bindings.values())
    number = start
    for item in seen.orders:
        apply = decide.wanted(seen, item, render.templates_digest())
        if apply is None:
            continue
        for manifest in render.manifests(apply.values):
            number += 1
            made = copy.deepcopy(manifest)
            made["metadata"] |= {"uid": uid(number), "generation": 1}
            if made["kind"] == "StatefulSet":
                made["spec"]["replicas"] = replicas
                made["status"] = {
                    "replicas": replicas, "readyReplicas": replicas if ready else 0, "observedGeneration": 1,
                    "updateRevision": "r1", "currentRevision": "r1",
                }  # fmt: skip
                found += [
                    pod(made, ordinal, ready=ready, served=ready if served is None else served)
                    for ordinal in range(replicas)
                ]
            found.append(made)
        if apply.values["token"]:
            number += 1
            found.append(token(item, uid(number)))
    return found


def token(of: world.Order, secret_uid: str) -> dict[str, Any]:
    metadata = {
        "name": f"{of.name}-token", "namespace": of.namespace, "uid": secret_uid, "labels": names.labels(of.name),
        "annotations": {names.ORDER_UID: of.uid},
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"token": "c2VjcmV0"}}


def pod(
    workload: Mapping[str, Any],
    ordinal: int = 0,
    *,
    ready: bool = True,
    served: bool = True,
    revision: str = "r1",
    release: str | None = None,
    unschedulable: str | None = None,
    since: str | None = "2026-11-30T10:00:00Z",
    gates: tuple[str, ...] = (),
) -> dict[str, Any]:
    """A pod of a rendered StatefulSet."""
    metadata = workload["metadata"]
    labels = {**workload["spec"]["template"]["metadata"]["labels"], "controller-revision-hash": revision}
    if release is not None:
        labels[names.RELEASE] = release
    conditions: list[dict[str, Any]] = [{"type": "Ready", "status": "True"}] if ready else []
    if unschedulable is not None:
        conditions.append(
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": unschedulable,
                "lastTransitionTime": since,
            }
        )
    status: dict[str, Any] = {"phase": "Running" if served else "Pending", "conditions": conditions}
    if served:
        status["containerStatuses"] = [{"name": "runtime", "started": True, "restartCount": 0}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{metadata['name']}-{ordinal}", "namespace": metadata["namespace"],
            "uid": uid(5000 + ordinal), "labels": labels,
            "ownerReferences": [{"controller": True, "uid": metadata["uid"], "kind": "StatefulSet"}],
        },
        "spec": {"schedulingGates": [{"name": gate} for gate in gates]},
        "status": status,
    }  # fmt: skip


def event(subject: Mapping[str, Any], reason: str, message: str) -> dict[str, Any]:
    metadata = subject["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata['name']}.1", "namespace": metadata["namespace"], "uid": uid(7000),
            "creationTimestamp": "2026-11-30T10:00:00Z",
        },
        "involvedObject": {"kind": subject["kind"], "name": metadata["name"], "uid": metadata["uid"]},
        "reason": reason,
        "message": message,
    }  # fmt: skip


def only(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The one object of that kind among these; raises ValueError when there is none or more than one."""
    (found,) = [item for item in objects if item["kind"] == kind]
    return found
