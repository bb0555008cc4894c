# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Worlds for planner tests: builders named by hardware and count, which refuse an impossible world.

Builders return Kubernetes objects; `snapshot` reads them with the planner's own reader, so that nothing is tested that
could not be dumped from a cluster. Memory sizes are those that drivers publish, not the marketing ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from planner import launches, modelfacts, quantity, recipe, units, wire
from planner.memory import Memory
from planner.model import (
    MANAGED_LABEL,
    ORDER_LABEL,
    CatalogState,
    EndpointType,
    Key,
    LaunchStrategy,
    OrderPlan,
    Plan,
    Snapshot,
)

Object: TypeAlias = dict[str, Any]

NVIDIA = "gpu.nvidia.com"
DECKHOUSE = "gpu.deckhouse.io"

# Profile, memory, multiprocessors, memory slices, starts. H100 80GB: published tables; the whole card has 132 of them.
H100_PROFILES = (
    ("1g.10gb", "9984Mi", 16, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.20gb", "20096Mi", 26, 2, (0, 2, 4, 6)),
    ("2g.20gb", "20096Mi", 32, 2, (0, 2, 4)),
    ("3g.40gb", "40448Mi", 60, 4, (0, 4)),
    ("4g.40gb", "40448Mi", 64, 4, (0,)),
    ("7g.80gb", "81008Mi", 132, 8, (0,)),
)
A100_PROFILES = (
    ("1g.5gb", "4864Mi", 14, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("2g.10gb", "9856Mi", 28, 2, (0, 2, 4)),
    ("3g.20gb", "19968Mi", 42, 4, (0, 4)),
    ("4g.20gb", "19968Mi", 56, 4, (0,)),
    ("7g.40gb", "40448Mi", 98, 8, (0,)),
)
A30_PROFILES = (
    ("1g.6gb", "5949Mi", 14, 1, (0, 1, 2, 3)),
    ("2g.12gb", "12032Mi", 28, 2, (0, 2)),
    ("4g.24gb", "24125Mi", 56, 4, (0,)),
)


def node(name: str, *, cpu: str | None = None, memory: str | None = None, **spec: Any) -> Object:
    """A ready node; without `cpu` and `memory` it states no allocatable resources, so none are judged."""
    allocatable = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def slices(
    driver: str, pool: str, where: str, devices: Sequence[Object], counters: Sequence[Object] = ()
) -> list[Object]:
    """The slices of one complete pool in the split layout (1.35 and later), at most 64 devices a slice."""
    names = [device["name"] for device in devices]
    if len(set(names)) != len(names):
        raise ValueError(f"two devices of pool {pool} have one name")
    parts: list[Object] = []
    for start in range(0, len(counters), 8):
        parts.append({"sharedCounters": list(counters[start : start + 8])})
    for start in range(0, len(devices), 64):
        parts.append({"devices": list(devices[start : start + 64])})
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{pool.replace('/', '-')}-{number:03}-{driver}"},
            "spec": {
                "driver": driver,
                "pool": {"name": pool, "generation": 1, "resourceSliceCount": len(parts)},
                "nodeName": where,
                **part,
            },
        }
        for number, part in enumerate(parts)
    ]


def _nvidia(kind: str, product: str, architecture: str, capability: str, **more: Any) -> Object:
    return {
        "type": {"string": kind},
        "productName": {"string": product},
        "architecture": {"string": architecture},
        "cudaComputeCapability": {"version": capability},
        "driverVersion": {"version": "580.95.5"},
        "cudaDriverVersion": {"version": "13.0.0"},
        **{key: {"string": value} for key, value in more.items()},
    }


def whole(count: int, where: str, *, product: str, architecture: str, capability: str, memory: str) -> list[Object]:
    """A node with `count` whole NVIDIA cards that have no counters and cannot be shared."""
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": _nvidia("gpu", product, architecture, capability, uuid=f"GPU-{where}-{number}"),
            "capacity": {"memory": {"value": memory}},
        }
        for number in range(count)
    ]
    return [node(where), *slices(NVIDIA, where, where, devices)]


def h100_80g(count: int, where: str = "node-h100") -> list[Object]:
    """A node with whole H100 80GB."""
    return whole(
        count, where, product="NVIDIA H100 80GB HBM3", architecture="Hopper", capability="9.0.0", memory="81559Mi"
    )


def l4_24g(count: int, where: str = "node-l4") -> list[Object]:
    """A node with whole L4."""
    return whole(count, where, product="NVIDIA L4", architecture="Ada Lovelace", capability="8.9.0", memory="23034Mi")


def t4_16g(count: int, where: str = "node-t4") -> list[Object]:
    """A node with whole T4."""
    return whole(count, where, product="Tesla T4", architecture="Turing", capability="7.5.0", memory="16Gi")


def mig(
    count: int,
    where: str,
    *,
    product: str,
    architecture: str,
    capability: str,
    memory: str,
    processors: int,
    slots: int,
    profiles: Sequence[tuple[str, str, int, int, tuple[int, ...]]],
) -> list[Object]:
    """A node with NVIDIA cards cut at run time: each card first, then all its partitions, as the driver sorts."""
    devices: list[Object] = []
    counters: list[Object] = []
    for number in range(count):
        card = f"gpu-{number}"
        slot_names = [f"memory-slice-{slot}" for slot in range(slots)]
        full = {
            "memory": {"value": memory},
            "multiprocessors": {"value": str(processors)},
            **{name: {"value": "1"} for name in slot_names},
        }
        counters.append({"name": f"{card}-counter-set", "counters": full})
        devices.append(
            {
                "name": card,
                "attributes": _nvidia("gpu", product, architecture, capability, uuid=f"GPU-{where}-{number}"),
                "capacity": {"memory": {"value": memory}},
                "consumesCounters": [{"counterSet": f"{card}-counter-set", "counters": full}],
            }
        )
        for place, (profile, size, parts, width, starts) in enumerate(profiles):
            for start in starts:
                used = range(start, min(start + width, slots))
                devices.append(
                    {
                        "name": f"{card}-mig-{profile.replace('.', '')}-{place}-{start}",
                        "attributes": _nvidia(
                            "mig",
                            product,
                            architecture,
                            capability,
                            parentUUID=f"GPU-{where}-{number}",
                            profile=profile,
                        ),
                        "capacity": {"memory": {"value": size}},
                        "consumesCounters": [
                            {
                                "counterSet": f"{card}-counter-set",
                                "counters": {
                                    "multiprocessors": {"value": str(parts)},
                                    **{f"memory-slice-{slot}": {"value": "1"} for slot in used},
                                },
                            }
                        ],
                    }
                )
    return [node(where), *slices(NVIDIA, where, where, devices, counters)]


def h100_mig(count: int, where: str = "node-h100") -> list[Object]:
    """A node with H100 80GB that are cut at run time."""
    return mig(
        count, where, product="NVIDIA H100 80GB HBM3", architecture="Hopper", capability="9.0.0", memory="81559Mi",
        processors=132, slots=8, profiles=H100_PROFILES,
    )  # fmt: skip


def a100_mig(count: int, where: str = "node-a100") -> list[Object]:
    """A node with A100 40GB that are cut at run time."""
    return mig(
        count, where, product="NVIDIA A100-SXM4-40GB", architecture="Ampere", capability="8.0.0", memory="40Gi",
        processors=98, slots=8, profiles=A100_PROFILES,
    )  # fmt: skip


def a30_mig(count: int, where: str = "node-a30") -> list[Object]:
    """A node with A30 that are cut at run time."""
    return mig(
        count, where, product="NVIDIA A30", architecture="Ampere", capability="8.0.0", memory="24576Mi",
        processors=56, slots=4, profiles=A30_PROFILES,
    )  # fmt: skip


def shared(count: int, where: str, *, product: str, memory: str, capability: str = "8.9.0") -> list[Object]:
    """A node with NVIDIA cards in memory mode: shares of 1 MiB steps, no request means the whole card."""
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": _nvidia("gpu", product, "Ada Lovelace", capability, uuid=f"GPU-{where}-{number}"),
            "allowMultipleAllocations": True,
            "capacity": {
                "memory": {
                    "value": memory,
                    "requestPolicy": {"default": memory, "validRange": {"min": "1Mi", "max": memory, "step": "1Mi"}},
                }
            },
        }
        for number in range(count)
    ]
    return [node(where), *slices(NVIDIA, where, where, devices)]


def l40s_shared(count: int, where: str = "node-l40s") -> list[Object]:
    """A node with L40S (46068 MiB each) shared by memory."""
    return shared(count, where, product="NVIDIA L40S", memory="46068Mi")


def rtx3090_deckhouse(count: int, where: str = "node-rtx") -> list[Object]:
    """A node with RTX 3090 of the Deckhouse driver: shares by memory and percent."""
    devices = []
    for number in range(count):
        devices.append(
            {
                "name": f"gpu-0000-0{number}-00-0",
                "attributes": _deckhouse("Physical", "geforce-rtx-3090", f"0000:0{number}:00.0", 8, 6),
                "allowMultipleAllocations": True,
                "capacity": _percent("24Gi"),
            }
        )
    return [node(where), *slices(DECKHOUSE, f"gpus/{where}", where, devices)]


def a30_deckhouse(count: int, where: str = "node-a30") -> list[Object]:
    """A node with A30 of the Deckhouse driver: the card can be shared, or cut; the slices don't say that not both."""
    devices: list[Object] = []
    counters: list[Object] = []
    for number in range(count):
        address = f"0000:4{number}:00.0"
        short = address.replace(":", "-").replace(".", "-")
        slots = [f"memory-slice-{slot}" for slot in range(4)]
        counters.append(
            {
                "name": f"pgpu-{short}",
                "counters": {"multiprocessors": {"value": "56"}, **{name: {"value": "1"} for name in slots}},
            }
        )
        devices.append(
            {
                "name": f"gpu-{short}",
                "attributes": _deckhouse("Physical", "a30-pcie", address, 8, 0),
                "allowMultipleAllocations": True,
                "capacity": _percent("24576Mi"),
            }
        )
        for place, (profile, size, parts, width, starts) in enumerate(A30_PROFILES):
            for start in starts:
                devices.append(
                    {
                        "name": f"mig-{short}-p{place}-s{start}-n{width}",
                        "attributes": {
                            **_deckhouse("MIG", "a30-pcie", address, 8, 0),
                            f"{DECKHOUSE}/migProfile": {"string": profile},
                        },
                        "capacity": {"memory": {"value": size}},
                        "consumesCounters": [
                            {
                                "counterSet": f"pgpu-{short}",
                                "counters": {
                                    "multiprocessors": {"value": str(parts)},
                                    **{f"memory-slice-{slot}": {"value": "1"} for slot in range(start, start + width)},
                                },
                            }
                        ],
                    }
                )
    return [node(where), *slices(DECKHOUSE, f"gpus/{where}", where, devices, counters)]


def _deckhouse(kind: str, device: str, address: str, major: int, minor: int) -> Object:
    return {
        f"{DECKHOUSE}/vendor": {"string": "nvidia"},
        f"{DECKHOUSE}/deviceType": {"string": kind},
        f"{DECKHOUSE}/device": {"string": device},
        f"{DECKHOUSE}/pciAddress": {"string": address},
        f"{DECKHOUSE}/gpuUUID": {"string": f"GPU-{address}"},
        f"{DECKHOUSE}/driverVersion": {"string": "580.76.05"},
        f"{DECKHOUSE}/ccMajor": {"int": major},
        f"{DECKHOUSE}/ccMinor": {"int": minor},
    }


def _percent(memory: str) -> Object:
    return {
        "memory": {
            "value": memory,
            "requestPolicy": {"default": "0", "validRange": {"min": "0", "max": memory, "step": "1Mi"}},
        },
        "sharePercent": {
            "value": "100",
            "requestPolicy": {"default": "100", "validRange": {"min": "1", "max": "100", "step": "1"}},
        },
    }


def tainted(
    objects: Sequence[Object], device: str, effect: str = "NoSchedule", key: str = "example.com/bad"
) -> list[Object]:
    """The same objects with a taint on every device of that name."""
    found = []
    for item in objects:
        devices = item.get("spec", {}).get("devices")
        if devices is None:
            found.append(item)
            continue
        changed = [
            {**one, "taints": [{"key": key, "effect": effect}]} if one["name"] == device else one for one in devices
        ]
        found.append({**item, "spec": {**item["spec"], "devices": changed}})
    return found


# --- classes, orders, models


def device_class(name: str, expression: str, config: Sequence[Object] = ()) -> Object:
    """A DeviceClass with one selector."""
    spec: Object = {"selectors": [{"cel": {"expression": expression}}]}
    if config:
        spec["config"] = list(config)
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def any_device(name: str = "gpu") -> Object:
    """A DeviceClass that admits everything."""
    return device_class(name, "true")


def service_class(
    name: str = "standard",
    *,
    contracts: Sequence[str] = ("Chat",),
    sharing: Sequence[str] | None = ("Shared", "Dedicated"),
    placement: Sequence[str] | None = ("WholeDevice", "Partition"),
    count: int = 1,
    replicas: tuple[int, int] | None = None,
    device_classes: Sequence[str] | None = None,
    selector: str | None = None,
    share: tuple[str | None, str | None] | None = None,
    namespaces: Sequence[str] | None = None,
    largest: str | None = None,
    **spec: Any,
) -> Object:
    """An InferenceServiceClass; `sharing` None leaves the whole accelerator policy out."""
    body: Object = {"modelPolicy": {"allowedEndpointTypes": list(contracts)}, **spec}
    if largest is not None:
        body["modelPolicy"]["maxModelSize"] = largest
    if namespaces is not None:
        body["admissionPolicy"] = {"allowedNamespaces": list(namespaces)}
    if replicas is not None:
        body["scalingPolicy"] = {"minReplicas": replicas[0], "maxReplicas": replicas[1]}
    if sharing is not None:
        policy: Object = {"allowedSharingModes": list(sharing), "maxAcceleratorCount": count}
        if placement is not None:
            policy["allowedPlacementTypes"] = list(placement)
        if device_classes is not None:
            policy["deviceClassNames"] = list(device_classes)
        if selector is not None:
            policy["deviceSelector"] = selector
        if share is not None:
            bounds = {"minMemory": share[0], "maxMemory": share[1]}
            policy["shareBounds"] = {key: value for key, value in bounds.items() if value is not None}
        body["acceleratorPolicy"] = policy
    return {
        "apiVersion": "ai.deckhouse.io/v1alpha1",
        "kind": "InferenceServiceClass",
        "metadata": {"name": name, "generation": 1},
        "spec": body,
    }


def order(
    name: str,
    *,
    namespace: str = "team-a",
    model: str = "tiny",
    hub: bool = False,
    service_class: str = "standard",
    device_classes: Sequence[str] | None = None,
    strategy: str | None = None,
    created: int = 0,
    generation: int = 1,
    revision: str | None = None,
    secret: str | None = None,
) -> Object:
    """An InferenceService; `hub` takes the model from Hugging Face, else it is a ClusterModel. `created` in seconds."""
    ref: Object = {"name": model}
    if not hub:
        ref["kind"] = "ClusterModel"
    if revision is not None:
        ref["revision"] = revision
    if secret is not None:
        ref["authSecretRef"] = {"name": secret}
    spec: Object = {
        "inferenceServiceClassName": service_class,
        "model": {"src": "HuggingFace" if hub else "ai-models", "ref": ref},
    }
    if strategy is not None:
        spec["launchStrategy"] = strategy
    if device_classes is not None:
        spec["resources"] = {"accelerator": {"deviceClasses": list(device_classes)}}
    time = f"{created // 3600 % 24:02}:{created // 60 % 60:02}:{created % 60:02}"
    return {
        "apiVersion": "ai.deckhouse.io/v1alpha1",
        "kind": "InferenceService",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "generation": generation,
            "creationTimestamp": f"2026-01-{1 + created // 86400:02}T{time}Z",
        },
        "spec": spec,
    }


def orders(count: int, *, prefix: str = "o", **about: Any) -> list[Object]:
    """`count` orders o01, o02, …, the first the oldest."""
    width = len(str(count))
    return [order(f"{prefix}{number:0{width}}", created=number, **about) for number in range(1, count + 1)]


def model(
    name: str,
    *,
    size: int | None,
    contracts: Sequence[str] = ("Chat",),
    phase: str = "Ready",
    kind: str = "ClusterModel",
    namespace: str | None = None,
    form: str = "Safetensors",
    architecture: str | None = None,
) -> Object:
    """A catalog object of `size` bytes that says nothing of attention, as most do."""
    metadata: Object = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    resolved: Object = {"format": form, "supportedEndpointTypes": list(contracts)}
    if architecture is not None:
        resolved["architecture"] = architecture
    status: Object = {"phase": phase, "resolved": resolved}
    if size is not None:
        status["artifact"] = {"sizeBytes": size}
    return {"apiVersion": "ai.deckhouse.io/v1alpha1", "kind": kind, "metadata": metadata, "status": status}


def needing(amount: str, name: str | None = None) -> Object:
    """A chat model whose smallest share is at most `amount` and within 1 MiB of it."""
    return model(name or f"needs-{amount.lower()}", size=_size_needing(quantity.parse(amount).bytes))


@cache
def _size_needing(amount: int) -> int:
    low, high = 1, amount
    while high - low > units.MI // 4:
        middle = (low + high) // 2
        facts = modelfacts.from_catalog({"artifact": {"sizeBytes": middle}, "resolved": {"format": "Safetensors"}}, "x")
        chosen = recipe.choose(
            launches.shipped(), facts, contract=EndpointType.CHAT, strategy=LaunchStrategy.THROUGHPUT
        )
        need = recipe.smallest(chosen, facts)
        if need is not units.UNKNOWN and need <= amount:
            low = middle
        else:
            high = middle
    return low


def tiny() -> Object:
    """A catalog model that every device admits."""
    return model("tiny", size=64 * units.MI)


# --- claims


def claim(
    name: str,
    devices: Sequence[tuple[str, str, str]],
    *,
    namespace: str = "others",
    shares: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    pod: str | None = None,
    device_class: str = "gpu",
    config: Sequence[Object] = (),
) -> Object:
    """An allocated claim on `(driver, pool, device)`; `shares`: what of each device it consumes (None: all of it)."""
    results = []
    for number, (driver, pool, device) in enumerate(devices):
        result: Object = {"request": "gpu", "driver": driver, "pool": pool, "device": device}
        if shares is not None:
            result["shareID"] = f"share-{name}-{number}"
            result["consumedCapacity"] = dict(shares)
        results.append(result)
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "labels": dict(labels or {}),
    }
    if pod is not None:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"uid-{pod}", "controller": True}
        ]
    request = {
        "name": "gpu",
        "exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": len(devices)},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": results, "config": list(config)}}},
    }


def claims_of(plan: OrderPlan) -> list[Object]:
    """What the scheduler makes of a placed order: one allocated claim for each seat, as planned."""
    assert plan.request is not None
    found = []
    for ordinal, seat in enumerate(plan.seats):
        pod = f"{plan.key.name}-{ordinal}"
        found.append(
            claim(
                f"{pod}-gpu",
                [(device.driver, device.pool, device.name) for device in seat.devices],
                namespace=plan.key.namespace,
                shares=plan.request.capacity or None,
                labels={ORDER_LABEL: plan.key.name, MANAGED_LABEL: "true"},
                pod=pod,
                device_class=plan.device_class or "",
            )
        )
    return found


def volume(order: str, node: str, *, ordinal: int = 0, namespace: str = "team-a") -> list[Object]:
    """The model volume of a replica, which only `node` reaches, and its claim."""
    affinity = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    name = f"{namespace}-{order}-{ordinal}"
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"storage-{order}-{ordinal}", "namespace": namespace, "labels": {ORDER_LABEL: order}},
            "spec": {"volumeName": name},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [affinity]}}},
        },
    ]


def written(objects: Iterable[Object], plan: Plan) -> list[Object]:
    """The objects with every order's `status.plan` as the planner would write it."""
    plans = {(item.key.namespace, item.key.name): wire.plan_status(item) for item in plan.orders}
    found = []
    for item in objects:
        key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
        if item["kind"] == "InferenceService" and key in plans:
            item = {**item, "status": {**item.get("status", {}), "plan": plans[key]}}
        found.append(item)
    return found


# --- the world


def snapshot(
    *parts: Any,
    kubernetes: tuple[int, int] = (1, 37),
    unreadable: Sequence[str] = (),
    catalog: CatalogState = CatalogState.ENABLED,
) -> Snapshot:
    """The snapshot of all objects. Refuses a claim on a device that no slice has."""
    objects = flat(*parts)
    devices = {
        (item["spec"]["driver"], item["spec"]["pool"]["name"], device["name"])
        for item in objects
        if item["kind"] == "ResourceSlice"
        for device in item["spec"].get("devices", ())
    }
    for item in objects:
        if item["kind"] != "ResourceClaim" or "ResourceSlice" in unreadable:
            continue
        allocation = item["status"].get("allocation") or {"devices": {"results": []}}
        for result in allocation["devices"]["results"]:
            if (result["driver"], result["pool"], result["device"]) not in devices:
                raise ValueError(f"claim {item['metadata']['name']} holds {result['device']}, which no slice has")
    documents = [wire.Document(raw=item, source=f"{item['kind']} {item['metadata']['name']}") for item in objects]
    return read(wire.by_kind(documents), kubernetes=kubernetes, unreadable=unreadable, catalog=catalog)


def read(
    kinds: Mapping[str, Sequence[wire.Document]],
    *,
    memory: Memory | None = None,
    kubernetes: tuple[int, int] = (1, 37),
    unreadable: Sequence[str] = (),
    catalog: CatalogState = CatalogState.ENABLED,
) -> Snapshot:
    """The snapshot of objects by kind, with what `memory` remembers of them."""
    return wire.snapshot(
        kinds,
        kubernetes=kubernetes,
        now="2026-01-31T00:00:00Z",
        release="0.33.0",
        catalog=catalog,
        unreadable=unreadable,
        memory=memory,
    )


def flat(*parts: Any) -> list[Object]:
    """All objects in one list, however deep they are nested."""
    found: list[Object] = []
    for part in parts:
        if isinstance(part, dict):
            found.append(part)
        else:
            found.extend(flat(*part))
    return found


def key(name: str, namespace: str = "team-a") -> Key:
    """An order's key."""
    return Key(namespace=namespace, name=name)


def outcome(plan: Plan) -> dict[str, str]:
    """Every order in short: "gpu-0" (devices by name, one for each replica), or the reason of a refusal."""
    told = {}
    for item in plan.orders:
        name = item.key.name
        if item.seats:
            told[name] = " ".join(sorted("+".join(device.name for device in seat.devices) for seat in item.seats))
        else:
            told[name] = item.reason
    return told
