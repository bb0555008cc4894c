# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What nodes hold besides devices: model volumes of orders and the requests of other pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner import dra
from planner.model import MANAGED_LABEL, ORDER_LABEL, HostUse, Key, Volume
from planner.wire.documents import Document, Raw, metadata_of, name_of, namespace_of
from planner.wire.reading import Reading


def volumes(
    kinds: Mapping[str, Sequence[Document]], nodes: tuple[dra.Node, ...], reading: Reading
) -> tuple[Volume, ...]:
    """Model volumes of orders. A bound claim's nodes are those its volume's node affinity admits; no affinity: any."""
    persistent = {str(metadata_of(item.raw)["name"]): item for item in kinds.get("PersistentVolume", ())}
    found = []
    for document in kinds.get("PersistentVolumeClaim", ()):
        if (metadata_of(document.raw).get("labels") or {}).get(ORDER_LABEL):
            bound = persistent.get(str((document.raw.get("spec") or {}).get("volumeName") or ""))
            parts = (document.raw, None if bound is None else bound.raw, nodes)
            volume = reading.record(document if bound is None else bound, _volume, *parts)
            if volume is not None:
                found.append(volume)
    return tuple(sorted(found, key=lambda item: (item.order, item.name)))


def _volume(claim: Raw, bound: Raw | None, nodes: tuple[dra.Node, ...]) -> Volume:
    reach: tuple[str, ...] | None = None
    if bound is not None:
        affinity = (bound.get("spec") or {}).get("nodeAffinity") or {}
        selector = dra.read_node_selector(affinity, "required", "spec.nodeAffinity")
        if selector is not None:
            reach = tuple(sorted(node.name for node in nodes if selector.admits(node)))
    order = Key(namespace=namespace_of(claim), name=str(metadata_of(claim)["labels"][ORDER_LABEL]))
    return Volume(order=order, name=name_of(claim), nodes=reach)


def host_use(kinds: Mapping[str, Sequence[Document]], reading: Reading) -> tuple[HostUse, ...]:
    """Requests of pods that are bound to a node, not finished, and not an order's."""
    use: dict[str, tuple[int, int]] = {}
    for one in reading.records(kinds.get("Pod", ()), _pod_use):
        if one is not None:
            cpu, memory = use.get(one.node, (0, 0))
            use[one.node] = (cpu + one.cpu_milli, memory + one.memory)
    return tuple(HostUse(node=node, cpu_milli=cpu, memory=memory) for node, (cpu, memory) in sorted(use.items()))


def _pod_use(raw: Raw) -> HostUse | None:
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    node = spec.get("nodeName")
    labels = metadata_of(raw).get("labels") or {}
    if not node or status.get("phase") in ("Succeeded", "Failed") or labels.get(MANAGED_LABEL) == "true":
        return None
    cpu, memory = _pod_requests(spec)
    return HostUse(node=str(node), cpu_milli=cpu, memory=memory)


def _pod_requests(spec: Raw) -> tuple[int, int]:
    """milli-CPU and bytes as the scheduler counts them: the running containers together, or the largest init step."""
    totals = {}
    for name, factor in (("cpu", 1000), ("memory", 1)):
        running = 0
        largest = 0
        sidecars = 0
        for index, container in enumerate(spec.get("containers") or ()):
            running += _request_of(container, name, factor, f"spec.containers[{index}]")
        for index, container in enumerate(spec.get("initContainers") or ()):
            asked = _request_of(container, name, factor, f"spec.initContainers[{index}]")
            if container.get("restartPolicy") == "Always":
                sidecars += asked
            else:
                largest = max(largest, asked + sidecars)
        overhead = (spec.get("overhead") or {}).get(name)
        extra = int(dra.read_amount(overhead, f"spec.overhead.{name}") * factor) if overhead is not None else 0
        totals[name] = max(running + sidecars, largest) + extra
    return totals["cpu"], totals["memory"]


def _request_of(container: Raw, name: str, factor: int, path: str) -> int:
    asked = ((container.get("resources") or {}).get("requests") or {}).get(name)
    return 0 if asked is None else -int(-dra.read_amount(asked, f"{path}.resources.requests.{name}") * factor // 1)
