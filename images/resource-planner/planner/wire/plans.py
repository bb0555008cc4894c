# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`OrderPlan` ↔ `status.plan`."""

from __future__ import annotations

from typing import Any

from planner import dra, quantity, units
from planner.model import (
    Alternative,
    Bounds,
    Decision,
    DeviceRequest,
    EndpointType,
    Exchanged,
    HostResources,
    Key,
    LaunchStrategy,
    OrderPlan,
    PlacementType,
    Preemption,
    RecipeUse,
    Share,
    SharingMode,
    Sized,
    VolumeNeed,
)
from planner.units import UNKNOWN, Maybe
from planner.wire.documents import Raw


def plan_status(plan: OrderPlan) -> dict[str, Any]:
    """`status.plan` of one order; absent parts are left out, quantities are texts."""
    status: dict[str, Any] = {
        "observedGeneration": plan.observed_generation,
        "decision": plan.decision.value,
        "reason": plan.reason,
        "message": plan.message,
    }
    if plan.endpoint_type is not None:
        status["endpointType"] = plan.endpoint_type.value
        status["endpointTypeGuessed"] = plan.endpoint_type_guessed
    _put(status, "servedName", plan.served_name)
    _put(status, "modelRevision", plan.model_revision)
    _put(status, "deviceClassName", plan.device_class)
    _put(status, "placementType", plan.placement.value if plan.placement else None)
    _put(status, "sharingMode", plan.sharing.value if plan.sharing else None)
    if plan.share is not None:
        share: dict[str, Any] = {}
        _put(share, "memory", bytes_text(plan.share.memory))
        _put(share, "computePercent", None if plan.share.compute_percent is UNKNOWN else plan.share.compute_percent)
        status["share"] = share
    _put(status, "acceleratorCount", plan.accelerator_count)
    if plan.devices:
        status["devices"] = [
            {"driver": device.driver, "pool": device.pool, "name": device.name} for device in plan.devices
        ]
    if plan.nodes:
        status["nodes"] = list(plan.nodes)
    if plan.request is not None:
        status["deviceRequest"] = _request_status(plan.request)
    if plan.recipe is not None:
        recipe: dict[str, Any] = {
            "name": plan.recipe.name,
            "release": plan.recipe.release,
            "strategy": plan.recipe.strategy.value,
        }
        _put(recipe, "contextLength", plan.recipe.context_length)
        _put(recipe, "concurrency", plan.recipe.concurrency)
        recipe["parameters"] = dict(sorted(plan.recipe.parameters.items()))
        status["recipe"] = recipe
    if plan.host is not None:
        status["hostResources"] = {
            "cpu": milli(plan.host.cpu_milli),
            "memory": units.binary(plan.host.memory),
            "sharedMemory": units.binary(plan.host.shared_memory),
        }
    if plan.sized is not None:
        sizing: dict[str, Any] = {"source": plan.sized.source}
        _put(sizing, "weights", bytes_text(plan.sized.weights))
        _put(sizing, "kvCache", bytes_text(plan.sized.kv_cache))
        _put(sizing, "overhead", bytes_text(plan.sized.overhead))
        _put(sizing, "total", bytes_text(plan.sized.total))
        status["sizing"] = sizing
    if plan.volume is not None:
        status["volume"] = {"size": units.binary(plan.volume.size)}
        _put(status["volume"], "storageClassName", plan.volume.storage_class_name)
    if plan.bounds is not None:
        status["replicas"] = {"min": plan.bounds.min, "max": plan.bounds.max, "bound": plan.bounds.bound}
    if plan.preemption is not None:
        preemption: dict[str, Any] = {"role": plan.preemption.role}
        if plan.preemption.donors:
            preemption["donors"] = [_exchanged(item) for item in plan.preemption.donors]
        if plan.preemption.recipients:
            preemption["recipients"] = [_exchanged(item) for item in plan.preemption.recipients]
        preemption["since"] = plan.preemption.since
        status["preemption"] = preemption
    if plan.alternatives:
        status["alternatives"] = [
            {
                "deviceClassName": item.device_class,
                "placementType": item.placement.value,
                "sharingMode": item.sharing.value,
                "reason": item.reason,
                "message": item.message,
            }
            for item in plan.alternatives
        ]
    return status


def _request_status(request: DeviceRequest) -> dict[str, Any]:
    return {
        "selectors": list(request.selectors),
        "capacity": dict(sorted(request.capacity.items())),
        "config": [{"driver": item.driver, "parameters": item.parameters} for item in request.config],
        "tolerations": [
            {"key": item.key, "operator": item.operator, "value": item.value}
            | ({"effect": item.effect.value} if item.effect else {})
            for item in request.tolerations
        ],
    }


def _put(target: dict[str, Any], key: str, value: object) -> None:
    if value is not None:
        target[key] = value


def bytes_text(amount: Maybe) -> str | None:
    """A number of bytes as a quantity; unknown is None."""
    return None if amount is UNKNOWN else units.binary(amount)


def milli(amount: int) -> str:
    """Milli-units as the API server prints them: 2000 → "2", 500 → "500m"."""
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def read_plan(raw: Raw, key: Key) -> OrderPlan:
    """The plan that `plan_status` wrote, without seats. Raises ValueError, KeyError or TypeError when it is none."""
    share, request, recipe = raw.get("share"), raw.get("deviceRequest"), raw.get("recipe")
    host, sizing, volume = raw.get("hostResources"), raw.get("sizing"), raw.get("volume")
    replicas, preemption = raw.get("replicas"), raw.get("preemption")
    return OrderPlan(
        key=key,
        observed_generation=int(raw.get("observedGeneration", 0)),
        decision=Decision(raw["decision"]),
        reason=str(raw.get("reason", "")),
        message=str(raw.get("message", "")),
        endpoint_type=EndpointType(raw["endpointType"]) if raw.get("endpointType") else None,
        endpoint_type_guessed=bool(raw.get("endpointTypeGuessed", False)),
        served_name=raw.get("servedName"),
        model_revision=raw.get("modelRevision"),
        device_class=raw.get("deviceClassName"),
        placement=PlacementType(raw["placementType"]) if raw.get("placementType") else None,
        sharing=SharingMode(raw["sharingMode"]) if raw.get("sharingMode") else None,
        share=Share(memory=_amount_of(share, "memory"), compute_percent=_number_of(share, "computePercent"))
        if share is not None
        else None,
        accelerator_count=raw.get("acceleratorCount"),
        devices=tuple(
            dra.DeviceId(driver=str(item["driver"]), pool=str(item["pool"]), name=str(item["name"]))
            for item in raw.get("devices") or ()
        ),
        nodes=tuple(str(name) for name in raw.get("nodes") or ()),
        request=_read_request(request) if request is not None else None,
        recipe=RecipeUse(
            name=str(recipe["name"]),
            release=str(recipe["release"]),
            strategy=LaunchStrategy(recipe["strategy"]),
            context_length=recipe.get("contextLength"),
            concurrency=recipe.get("concurrency"),
            parameters=dict(recipe.get("parameters") or {}),
        )
        if recipe is not None
        else None,
        host=HostResources(
            cpu_milli=int(dra.read_amount(host["cpu"], "hostResources.cpu") * 1000),
            memory=int(dra.read_amount(host["memory"], "hostResources.memory")),
            shared_memory=int(dra.read_amount(host.get("sharedMemory", 0), "hostResources.sharedMemory")),
        )
        if host is not None
        else None,
        sized=Sized(
            source=str(sizing["source"]),
            weights=_amount_of(sizing, "weights"),
            kv_cache=_amount_of(sizing, "kvCache"),
            overhead=_amount_of(sizing, "overhead"),
            total=_amount_of(sizing, "total"),
        )
        if sizing is not None
        else None,
        volume=VolumeNeed(
            size=int(dra.read_amount(volume["size"], "volume.size")), storage_class_name=volume.get("storageClassName")
        )
        if volume is not None
        else None,
        bounds=Bounds(min=int(replicas["min"]), max=int(replicas["max"]), bound=int(replicas["bound"]))
        if replicas is not None
        else None,
        preemption=Preemption(
            role=str(preemption["role"]),
            donors=tuple(_read_exchanged(item) for item in preemption.get("donors") or ()),
            recipients=tuple(_read_exchanged(item) for item in preemption.get("recipients") or ()),
            since=str(preemption.get("since", "")),
        )
        if preemption is not None
        else None,
        alternatives=tuple(
            Alternative(
                device_class=str(item["deviceClassName"]),
                placement=PlacementType(item["placementType"]),
                sharing=SharingMode(item["sharingMode"]),
                reason=str(item["reason"]),
                message=str(item["message"]),
            )
            for item in raw.get("alternatives") or ()
        ),
    )


def _read_request(raw: Raw) -> DeviceRequest:
    return DeviceRequest(
        selectors=tuple(str(item) for item in raw.get("selectors") or ()),
        capacity={str(name): str(value) for name, value in (raw.get("capacity") or {}).items()},
        config=tuple(
            dra.ClaimRequestConfig(driver=str(item["driver"]), parameters=item.get("parameters") or {})
            for item in raw.get("config") or ()
        ),
        tolerations=tuple(
            dra.Toleration(
                key=str(item.get("key", "")),
                operator=str(item.get("operator", "Equal")),
                value=str(item.get("value", "")),
                effect=dra.Effect(item["effect"]) if item.get("effect") else None,
            )
            for item in raw.get("tolerations") or ()
        ),
    )


def _amount_of(raw: Raw, key: str) -> Maybe:
    value = raw.get(key)
    return UNKNOWN if value is None else quantity.of(value).bytes


def _number_of(raw: Raw, key: str) -> Maybe:
    value = raw.get(key)
    return UNKNOWN if value is None else int(value)


def _exchanged(item: Exchanged) -> dict[str, Any]:
    return {"namespace": item.order.namespace, "name": item.order.name, "replicas": item.replicas}


def _read_exchanged(raw: Raw) -> Exchanged:
    return Exchanged(
        order=Key(namespace=str(raw["namespace"]), name=str(raw["name"])), replicas=int(raw.get("replicas", 1))
    )
