# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The frozen records of a decision: what is asked (orders, classes), what is there (snapshot), what is answered (plan).

Every record is frozen, keyword-only and total. A fact that nobody published is `UNKNOWN`; a thing that is not there is
`None` or an empty tuple. Records of the DRA API (slices, device classes, claims) stand in `dra`; a device as a driver's
adapter reads it stands in `inventory`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from planner.dra import Claim, ClaimRequestConfig, DeviceClass, DeviceId, Node, Slice, TaintRule, Toleration
from planner.reasons import LAUNCH_PLAN_CALCULATED, Lack, Refused
from planner.units import UNKNOWN, Bytes, Maybe, Unknown

ORDER_LABEL: Final = "ai-inference.deckhouse.io/inference-service"
"""On everything of an order, its claims included: the order's name."""
MANAGED_LABEL: Final = "ai-inference.deckhouse.io/managed"


class EndpointType(Enum):
    """The API contract that an order serves."""

    CHAT = "Chat"
    EMBEDDINGS = "Embeddings"
    RERANK = "Rerank"
    SPEECH_TO_TEXT = "SpeechToText"


class SharingMode(Enum):
    """Whether others may sit on the same device."""

    SHARED = "Shared"
    DEDICATED = "Dedicated"


class PlacementType(Enum):
    """A card as it is, or a part that the driver cuts from it."""

    WHOLE_DEVICE = "WholeDevice"
    PARTITION = "Partition"


class LaunchStrategy(Enum):
    """What the recipe is tuned for."""

    THROUGHPUT = "Throughput"
    LATENCY = "Latency"


class ModelSource(Enum):
    """Where the weights come from."""

    CATALOG = "ai-models"
    HUGGING_FACE = "HuggingFace"


class Key(NamedTuple):
    """Namespace and name of an order."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef:
    """What an order asks to serve. `kind` is `Model` or `ClusterModel` for a catalog source, None for Hugging Face."""

    source: ModelSource
    name: str
    kind: str | None = None
    namespace: str | None = None
    revision: str | None = None
    secret_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An InferenceService: its spec, and the plan it already has (None: never planned)."""

    key: Key
    uid: str
    generation: int
    created: str
    """RFC 3339; the older order is served first."""
    service_class: str
    model: ModelRef
    strategy: LaunchStrategy = LaunchStrategy.THROUGHPUT
    device_classes: tuple[str, ...] | None = None
    """The order's own narrowing; None: whatever the class allows."""
    deleting: bool = False
    plan: OrderPlan | None = None
    """`status.plan` as it stands in the cluster: the previous decision, an input of the next one (without seats)."""
    replicas_wanted: int | None = None
    """What the autoscaler (or a person) asked of the standing StatefulSet; None: no StatefulSet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceClass:
    """An InferenceServiceClass as an administrator wrote it; defaults of absent blocks are already applied."""

    name: str
    generation: int
    endpoint_types: tuple[EndpointType, ...]
    max_model_size: Bytes | None = None
    allowed_namespaces: tuple[str, ...] | None = None
    min_replicas: int = 1
    max_replicas: int = 1
    sharing_modes: tuple[SharingMode, ...] = (SharingMode.DEDICATED,)
    placement_types: tuple[PlacementType, ...] = (PlacementType.WHOLE_DEVICE,)
    max_accelerator_count: int = 1
    device_class_names: tuple[str, ...] | None = None
    device_selector: str | None = None
    min_share_memory: Bytes | None = None
    max_share_memory: Bytes | None = None
    storage_class_name: str | None = None


class CatalogState(Enum):
    """Whether the catalog can be asked."""

    ENABLED = "Enabled"
    DISABLED = "Disabled"
    """`catalog.mode: None`."""
    ABSENT = "Absent"
    """The kinds of the catalog module are not served here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogModel:
    """A Model or ClusterModel of the catalog: its phase and its published facts, both as they stand (often partial)."""

    kind: str
    namespace: str | None
    name: str
    phase: str
    message: str = ""
    repository: str | None = None
    """The Hugging Face repository it was published from (`owner/name`); None: from elsewhere, or unknown."""
    revision: str | None = None
    endpoint_types: tuple[str, ...] = ()
    """The catalog's words, ours or not; empty: the catalog does not say."""
    format: str | None = None
    """Safetensors, GGUF, Diffusers; None: the catalog does not say."""
    status: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Which of the accepted token keys a Secret has; never a value."""

    namespace: str
    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A standing model volume of an order and the nodes that can mount it (None: any node)."""

    order: Key
    name: str
    nodes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """What the pods of others (everything that is not an order's) request on a node: milli-CPU and bytes."""

    node: str
    cpu_milli: int
    memory: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a decision depends on, time and earlier plans included, so that a replay is complete."""

    kubernetes: tuple[int, int]
    now: str
    release: str
    """The runtime release that this module ships."""
    orders: tuple[Order, ...] = ()
    service_classes: tuple[ServiceClass, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    slices: tuple[Slice, ...] = ()
    claims: tuple[Claim, ...] = ()
    taint_rules: tuple[TaintRule, ...] = ()
    nodes: tuple[Node, ...] = ()
    terminating_namespaces: tuple[str, ...] = ()
    catalog: CatalogState = CatalogState.ABSENT
    models: tuple[CatalogModel, ...] = ()
    secrets: tuple[Secret, ...] | None = None
    """None: nobody may look at Secrets here, so a missing one cannot be told."""
    volumes: tuple[Volume, ...] = ()
    storage_classes: tuple[str, ...] | None = None
    host_use: tuple[HostUse, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Kinds that could not be read (forbidden, failing): what depends on them is undecidable, never exhausted."""


class Decision(Enum):
    """What the planner says of one order."""

    PLACED = "Placed"
    REFUSED = "Refused"
    UNDECIDABLE = "Undecidable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of one device that an order holds; compute in percent, UNKNOWN where the driver counts none."""

    memory: Bytes | Unknown
    compute_percent: int | Unknown = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """What the claim's one request must say so that the scheduler allocates a planned device or its equal."""

    selectors: tuple[str, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    """Capacity name → quantity as the API writes it (shareable devices); all that must be held is named."""
    config: tuple[ClaimRequestConfig, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Replica bounds: `bound` lies between `min` and `max` and is what may run now."""

    min: int
    max: int
    bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A device class × placement × sharing that was considered and lost, with the word and the sentence why."""

    device_class: str
    placement: PlacementType
    sharing: SharingMode
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where one replica sits: devices of one node, `acceleratorCount` of them."""

    node: str
    devices: tuple[DeviceId, ...]
    standing: bool = False
    """True: a claim already holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeUse:
    """The recipe a plan launches with; context in tokens, concurrency in requests, None where the contract has none."""

    name: str
    release: str
    strategy: LaunchStrategy
    context_length: int | None = None
    concurrency: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Engine parameters, camelCase keys, values as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResources:
    """What one replica asks of its node: milli-CPU, bytes of memory, bytes of shared memory (part of the memory)."""

    cpu_milli: int
    memory: Bytes
    shared_memory: Bytes = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """Bytes of one device, and where the facts came from (Recipe, Catalog, Known, Partial, Unknown)."""

    source: str
    weights: Maybe = UNKNOWN
    kv_cache: Maybe = UNKNOWN
    overhead: Maybe = UNKNOWN
    total: Maybe = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeNeed:
    """The model volume of each replica of a Hugging Face order; no storage class: the cluster's default."""

    size: Bytes
    storage_class_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """How many replicas an order gave or got."""

    order: Key
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """Elastic capacity that changed hands: `role` is Donor or Recipient, `since` the time it was first planned."""

    role: str
    donors: tuple[Exchanged, ...] = ()
    recipients: tuple[Exchanged, ...] = ()
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Somebody who holds devices: an order's seat (`order` set) or a claim of somebody else."""

    name: str
    """`namespace/name` of the order, or of the claim."""
    order: Key | None
    devices: tuple[DeviceId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an order got no place, in numbers. Amounts are bytes per device unless the lack counts devices.

    `tried` counts the devices that the allowed device classes admit; `fits_empty` tells whether one of them would hold
    the model if nobody held anything (None: could not be judged).
    """

    reason: Refused
    message: str
    lack: Lack | None = None
    needed: Maybe | None = None
    free: Maybe | None = None
    shortfall: Maybe | None = None
    tried: int = 0
    closest: DeviceId | None = None
    device_class: str | None = None
    fits_empty: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlan:
    """The answer to one order; a refused one carries what was resolved before it was refused."""

    key: Key
    observed_generation: int
    decision: Decision
    reason: str = LAUNCH_PLAN_CALCULATED
    message: str = ""
    refusal: Refusal | None = None
    endpoint_type: EndpointType | None = None
    endpoint_type_guessed: bool = False
    served_name: str | None = None
    model_revision: str | None = None
    device_class: str | None = None
    placement: PlacementType | None = None
    sharing: SharingMode | None = None
    share: Share | None = None
    accelerator_count: int | None = None
    seats: tuple[Seat, ...] = ()
    """Where the replicas sit or will sit, `bounds.bound` of them."""
    devices: tuple[DeviceId, ...] = ()
    """What the claim's selectors admit, seat by seat; a device that holds two replicas is listed twice."""
    nodes: tuple[str, ...] = ()
    request: DeviceRequest | None = None
    recipe: RecipeUse | None = None
    host: HostResources | None = None
    sized: Sized | None = None
    volume: VolumeNeed | None = None
    bounds: Bounds | None = None
    preemption: Preemption | None = None
    alternatives: tuple[Alternative, ...] = ()


class Truth(Enum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One condition of a service class."""

    status: Truth
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassVerdict:
    """`validated`: every expression can be judged; `ready`: what the class names exists and can be used now."""

    name: str
    generation: int
    validated: Verdict
    ready: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """Who holds how much of one device: bytes and percent, UNKNOWN where the device is held whole without amounts."""

    holder: str
    order: Key | None
    memory: Maybe
    compute_percent: Maybe
    planned: bool
    """True: a planned replica that no claim holds yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """One device and who sits on it; `problem` says why nobody may (empty: nothing is wrong)."""

    id: DeviceId
    nodes: tuple[str, ...]
    device_classes: tuple[str, ...]
    product: str
    placement: PlacementType
    memory: Maybe
    free: Maybe
    sittings: tuple[Sitting, ...] = ()
    blocked: bool = False
    """A partition that cannot be cut now because others hold its part of the card, or a card with held partitions."""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCapacity:
    """Devices of one device class on one node: how many, how many somebody sits on, how many are wholly free."""

    device_class: str
    node: str
    total: int
    held: int
    free: int
    free_memory: Maybe


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingReport:
    """How well a set of replicas is packed: the cards it needs beside those that others use, and the proof."""

    replicas: int
    cards: int
    """Cards that only these replicas use."""
    bound: int | None
    """However they are placed on the kinds of device chosen, so many cards are needed; None: not computed."""
    limited: tuple[str, ...] = ()
    """Limits that were hit, or why the bound was not computed."""

    @property
    def proven(self) -> bool:
        """No placement needs fewer cards."""
        return self.bound == self.cards


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReport:
    """What there is and who sits where, after this plan."""

    classes: tuple[ClassCapacity, ...] = ()
    devices: tuple[DeviceUse, ...] = ()
    problems: tuple[str, ...] = ()
    placed: PackingReport | None = None
    """The entitled replicas that this plan placed anew; cards are those they opened. None: there were none."""
    standing: PackingReport | None = None
    """All replicas of our orders, against packing all anew (never done to what serves). None: not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer to a snapshot: every order in key order, every service class by name, the capacity that results."""

    orders: tuple[OrderPlan, ...] = ()
    classes: tuple[ClassVerdict, ...] = ()
    capacity: CapacityReport = field(default_factory=CapacityReport)
