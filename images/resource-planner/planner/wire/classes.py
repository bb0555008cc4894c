# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""InferenceServiceClass → `ServiceClass`."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from planner import dra
from planner.model import EndpointType, PlacementType, ServiceClass, SharingMode
from planner.wire.documents import Raw, metadata_of
from planner.wire.fields import Fields, choice_of, name_item


class _Exposure(Enum):
    INTERNAL = "Internal"
    EXTERNAL = "External"


class _Authentication(Enum):
    TOKEN = "Token"
    NONE = "None"


class _Https(Enum):
    CERT_MANAGER = "CertManager"
    CUSTOM_CERTIFICATE = "CustomCertificate"
    ONLY_IN_URI = "OnlyInURI"
    DISABLED = "Disabled"


class _Update(Enum):
    ROLLING = "RollingUpdate"
    ON_DELETE = "OnDelete"


def read_class(raw: Raw) -> ServiceClass:
    """An InferenceServiceClass, defaults of absent blocks applied. Raises `dra.Malformed` for what the CRD refuses."""
    metadata = metadata_of(raw)
    spec = Fields(
        raw.get("spec"),
        "spec",
        *("exposurePolicy", "admissionPolicy", "modelPolicy", "scalingPolicy", "acceleratorPolicy", "updatePolicy"),
        "modelStorageClassName",
    )
    _check_exposure(spec)
    update = spec.block("updatePolicy", "strategy")
    if update is not None:
        update.choice("strategy", _Update, _Update.ROLLING)
    admission = spec.block("admissionPolicy", "allowedNamespaces")
    models = spec.block("modelPolicy", "allowedEndpointTypes", "maxModelSize")
    endpoint_types = (
        models.list_of("allowedEndpointTypes", lambda value, path: choice_of(EndpointType, value, path))
        if models
        else None
    )
    if models is None or endpoint_types is None:
        raise dra.Malformed("spec.modelPolicy.allowedEndpointTypes", "a list of contracts is expected")
    scaling = spec.block("scalingPolicy", "minReplicas", "maxReplicas")
    low, high = 1, 1
    if scaling is not None:
        least, most = scaling.whole("minReplicas"), scaling.whole("maxReplicas")
        if least is None or most is None:
            missing = "minReplicas" if least is None else "maxReplicas"
            raise dra.Malformed(scaling.at(missing), "both replica bounds come together")
        if least > most:
            raise dra.Malformed(scaling.at("minReplicas"), f"{least} is more than maxReplicas {most}")
        low, high = least, most
    policy = spec.block(
        "acceleratorPolicy",
        *("allowedSharingModes", "allowedPlacementTypes", "maxAcceleratorCount", "deviceClassNames", "deviceSelector"),
        "shareBounds",
    )
    base = ServiceClass(
        name=str(metadata["name"]),
        generation=int(metadata.get("generation") or 1),
        endpoint_types=endpoint_types,
        max_model_size=models.amount("maxModelSize"),
        allowed_namespaces=admission.list_of("allowedNamespaces", name_item) if admission else None,
        min_replicas=low,
        max_replicas=high,
        storage_class_name=spec.maybe_text("modelStorageClassName"),
    )
    if policy is None:
        return base
    bounds = policy.block("shareBounds", "minMemory", "maxMemory")
    least_share = bounds.amount("minMemory") if bounds else None
    most_share = bounds.amount("maxMemory") if bounds else None
    if bounds is not None and least_share is not None and most_share is not None and least_share > most_share:
        raise dra.Malformed(bounds.at("minMemory"), "more than maxMemory")
    selector = policy.raw.get("deviceSelector")
    if selector is not None and (not isinstance(selector, str) or not selector.strip()):
        raise dra.Malformed(policy.at("deviceSelector"), "a CEL expression is expected")
    return replace(
        base,
        sharing_modes=policy.list_of("allowedSharingModes", lambda value, path: choice_of(SharingMode, value, path))
        or (SharingMode.DEDICATED,),
        placement_types=policy.list_of(
            "allowedPlacementTypes", lambda value, path: choice_of(PlacementType, value, path)
        )
        or (PlacementType.WHOLE_DEVICE,),
        max_accelerator_count=policy.whole("maxAcceleratorCount") or 1,
        device_class_names=policy.list_of("deviceClassNames", name_item),
        device_selector=selector,
        min_share_memory=least_share,
        max_share_memory=most_share,
    )


def _check_exposure(spec: Fields) -> None:
    exposure = spec.block("exposurePolicy", "type", "authentication", "https")
    if exposure is None:
        return
    kind = exposure.choice("type", _Exposure, _Exposure.INTERNAL)
    exposure.choice("authentication", _Authentication, _Authentication.TOKEN)
    https = exposure.block("https", "mode", "certManager", "customCertificate")
    if https is None:
        return
    if kind is not _Exposure.EXTERNAL:
        raise dra.Malformed(https.path, "only with type External")
    mode = https.choice("mode", _Https, _Https.DISABLED)
    for key, field, fits in (
        ("certManager", "clusterIssuerName", _Https.CERT_MANAGER),
        ("customCertificate", "secretName", _Https.CUSTOM_CERTIFICATE),
    ):
        block = https.block(key, field)
        if block is None:
            continue
        if mode is not fits:
            raise dra.Malformed(block.path, f"only with mode {fits.value}")
        block.maybe_text(field)
