# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Every refusal and every lack: its word, its sentence, its rank.

A `Refused` is the answer an order gets; a `Lack` is why one candidate fell out, and names the refusal it leads to. A
miss keeps numbers (bytes, percent, counts), never words: sentences are made in `explanation`, once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

LAUNCH_PLAN_CALCULATED: Final = "LaunchPlanCalculated"


class Stage(Enum):
    """What is judged, in this order; an order is told about the first stage that fails."""

    CLASS = "ClassResolved"
    MODEL = "ModelResolved"
    PLACEMENT = "Planned"


class Refused(Enum):
    """The answer an order gets: its word in `status.plan.reason`, the stage that gave it, what it means."""

    CLASS_NOT_FOUND = "ClassNotFound", Stage.CLASS, "the service class does not exist"
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed", Stage.CLASS, "the service class does not admit this namespace"
    CLASS_NOT_READY = "ClassNotReady", Stage.CLASS, "the service class cannot be used now"

    MODEL_NOT_FOUND = "ModelNotFound", Stage.MODEL, "the catalog has no such model"
    MODEL_NOT_READY = "ModelNotReady", Stage.MODEL, "the catalog has not published the model yet"
    CATALOG_DISABLED = "CatalogDisabled", Stage.MODEL, "the model catalog is switched off or absent"
    ENDPOINT_TYPE_NOT_ALLOWED = "EndpointTypeNotAllowed", Stage.MODEL, "the class allows no contract of the model"
    MODEL_TOO_LARGE = "ModelTooLarge", Stage.MODEL, "the model is larger than the class allows"
    MODEL_SIZE_UNKNOWN = "ModelSizeUnknown", Stage.MODEL, "the class bounds the size and nobody knows it"
    MODEL_FORMAT_UNSUPPORTED = "ModelFormatUnsupported", Stage.MODEL, "the runtime does not read this format"
    CREDENTIALS_MISSING = "CredentialsMissing", Stage.MODEL, "the named Secret or its token key is absent"

    UNDECIDABLE = "PlacementUndecidable", Stage.PLACEMENT, "something that the answer depends on cannot be judged"
    HARDWARE_UNSUITABLE = "HardwareUnsuitable", Stage.PLACEMENT, "admitted devices cannot run this model at all"
    NOT_PERMITTED = "PlacementNotPermitted", Stage.PLACEMENT, "class and order admit no placement that could hold it"
    VOLUME_PINNED = "VolumePinned", Stage.PLACEMENT, "the model volume holds it to nodes where it does not fit"
    HOST_RESOURCES = "HostResourcesExhausted", Stage.PLACEMENT, "devices are free, the node's CPU or memory is not"
    EXHAUSTED = "ResourceClaimExhausted", Stage.PLACEMENT, "every allowed device class was tried"

    def __init__(self, word: str, stage: Stage, meaning: str) -> None:
        self.word = word
        self.stage = stage
        self.meaning = meaning


class Lack(Enum):
    """What one candidate lacked: its word, the refusal it leads to, and how many devices of which kind lacked it.

    The sentences take `count` (devices), `needed`, `free`, `device` and `detail` as text.
    """

    SELECTOR = "SelectorError", Refused.UNDECIDABLE, "{detail}"
    UNREADABLE = "Unreadable", Refused.UNDECIDABLE, "{detail}"
    AMBIGUOUS = "Ambiguous", Refused.UNDECIDABLE, "{count} cannot be judged: {detail}"
    MEMORY_UNPUBLISHED = (
        "MemoryUnpublished",
        Refused.UNDECIDABLE,
        "{count} publish no memory, so nothing can be sized ({device})",
    )
    SEARCH_BOUND = "SearchBound", Refused.UNDECIDABLE, "the search was ended after {detail} steps"

    HARDWARE = "Hardware", Refused.HARDWARE_UNSUITABLE, "{count} cannot run it: {detail}"
    HEADS = "HeadsIndivisible", Refused.HARDWARE_UNSUITABLE, "its heads do not divide by {needed} devices"

    MISSING_CLASS = "DeviceClassNotFound", Refused.NOT_PERMITTED, "device class {detail} does not exist"
    NOT_OFFERED = "NotOffered", Refused.NOT_PERMITTED, "{count} do not offer {detail}"
    SHARE_BOUND = "ShareBound", Refused.NOT_PERMITTED, "shares may be {free} at most, {needed} are needed"

    NO_DEVICE = "NoDevice", Refused.EXHAUSTED, "no device matches"
    TOO_SMALL = "TooSmall", Refused.EXHAUSTED, "{count} are too small even when empty"
    HELD = "Held", Refused.EXHAUSTED, "{count} are held"
    MEMORY = "MemoryShort", Refused.EXHAUSTED, "{count} have less memory free"
    COMPUTE = "ComputeShort", Refused.EXHAUSTED, "{count} have less compute free"
    NEIGHBOUR = "NeighbourHeld", Refused.EXHAUSTED, "{count} are blocked by another part of their card"
    STRATEGY = "SharingStrategy", Refused.EXHAUSTED, "{count} are shared under another strategy: {detail}"
    TAINTED = "Tainted", Refused.EXHAUSTED, "{count} are tainted: {detail}"
    NODE = "NodeUnusable", Refused.EXHAUSTED, "{count} are on nodes that take no pods: {detail}"
    COUNT = "CountShort", Refused.EXHAUSTED, "{count} are free, but not {needed} on one node"

    HOST_CPU = "HostCPUShort", Refused.HOST_RESOURCES, "node {device} has {free} CPU free of {needed} needed"
    HOST_MEMORY = "HostMemoryShort", Refused.HOST_RESOURCES, "node {device} has {free} memory free of {needed} needed"
    VOLUME = "VolumeElsewhere", Refused.VOLUME_PINNED, "the model volume is bound to {detail}"

    def __init__(self, word: str, leads_to: Refused, sentence: str) -> None:
        self.word = word
        self.leads_to = leads_to
        self.sentence = sentence


RANK: Final = (
    Refused.UNDECIDABLE,
    Refused.VOLUME_PINNED,
    Refused.HOST_RESOURCES,
    Refused.EXHAUSTED,
    Refused.NOT_PERMITTED,
    Refused.HARDWARE_UNSUITABLE,
)
"""Which placement refusal speaks for an order whose candidates failed for several reasons.

Undecidable outranks everything: a broken selector must never read as missing capacity. Below it, the reason nearest to
a placement wins: a candidate that only lacks its volume or its node's memory is nearer than one whose devices are held,
and that one is nearer than one no policy or no hardware would ever take.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Why one device (or one whole candidate, `device` None) fell out, in numbers: bytes, percent, or a count."""

    lack: Lack
    device: str | None = None
    needed: int | None = None
    free: int | None = None
    detail: str = ""
    count: int = 1
    """How many equal devices this miss speaks for."""

    @property
    def shortfall(self) -> int | None:
        """What is missing, never negative; None where the lack has no number."""
        if self.needed is None or self.free is None:
            return None
        return max(self.needed - self.free, 0)


def leading(lacks: Sequence[Lack]) -> Refused:
    """The refusal that speaks for candidates that fell out for `lacks`; without any, no device matched."""
    if not lacks:
        return Refused.EXHAUSTED
    return min((lack.leads_to for lack in lacks), key=RANK.index)
