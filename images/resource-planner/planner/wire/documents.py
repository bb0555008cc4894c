# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Objects as they come: parsed JSON with a word on where each was read; lists opened, copies settled."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Raw = Mapping[str, Any]

GROUP: Final = "ai.deckhouse.io"


class BadInput(ValueError):
    """An object that cannot be read: where it stands, the JSON path of the field, what is wrong."""

    def __init__(self, source: str, path: str, message: str) -> None:
        super().__init__(f"{source}: {path}: {message}" if path else f"{source}: {message}")
        self.source = source
        self.path = path
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object and where it was read from (a file and the place in it, or a watch)."""

    raw: Raw
    source: str


KINDS: Final = frozenset(
    {
        "InferenceService",
        "InferenceServiceClass",
        "DeviceClass",
        "ResourceSlice",
        "ResourceClaim",
        "DeviceTaintRule",
        "Node",
        "Namespace",
        "Model",
        "ClusterModel",
        "ModuleConfig",
        "Secret",
        "StorageClass",
        "StatefulSet",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
    }
)
"""The kinds a decision depends on; every other kind is left alone."""


def flatten(documents: Iterable[Document]) -> list[Document]:
    """Lists opened, empty documents dropped; every item is an object with a kind and a name. Raises `BadInput`."""
    found: list[Document] = []
    for document in documents:
        raw = document.raw
        if raw is None:
            continue
        if not isinstance(raw, Mapping):
            raise BadInput(document.source, "", "an object is expected")
        kind = raw.get("kind")
        if not isinstance(kind, str) or not kind:
            raise BadInput(document.source, "kind", "a text is expected")
        if kind.endswith("List") and "items" in raw:
            items = raw["items"]
            if items is None:
                continue
            if not isinstance(items, Sequence) or isinstance(items, str):
                raise BadInput(document.source, "items", "a list is expected")
            member = kind.removesuffix("List")
            for index, item in enumerate(items):
                where = f"{document.source}: items[{index}]"
                if isinstance(item, Mapping) and member and not item.get("kind"):
                    item = {**item, "kind": member, "apiVersion": item.get("apiVersion") or raw.get("apiVersion", "")}
                found.extend(flatten([Document(raw=item, source=where)]))
            continue
        found.append(document)
    return found


def by_kind(documents: Iterable[Document]) -> dict[str, list[Document]]:
    """Objects by kind, each once; kinds that no decision depends on are dropped. Raises `BadInput`; see `snapshot`."""
    kept: dict[tuple[str, str, str, str], Document] = {}
    for document in flatten(documents):
        kind = str(document.raw["kind"])
        if kind not in KINDS:
            continue
        metadata = document.raw.get("metadata")
        if not isinstance(metadata, Mapping):
            raise BadInput(document.source, "metadata", "an object is expected")
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            raise BadInput(document.source, "metadata.name", "a text is expected")
        group = str(document.raw.get("apiVersion", "")).rpartition("/")[0]
        key = (group, kind, namespace_of(document.raw), name)
        other = kept.get(key)
        kept[key] = document if other is None else _newer(other, document)
    found: dict[str, list[Document]] = {}
    for key in sorted(kept):
        found.setdefault(key[1], []).append(kept[key])
    return found


_VOLATILE: Final = ("resourceVersion", "managedFields")


def _newer(one: Document, other: Document) -> Document:
    versions = [metadata_of(item.raw).get("resourceVersion") for item in (one, other)]
    if all(isinstance(version, str) and version.isdigit() for version in versions):
        return one if int(str(versions[0])) >= int(str(versions[1])) else other
    if _settled(one.raw) == _settled(other.raw):
        return one
    name = metadata_of(one.raw).get("name")
    raise BadInput(
        other.source, "metadata.name", f"{one.raw['kind']} {name} stands in {one.source} too, with other content"
    )


def _settled(raw: Raw) -> Raw:
    metadata = {key: value for key, value in metadata_of(raw).items() if key not in _VOLATILE}
    return {**raw, "metadata": metadata}


def metadata_of(raw: Raw) -> Raw:
    """The metadata; empty when there is none that is an object."""
    metadata = raw.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def namespace_of(raw: Raw) -> str:
    """The namespace of an object of a namespaced kind, `default` when it states none."""
    return str(metadata_of(raw).get("namespace") or "default")


def name_of(raw: Raw) -> str:
    """The name; every object of `by_kind` has one."""
    return str(metadata_of(raw)["name"])


def parse_value(text: str) -> Any:
    """A value as a person types it: JSON where it is some, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
