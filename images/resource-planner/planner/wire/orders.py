# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""InferenceService → `Order`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from planner import dra
from planner.model import Key, LaunchStrategy, ModelRef, ModelSource, Order, OrderPlan
from planner.wire.documents import Raw, metadata_of, namespace_of
from planner.wire.fields import Fields, name_item
from planner.wire.plans import read_plan

_ORDER_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


_REPO_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def read_order(raw: Raw) -> Order:
    """An InferenceService. Raises `dra.Malformed` for what the CRD refuses; an unreadable `status.plan` is None.

    Objects that no API server has seen yet have no uid, generation (1) or creation time (they count as the youngest).
    """
    metadata = metadata_of(raw)
    name = str(metadata["name"])
    if len(name) > 52 or not _ORDER_NAME.fullmatch(name):
        raise dra.Malformed(
            "metadata.name", "a letter first, then lower-case letters, digits and -, at most 52 characters"
        )
    spec = Fields(raw.get("spec"), "spec", "inferenceServiceClassName", "model", "launchStrategy", "resources")
    namespace = namespace_of(raw)
    model = spec.block("model", "src", "ref")
    if model is None:
        raise dra.Malformed("spec.model", "an object is expected")
    resources = spec.block("resources", "accelerator")
    accelerator = resources.block("accelerator", "deviceClasses") if resources else None
    return Order(
        key=Key(namespace=namespace, name=name),
        uid=str(metadata.get("uid") or ""),
        generation=int(metadata.get("generation") or 1),
        created=str(metadata.get("creationTimestamp") or ""),
        service_class=spec.text("inferenceServiceClassName"),
        model=_model_ref(model, namespace),
        strategy=spec.choice("launchStrategy", LaunchStrategy, LaunchStrategy.THROUGHPUT),
        device_classes=accelerator.list_of("deviceClasses", name_item) if accelerator else None,
        deleting=metadata.get("deletionTimestamp") is not None,
        plan=_previous(raw, Key(namespace=namespace, name=name)),
    )


def _model_ref(model: Fields, namespace: str) -> ModelRef:
    if not model.has("src"):
        raise dra.Malformed(model.at("src"), "ai-models or HuggingFace is expected")
    source = model.choice("src", ModelSource, ModelSource.CATALOG)
    ref = model.block("ref", "name", "kind", "namespace", "revision", "authSecretRef")
    if ref is None:
        raise dra.Malformed(model.at("ref"), "an object is expected")
    if source is ModelSource.CATALOG:
        for key in ("revision", "authSecretRef"):
            if ref.has(key):
                raise dra.Malformed(ref.at(key), "only with src HuggingFace")
        kind = ref.raw.get("kind")
        if kind not in ("Model", "ClusterModel"):
            raise dra.Malformed(ref.at("kind"), "Model or ClusterModel is expected")
        owner = ref.maybe_text("namespace")
        if owner is not None and (kind != "Model" or owner != namespace):
            raise dra.Malformed(ref.at("namespace"), "only with kind Model, and only the order's own namespace")
        return ModelRef(
            source=source, name=ref.text("name"), kind=kind, namespace=namespace if kind == "Model" else None
        )
    for key in ("kind", "namespace"):
        if ref.has(key):
            raise dra.Malformed(ref.at(key), "not with src HuggingFace")
    name = ref.raw.get("name")
    if not isinstance(name, str) or not name:
        raise dra.Malformed(ref.at("name"), "a text is expected")
    parts = name.split("/")
    if len(parts) != 2:
        raise dra.Malformed(
            ref.at("name"), "owner/name is expected; an id without an owner is written with its owner's"
        )
    bad = len(name) > 96 or "--" in name or ".." in name or not all(_REPO_PART.fullmatch(part) for part in parts)
    if bad:
        raise dra.Malformed(ref.at("name"), f"{name!r} is no repository id")
    secret = ref.block("authSecretRef", "name")
    revision = ref.raw.get("revision")
    if revision is not None and (not isinstance(revision, str) or not revision):
        raise dra.Malformed(ref.at("revision"), "a commit or tag is expected")
    return ModelRef(source=source, name=name, revision=revision, secret_name=secret.text("name") if secret else None)


def _previous(raw: Raw, key: Key) -> OrderPlan | None:
    status = raw.get("status")
    written = status.get("plan") if isinstance(status, Mapping) else None
    if not isinstance(written, Mapping):
        return None
    try:
        return read_plan(written, key)
    except (dra.Malformed, ValueError, KeyError, TypeError, AttributeError):
        return None  # not ours or of a form no release wrote: decided anew
