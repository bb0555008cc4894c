# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Objects of all kinds → `Snapshot`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from planner import dra
from planner.memory import Memory, Once
from planner.model import ORDER_LABEL, CatalogState, Order, Secret, Snapshot
from planner.wire.catalog import catalog_state, read_cluster_model, read_namespaced_model
from planner.wire.classes import read_class
from planner.wire.documents import GROUP, Document, Raw, metadata_of, name_of, namespace_of
from planner.wire.hosts import host_use, volumes
from planner.wire.orders import read_order
from planner.wire.reading import Reading

T = TypeVar("T")
TOKEN_KEYS: Final = ("token", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def snapshot(
    kinds: Mapping[str, Sequence[Document]],
    *,
    kubernetes: tuple[int, int],
    now: str,
    release: str,
    catalog: CatalogState | None = None,
    unreadable: Sequence[str] = (),
    strict: bool = True,
    memory: Memory | None = None,
) -> Snapshot:
    """The snapshot that distinct objects by kind (`by_kind`) state; their order does not matter.

    `catalog` None: enabled when a catalog object is among them, disabled when a ModuleConfig says so, else absent.
    Secrets and storage classes count as unreadable (None) when no object of the kind is there. With `strict` off, an
    object that cannot be read is left out and named in `unreadable` as "Kind name: path: message"; the caller decides.
    Of a kind whose sequence is the same object as at the last call with this `memory` nothing is read again, and of any
    other kind only the documents that are new. Raises `BadInput` when strict.
    """
    known = Memory() if memory is None else memory
    skipped: list[str] = list(unreadable)

    def read(name: str, compute: Callable[[Reading], T], *kinds_read: str) -> T:
        inputs = tuple(kinds.get(kind, ()) for kind in kinds_read or (name,))

        def computed(once: Once) -> tuple[T, tuple[str, ...]]:
            reading = Reading(once=once, strict=strict)
            return compute(reading), tuple(reading.skipped)

        found, left_out = known.result(name, inputs, computed)
        skipped.extend(left_out)
        return found

    def each(kind: str, reader: Callable[[Raw], T], key: Callable[[T], Any], group: str = "") -> tuple[T, ...]:
        def records(reading: Reading) -> tuple[T, ...]:
            return tuple(sorted(reading.records(_of_group(kinds.get(kind, ()), group), reader), key=key))

        return read(kind, records)

    models = (
        *each("ClusterModel", read_cluster_model, lambda item: item.name, GROUP),
        *each("Model", read_namespaced_model, lambda item: (item.namespace or "", item.name), GROUP),
    )
    nodes = each("Node", dra.read_node, lambda item: item.name)
    return Snapshot(
        kubernetes=kubernetes,
        now=now,
        release=release,
        orders=read("orders", lambda reading: _orders(kinds, reading), "InferenceService", "StatefulSet"),
        service_classes=each("InferenceServiceClass", read_class, lambda item: item.name, GROUP),
        device_classes=each("DeviceClass", dra.read_device_class, lambda item: item.name),
        slices=each("ResourceSlice", dra.read_slice, lambda item: (item.driver, item.pool, item.name)),
        claims=each("ResourceClaim", dra.read_claim, lambda item: (item.namespace, item.name)),
        taint_rules=each("DeviceTaintRule", dra.read_taint_rule, lambda item: item.name),
        nodes=nodes,
        terminating_namespaces=tuple(name for name in each("Namespace", _terminating, lambda item: item) if name),
        catalog=catalog if catalog is not None else catalog_state(kinds, bool(models)),
        models=models,
        secrets=each("Secret", _read_secret, lambda item: (item.namespace, item.name)) if "Secret" in kinds else None,
        volumes=read(
            "volumes", lambda reading: volumes(kinds, nodes, reading),
            "PersistentVolume", "PersistentVolumeClaim", "Node",
        ),
        storage_classes=each("StorageClass", name_of, lambda item: item) if "StorageClass" in kinds else None,
        host_use=read("host use", lambda reading: host_use(kinds, reading), "Pod"),
        unreadable=tuple(sorted(set(skipped))),
    )  # fmt: skip


def _of_group(documents: Iterable[Document], group: str) -> Iterator[Document]:
    return (item for item in documents if str(item.raw.get("apiVersion", "")).startswith(group))


def _orders(kinds: Mapping[str, Sequence[Document]], reading: Reading) -> tuple[Order, ...]:
    """Orders with the replicas that their StatefulSets ask for."""
    sets = {
        (namespace_of(item.raw), str(metadata_of(item.raw).get("name"))): item.raw
        for item in kinds.get("StatefulSet", ())
        if (metadata_of(item.raw).get("labels") or {}).get(ORDER_LABEL)
    }
    found = []
    for document in _of_group(kinds.get("InferenceService", ()), GROUP):
        order = reading.record(document, read_order, document.raw)
        if order is not None:
            standing = sets.get((order.key.namespace, order.key.name))
            found.append(order if standing is None else reading.once(_scaled, order, standing))
    return tuple(sorted(found, key=lambda order: order.key))


def _scaled(order: Order, workload: Raw) -> Order:
    return replace(order, replicas_wanted=_replicas(workload))


def _replicas(raw: Raw) -> int:
    asked = (raw.get("spec") or {}).get("replicas")
    return asked if isinstance(asked, int) else 1


def _terminating(raw: Raw) -> str:
    metadata = metadata_of(raw)
    gone = metadata.get("deletionTimestamp") or (raw.get("status") or {}).get("phase") == "Terminating"
    return str(metadata["name"]) if gone else ""


def _read_secret(raw: Raw) -> Secret:
    present = {*(raw.get("data") or {}), *(raw.get("stringData") or {})}
    return Secret(
        namespace=namespace_of(raw),
        name=str(metadata_of(raw)["name"]),
        keys=tuple(key for key in TOKEN_KEYS if key in present),
    )
