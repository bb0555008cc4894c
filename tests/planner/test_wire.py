# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Objects to snapshot, plan to status and back: nothing is overlooked, nothing is lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

import pytest
from planner import wire
from planner.model import (
    ORDER_LABEL,
    CatalogState,
    EndpointType,
    HostUse,
    LaunchStrategy,
    ModelSource,
    PlacementType,
    SharingMode,
)
from planner.plan import plan

from tests import build
from tests.build import Object


def document(raw: Any, source: str = "file.yaml") -> wire.Document:
    return wire.Document(raw=raw, source=source)


def read(*raws: Any) -> Any:
    return snapshot(document(raw, f"file-{n}") for n, raw in enumerate(raws))


def snapshot(documents: Iterable[wire.Document], *, strict: bool = True) -> Any:
    return wire.snapshot(wire.by_kind(documents), kubernetes=(1, 37), now="", release="", strict=strict)


def changed(raw: Object, path: str, value: Any) -> Object:
    """A copy of `raw` with the field at `path` set; `...` removes it."""
    copied = copy.deepcopy(raw)
    target = copied
    *parents, last = path.split(".")
    for part in parents:
        target = target.setdefault(part, {})
    if value is ...:
        target.pop(last, None)
    else:
        target[last] = value
    return copied


CATALOG_ORDER = build.order("chat")
HUB_ORDER = build.order("chat", model="Qwen/Qwen3-1.7B", hub=True)
CLASS = build.service_class(replicas=(1, 2), share=("1Gi", "2Gi"))

BAD_ORDERS: dict[str, tuple[Object, str, Any, str]] = {
    "no class": (CATALOG_ORDER, "spec.inferenceServiceClassName", ..., "spec.inferenceServiceClassName"),
    "empty class": (CATALOG_ORDER, "spec.inferenceServiceClassName", "", "spec.inferenceServiceClassName"),
    "class is a number": (CATALOG_ORDER, "spec.inferenceServiceClassName", 7, "spec.inferenceServiceClassName"),
    "no spec": (CATALOG_ORDER, "spec", ..., "spec"),
    "no model": (CATALOG_ORDER, "spec.model", ..., "spec.model"),
    "no source": (CATALOG_ORDER, "spec.model.src", ..., "spec.model.src"),
    "source misspelt": (CATALOG_ORDER, "spec.model.src", "huggingface", "spec.model.src"),
    "no ref": (CATALOG_ORDER, "spec.model.ref", ..., "spec.model.ref"),
    "no kind": (CATALOG_ORDER, "spec.model.ref.kind", ..., "spec.model.ref.kind"),
    "wrong kind": (CATALOG_ORDER, "spec.model.ref.kind", "Modell", "spec.model.ref.kind"),
    "namespace with ClusterModel": (CATALOG_ORDER, "spec.model.ref.namespace", "team-a", "spec.model.ref.namespace"),
    "revision with a catalog model": (CATALOG_ORDER, "spec.model.ref.revision", "main", "spec.model.ref.revision"),
    "secret with a catalog model": (
        CATALOG_ORDER,
        "spec.model.ref.authSecretRef",
        {"name": "x"},
        "spec.model.ref.authSecretRef",
    ),
    "kind with a hub model": (HUB_ORDER, "spec.model.ref.kind", "Model", "spec.model.ref.kind"),
    "namespace with a hub model": (HUB_ORDER, "spec.model.ref.namespace", "team-a", "spec.model.ref.namespace"),
    "repository without an owner": (HUB_ORDER, "spec.model.ref.name", "gpt2", "spec.model.ref.name"),
    "repository with two dots": (HUB_ORDER, "spec.model.ref.name", "a/b..c", "spec.model.ref.name"),
    "repository with two dashes": (HUB_ORDER, "spec.model.ref.name", "a/b--c", "spec.model.ref.name"),
    "repository of 97 characters": (HUB_ORDER, "spec.model.ref.name", "a/" + "b" * 95, "spec.model.ref.name"),
    "unknown strategy": (CATALOG_ORDER, "spec.launchStrategy", "Fast", "spec.launchStrategy"),
    "empty device classes": (
        CATALOG_ORDER,
        "spec.resources.accelerator.deviceClasses",
        [],
        "spec.resources.accelerator.deviceClasses",
    ),
    "a device class twice": (
        CATALOG_ORDER,
        "spec.resources.accelerator.deviceClasses",
        ["a", "a"],
        "spec.resources.accelerator.deviceClasses[1]",
    ),
    "replicas in an order": (CATALOG_ORDER, "spec.replicas", 2, "spec.replicas"),
    "a recipe in an order": (CATALOG_ORDER, "spec.model.recipeName", "x", "spec.model.recipeName"),
    "name of 53 characters": (CATALOG_ORDER, "metadata.name", "a" * 53, "metadata.name"),
    "name that begins with a digit": (CATALOG_ORDER, "metadata.name", "1a", "metadata.name"),
}

BAD_CLASSES: dict[str, tuple[str, Any, str]] = {
    "no contracts": ("spec.modelPolicy", ..., "spec.modelPolicy.allowedEndpointTypes"),
    "empty contracts": ("spec.modelPolicy.allowedEndpointTypes", [], "spec.modelPolicy.allowedEndpointTypes"),
    "unknown contract": (
        "spec.modelPolicy.allowedEndpointTypes",
        ["Chat", "Draw"],
        "spec.modelPolicy.allowedEndpointTypes[1]",
    ),
    "a contract twice": (
        "spec.modelPolicy.allowedEndpointTypes",
        ["Chat", "Chat"],
        "spec.modelPolicy.allowedEndpointTypes[1]",
    ),
    "bad size": ("spec.modelPolicy.maxModelSize", "40 GB", "spec.modelPolicy.maxModelSize"),
    "size of nothing": ("spec.modelPolicy.maxModelSize", "0", "spec.modelPolicy.maxModelSize"),
    "one replica bound": ("spec.scalingPolicy.maxReplicas", ..., "spec.scalingPolicy.maxReplicas"),
    "no replica": ("spec.scalingPolicy.minReplicas", 0, "spec.scalingPolicy.minReplicas"),
    "more at least than at most": ("spec.scalingPolicy.minReplicas", 3, "spec.scalingPolicy.minReplicas"),
    "unknown sharing mode": (
        "spec.acceleratorPolicy.allowedSharingModes",
        ["Split"],
        "spec.acceleratorPolicy.allowedSharingModes[0]",
    ),
    "empty placement types": (
        "spec.acceleratorPolicy.allowedPlacementTypes",
        [],
        "spec.acceleratorPolicy.allowedPlacementTypes",
    ),
    "no device": ("spec.acceleratorPolicy.maxAcceleratorCount", 0, "spec.acceleratorPolicy.maxAcceleratorCount"),
    "empty selector": ("spec.acceleratorPolicy.deviceSelector", " ", "spec.acceleratorPolicy.deviceSelector"),
    "share bounds the wrong way round": (
        "spec.acceleratorPolicy.shareBounds.minMemory",
        "3Gi",
        "spec.acceleratorPolicy.shareBounds.minMemory",
    ),
    "empty namespaces": ("spec.admissionPolicy", {"allowedNamespaces": []}, "spec.admissionPolicy.allowedNamespaces"),
    "unknown field": ("spec.acceleratorPolicy.count", 2, "spec.acceleratorPolicy.count"),
    "https without exposure": ("spec.exposurePolicy", {"https": {"mode": "Disabled"}}, "spec.exposurePolicy.https"),
    "issuer with another mode": (
        "spec.exposurePolicy",
        {"type": "External", "https": {"mode": "Disabled", "certManager": {"clusterIssuerName": "x"}}},
        "spec.exposurePolicy.https.certManager",
    ),
    "unknown update strategy": ("spec.updatePolicy", {"strategy": "Recreate"}, "spec.updatePolicy.strategy"),
}


@pytest.mark.parametrize("case", BAD_ORDERS.values(), ids=BAD_ORDERS)
def test_an_order_that_the_api_server_would_refuse_names_its_field(case: tuple[Object, str, Any, str]) -> None:
    base, path, value, field = case
    with pytest.raises(wire.BadInput) as caught:
        read(changed(base, path, value))
    assert (caught.value.source, caught.value.path) == ("file-0", field)


@pytest.mark.parametrize("case", BAD_CLASSES.values(), ids=BAD_CLASSES)
def test_a_class_that_the_api_server_would_refuse_names_its_field(case: tuple[str, Any, str]) -> None:
    path, value, field = case
    with pytest.raises(wire.BadInput) as caught:
        read(changed(CLASS, path, value))
    assert (caught.value.source, caught.value.path) == ("file-0", field)


def test_a_slice_that_cannot_be_read_names_its_field() -> None:
    bad = changed(build.l4_24g(1)[1], "spec.pool", ...)
    with pytest.raises(wire.BadInput, match=r"file-0: spec\.pool: an object is expected"):
        read(bad)


def test_an_order_is_read_with_the_defaults_of_the_api() -> None:
    found = read(HUB_ORDER).orders[0]
    assert (found.strategy, found.device_classes, found.plan) == (LaunchStrategy.THROUGHPUT, None, None)
    assert found.model.source is ModelSource.HUGGING_FACE
    nulled = changed(HUB_ORDER, "spec.model.ref.kind", None)
    assert read(nulled).orders[0] == found


def test_an_absent_accelerator_policy_means_a_whole_accelerator() -> None:
    found = read(build.service_class(sharing=None)).service_classes[0]
    assert found.sharing_modes == (SharingMode.DEDICATED,)
    assert found.placement_types == (PlacementType.WHOLE_DEVICE,)
    assert (found.min_replicas, found.max_replicas, found.max_accelerator_count) == (1, 1, 1)


def test_lists_of_a_given_policy_default_apart() -> None:
    found = read(changed(build.service_class(placement=None), "spec.acceleratorPolicy.allowedSharingModes", ["Shared"]))
    assert found.service_classes[0].placement_types == (PlacementType.WHOLE_DEVICE,)
    assert found.service_classes[0].sharing_modes == (SharingMode.SHARED,)


def test_lists_single_objects_and_any_order_give_the_same_snapshot() -> None:
    objects = build.flat(build.any_device(), CLASS, build.h100_mig(1), CATALOG_ORDER, build.tiny())
    want = read(*objects)
    assert read({"apiVersion": "v1", "kind": "List", "items": objects[::-1]}) == want
    typed = {
        "apiVersion": "v1",
        "kind": "NodeList",
        "items": [{k: v for k, v in o.items() if k != "kind"} for o in objects if o["kind"] == "Node"],
    }
    others = [item for item in objects if item["kind"] != "Node"]
    assert read(typed, {"kind": "List", "items": [{"kind": "List", "items": others}]}, None) == want


def test_kinds_that_do_not_matter_are_left_alone() -> None:
    assert (
        read(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
            {"kind": "Model", "apiVersion": "other/v1", "metadata": {"name": "x"}},
        )
        == read()
    )


def test_equal_copies_count_once_and_the_newer_of_different_ones_counts() -> None:
    assert len(read(CLASS, copy.deepcopy(CLASS)).service_classes) == 1
    old, new = changed(CLASS, "metadata.resourceVersion", "9"), changed(CLASS, "metadata.resourceVersion", "10")
    new = changed(new, "spec.scalingPolicy.maxReplicas", 5)
    assert read(old, new).service_classes[0].max_replicas == 5
    assert read(new, old).service_classes[0].max_replicas == 5
    with pytest.raises(
        wire.BadInput, match=r"file-1: metadata\.name: InferenceServiceClass standard stands in file-0 too"
    ):
        read(CLASS, changed(CLASS, "spec.scalingPolicy.maxReplicas", 5))


@pytest.mark.parametrize(
    ("objects", "state"),
    [
        ([], CatalogState.ABSENT),
        ([build.tiny()], CatalogState.ENABLED),
        (
            [
                build.tiny(),
                {
                    "apiVersion": "deckhouse.io/v1alpha1",
                    "kind": "ModuleConfig",
                    "metadata": {"name": "ai-inference"},
                    "spec": {"settings": {"catalog": {"mode": "None"}}},
                },
            ],
            CatalogState.DISABLED,
        ),
    ],
)
def test_the_catalogs_state_is_seen_from_the_objects(objects: list[Object], state: CatalogState) -> None:
    assert read(*objects).catalog is state


def test_what_others_ask_of_a_node_is_counted_as_the_scheduler_counts() -> None:
    def pod(name: str, **about: Any) -> Object:
        requests = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": about.get("labels", {})},
            "spec": {
                "nodeName": "n",
                "containers": [requests, requests],
                "initContainers": [{"resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}],
            },
            "status": {"phase": about.get("phase", "Running")},
        }

    ours = pod("ours", labels={"ai-inference.deckhouse.io/managed": "true"})
    found = read(pod("a"), pod("done", phase="Succeeded"), ours)
    assert found.host_use == (HostUse(node="n", cpu_milli=3000, memory=2 << 30),)


def test_secrets_are_known_by_their_keys_only() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "team-a"},
        "data": {"token": "c2VjcmV0", "x": "eA=="},
    }
    found = read(secret)
    assert found.secrets[0].keys == ("token",)
    saved = wire.replay([document(secret)], kubernetes=(1, 37), now="", release="", catalog=CatalogState.ENABLED)
    assert "c2VjcmV0" not in json.dumps(saved)


def test_with_strict_off_an_object_that_cannot_be_read_is_named_and_left_out() -> None:
    found = snapshot([document(changed(CATALOG_ORDER, "spec.replicas", 1)), document(CLASS)], strict=False)
    assert found.orders == ()
    assert found.unreadable == ("InferenceService chat: spec.replicas: unknown field",)
    assert len(found.service_classes) == 1


def test_a_broken_pod_or_volume_is_left_out_as_any_other_object() -> None:
    container = {"name": "a", "resources": {"requests": {"cpu": "many"}}}
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd", "namespace": "team"},
        "spec": {"nodeName": "n", "containers": [container]},
    }  # fmt: skip
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": "none"}}},
    }  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "storage-chat-0", "namespace": "team", "labels": {ORDER_LABEL: "chat"}},
        "spec": {"volumeName": "pv"},
    }  # fmt: skip
    broken = [document(pod), document(volume), document(claim)]
    found = snapshot(broken, strict=False)
    assert [entry.split(": ")[:2] for entry in found.unreadable] == [
        ["PersistentVolume pv", "spec.nodeAffinity.required.nodeSelectorTerms"],
        ["Pod odd", "spec.containers[0].resources.requests.cpu"],
    ]
    assert found.host_use == () and found.volumes == ()
    with pytest.raises(wire.BadInput):
        snapshot(broken)


def test_a_plan_is_read_back_as_it_was_written() -> None:
    world = build.flat(
        build.any_device(),
        build.service_class(replicas=(1, 2)),
        build.service_class("pair", sharing=["Dedicated"], placement=["WholeDevice"], count=2),
        build.rtx3090_deckhouse(1),
        build.h100_mig(2),
        build.tiny(),
        build.order("a"),
        build.order("b", model="Qwen/Qwen3-1.7B", hub=True, revision="abc"),
        build.order("c", model="meta-llama/Llama-3.3-70B-Instruct", hub=True, service_class="pair"),
        build.order("d", service_class="nobody"),
    )
    for item in plan(build.snapshot(world)).orders:
        status = wire.plan_status(item)
        assert wire.plan_status(wire.read_plan(json.loads(json.dumps(status)), item.key)) == status


def test_a_plan_that_nobody_can_read_counts_as_none() -> None:
    spoilt = changed(CATALOG_ORDER, "status", {"plan": {"decision": "Perhaps"}})
    assert read(spoilt).orders[0].plan is None


def test_quantities_of_the_status_are_texts() -> None:
    world = build.flat(build.any_device(), build.service_class(), build.l40s_shared(1), build.tiny(), build.order("a"))
    status = wire.plan_status(plan(build.snapshot(world)).orders[0])
    assert status["endpointType"] == EndpointType.CHAT.value
    for part in (
        status["share"]["memory"],
        *status["hostResources"].values(),
        *status["deviceRequest"]["capacity"].values(),
    ):
        assert isinstance(part, str)
    assert all(isinstance(value, str) for value in status["recipe"]["parameters"].values())
