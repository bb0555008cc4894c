# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Kubernetes objects → `Snapshot`, `OrderPlan` ↔ `status.plan`, and the replay file. camelCase lives only here.

Objects come as parsed JSON with a word on where they were read. Kinds that don't matter to a decision are left alone.
What the CRD would refuse is refused here too (`BadInput` names source and field), so that an answer is never built on a
field that was overlooked. Two copies of one object: equal ones count once, of different ones the higher
`resourceVersion` counts; without both versions they are refused, because the answer must not depend on file order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, TypeVar

from planner import dra, quantity, units
from planner.memory import Memory, Once
from planner.model import (
    MANAGED_LABEL,
    ORDER_LABEL,
    Alternative,
    Bounds,
    CapacityReport,
    CatalogModel,
    CatalogState,
    ClassVerdict,
    Decision,
    DeviceRequest,
    EndpointType,
    Exchanged,
    HostResources,
    HostUse,
    Key,
    LaunchStrategy,
    ModelRef,
    ModelSource,
    Order,
    OrderPlan,
    PlacementType,
    Plan,
    Preemption,
    RecipeUse,
    Secret,
    ServiceClass,
    Share,
    SharingMode,
    Sized,
    Snapshot,
    Verdict,
    Volume,
    VolumeNeed,
)
from planner.units import UNKNOWN, Maybe

GROUP: Final = "ai.deckhouse.io"
REPLAY_API: Final = "planner.ai.deckhouse.io/v1"
REPLAY_KIND: Final = "Snapshot"
TOKEN_KEYS: Final = ("token", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")

Raw = Mapping[str, Any]
T = TypeVar("T")
E = TypeVar("E", bound=Enum)


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


# --- objects → Snapshot ------------------------------------------------------------------------


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


def snapshot(
    documents: Iterable[Document],
    *,
    kubernetes: tuple[int, int],
    now: str,
    release: str,
    catalog: CatalogState | None = None,
    unreadable: Sequence[str] = (),
    strict: bool = True,
) -> Snapshot:
    """The snapshot that `documents` state; lists may be nested, their order does not matter.

    `catalog` None: enabled when a catalog object is among them, disabled when a ModuleConfig says so, else absent.
    Secrets and storage classes count as unreadable (None) when no object of the kind is there. With `strict` off, an
    object that cannot be read is left out and named in `unreadable` as "Kind name: path: message"; the caller decides.
    Raises `BadInput` when strict.
    """
    return assembled(
        by_kind(documents),
        Memory(),
        kubernetes=kubernetes, now=now, release=release, catalog=catalog, unreadable=unreadable, strict=strict,
    )  # fmt: skip


def assembled(
    kinds: Mapping[str, Sequence[Document]],
    memory: Memory,
    *,
    kubernetes: tuple[int, int],
    now: str,
    release: str,
    catalog: CatalogState | None = None,
    unreadable: Sequence[str] = (),
    strict: bool = True,
) -> Snapshot:
    """As `snapshot`, of distinct objects by kind. Of a kind whose sequence is the same object as at the last call with
    this memory nothing is read again, and of any other kind only the documents that are new."""
    skipped: list[str] = list(unreadable)

    def read(name: str, compute: Callable[[_Reading], T], *kinds_read: str) -> T:
        inputs = tuple(kinds.get(kind, ()) for kind in kinds_read or (name,))

        def computed(once: Once) -> tuple[T, tuple[str, ...]]:
            reading = _Reading(once=once, strict=strict)
            return compute(reading), tuple(reading.skipped)

        found, left_out = memory.result(name, inputs, computed)
        skipped.extend(left_out)
        return found

    def each(kind: str, reader: Callable[[Raw], T], key: Callable[[T], Any], group: str = "") -> tuple[T, ...]:
        def records(reading: _Reading) -> tuple[T, ...]:
            return tuple(sorted(reading.records(_of_group(kinds.get(kind, ()), group), reader), key=key))

        return read(kind, records)

    models = (
        *each("ClusterModel", _read_cluster_model, lambda item: item.name, GROUP),
        *each("Model", _read_namespaced_model, lambda item: (item.namespace or "", item.name), GROUP),
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
        catalog=catalog if catalog is not None else _catalog_state(kinds, bool(models)),
        models=models,
        secrets=each("Secret", _read_secret, lambda item: (item.namespace, item.name)) if "Secret" in kinds else None,
        volumes=read(
            "volumes", lambda reading: _volumes(kinds, nodes, reading),
            "PersistentVolume", "PersistentVolumeClaim", "Node",
        ),
        storage_classes=each("StorageClass", _name, lambda item: item) if "StorageClass" in kinds else None,
        host_use=read("host use", lambda reading: _host_use(kinds, reading), "Pod"),
        unreadable=tuple(sorted(set(skipped))),
    )  # fmt: skip


class _Reading:
    """How objects become records: once each, and one that cannot be read is refused or left out."""

    def __init__(self, *, once: Once, strict: bool) -> None:
        self.once = once
        self._strict = strict
        self.skipped: list[str] = []

    def records(self, documents: Iterable[Document], read: Callable[[Raw], T]) -> Iterator[T]:
        """The records of the documents that can be read. Raises `BadInput` for another one when strict."""
        for document in documents:
            try:
                yield self.once(read, document.raw)
            except dra.Malformed as error:
                self._leave_out(document, error)

    def record(self, document: Document, make: Callable[..., T], *parts: object) -> T | None:
        """What `make` gives for the parts of the document; None: it cannot be read. Raises `BadInput` when strict."""
        try:
            return self.once(make, *parts)
        except dra.Malformed as error:
            self._leave_out(document, error)
        return None

    def _leave_out(self, document: Document, error: dra.Malformed) -> None:
        if self._strict:
            raise BadInput(document.source, error.path, error.message) from error
        name = _metadata(document.raw).get("name", "?")
        self.skipped.append(f"{document.raw['kind']} {name}: {error.path}: {error.message}")


def _of_group(documents: Iterable[Document], group: str) -> Iterator[Document]:
    return (item for item in documents if str(item.raw.get("apiVersion", "")).startswith(group))


def _orders(kinds: Mapping[str, Sequence[Document]], reading: _Reading) -> tuple[Order, ...]:
    """Orders with the replicas that their StatefulSets ask for."""
    sets = {
        (_namespace(item.raw), str(_metadata(item.raw).get("name"))): item.raw
        for item in kinds.get("StatefulSet", ())
        if (_metadata(item.raw).get("labels") or {}).get(ORDER_LABEL)
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


def _metadata(raw: Raw) -> Raw:
    metadata = raw.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _namespace(raw: Raw) -> str:
    return str(_metadata(raw).get("namespace") or "default")


_VOLATILE: Final = ("resourceVersion", "managedFields")


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
        key = (group, kind, _namespace(document.raw), name)
        other = kept.get(key)
        kept[key] = document if other is None else _newer(other, document)
    found: dict[str, list[Document]] = {}
    for key in sorted(kept):
        found.setdefault(key[1], []).append(kept[key])
    return found


def _newer(one: Document, other: Document) -> Document:
    versions = [_metadata(item.raw).get("resourceVersion") for item in (one, other)]
    if all(isinstance(version, str) and version.isdigit() for version in versions):
        return one if int(str(versions[0])) >= int(str(versions[1])) else other
    if _settled(one.raw) == _settled(other.raw):
        return one
    name = _metadata(one.raw).get("name")
    raise BadInput(
        other.source, "metadata.name", f"{one.raw['kind']} {name} stands in {one.source} too, with other content"
    )


def _settled(raw: Raw) -> Raw:
    metadata = {key: value for key, value in _metadata(raw).items() if key not in _VOLATILE}
    return {**raw, "metadata": metadata}


def _catalog_state(raws: Mapping[str, Sequence[Document]], any_model: bool) -> CatalogState:
    for document in raws.get("ModuleConfig", ()):
        if _metadata(document.raw).get("name") != "ai-inference":
            continue
        settings = (document.raw.get("spec") or {}).get("settings") or {}
        if (settings.get("catalog") or {}).get("mode") == "None":
            return CatalogState.DISABLED
    return CatalogState.ENABLED if any_model else CatalogState.ABSENT


def _name(raw: Raw) -> str:
    return str(_metadata(raw)["name"])


def _terminating(raw: Raw) -> str:
    metadata = _metadata(raw)
    gone = metadata.get("deletionTimestamp") or (raw.get("status") or {}).get("phase") == "Terminating"
    return str(metadata["name"]) if gone else ""


def _read_secret(raw: Raw) -> Secret:
    present = {*(raw.get("data") or {}), *(raw.get("stringData") or {})}
    return Secret(
        namespace=_namespace(raw),
        name=str(_metadata(raw)["name"]),
        keys=tuple(key for key in TOKEN_KEYS if key in present),
    )


def _read_cluster_model(raw: Raw) -> CatalogModel:
    return _read_model(raw, "ClusterModel", None)


def _read_namespaced_model(raw: Raw) -> CatalogModel:
    return _read_model(raw, "Model", _namespace(raw))


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
        name=str(_metadata(raw)["name"]),
        phase=str(status.get("phase") or "Pending"),
        message=str(failing[0].get("message") or "") if failing else "",
        status=status,
    )


def _volumes(
    kinds: Mapping[str, Sequence[Document]], nodes: tuple[dra.Node, ...], reading: _Reading
) -> tuple[Volume, ...]:
    """Model volumes of orders. A bound claim's nodes are those its volume's node affinity admits; no affinity: any."""
    persistent = {str(_metadata(item.raw)["name"]): item for item in kinds.get("PersistentVolume", ())}
    found = []
    for document in kinds.get("PersistentVolumeClaim", ()):
        if (_metadata(document.raw).get("labels") or {}).get(ORDER_LABEL):
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
    order = Key(namespace=_namespace(claim), name=str(_metadata(claim)["labels"][ORDER_LABEL]))
    return Volume(order=order, name=_name(claim), nodes=reach)


def _host_use(kinds: Mapping[str, Sequence[Document]], reading: _Reading) -> tuple[HostUse, ...]:
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
    labels = _metadata(raw).get("labels") or {}
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


# --- orders and classes ------------------------------------------------------------------------

_ORDER_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_REPOSITORY_URL: Final = re.compile(r"https://(?:huggingface\.co|hf\.co)/([^/?#]+/[^/?#]+)")
_REPO_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class _Fields:
    """One object of a spec: typed reads that name the path, and a check that nothing else is there."""

    def __init__(self, raw: object, path: str, *known: str) -> None:
        if not isinstance(raw, Mapping):
            raise dra.Malformed(path, "an object is expected")
        self.raw: Raw = raw
        self.path = path
        for key in raw:
            if key not in known:
                raise dra.Malformed(self.at(str(key)), "unknown field")

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        return self.raw.get(key) is not None

    def block(self, key: str, *known: str) -> _Fields | None:
        return _Fields(self.raw[key], self.at(key), *known) if self.has(key) else None

    def text(self, key: str, pattern: re.Pattern[str] = _SUBDOMAIN, longest: int = 253) -> str:
        value = self.raw.get(key)
        if not isinstance(value, str) or not value:
            raise dra.Malformed(self.at(key), "a text is expected")
        if len(value) > longest or not pattern.fullmatch(value):
            raise dra.Malformed(self.at(key), f"{value!r} is no valid name")
        return value

    def maybe_text(self, key: str, pattern: re.Pattern[str] = _SUBDOMAIN, longest: int = 253) -> str | None:
        return self.text(key, pattern, longest) if self.has(key) else None

    def choice(self, key: str, kind: type[E], otherwise: E) -> E:
        return _choice(kind, self.raw[key], self.at(key)) if self.has(key) else otherwise

    def list_of(self, key: str, read: Callable[[object, str], T]) -> tuple[T, ...] | None:
        """The items of a list; absent is None, empty or repeating is refused."""
        if not self.has(key):
            return None
        items = self.raw[key]
        if not isinstance(items, Sequence) or isinstance(items, str):
            raise dra.Malformed(self.at(key), "a list is expected")
        if not items:
            raise dra.Malformed(self.at(key), "an empty list could mean all or none: leave it out or name something")
        found = tuple(read(item, f"{self.at(key)}[{index}]") for index, item in enumerate(items))
        for index, item in enumerate(found):
            if item in found[:index]:
                raise dra.Malformed(f"{self.at(key)}[{index}]", "named twice")
        return found

    def whole(self, key: str) -> int | None:
        if not self.has(key):
            return None
        value = self.raw[key]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise dra.Malformed(self.at(key), "a whole number of at least 1 is expected")
        return value

    def amount(self, key: str) -> int | None:
        """A positive quantity of bytes."""
        if not self.has(key):
            return None
        value = dra.read_amount(self.raw[key], self.at(key))
        if value <= 0:
            raise dra.Malformed(self.at(key), "a positive quantity is expected")
        return -int(-value // 1)


def _choice(kind: type[E], value: object, path: str) -> E:
    try:
        return kind(value)
    except ValueError as error:
        words = ", ".join(str(item.value) for item in kind)
        raise dra.Malformed(path, f"{value!r} is none of {words}") from error


def _name_item(value: object, path: str) -> str:
    if not isinstance(value, str) or len(value) > 253 or not _SUBDOMAIN.fullmatch(value):
        raise dra.Malformed(path, f"{value!r} is no valid name")
    return value


def read_order(raw: Raw) -> Order:
    """An InferenceService. Raises `dra.Malformed` for what the CRD refuses; an unreadable `status.plan` is None.

    Objects that no API server has seen yet have no uid, generation (1) or creation time (they count as the youngest).
    """
    metadata = _metadata(raw)
    name = str(metadata["name"])
    if len(name) > 52 or not _ORDER_NAME.fullmatch(name):
        raise dra.Malformed(
            "metadata.name", "a letter first, then lower-case letters, digits and -, at most 52 characters"
        )
    spec = _Fields(raw.get("spec"), "spec", "inferenceServiceClassName", "model", "launchStrategy", "resources")
    namespace = _namespace(raw)
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
        device_classes=accelerator.list_of("deviceClasses", _name_item) if accelerator else None,
        deleting=metadata.get("deletionTimestamp") is not None,
        plan=_previous(raw, Key(namespace=namespace, name=name)),
    )


def _model_ref(model: _Fields, namespace: str) -> ModelRef:
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
    metadata = _metadata(raw)
    spec = _Fields(
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
        models.list_of("allowedEndpointTypes", lambda value, path: _choice(EndpointType, value, path))
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
        allowed_namespaces=admission.list_of("allowedNamespaces", _name_item) if admission else None,
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
        sharing_modes=policy.list_of("allowedSharingModes", lambda value, path: _choice(SharingMode, value, path))
        or (SharingMode.DEDICATED,),
        placement_types=policy.list_of("allowedPlacementTypes", lambda value, path: _choice(PlacementType, value, path))
        or (PlacementType.WHOLE_DEVICE,),
        max_accelerator_count=policy.whole("maxAcceleratorCount") or 1,
        device_class_names=policy.list_of("deviceClassNames", _name_item),
        device_selector=selector,
        min_share_memory=least_share,
        max_share_memory=most_share,
    )


def _check_exposure(spec: _Fields) -> None:
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


# --- OrderPlan ↔ status.plan ------------------------------------------------------------------------


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
        _put(share, "memory", _bytes(plan.share.memory))
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
        _put(sizing, "weights", _bytes(plan.sized.weights))
        _put(sizing, "kvCache", _bytes(plan.sized.kv_cache))
        _put(sizing, "overhead", _bytes(plan.sized.overhead))
        _put(sizing, "total", _bytes(plan.sized.total))
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


def _bytes(amount: Maybe) -> str | None:
    return None if amount is UNKNOWN else units.binary(amount)


def milli(amount: int) -> str:
    """Milli-units as the API server prints them: 2000 → "2", 500 → "500m"."""
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def _previous(raw: Raw, key: Key) -> OrderPlan | None:
    status = raw.get("status")
    written = status.get("plan") if isinstance(status, Mapping) else None
    if not isinstance(written, Mapping):
        return None
    try:
        return read_plan(written, key)
    except (dra.Malformed, ValueError, KeyError, TypeError, AttributeError):
        return None  # not ours or of a form no release wrote: decided anew


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


# --- Plan → JSON ------------------------------------------------------------------------


def plan_json(plan: Plan) -> dict[str, Any]:
    """What `planner plan -o json` prints: the status of every order, the verdict on every class, the capacity."""
    return {
        "orders": {str(item.key): plan_status(item) for item in plan.orders},
        "classes": {item.name: class_status(item) for item in plan.classes},
        "capacity": capacity_json(plan.capacity),
    }


def class_status(verdict: ClassVerdict) -> dict[str, Any]:
    """Both conditions of a service class and the generation they were judged at."""
    return {
        "observedGeneration": verdict.generation,
        "validated": _condition(verdict.validated),
        "ready": _condition(verdict.ready),
    }


def _condition(verdict: Verdict) -> dict[str, str]:
    return {"status": verdict.status.value, "reason": verdict.reason, "message": verdict.message}


def capacity_json(report: CapacityReport) -> dict[str, Any]:
    """Totals by device class and node, every device with who sits on it, and what is wrong with the inventory."""
    classes: dict[str, dict[str, Any]] = {}
    for item in report.classes:
        classes.setdefault(item.device_class, {})[item.node] = {
            "total": item.total,
            "held": item.held,
            "free": item.free,
            "freeMemory": _bytes(item.free_memory),
        }
    told: dict[str, Any] = {
        "deviceClasses": classes,
        "devices": [
            {
                "driver": item.id.driver,
                "pool": item.id.pool,
                "name": item.id.name,
                "nodes": list(item.nodes),
                "deviceClasses": list(item.device_classes),
                "product": item.product,
                "placementType": item.placement.value,
                "memory": _bytes(item.memory),
                "freeMemory": _bytes(item.free),
                "blocked": item.blocked,
                "problem": item.problem,
                "holders": [
                    {
                        "name": sitting.holder,
                        "order": sitting.order is not None,
                        "memory": _bytes(sitting.memory),
                        "computePercent": None if sitting.compute_percent is UNKNOWN else sitting.compute_percent,
                        "planned": sitting.planned,
                    }
                    for sitting in item.sittings
                ],
            }
            for item in report.devices
        ],
        "problems": list(report.problems),
    }
    packing = {
        name: {
            "replicas": item.replicas,
            "cards": item.cards,
            "bound": item.bound,
            "proven": item.proven,
            "limited": list(item.limited),
        }
        for name, item in (("placed", report.placed), ("standing", report.standing))
        if item is not None
    }
    return {**told, "packing": packing} if packing else told


# --- replay file ------------------------------------------------------------------------


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
    metadata = {key: value for key, value in _metadata(raw).items() if key in _KEPT_METADATA}
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
        [Document(raw=item, source=f"{document.source}: objects[{index}]") for index, item in enumerate(objects)],
        kubernetes=(int(version[1]), int(version[2])),
        now=str(raw.get("now", "")),
        release=str(raw.get("release", "")),
        catalog=catalog,
        unreadable=tuple(str(item) for item in raw.get("unreadable") or ()),
    )


def parse_value(text: str) -> Any:
    """A value as a person types it: JSON where it is some, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
