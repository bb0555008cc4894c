# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The class and model stages: what an order may do and what it asks to serve, or the refusal of the stage that failed.

Pure, and blind to devices. Facts of a model come from the catalog object first and the shipped table of known models
second; what neither says stays UNKNOWN. The table never changes the contract of a Hugging Face order: the hub states
none, so the class's list decides and the order says that it was a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from planner import modelfacts, units
from planner.architecture import ModelFacts, Source
from planner.dra import DeviceClass
from planner.model import (
    CatalogModel,
    CatalogState,
    EndpointType,
    ModelSource,
    Order,
    Secret,
    ServiceClass,
    Snapshot,
)
from planner.reasons import Refused
from planner.units import UNKNOWN, Maybe

UNSUPPORTED_FORMATS: Final = ("GGUF", "Diffusers")
"""Checkpoint formats that the shipped runtime does not serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An order whose class and model are settled."""

    order: Order
    service_class: ServiceClass
    facts: ModelFacts
    endpoint_type: EndpointType
    endpoint_type_guessed: bool
    warning: str
    """For the order's message: why the guess may be wrong; empty: nothing to say."""
    served_name: str
    repository: str
    """The Hugging Face repository that recipes know the model by; empty: none."""
    revision: str | None
    artifact: Maybe
    """Bytes of the published artefact or of the weights: what the model volume must hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """An order that failed in the class or model stage, with what was settled before. `undecidable`: it may be fine."""

    order: Order
    reason: Refused
    message: str
    service_class: ServiceClass | None = None
    endpoint_type: EndpointType | None = None
    served_name: str | None = None
    revision: str | None = None
    undecidable: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """A snapshot's lists by name."""

    snapshot: Snapshot
    classes: Mapping[str, ServiceClass]
    device_classes: Mapping[str, DeviceClass]
    models: Mapping[tuple[str, str | None, str], CatalogModel]
    secrets: Mapping[tuple[str, str], Secret] | None
    unreadable: frozenset[str]
    """Whole kinds that cannot be read."""
    spoilt: frozenset[tuple[str, str]]
    """(kind, name) of single objects that cannot be read."""
    facts: dict[tuple[str, str | None, str], ModelFacts] = field(default_factory=dict, repr=False, compare=False)
    """What was found out of catalog objects so far: a thousand orders of one model ask once."""


def index(snapshot: Snapshot) -> Index:
    """The lists of `snapshot` by name."""
    return Index(
        snapshot=snapshot,
        classes={item.name: item for item in snapshot.service_classes},
        device_classes={item.name: item for item in snapshot.device_classes},
        models={(item.kind, item.namespace, item.name): item for item in snapshot.models},
        secrets=None
        if snapshot.secrets is None
        else {(secret.namespace, secret.name): secret for secret in snapshot.secrets},
        unreadable=frozenset(entry for entry in snapshot.unreadable if " " not in entry),
        spoilt=frozenset(
            (kind, rest.partition(":")[0])
            for kind, space, rest in (entry.partition(" ") for entry in snapshot.unreadable)
            if space
        ),
    )


def resolve(order: Order, known: Index) -> Resolved | Unresolved:
    """The class and the model of `order`; the first stage that fails answers."""
    service_class = _class_of(order, known)
    if isinstance(service_class, Unresolved):
        return service_class
    if order.model.source is ModelSource.CATALOG:
        return _from_catalog(order, service_class, known)
    return _from_hub(order, service_class, known)


def _class_of(order: Order, known: Index) -> ServiceClass | Unresolved:
    found = known.classes.get(order.service_class)
    if found is None:
        spoilt = ("InferenceServiceClass", order.service_class) in known.spoilt
        if spoilt or "InferenceServiceClass" in known.unreadable:
            what = f"Service class {order.service_class}" if spoilt else "Service classes"
            return Unresolved(
                order=order, reason=Refused.UNDECIDABLE, message=f"{what} cannot be read now.", undecidable=True
            )
        return Unresolved(
            order=order,
            reason=Refused.CLASS_NOT_FOUND,
            message=f"Service class {order.service_class} does not exist.",
        )
    if found.allowed_namespaces is not None and order.key.namespace not in found.allowed_namespaces:
        return Unresolved(
            order=order,
            reason=Refused.NAMESPACE_NOT_ALLOWED,
            message=f"Service class {found.name} does not admit namespace {order.key.namespace}.",
        )
    return _usable(order, found, known)


def _usable(order: Order, found: ServiceClass, known: Index) -> ServiceClass | Unresolved:
    missing = unready(found, known)
    storage = storage_missing(found, known)
    if not missing and storage and order.model.source is ModelSource.HUGGING_FACE:
        missing = storage
    if missing:
        return Unresolved(
            order=order,
            reason=Refused.CLASS_NOT_READY,
            message=f"Service class {found.name} cannot be used now: {missing}.",
            service_class=found,
        )
    return found


def unready(service_class: ServiceClass, known: Index) -> str:
    """Why the class cannot be used by anybody now (its device classes are all missing); empty: it can."""
    names = service_class.device_class_names
    if names is None or "DeviceClass" in known.unreadable:
        return ""
    if any(name in known.device_classes for name in names):
        return ""
    return f"none of its device classes exists ({', '.join(names)})"


def storage_missing(service_class: ServiceClass, known: Index) -> str:
    """Why no model volume can be made (the storage class is missing); empty: it can, or nobody may look."""
    name, present = service_class.storage_class_name, known.snapshot.storage_classes
    if name is None or present is None or name in present:
        return ""
    return f"storage class {name} does not exist"


def _from_catalog(order: Order, service_class: ServiceClass, known: Index) -> Resolved | Unresolved:
    ref = order.model

    def refused(reason: Refused, message: str, *, undecidable: bool = False) -> Unresolved:
        return Unresolved(
            order=order,
            reason=reason,
            message=message,
            service_class=service_class,
            served_name=ref.name,
            undecidable=undecidable,
        )

    if known.snapshot.catalog is CatalogState.DISABLED:
        return refused(
            Refused.CATALOG_DISABLED, "The model catalog is switched off for this module (catalog.mode: None)."
        )
    kind = ref.kind or "Model"
    if kind in known.unreadable:
        return refused(Refused.UNDECIDABLE, f"Catalog objects of kind {kind} cannot be read now.", undecidable=True)
    if known.snapshot.catalog is CatalogState.ABSENT:
        return refused(Refused.CATALOG_DISABLED, "The model catalog (module ai-models) is not installed here.")
    model = known.models.get((kind, order.key.namespace if kind == "Model" else None, ref.name))
    if model is None:
        where = f" in namespace {order.key.namespace}" if kind == "Model" else ""
        return refused(Refused.MODEL_NOT_FOUND, f"{kind} {ref.name} does not exist{where}.")
    if model.phase != "Ready":
        said = f": {model.message.rstrip('.')}" if model.message else ""
        return refused(Refused.MODEL_NOT_READY, f"{kind} {ref.name} is {model.phase}{said}.")
    facts = known.facts.get((kind, model.namespace, model.name))
    if facts is None:
        facts = known.facts[kind, model.namespace, model.name] = _catalog_facts(model)
    artifact = _artifact(model, facts)
    contract, problem = _contract(service_class, model)
    if contract is None:
        return refused(Refused.ENDPOINT_TYPE_NOT_ALLOWED, problem)
    settled = Resolved(
        order=order,
        service_class=service_class,
        facts=facts,
        endpoint_type=contract,
        endpoint_type_guessed=not model.endpoint_types,
        warning="" if model.endpoint_types else _guess_warning(contract, facts),
        served_name=ref.name,
        repository=model.repository or "",
        revision=model.revision,
        artifact=artifact,
    )
    return _within_policy(settled, model.format)


def _catalog_facts(model: CatalogModel) -> ModelFacts:
    """What the catalog says; where that leaves shapes open, the shipped table under the repository it was made from."""
    facts = modelfacts.from_catalog(model.status, model.name)
    if facts.source is Source.CATALOG or model.repository is None:
        return facts
    known = modelfacts.known(model.repository)
    if known is None:
        return facts
    return replace(
        known,
        name=facts.name,
        source=Source.CATALOG,
        origin=f"catalog object of {model.repository}",
        endpoint_types=facts.endpoint_types or known.endpoint_types,
        checkpoint_format=facts.checkpoint_format,
    )


def _artifact(model: CatalogModel, facts: ModelFacts) -> Maybe:
    size = (model.status.get("artifact") or {}).get("sizeBytes")
    return size if isinstance(size, int) and size > 0 else facts.weights


def _contract(service_class: ServiceClass, model: CatalogModel) -> tuple[EndpointType | None, str]:
    """First of the class's list that the model has too; a model that names none keeps the whole list."""
    if not model.endpoint_types:
        return service_class.endpoint_types[0], ""
    for allowed in service_class.endpoint_types:
        if allowed.value in model.endpoint_types:
            return allowed, ""
    ours = ", ".join(item.value for item in service_class.endpoint_types)
    theirs = ", ".join(model.endpoint_types)
    return None, f"Service class {service_class.name} allows {ours}; {model.kind} {model.name} offers {theirs}."


def _from_hub(order: Order, service_class: ServiceClass, known: Index) -> Resolved | Unresolved:
    ref = order.model
    contract = service_class.endpoint_types[0]
    facts = modelfacts.known(ref.name) or ModelFacts(name=ref.name, source=Source.UNKNOWN, origin="nobody states any")
    settled = Resolved(
        order=order,
        service_class=service_class,
        facts=facts,
        endpoint_type=contract,
        endpoint_type_guessed=True,
        warning=_guess_warning(contract, facts),
        served_name=ref.name,
        repository=ref.name,
        revision=ref.revision,
        artifact=facts.weights,
    )
    if ref.secret_name is not None and known.secrets is not None:
        secret = known.secrets.get((order.key.namespace, ref.secret_name))
        lacking = (
            f"Secret {ref.secret_name} does not exist"
            if secret is None
            else f"Secret {ref.secret_name} has none of the keys token, HF_TOKEN, HUGGING_FACE_HUB_TOKEN"
            if not secret.keys
            else ""
        )
        if lacking:
            return _failed(settled, Refused.CREDENTIALS_MISSING, f"{lacking} in namespace {order.key.namespace}.")
    return _within_policy(settled, None)


def _guess_warning(contract: EndpointType, facts: ModelFacts) -> str:
    made_for = tuple(item.value for item in facts.endpoint_types)
    if not made_for or contract.value in made_for:
        return ""
    return (
        f"The model source states no contract, so the class's first one, {contract.value}, is served; "
        f"the model is known to be made for {', '.join(made_for)}."
    )


def _within_policy(settled: Resolved, published_format: str | None) -> Resolved | Unresolved:
    """The checks that both sources share: the checkpoint's format and the class's bound on weight bytes."""
    form = published_format or settled.facts.checkpoint_format
    if isinstance(form, str) and form in UNSUPPORTED_FORMATS:
        return _failed(settled, Refused.MODEL_FORMAT_UNSUPPORTED, f"The runtime does not serve checkpoints in {form}.")
    bound = settled.service_class.max_model_size
    if bound is None:
        return settled
    size = settled.facts.weights if settled.facts.weights is not UNKNOWN else settled.artifact
    if size is UNKNOWN:
        return _failed(
            settled,
            Refused.MODEL_SIZE_UNKNOWN,
            f"Service class {settled.service_class.name} bounds models at {units.human(bound)} and nobody knows how "
            "many bytes this one has.",
        )
    if size > bound:
        return _failed(
            settled,
            Refused.MODEL_TOO_LARGE,
            f"The model has {units.human(size)} of weights, service class {settled.service_class.name} allows "
            f"{units.human(bound)}: {units.human(size - bound)} too much.",
        )
    return settled


def _failed(settled: Resolved, reason: Refused, message: str) -> Unresolved:
    return Unresolved(
        order=settled.order,
        reason=reason,
        message=message,
        service_class=settled.service_class,
        endpoint_type=settled.endpoint_type,
        served_name=settled.served_name,
        revision=settled.revision,
    )
