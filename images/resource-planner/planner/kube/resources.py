# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The kinds that a snapshot is made of, and of each the fields that are kept.

An object is cut down to its needed fields as soon as it is parsed: heartbeat times, managed fields, container images
and environment never enter the planner's memory, and a change of them alone wakes nobody. What is kept has the shape of
the real object, so that `wire` reads a live view and a `kubectl get -o yaml` dump with the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Object = Mapping[str, Any]

MANAGED: Final = "ai-inference.deckhouse.io/managed"


def _keep(source: Mapping[str, Any] | None, names: Iterable[str]) -> dict[str, Any]:
    source = source or {}
    return {name: source[name] for name in names if source.get(name) is not None}


def _metadata(raw: Object, *extra: str) -> dict[str, Any]:
    """Identity, age, labels and owners; `extra` names further fields to keep."""
    kept = _keep(
        raw.get("metadata"),
        ("name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp", "labels", *extra),
    )
    owners = (raw.get("metadata") or {}).get("ownerReferences")
    if owners:
        kept["ownerReferences"] = [
            _keep(owner, ("apiVersion", "kind", "name", "uid", "controller")) for owner in owners
        ]
    return kept


def _order(raw: Object) -> dict[str, Any]:
    return {
        "metadata": _metadata(raw),
        "spec": raw.get("spec") or {},
        "status": _keep(raw.get("status"), ("plan",)),
    }


def _spec_only(raw: Object) -> dict[str, Any]:
    return {"metadata": _metadata(raw), "spec": raw.get("spec") or {}}


def _claim(raw: Object) -> dict[str, Any]:
    return {
        "metadata": _metadata(raw),
        "spec": raw.get("spec") or {},
        "status": _keep(raw.get("status"), ("allocation", "reservedFor")),
    }


def _node(raw: Object) -> dict[str, Any]:
    status = raw.get("status") or {}
    ready = [_keep(c, ("type", "status")) for c in status.get("conditions") or () if c.get("type") == "Ready"]
    return {
        "metadata": _metadata(raw),
        "spec": _keep(raw.get("spec"), ("unschedulable", "taints")),
        "status": {**_keep(status, ("allocatable",)), "conditions": ready},
    }


def _namespace(raw: Object) -> dict[str, Any]:
    return {"metadata": _metadata(raw), "status": _keep(raw.get("status"), ("phase",))}


def _container(raw: Mapping[str, Any]) -> dict[str, Any]:
    requests = (raw.get("resources") or {}).get("requests")
    return _keep(raw, ("name", "restartPolicy")) | ({"resources": {"requests": requests}} if requests else {})


def _pod(raw: Object) -> dict[str, Any]:
    spec = raw.get("spec") or {}
    kept = _keep(spec, ("nodeName", "overhead"))
    pod_level = (spec.get("resources") or {}).get("requests")
    if pod_level:
        kept["resources"] = {"requests": pod_level}
    for name in ("initContainers", "containers"):
        if spec.get(name):
            kept[name] = [_container(container) for container in spec[name]]
    metadata = _keep(raw.get("metadata"), ("name", "namespace", "uid", "deletionTimestamp"))
    labels = (raw.get("metadata") or {}).get("labels") or {}
    metadata["labels"] = {key: value for key, value in labels.items() if key.startswith("ai-inference.deckhouse.io/")}
    return {"metadata": metadata, "spec": kept, "status": _keep(raw.get("status"), ("phase",))}


def _volume_claim(raw: Object) -> dict[str, Any]:
    return {
        "metadata": _metadata(raw, "annotations"),
        "spec": _keep(raw.get("spec"), ("volumeName", "storageClassName", "accessModes", "resources")),
        "status": _keep(raw.get("status"), ("phase", "capacity")),
    }


def _volume(raw: Object) -> dict[str, Any]:
    return {
        "metadata": _metadata(raw),
        "spec": _keep(raw.get("spec"), ("nodeAffinity", "claimRef", "storageClassName", "capacity")),
        "status": _keep(raw.get("status"), ("phase",)),
    }


def _storage_class(raw: Object) -> dict[str, Any]:
    return {
        "metadata": _metadata(raw, "annotations"),
        **_keep(raw, ("provisioner", "volumeBindingMode", "allowedTopologies")),
    }


def _workload(raw: Object) -> dict[str, Any]:
    return {"metadata": _metadata(raw), "spec": _keep(raw.get("spec"), ("replicas",))}


def _model(raw: Object) -> dict[str, Any]:
    return {"metadata": _metadata(raw), "spec": raw.get("spec") or {}, "status": raw.get("status") or {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind to be watched: where it is served, what is kept of it, and whether planning needs it."""

    kind: str
    plural: str
    versions: tuple[str, ...]
    """Group and version, the newest first; a server that lacks one is asked for the next."""
    keep: Callable[[Object], dict[str, Any]]
    optional: bool = False
    """True: a server that does not know the kind is a fact (`absent`), not a failure."""
    asks: bool = False
    """True: who changes such an object waits for an answer. The others tell what became of earlier answers."""
    page: int = 500
    """Objects in one page of the first list."""
    query: Mapping[str, str]
    """Selectors that narrow list and watch."""

    def cut(self, raw: Object, version: str) -> dict[str, Any]:
        """The kept part of `raw`, with the `apiVersion` and `kind` that lists leave out of their items."""
        return {"apiVersion": version, "kind": self.kind, **self.keep(raw)}

    def path(self, version: str) -> str:
        """The collection's path, all namespaces."""
        return f"{'/apis' if '/' in version else '/api'}/{version}/{self.plural}"


def _resource(
    kind: str,
    plural: str,
    keep: Callable[[Object], dict[str, Any]],
    *versions: str,
    optional: bool = False,
    asks: bool = False,
    page: int = 500,
    **query: str,
) -> Resource:
    return Resource(
        kind=kind, plural=plural, versions=versions, keep=keep, optional=optional, asks=asks, page=page, query=query
    )


OWN: Final = "ai.deckhouse.io/v1alpha1"

ORDERS: Final = _resource("InferenceService", "inferenceservices", _order, OWN, asks=True)

# A slice holds up to 128 devices (about 100 KiB of JSON), hence the small page.
ALWAYS: Final = (
    ORDERS,
    _resource("InferenceServiceClass", "inferenceserviceclasses", _spec_only, OWN, asks=True),
    _resource("ResourceSlice", "resourceslices", _spec_only, "resource.k8s.io/v1", page=100),
    _resource("DeviceClass", "deviceclasses", _spec_only, "resource.k8s.io/v1"),
    _resource("ResourceClaim", "resourceclaims", _claim, "resource.k8s.io/v1"),
    _resource(
        "DeviceTaintRule",
        "devicetaintrules",
        _spec_only,
        "resource.k8s.io/v1",
        "resource.k8s.io/v1beta2",
        "resource.k8s.io/v1alpha3",
        optional=True,
    ),
    _resource("Node", "nodes", _node, "v1", page=200),
    _resource("Namespace", "namespaces", _namespace, "v1"),
    # Pods that wait for a node or have finished hold nothing of a host.
    _resource("Pod", "pods", _pod, "v1", fieldSelector="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"),
    _resource("StatefulSet", "statefulsets", _workload, "apps/v1", labelSelector=f"{MANAGED}=true"),
    _resource("PersistentVolumeClaim", "persistentvolumeclaims", _volume_claim, "v1", labelSelector=f"{MANAGED}=true"),
    _resource("PersistentVolume", "persistentvolumes", _volume, "v1"),
    _resource("StorageClass", "storageclasses", _storage_class, "storage.k8s.io/v1"),
)

CATALOG: Final = (
    _resource("Model", "models", _model, OWN, optional=True),
    _resource("ClusterModel", "clustermodels", _model, OWN, optional=True),
)


def watched(catalog: bool) -> tuple[Resource, ...]:
    """The kinds to watch; those of the model catalog only where the module's setting allows it."""
    return ALWAYS + (CATALOG if catalog else ())
