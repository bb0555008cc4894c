# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""From `kubectl apply` of an order to a pod on its planned device: real API server, scheduler and addon-operator."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from planner import quantity
from testbed.cluster import Cluster
from testbed.process import until

from tests.e2e.scene import EXAMPLES, Scene, hugging_face, objects, results, running

pytestmark = pytest.mark.testbed

TEAMS = ("team-a", "team-b", "team-c")
PLACED = {
    "team-a/librarian": ("h100", "WholeDevice", "Dedicated", "Chat"),
    "team-a/drafts": ("a30-mig", "Partition", "Dedicated", "Chat"),
    "team-b/embedder": ("rtx3090", "WholeDevice", "Shared", "Embeddings"),
    "team-a/helper": ("rtx3090", "WholeDevice", "Shared", "Chat"),
    "team-b/reranker": None,
}


@pytest.fixture(scope="module")
def scene(own_cluster: Cluster) -> Iterator[Scene]:
    with running(own_cluster) as made:
        made.namespaces(*TEAMS)
        made.cluster.apply((EXAMPLES / "classes.yaml").read_text())
        yield made


@pytest.fixture(scope="module")
def eight(scene: Scene) -> Iterator[Scene]:
    """The eight orders of the examples, applied in one go."""
    scene.cluster.apply((EXAMPLES / "orders.yaml").read_text())
    yield scene
    scene.delete_orders(*TEAMS)


def split(key: str) -> tuple[str, str]:
    namespace, name = key.split("/")
    return namespace, name


@pytest.mark.parametrize("key", PLACED)
def test_a_placed_order_runs_on_the_device_class_and_with_the_share_that_its_plan_names(eight: Scene, key: str) -> None:
    namespace, name = split(key)
    status = eight.until_ready(namespace, name)
    plan = status["plan"]
    assert plan["decision"] == "Placed"
    if PLACED[key] is not None:
        seen = (plan["deviceClassName"], plan["placementType"], plan["sharingMode"], plan["endpointType"])
        assert seen == PLACED[key]

    kinds = {thing.split("/")[0] for thing in eight.workload(namespace, order=name)}
    assert {"StatefulSet", "Service", "ResourceClaimTemplate", "Pod", "ResourceClaim"} <= kinds
    claims = eight.until_allocated(namespace, name)
    planned = {(d["driver"], d["pool"], d["name"]) for d in plan["devices"]}
    for claim in claims:
        request = claim["spec"]["devices"]["requests"][0]["exactly"]
        assert request["deviceClassName"] == plan["deviceClassName"]
    for result in results(claims):
        assert (result["driver"], result["pool"], result["device"]) in planned
        if plan["sharingMode"] == "Shared":
            held = quantity.parse(result["consumedCapacity"]["memory"])
            assert held == quantity.parse(plan["share"]["memory"])
    pod = eight.pods(namespace, name)[0]
    assert pod["spec"]["nodeName"] in plan["nodes"]


def test_two_shared_orders_sit_on_the_same_device(eight: Scene) -> None:
    for namespace, name in (("team-b", "embedder"), ("team-a", "helper")):
        eight.until_ready(namespace, name)
    first = results(eight.until_allocated("team-b", "embedder"))
    second = results(eight.until_allocated("team-a", "helper"))
    assert [(r["driver"], r["pool"], r["device"]) for r in first] == [
        (r["driver"], r["pool"], r["device"]) for r in second
    ]
    assert first[0]["shareID"] != second[0]["shareID"]


def test_an_order_larger_than_any_card_is_refused_with_needed_free_and_shortfall(eight: Scene) -> None:
    condition = eight.until_reason("team-c", "giant", "Planned", "ResourceClaimExhausted")
    assert condition["status"] == "False"
    for word in ("needed", "offered", "short"):
        assert word in condition["message"], condition["message"]
    assert eight.workload("team-c", order="giant") == []


def test_an_order_of_a_class_with_a_broken_selector_names_the_expression(eight: Scene) -> None:
    condition = eight.until_reason("team-c", "misspelt", "Planned", "PlacementUndecidable")
    assert 'device.attributes["gpu.deckhouse.io"].migProfil' in condition["message"]
    assert "typo" in condition["message"]


def test_an_order_from_a_namespace_that_the_class_does_not_admit_is_told_so(eight: Scene) -> None:
    condition = eight.until_reason("team-c", "outsider", "ClassResolved", "NamespaceNotAllowed")
    assert condition["status"] == "False"


def test_a_class_shows_what_an_administrator_checks(eight: Scene) -> None:
    def validated(name: str) -> Any:
        found = eight.cluster.get("inferenceserviceclass", name)
        return {c["type"]: (c["status"], c["reason"]) for c in found.get("status", {}).get("conditions", [])}

    until("verdicts of the classes", lambda: validated("typo").get("Validated", ("", ""))[0] == "False", timeout=30)
    until("default-llm validated", lambda: validated("default-llm").get("Validated", ("", ""))[0] == "True", timeout=30)
    table = eight.cluster.kubectl("get", "inferenceserviceclass")
    assert table.splitlines()[0].split() == ["NAME", "VALIDATED", "READY", "ENDPOINT", "TYPES", "SHARING", "AGE"]
    orders = eight.cluster.kubectl("get", "inferenceservice", "-A")
    assert orders.splitlines()[0].split()[:7] == ["NAMESPACE", "NAME", "CLASS", "MODEL", "CONTRACT", "PHASE", "READY"]


def test_deleting_an_order_removes_everything_of_it(scene: Scene) -> None:
    scene.order("team-a", "short-lived", device_classes=["rtx3090"])
    scene.until_ready("team-a", "short-lived")
    scene.cluster.kubectl("delete", "inferenceservice", "short-lived", "--namespace", "team-a")
    scene.until_gone("team-a", order="short-lived")
    left = scene.cluster.get("secrets,pvc", "--namespace", "team-a")["items"]
    assert [item["metadata"]["name"] for item in left if "short-lived" in item["metadata"]["name"]] == []


def test_a_deleted_statefulset_is_back_within_five_seconds(scene: Scene) -> None:
    scene.order("team-a", "phoenix", device_classes=["rtx3090"])
    scene.until_ready("team-a", "phoenix")
    old = scene.cluster.get("statefulset", "phoenix", "--namespace", "team-a")["metadata"]["uid"]
    scene.cluster.kubectl("delete", "statefulset", "phoenix", "--namespace", "team-a", "--wait=false")
    begin = time.monotonic()

    def back() -> bool:
        found = scene.cluster.get("statefulset", "phoenix", "--namespace", "team-a")
        return bool(found and found["metadata"]["uid"] != old and "deletionTimestamp" not in found["metadata"])

    until("a new StatefulSet", back, timeout=5)
    print(f"back after {time.monotonic() - begin:.1f} s")
    scene.delete_orders("team-a")


def test_disabling_removes_workloads_and_enabling_brings_every_order_back_with_the_same_token(scene: Scene) -> None:
    scene.order("team-a", "kept", device_classes=["rtx3090"])
    scene.order("team-b", "kept-too", device_classes=["a30-mig"])
    before = {}
    for namespace, name in (("team-a", "kept"), ("team-b", "kept-too")):
        status = scene.until_ready(namespace, name)
        secret = scene.cluster.get("secret", status["endpoint"]["tokenSecretName"], "--namespace", namespace)
        before[namespace, name] = (status, secret["metadata"]["uid"], secret["data"]["token"])
    volumes = {v["metadata"]["uid"] for v in scene.cluster.get("pvc", "-A")["items"]}

    scene.operator.disable()
    until("no workload anywhere", lambda: not scene.workload("team-a") and not scene.workload("team-b"), timeout=60)
    until("no planner", lambda: scene.cluster.get("deployment", "resource-planner", "-n", "d8-ai-inference") is None)
    scene.planner.stop()
    assert {o["metadata"]["name"] for o in scene.cluster.get("inferenceservice", "-A")["items"]} >= {"kept", "kept-too"}
    assert {v["metadata"]["uid"] for v in scene.cluster.get("pvc", "-A")["items"]} == volumes

    scene.operator.enable()
    until(
        "the planner's Deployment", lambda: scene.cluster.get("deployment", "resource-planner", "-n", "d8-ai-inference")
    )
    scene.planner.start().wait_ready()
    for (namespace, name), (status, uid, token) in before.items():
        scene.until_allocated(namespace, name)
        secret = scene.cluster.get("secret", status["endpoint"]["tokenSecretName"], "--namespace", namespace)
        assert (secret["metadata"]["uid"], secret["data"]["token"]) == (uid, token)
    scene.delete_orders("team-a", "team-b")


MADE = yaml.safe_load((Path(__file__).parent / "causes.yaml").read_text())
"""Objects that make the API server refuse one order, by cause."""

CAUSES: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "a quota": (MADE["quota"], "WorkloadRefused", "exceeded quota: no-services"),
    "a foreign Service of its name": (MADE["service"], "NameConflict", "unlucky"),
    "an admission policy": (MADE["policy"], "WorkloadRefused", "sets are not welcome in this namespace"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_one_refused_order_says_so_and_five_others_run_meanwhile(scene: Scene, cause: str) -> None:
    made, reason, words = CAUSES[cause]
    scene.namespaces("refused", "fine")
    scene.cluster.apply(*made)
    if cause == "an admission policy":
        until("the policy to be enforced", lambda: "not welcome" in scene.cluster.kubectl_process(
            "create", "--dry-run=server", "-f", "-", input=MADE["set"]).stderr, timeout=30)  # fmt: skip
    foreign = scene.cluster.get("service", "unlucky", "--namespace", "refused")
    others = [hugging_face("fine", f"other-{n}", device_classes=["rtx3090", "a30-mig"]) for n in range(5)]
    scene.cluster.apply(hugging_face("refused", "unlucky", device_classes=["rtx3090"]), *others)
    for n in range(5):
        scene.until_ready("fine", f"other-{n}", timeout=90)
    condition = scene.until_reason("refused", "unlucky", "WorkloadReady", reason)
    assert words in condition["message"]
    if foreign is not None:
        assert scene.cluster.get("service", "unlucky", "--namespace", "refused") == foreign

    scene.cluster.kubectl("delete", "--wait=true", "-f", "-", input=made)
    begin = time.monotonic()
    scene.until_ready("refused", "unlucky", timeout=90)
    print(f"{cause}: up {time.monotonic() - begin:.1f} s after the cause was gone")
    scene.delete_orders("refused", "fine")


def test_an_order_in_a_namespace_in_deletion_says_so(scene: Scene) -> None:
    scene.namespaces("leaving")
    blocker = {"apiVersion": "v1", "kind": "ConfigMap",
               "metadata": {"name": "blocker", "namespace": "leaving", "finalizers": ["example.com/hold"]}}  # fmt: skip
    scene.cluster.apply(blocker)
    held = hugging_face("leaving", "late", device_classes=["rtx3090"])
    held["metadata"]["finalizers"] = ["example.com/hold"]
    scene.planner.stop()  # the order must not be served before its namespace goes
    scene.cluster.apply(held)
    scene.cluster.kubectl("delete", "namespace", "leaving", "--wait=false")
    until("terminating", lambda: scene.cluster.get("namespace", "leaving")["status"]["phase"] == "Terminating")
    scene.planner.start().wait_ready()
    try:
        scene.until_reason("leaving", "late", "WorkloadReady", "NamespaceTerminating", timeout=60)
        assert scene.workload("leaving") == []
    finally:
        for kind, name in (("inferenceservice", "late"), ("configmap", "blocker")):
            scene.cluster.kubectl(
                "patch", kind, name, "-n", "leaving", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
            )
    until("the namespace gone", lambda: scene.cluster.get("namespace", "leaving") is None)


def test_killing_the_operator_in_the_middle_of_ten_orders_loses_nothing(scene: Scene) -> None:
    scene.namespaces("many")
    scene.order("many", "standing", device_classes=["rtx3090"])
    scene.until_ready("many", "standing")
    before = scene.cluster.get("statefulset", "standing", "--namespace", "many")["metadata"]["uid"]
    scene.cluster.apply(*(hugging_face("many", f"burst-{n}", device_classes=["rtx3090", "a30-mig"]) for n in range(10)))
    until("the first of ten", lambda: len(scene.cluster.get("statefulsets", "-n", "many")["items"]) > 2, timeout=60)
    scene.operator.kill9()
    stood = {
        s["metadata"]["name"]: s["metadata"]["uid"] for s in scene.cluster.get("statefulsets", "-n", "many")["items"]
    }
    scene.operator.start().wait_ready()

    def all_there() -> bool:
        sets = {s["metadata"]["name"]: s["metadata"] for s in scene.cluster.get("statefulsets", "-n", "many")["items"]}
        for name, uid in stood.items():
            assert sets[name]["uid"] == uid, f"{name} was made anew"
            assert "deletionTimestamp" not in sets[name], f"{name} is being deleted"
        placed = [o for o in scene.cluster.get("inferenceservice", "-n", "many")["items"]
                  if o.get("status", {}).get("plan", {}).get("decision") == "Placed"]  # fmt: skip
        return len(placed) >= 5 and {o["metadata"]["name"] for o in placed} <= set(sets)

    until("every placed order has its workload", all_there, timeout=90)
    assert stood["standing"] == before
    scene.delete_orders("many")


def test_a_pod_of_somebody_else_on_a_planned_device_leads_to_a_new_plan(scene: Scene) -> None:
    scene.namespaces("foreign", "late")
    scene.operator.kill9()  # the order is planned but not applied yet
    scene.order("late", "patient", model="Qwen/Qwen3-32B", device_classes=["h100"])
    plan = until("a plan", lambda: scene.status("late", "patient").get("plan"), timeout=30)
    assert [d["name"] for d in plan["devices"]] == ["gpu-0"]
    scene.cluster.apply(*MADE["grab"])
    until(
        "the foreign pod scheduled", lambda: scene.cluster.get("pod", "grab", "-n", "foreign")["spec"].get("nodeName")
    )
    scene.operator.start().wait_ready()
    condition = scene.until_reason("late", "patient", "Planned", "ResourceClaimExhausted", timeout=60)
    assert "h100" in condition["message"]
    assert [p for p in scene.pods("late", "patient") if p["status"]["phase"] == "Pending"] == []

    scene.cluster.kubectl("delete", "pod", "grab", "-n", "foreign", "--grace-period=0", "--force")
    scene.cluster.kubectl("delete", "resourceclaim", "grab", "-n", "foreign")
    scene.until_ready("late", "patient", timeout=90)
    scene.delete_orders("late")


def test_the_examples_are_what_the_tests_apply() -> None:
    orders = objects(EXAMPLES / "orders.yaml")
    assert len(orders) == 8
    assert {o["metadata"]["namespace"] for o in orders} == set(TEAMS)
    assert json.dumps(orders)
