# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The replay file: a snapshot as one JSON object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from planner.model import CatalogState, Snapshot
from planner.wire.documents import BadInput, Document, Raw, by_kind, metadata_of
from planner.wire.objects import TOKEN_KEYS, snapshot

REPLAY_API: Final = "planner.ai.deckhouse.io/v1"
REPLAY_KIND: Final = "Snapshot"


def replay(
    documents: Iterable[Document],
    *,
    kubernetes: tuple[int, int],
    now: str,
    release: str,
    catalog: CatalogState,
    unreadable: Sequence[str] = (),
) -> dict[str, Any]:
    """A snapshot as one JSON object: every object that matters, trimmed of what no decision reads and of every secret.

    `plan` over it gives the plan that the objects themselves give, byte for byte.
    """
    objects = [_trimmed(document.raw) for documents_of in by_kind(documents).values() for document in documents_of]
    return {
        "apiVersion": REPLAY_API,
        "kind": REPLAY_KIND,
        "kubernetes": f"{kubernetes[0]}.{kubernetes[1]}",
        "now": now,
        "release": release,
        "catalog": catalog.value,
        "unreadable": sorted(unreadable),
        "objects": objects,
    }


_KEPT_METADATA: Final = (
    *("name", "namespace", "uid", "generation", "resourceVersion", "labels", "creationTimestamp", "deletionTimestamp"),
    "ownerReferences",
)


_KEPT_POD: Final = ("nodeName", "containers", "initContainers", "overhead")


def _trimmed(raw: Raw) -> dict[str, Any]:
    metadata = {key: value for key, value in metadata_of(raw).items() if key in _KEPT_METADATA}
    kept: dict[str, Any] = {"apiVersion": raw.get("apiVersion", ""), "kind": raw["kind"], "metadata": metadata}
    match raw["kind"]:
        case "Secret":
            present = {*(raw.get("data") or {}), *(raw.get("stringData") or {})}
            kept["data"] = {key: "" for key in TOKEN_KEYS if key in present}
        case "Pod":
            spec = raw.get("spec") or {}
            kept["spec"] = {key: spec[key] for key in _KEPT_POD if key in spec}
            for group in ("containers", "initContainers"):
                if group in kept["spec"]:
                    kept["spec"][group] = [
                        {key: item[key] for key in ("name", "resources", "restartPolicy") if key in item}
                        for item in kept["spec"][group] or ()
                    ]
            kept["status"] = {"phase": (raw.get("status") or {}).get("phase")}
        case "StatefulSet":
            kept["spec"] = {"replicas": (raw.get("spec") or {}).get("replicas", 1)}
        case "StorageClass":
            pass
        case "ModuleConfig":
            settings = (raw.get("spec") or {}).get("settings") or {}
            kept["spec"] = {"settings": {"catalog": settings.get("catalog")}}
        case _:
            for key in ("spec", "status"):
                if key in raw:
                    kept[key] = raw[key]
    return kept


def from_replay(document: Document) -> Snapshot:
    """The snapshot a replay file states. Raises `BadInput`."""
    raw = document.raw
    version = re.fullmatch(r"(\d+)\.(\d+)", str(raw.get("kubernetes", "")))
    if version is None:
        raise BadInput(document.source, "kubernetes", "a version such as 1.37 is expected")
    objects = raw.get("objects")
    if not isinstance(objects, Sequence) or isinstance(objects, str):
        raise BadInput(document.source, "objects", "a list is expected")
    try:
        catalog = CatalogState(raw.get("catalog"))
    except ValueError as error:
        raise BadInput(document.source, "catalog", str(error)) from error
    return snapshot(
        by_kind(
            Document(raw=item, source=f"{document.source}: objects[{index}]") for index, item in enumerate(objects)
        ),
        kubernetes=(int(version[1]), int(version[2])),
        now=str(raw.get("now", "")),
        release=str(raw.get("release", "")),
        catalog=catalog,
        unreadable=tuple(str(item) for item in raw.get("unreadable") or ()),
    )
