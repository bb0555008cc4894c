# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The records of the DRA API that a decision reads, and their readers: slices, device classes, claims, rules, nodes.

A record says what an object says and nothing more: what a driver means by an attribute stands in `drivers`, what is
free in `inventory`. Readers take objects as the API server prints them (`resource.k8s.io/v1`; `v1beta2` has the same
shape), let fields they don't know alone, and raise `Malformed` with the JSON path of the first bad one. Amounts are
exact: whole numbers as `int`, anything finer as `Fraction`; memory is bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from planner import quantity

Amount: TypeAlias = int | Fraction
"""An exact amount of a capacity or counter, in the unit the driver published (memory: bytes)."""

Attribute: TypeAlias = tuple[str, Any]
"""An attribute's type as the API names it (`string`, `int`, `bool`, `version`, `strings`, …) and its value."""

T = TypeVar("T")

_NANO = 10**9
_NOTHING: Mapping[str, Any] = {}


class Malformed(ValueError):
    """An object that is none: `path` is the JSON path of the field, `message` what is wrong with it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


class DeviceId(NamedTuple):
    """The identity of a device in the cluster; the name alone repeats between pools."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


class Effect(Enum):
    """What a taint does. Node taints know `PREFER_NO_SCHEDULE`, device taints `NONE`: both only inform."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NONE = "None"

    @property
    def repels(self) -> bool:
        """A pod that does not tolerate it must not come."""
        return self in (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a device or of a node."""

    key: str
    effect: Effect
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """What a request or a pod tolerates; an empty key tolerates every key, no effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: Effect | None = None

    def tolerates(self, taint: Taint) -> bool:
        """This toleration covers `taint`, by the rules of Kubernetes; an unknown operator covers nothing."""
        if self.effect is not None and self.effect is not taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One requirement of a node selector; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def admits(self, value: str | None) -> bool:
        """A node whose label is `value` (None: it has none) meets it; an unknown operator admits nothing."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                mine, bound = _integer(value), _integer(self.values[0] if len(self.values) == 1 else None)
                if mine is None or bound is None:
                    return False
                return mine > bound if self.operator == "Gt" else mine < bound
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Requirements that hold together; a term without any admits no node."""

    labels: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()

    def admits(self, node: Node) -> bool:
        """`node` meets every requirement."""
        if not self.labels and not self.fields:
            return False
        return all(e.admits(node.labels.get(e.key)) for e in self.labels) and all(
            e.key == "metadata.name" and e.admits(node.name) for e in self.fields
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelector:
    """Terms of which one must hold; a selector without terms admits no node."""

    terms: tuple[Term, ...] = ()

    def admits(self, node: Node) -> bool:
        """One of the terms holds for `node`."""
        return any(term.admits(node) for term in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as far as placement asks: allocatable CPU in milli-cores, memory in bytes; 0 where it states none."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    cpu_milli: int = 0
    memory: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a request for a capacity of a shared device is rounded and bounded; nothing set: any amount as it is."""

    default: Amount | None = None
    """Taken by a request that names no amount; None: the whole value."""
    values: tuple[Amount, ...] = ()
    """The only amounts there are, ascending; empty: any."""
    minimum: Amount | None = None
    maximum: Amount | None = None
    step: Amount | None = None
    ranged: bool = False
    """A `validRange` is written, even an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """A capacity of a device: its whole value, and how shares of it are cut."""

    value: Amount
    policy: Policy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSet:
    """A named set of counters that the devices of a pool share."""

    name: str
    counters: Mapping[str, Amount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumption:
    """What a device takes from one counter set of its pool while it is held."""

    counter_set: str
    counters: Mapping[str, Amount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Which nodes can use a device: one by name, those a selector admits, or all. Nothing set: none."""

    node_name: str | None = None
    selector: NodeSelector | None = None
    all_nodes: bool = False

    def admits(self, node: Node) -> bool:
        """A pod on `node` can use it."""
        if self.node_name is not None:
            return self.node_name == node.name
        if self.all_nodes:
            return True
        return self.selector is not None and self.selector.admits(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """A device as a slice publishes it; attribute and capacity names as they are written there, qualified or not."""

    name: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, Capacity] = field(default_factory=dict)
    consumes: tuple[Consumption, ...] = ()
    taints: tuple[Taint, ...] = ()
    shareable: bool = False
    """`allowMultipleAllocations`."""
    reach: Reach | None = None
    """Its own node choice, where the slice leaves that to its devices."""
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The JSON it was read from: what CEL looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A ResourceSlice: a part of one generation of one pool."""

    name: str
    driver: str
    pool: str
    generation: int
    slice_count: int
    """How many slices this generation of the pool has."""
    reach: Reach
    per_device: bool = False
    """`perDeviceNodeSelection`: every device says itself where it can be used."""
    devices: tuple[DeviceSpec, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()

    @property
    def node_name(self) -> str | None:
        """The one node that it belongs to; None: see `reach`."""
        return self.reach.node_name

    @property
    def node_selector(self) -> NodeSelector | None:
        """The nodes that reach it, where a selector says so."""
        return self.reach.selector

    @property
    def all_nodes(self) -> bool:
        """Every node reaches it."""
        return self.reach.all_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequestConfig:
    """Opaque parameters for a driver, for the requests named (none: for all)."""

    driver: str
    parameters: Mapping[str, Any]
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A DeviceClass: CEL selectors that must all hold, opaque config, and the extended resource that stands for it."""

    name: str
    selectors: tuple[str, ...] = ()
    config: tuple[ClaimRequestConfig, ...] = ()
    extended_resource: str | None = None


class Mode(Enum):
    """How many devices a request asks for: a count, or all that match."""

    EXACT_COUNT = "ExactCount"
    ALL = "All"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What one request (or one alternative of a `firstAvailable` list) asks for."""

    name: str
    """The sub-request's own name; empty for `exactly`."""
    device_class: str
    selectors: tuple[str, ...] = ()
    mode: str = Mode.EXACT_COUNT.value
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: Mapping[str, Amount] | None = None
    """Requested capacity by name; None: the request says nothing of capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of a claim: `exactly` (one ask) or `firstAvailable` (several, the first that works)."""

    name: str
    asks: tuple[Ask, ...]
    prioritized: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """Devices of the named requests (none: all) agree in `match`, or differ in `distinct`; neither: unknown kind."""

    requests: tuple[str, ...] = ()
    match: str | None = None
    distinct: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One device that an allocation gave to a request (`request`, or `request/subrequest`)."""

    request: str
    device: DeviceId
    admin_access: bool = False
    share_id: str | None = None
    consumed: Mapping[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What a claim holds and on which nodes it can be used (None: on any)."""

    results: tuple[Result, ...] = ()
    node_selector: NodeSelector | None = None
    config: tuple[ClaimRequestConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A ResourceClaim: what it asks, and what it holds (None: nothing yet, or no more)."""

    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    owner_pod: str | None = None
    """The pod it was made for, from its owner references."""
    requests: tuple[Request, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    config: tuple[ClaimRequestConfig, ...] = ()
    allocation: Allocation | None = None
    deleting: bool = False
    reserved_for: tuple[str, ...] = ()
    """Names of the pods that may use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintRule:
    """A DeviceTaintRule: a taint on every device that all stated criteria select; nothing stated: on all devices."""

    name: str
    taint: Taint
    selects_nothing: bool = False
    """It has no device selector at all: it taints no device."""
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    device_class: str | None = None
    """v1alpha3 only, as `selectors`."""
    selectors: tuple[str, ...] = ()


def qualified(name: str, driver: str) -> str:
    """An attribute or capacity name with its domain: a name without one belongs to `driver`."""
    return name if "/" in name else f"{driver}/{name}"


def lookup(fields: Mapping[str, T], driver: str, name: str) -> T | None:
    """The attribute or capacity that `name` (qualified or not) means on a device of `driver`; None: it has none.

    A name may be written with the driver's domain or without, on either side.
    """
    found = fields.get(name)
    if found is not None:
        return found
    domain, slash, bare = name.partition("/")
    if not slash:
        return fields.get(f"{driver}/{name}")
    return fields.get(bare) if domain == driver else None


def exact(amount: quantity.Quantity) -> Amount:
    """A quantity as an exact number: `int` when whole, else `Fraction`."""
    whole, rest = divmod(amount.nano, _NANO)
    return Fraction(amount.nano, _NANO) if rest else whole


@lru_cache(maxsize=65_536)
def _amount_of_text(text: str) -> Amount:
    return exact(quantity.of(text))


def read_amount(raw: object, path: str) -> Amount:
    """The exact amount that a JSON quantity states. Raises `Malformed` at `path` when it is none."""
    try:
        return _amount_of_text(raw) if isinstance(raw, str) else exact(quantity.of(raw))
    except quantity.QuantityError as error:
        raise Malformed(path, str(error)) from error


def read_slice(raw: Mapping[str, Any]) -> Slice:
    """A ResourceSlice. Raises `Malformed`."""
    spec = _mapping(raw, "spec", "")
    pool = _mapping(spec, "pool", "spec")
    driver = _text(spec, "driver", "spec")
    return Slice(
        name=_name(raw),
        driver=driver,
        pool=_text(pool, "name", "spec.pool"),
        generation=_whole(pool, "generation", "spec.pool", 0),
        slice_count=_whole(pool, "resourceSliceCount", "spec.pool", 0),
        reach=_reach(spec, "spec") or Reach(),
        per_device=_flag(spec, "perDeviceNodeSelection", "spec"),
        devices=tuple(_device(device, path) for device, path in _each(spec, "devices", "spec")),
        shared_counters=tuple(
            CounterSet(name=_text(item, "name", path), counters=_counters(item, path))
            for item, path in _each(spec, "sharedCounters", "spec")
        ),
    )


def read_device_class(raw: Mapping[str, Any]) -> DeviceClass:
    """A DeviceClass. Raises `Malformed`."""
    spec = _optional(raw, "spec", "")
    return DeviceClass(
        name=_name(raw),
        selectors=_selectors(spec, "spec"),
        config=_configs(spec, "spec"),
        extended_resource=_maybe_text(spec, "extendedResourceName", "spec") or None,
    )


def read_claim(raw: Mapping[str, Any]) -> Claim:
    """A ResourceClaim, allocated or not. Raises `Malformed`."""
    metadata = _mapping(raw, "metadata", "")
    devices = _optional(_optional(raw, "spec", ""), "devices", "spec")
    status = _optional(raw, "status", "")
    pods = [
        _text(owner, "name", path)
        for owner, path in _each(metadata, "ownerReferences", "metadata")
        if owner.get("kind") == "Pod"
    ]
    return Claim(
        namespace=_maybe_text(metadata, "namespace", "metadata") or "",
        name=_name(raw),
        uid=_maybe_text(metadata, "uid", "metadata") or "",
        labels=_texts_by_name(metadata, "labels", "metadata"),
        owner_pod=pods[0] if pods else None,
        requests=tuple(_request(item, path) for item, path in _each(devices, "requests", "spec.devices")),
        constraints=tuple(
            Constraint(
                requests=_texts(item, "requests", path),
                match=_maybe_text(item, "matchAttribute", path),
                distinct=_maybe_text(item, "distinctAttribute", path),
            )
            for item, path in _each(devices, "constraints", "spec.devices")
        ),
        config=_configs(devices, "spec.devices"),
        allocation=_allocation(status),
        deleting=metadata.get("deletionTimestamp") is not None,
        reserved_for=tuple(
            _text(item, "name", path)
            for item, path in _each(status, "reservedFor", "status")
            if item.get("resource", "pods") == "pods"
        ),
    )


def read_taint_rule(raw: Mapping[str, Any]) -> TaintRule:
    """A DeviceTaintRule of any served version. Raises `Malformed`."""
    spec = _mapping(raw, "spec", "")
    selector = spec.get("deviceSelector")
    chosen = _optional(spec, "deviceSelector", "spec")
    path = "spec.deviceSelector"
    return TaintRule(
        name=_name(raw),
        taint=_taint(_mapping(spec, "taint", "spec"), "spec.taint"),
        selects_nothing=selector is None,
        driver=_maybe_text(chosen, "driver", path),
        pool=_maybe_text(chosen, "pool", path),
        device=_maybe_text(chosen, "device", path),
        device_class=_maybe_text(chosen, "deviceClassName", path),
        selectors=_selectors(chosen, path),
    )


def read_node(raw: Mapping[str, Any]) -> Node:
    """A Node; one that reports no Ready condition counts as ready (offline dumps often have no status)."""
    metadata = _mapping(raw, "metadata", "")
    spec = _optional(raw, "spec", "")
    status = _optional(raw, "status", "")
    ready = [
        condition.get("status") == "True"
        for condition, _ in _each(status, "conditions", "status")
        if condition.get("type") == "Ready"
    ]
    allocatable = _optional(status, "allocatable", "status")
    cpu = read_amount(allocatable.get("cpu", 0), "status.allocatable.cpu")
    memory = read_amount(allocatable.get("memory", 0), "status.allocatable.memory")
    return Node(
        name=_name(raw),
        labels=_texts_by_name(metadata, "labels", "metadata"),
        ready=all(ready),
        unschedulable=_flag(spec, "unschedulable", "spec"),
        taints=tuple(_taint(item, path) for item, path in _each(spec, "taints", "spec")),
        cpu_milli=int(cpu * 1000),
        memory=int(memory),
    )


def _device(raw: Mapping[str, Any], path: str) -> DeviceSpec:
    attributes = raw.get("attributes")
    capacity = raw.get("capacity")
    bare = not raw.keys() - {"name", "attributes", "capacity"}
    if bare:  # the usual device: nothing more to look for
        return DeviceSpec(
            name=_text(raw, "name", path),
            attributes=_attributes(attributes, path) if attributes else {},
            capacity=_capacities(capacity, path) if capacity else {},
            raw=raw,
        )
    return DeviceSpec(
        name=_text(raw, "name", path),
        attributes=_attributes(attributes, path) if attributes else {},
        capacity=_capacities(capacity, path) if capacity else {},
        consumes=tuple(
            Consumption(counter_set=_text(item, "counterSet", at), counters=_counters(item, at))
            for item, at in _each(raw, "consumesCounters", path)
        ),
        taints=tuple(_taint(item, at) for item, at in _each(raw, "taints", path)),
        shareable=_flag(raw, "allowMultipleAllocations", path),
        reach=_reach(raw, path),
        binds_to_node=_flag(raw, "bindsToNode", path),
        binding_conditions=_texts(raw, "bindingConditions", path),
        binding_failure_conditions=_texts(raw, "bindingFailureConditions", path),
        raw=raw,
    )


def _attributes(raw: object, path: str) -> dict[str, Attribute]:
    if not isinstance(raw, Mapping):
        raise Malformed(f"{path}.attributes", "an object is expected")
    read = {}
    for name, value in raw.items():
        if not isinstance(value, Mapping) or not value:
            raise Malformed(f"{path}.attributes[{name}]", "an object with one typed value is expected")
        stated = [(kind, item) for kind, item in value.items() if item is not None]
        if len(stated) != 1:
            raise Malformed(f"{path}.attributes[{name}]", "exactly one typed value is expected")
        kind, item = stated[0]
        read[name] = (kind, tuple(item) if isinstance(item, list) else item)
    return read


def _capacities(raw: object, path: str) -> dict[str, Capacity]:
    if not isinstance(raw, Mapping):
        raise Malformed(f"{path}.capacity", "an object is expected")
    read = {}
    for name, item in raw.items():
        at = f"{path}.capacity[{name}]"
        if not isinstance(item, Mapping) or "value" not in item:
            raise Malformed(at, "an object with a value is expected")
        read[name] = Capacity(value=read_amount(item["value"], f"{at}.value"), policy=_policy(item, at))
    return read


def _policy(capacity: Mapping[str, Any], path: str) -> Policy | None:
    if capacity.get("requestPolicy") is None:
        return None
    raw, at = _mapping(capacity, "requestPolicy", path), f"{path}.requestPolicy"
    limits, within = _optional(raw, "validRange", at), f"{at}.validRange"
    values = raw.get("validValues") or []
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise Malformed(f"{at}.validValues", "a list is expected")
    return Policy(
        default=_maybe_amount(raw, "default", at),
        values=tuple(sorted(read_amount(value, f"{at}.validValues[{i}]") for i, value in enumerate(values))),
        minimum=_maybe_amount(limits, "min", within),
        maximum=_maybe_amount(limits, "max", within),
        step=_maybe_amount(limits, "step", within),
        ranged=raw.get("validRange") is not None,
    )


def _counters(raw: Mapping[str, Any], path: str) -> dict[str, Amount]:
    counters = _optional(raw, "counters", path)
    read = {}
    for name, item in counters.items():
        at = f"{path}.counters[{name}]"
        if not isinstance(item, Mapping) or "value" not in item:
            raise Malformed(at, "an object with a value is expected")
        read[name] = read_amount(item["value"], f"{at}.value")
    return read


def _request(raw: Mapping[str, Any], path: str) -> Request:
    alternatives = tuple(_ask(item, at, _text(item, "name", at)) for item, at in _each(raw, "firstAvailable", path))
    exactly = raw.get("exactly")
    if exactly is not None:
        if alternatives:
            raise Malformed(path, "either exactly or firstAvailable is expected, not both")
        alternatives = (_ask(_mapping(raw, "exactly", path), f"{path}.exactly", ""),)
    return Request(name=_text(raw, "name", path), asks=alternatives, prioritized=exactly is None)


def _ask(raw: Mapping[str, Any], path: str, name: str) -> Ask:
    mode = _maybe_text(raw, "allocationMode", path) or Mode.EXACT_COUNT.value
    capacity = _optional(raw, "capacity", path)
    amounts = _optional(capacity, "requests", f"{path}.capacity")
    return Ask(
        name=name,
        device_class=_text(raw, "deviceClassName", path),
        selectors=_selectors(raw, path),
        mode=mode,
        count=_whole(raw, "count", path, 0) or (1 if mode == Mode.EXACT_COUNT.value else 0),
        admin_access=_flag(raw, "adminAccess", path),
        tolerations=tuple(
            Toleration(
                key=_maybe_text(item, "key", at) or "",
                operator=_maybe_text(item, "operator", at) or "Equal",
                value=_maybe_text(item, "value", at) or "",
                effect=_effect(item, at) if item.get("effect") else None,
            )
            for item, at in _each(raw, "tolerations", path)
        ),
        capacity=None
        if raw.get("capacity") is None
        else {key: read_amount(value, f"{path}.capacity.requests[{key}]") for key, value in amounts.items()},
    )


def _allocation(status: Mapping[str, Any]) -> Allocation | None:
    if status.get("allocation") is None:
        return None
    raw, path = _mapping(status, "allocation", "status"), "status.allocation"
    devices = _optional(raw, "devices", path)
    return Allocation(
        results=tuple(_result(item, at) for item, at in _each(devices, "results", f"{path}.devices")),
        node_selector=read_node_selector(raw, "nodeSelector", path),
        config=_configs(devices, f"{path}.devices"),
    )


def _result(raw: Mapping[str, Any], path: str) -> Result:
    consumed = _optional(raw, "consumedCapacity", path)
    return Result(
        request=_maybe_text(raw, "request", path) or "",
        device=DeviceId(
            driver=_text(raw, "driver", path), pool=_text(raw, "pool", path), name=_text(raw, "device", path)
        ),
        admin_access=_flag(raw, "adminAccess", path),
        share_id=_maybe_text(raw, "shareID", path),
        consumed={key: read_amount(value, f"{path}.consumedCapacity[{key}]") for key, value in consumed.items()},
    )


def _configs(raw: Mapping[str, Any], path: str) -> tuple[ClaimRequestConfig, ...]:
    read = []
    for item, at in _each(raw, "config", path):
        if item.get("opaque") is None:
            continue
        opaque = _mapping(item, "opaque", at)
        read.append(
            ClaimRequestConfig(
                driver=_text(opaque, "driver", f"{at}.opaque"),
                parameters=_optional(opaque, "parameters", f"{at}.opaque"),
                requests=_texts(item, "requests", at),
            )
        )
    return tuple(read)


def _selectors(raw: Mapping[str, Any], path: str) -> tuple[str, ...]:
    read = []
    for item, at in _each(raw, "selectors", path):
        read.append(_text(_mapping(item, "cel", at), "expression", f"{at}.cel"))
    return tuple(read)


def _reach(raw: Mapping[str, Any], path: str) -> Reach | None:
    reach = Reach(
        node_name=_maybe_text(raw, "nodeName", path) or None,
        selector=read_node_selector(raw, "nodeSelector", path),
        all_nodes=_flag(raw, "allNodes", path),
    )
    return None if reach == Reach() else reach


def read_node_selector(raw: Mapping[str, Any], key: str, path: str) -> NodeSelector | None:
    """The node selector under `key`; absent is None: every node. Raises Malformed."""
    if raw.get(key) is None:
        return None
    selector, at = _mapping(raw, key, path), _join(path, key)
    return NodeSelector(
        terms=tuple(
            Term(labels=_expressions(term, "matchExpressions", where), fields=_expressions(term, "matchFields", where))
            for term, where in _each(selector, "nodeSelectorTerms", at)
        )
    )


def _expressions(raw: Mapping[str, Any], key: str, path: str) -> tuple[Expression, ...]:
    return tuple(
        Expression(key=_text(item, "key", at), operator=_text(item, "operator", at), values=_texts(item, "values", at))
        for item, at in _each(raw, key, path)
    )


def _taint(raw: Mapping[str, Any], path: str) -> Taint:
    return Taint(key=_text(raw, "key", path), value=_maybe_text(raw, "value", path) or "", effect=_effect(raw, path))


def _effect(raw: Mapping[str, Any], path: str) -> Effect:
    text = _text(raw, "effect", path)
    try:
        return Effect(text)
    except ValueError as error:
        raise Malformed(f"{path}.effect", f"unknown effect {text!r}") from error


def _integer(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _name(raw: Mapping[str, Any]) -> str:
    return _text(_mapping(raw, "metadata", ""), "name", "metadata")


def _mapping(raw: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    value = raw.get(key)
    if not isinstance(value, Mapping):
        raise Malformed(_join(path, key), "an object is expected")
    return value


def _optional(raw: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    return _NOTHING if raw.get(key) is None else _mapping(raw, key, path)


def _each(raw: Mapping[str, Any], key: str, path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    items = raw.get(key)
    if items is None:
        return
    at = _join(path, key)
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise Malformed(at, "a list is expected")
    for index, item in enumerate(items):
        where = f"{at}[{index}]"
        if not isinstance(item, Mapping):
            raise Malformed(where, "an object is expected")
        yield item, where


def _text(raw: Mapping[str, Any], key: str, path: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str) or not value:
        raise Malformed(_join(path, key), "a text is expected")
    return value


def _maybe_text(raw: Mapping[str, Any], key: str, path: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise Malformed(_join(path, key), "a text is expected")
    return value


def _texts(raw: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
    items = raw.get(key)
    if items is None:
        return ()
    if not isinstance(items, Sequence) or isinstance(items, str) or not all(isinstance(item, str) for item in items):
        raise Malformed(_join(path, key), "a list of texts is expected")
    return tuple(items)


def _texts_by_name(raw: Mapping[str, Any], key: str, path: str) -> Mapping[str, str]:
    items = _optional(raw, key, path)
    if not all(isinstance(value, str) for value in items.values()):
        raise Malformed(_join(path, key), "texts by name are expected")
    return dict(items)


def _flag(raw: Mapping[str, Any], key: str, path: str) -> bool:
    value = raw.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Malformed(_join(path, key), "true or false is expected")
    return value


def _whole(raw: Mapping[str, Any], key: str, path: str, otherwise: int) -> int:
    value = raw.get(key)
    if value is None:
        return otherwise
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(_join(path, key), "a whole number is expected")
    return value


def _maybe_amount(raw: Mapping[str, Any], key: str, path: str) -> Amount | None:
    value = raw.get(key)
    return None if value is None else read_amount(value, f"{path}.{key}")


READERS: Mapping[str, Callable[[Mapping[str, Any]], Slice | DeviceClass | Claim | TaintRule | Node]] = {
    "ResourceSlice": read_slice,
    "DeviceClass": read_device_class,
    "ResourceClaim": read_claim,
    "DeviceTaintRule": read_taint_rule,
    "Node": read_node,
}
"""The reader of each kind."""
