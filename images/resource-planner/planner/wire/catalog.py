# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Objects of the model catalog → `CatalogModel`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from planner import dra
from planner.model import CatalogModel, CatalogState
from planner.wire.documents import Document, Raw, metadata_of, namespace_of

_REPOSITORY_URL: Final = re.compile(r"https://(?:huggingface\.co|hf\.co)/([^/?#]+/[^/?#]+)")


def catalog_state(raws: Mapping[str, Sequence[Document]], any_model: bool) -> CatalogState:
    """What the objects tell of the catalog: the module's setting when it is among them, else whether a model is."""
    for document in raws.get("ModuleConfig", ()):
        if metadata_of(document.raw).get("name") != "ai-inference":
            continue
        settings = (document.raw.get("spec") or {}).get("settings") or {}
        if (settings.get("catalog") or {}).get("mode") == "None":
            return CatalogState.DISABLED
    return CatalogState.ENABLED if any_model else CatalogState.ABSENT


def read_cluster_model(raw: Raw) -> CatalogModel:
    """A ClusterModel. Raises `dra.Malformed`."""
    return _read_model(raw, "ClusterModel", None)


def read_namespaced_model(raw: Raw) -> CatalogModel:
    """A Model. Raises `dra.Malformed`."""
    return _read_model(raw, "Model", namespace_of(raw))


def _read_model(raw: Raw, kind: str, namespace: str | None) -> CatalogModel:
    status = raw.get("status") or {}
    if not isinstance(status, Mapping):
        raise dra.Malformed("status", "an object is expected")
    conditions = status.get("conditions") or []
    failing = [item for item in conditions if isinstance(item, Mapping) and item.get("status") != "True"]
    resolved, origin = status.get("resolved") or {}, status.get("source") or {}
    url = ((raw.get("spec") or {}).get("source") or {}).get("url")
    repository = _REPOSITORY_URL.match(url) if isinstance(url, str) else None
    return CatalogModel(
        repository=repository[1] if repository else None,
        revision=origin.get("resolvedRevision"),
        endpoint_types=tuple(str(item) for item in resolved.get("supportedEndpointTypes") or ()),
        format=resolved.get("format"),
        kind=kind,
        namespace=namespace,
        name=str(metadata_of(raw)["name"]),
        phase=str(status.get("phase") or "Pending"),
        message=str(failing[0].get("message") or "") if failing else "",
        status=status,
    )
