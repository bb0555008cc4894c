# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The whole path of `orders.py` against a real API server: what stands, what is left alone, what an order is told."""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import disable
import orders
import pytest
from lib.ai_inference import decide, execute, names, release
from lib.ai_inference.api import Refusal, Unreachable
from testbed import devices

from tests.hooks import bindings
from tests.hooks.conftest import Bed
from tests.hooks.objects import HUGGING_FACE, VOLUME, plan, refused

pytestmark = pytest.mark.testbed

TWO = {"min": 2, "max": 2, "bound": 2}
ALL = {"StatefulSet/chat", "Service/chat", "ResourceClaimTemplate/chat", "Secret/chat-token"}
SHARE = {"deviceRequest": {"capacity": {"memory": "9Gi"}}}


GATED = {"src": "HuggingFace", "ref": {**HUGGING_FACE["ref"], "authSecretRef": {"name": "hf"}}}  # type: ignore[dict-item]


def secret(name: str, namespace: str, **content: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def lists_orders(bed: Bed) -> bool:
    """A server that has just started refuses for a moment: its storage is not filled yet."""
    try:
        bed.snapshots()
    except Refusal:
        return False
    return True


def frozen(item: Mapping[str, Any]) -> str:
    return json.dumps(item, sort_keys=True)


def other_orders(bed: Bed, namespace: str, count: int = 5) -> list[str]:
    made = [f"other-{number}" for number in range(count)]
    for name in made:
        bed.order(name, namespace, planned=plan())
    return made


def assert_standing(bed: Bed, namespace: str, orders_made: list[str]) -> None:
    standing = bed.names(namespace)
    for name in orders_made:
        assert {f"StatefulSet/{name}", f"Service/{name}", f"ResourceClaimTemplate/{name}"} <= standing


def test_a_placed_order_stands_and_is_told_so(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan(replicas=TWO))
    bed.run()

    assert bed.names(namespace) == {*ALL, "PodDisruptionBudget/chat"}
    workload = bed.get("statefulset", "chat", namespace)
    assert workload["spec"]["replicas"] == 2
    owners = {entry["manager"]: entry for entry in workload["metadata"]["managedFields"]}
    assert "f:replicas" not in owners[names.WORKLOAD_MANAGER]["fieldsV1"]["f:spec"]
    token = bed.get("secret", "chat-token", namespace)["data"]["token"]
    assert len(base64.b64decode(token)) >= 43
    assert bed.condition("chat", namespace) == ("False", "WorkloadProgressing", "the workload is being created")

    bed.settle()
    bed.until("claims", lambda: bed.cluster.get("resourceclaim", "-n", namespace)["items"])
    for claim in bed.cluster.get("resourceclaim", "-n", namespace)["items"]:
        assert claim["metadata"]["labels"].items() >= names.selector("chat").items()


def test_a_run_of_many_orders_ends_in_time_and_the_next_goes_on(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = bed.namespace()
    made = other_orders(bed, namespace)
    monkeypatch.setattr(execute, "RUN_SECONDS", -1.0)
    bed.run()
    assert not any(name.startswith("StatefulSet/") for name in bed.names(namespace))
    # Neither applied nor refused: nothing is known of them that a status could tell.
    assert all(set(bed.get("inferenceservice", name, namespace)["status"]) == {"plan"} for name in made)

    monkeypatch.undo()
    bed.run()
    assert_standing(bed, namespace, made)


def test_a_second_run_writes_nothing(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    bed.settle()
    time.sleep(1)
    bed.run()
    before = bed.versions(namespace)
    bed.run()
    assert bed.versions(namespace) == before


def test_the_status_leaves_the_plan_to_the_planner(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    before = bed.get("inferenceservice", "chat", namespace)["status"]["plan"]
    bed.settle()
    after = bed.get("inferenceservice", "chat", namespace)
    assert after["status"]["plan"] == before
    owned = {
        entry["manager"]: set(entry["fieldsV1"]["f:status"])
        for entry in after["metadata"]["managedFields"]
        if "f:status" in entry["fieldsV1"]
    }
    assert owned["ai-inference-planner"] == {"f:plan"}
    assert "f:plan" not in owned[names.STATUS_MANAGER]


def test_a_deleted_set_comes_back_with_the_same_token(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan(replicas=TWO))
    bed.settle()
    token = bed.get("secret", "chat-token", namespace)["data"]
    bed.delete("statefulset", "chat", namespace)
    bed.run()
    assert bed.get("statefulset", "chat", namespace)["spec"]["replicas"] == 2
    assert bed.get("secret", "chat-token", namespace)["data"] == token


def test_a_foreign_service_is_left_byte_equal_and_others_run(bed: Bed) -> None:
    namespace = bed.namespace()
    foreign = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "chat", "namespace": namespace},
        "spec": {"ports": [{"port": 5000}], "selector": {"app": "mine"}},
    }  # fmt: skip
    bed.cluster.apply(foreign)
    before = frozen(bed.get("service", "chat", namespace))
    bed.order("chat", namespace, planned=plan())
    others = other_orders(bed, namespace)
    bed.run()

    assert frozen(bed.get("service", "chat", namespace)) == before
    assert bed.condition("chat", namespace) == (
        "False", "NameConflict", "Service chat exists and does not belong to the order; it is left alone",
    )  # fmt: skip
    assert not bed.names(namespace) & {"StatefulSet/chat", "Secret/chat-token", "ResourceClaimTemplate/chat"}
    assert_standing(bed, namespace, others)

    bed.delete("service", "chat", namespace)
    bed.run(later=60)
    assert bed.names(namespace) >= ALL
    bed.settle(later=60)
    assert bed.condition("chat", namespace)[1] == "WorkloadProgressing"


def test_a_foreign_secret_of_the_token_name_is_left_byte_equal(bed: Bed) -> None:
    namespace = bed.namespace()
    foreign = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "chat-token", "namespace": namespace},
        "stringData": {"token": "mine"},
    }  # fmt: skip
    bed.cluster.apply(foreign)
    before = frozen(bed.get("secret", "chat-token", namespace))
    bed.order("chat", namespace, planned=plan())
    bed.run()
    assert frozen(bed.get("secret", "chat-token", namespace)) == before
    assert bed.condition("chat", namespace)[1] == "NameConflict"
    assert "StatefulSet/chat" not in bed.names(namespace)


def test_a_quota_speaks_in_its_own_words_and_others_run(bed: Bed) -> None:
    namespace, elsewhere = bed.namespace(), bed.namespace()
    bed.cluster.kubectl("create", "quota", "none", "--hard=services=0", "--namespace", namespace)
    bed.until(
        "the quota to count",
        lambda: bed.get("resourcequota", "none", namespace).get("status", {}).get("hard"),
    )
    bed.order("chat", namespace, planned=plan())
    others = other_orders(bed, elsewhere)
    bed.run()

    status, reason, message = bed.condition("chat", namespace)
    assert (status, reason) == ("False", "WorkloadRefused")
    assert message.startswith('Service chat: services "chat" is forbidden: exceeded quota: none')
    assert bed.condition("chat", namespace, "Ready")[1] == "WorkloadRefused"
    assert_standing(bed, elsewhere, others)
    assert ("chat", "WorkloadRefused", message) in bed.events(namespace)

    bed.run()
    assert bed.condition("chat", namespace) == (status, reason, message), "the refusal stays between attempts"
    bed.cluster.kubectl("delete", "quota", "none", "--namespace", namespace)
    bed.run(later=60)
    assert bed.names(namespace) == ALL


def test_an_admission_policy_speaks_in_its_own_words(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.cluster.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "no-chat"},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["statefulsets"],
                    "operations": ["CREATE", "UPDATE"],
                }]},
                "validations": [{"expression": "object.metadata.name != 'denied'", "message": "denied is not wanted"}],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "no-chat"}, "spec": {"policyName": "no-chat", "validationActions": ["Deny"]},
        },
    )  # fmt: skip
    try:
        bed.until("the policy to bite", lambda: "denied is not wanted" in bed.cluster.kubectl_process(
            "create", "--dry-run=server", "-f", "-", input={
                "apiVersion": "apps/v1", "kind": "StatefulSet",
                "metadata": {"name": "denied", "namespace": namespace},
                "spec": {
                    "serviceName": "denied", "selector": {"matchLabels": {"a": "b"}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]},
                    },
                },
            },
        ).stderr)  # fmt: skip
        bed.order("denied", namespace, planned=plan())
        bed.order("admitted", namespace, planned=plan())
        bed.run()
        status, reason, message = bed.condition("denied", namespace)
        assert (status, reason) == ("False", "WorkloadRefused")
        assert "denied is not wanted" in message
        assert_standing(bed, namespace, ["admitted"])
    finally:
        bed.cluster.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-chat")
    # The server forgets a policy a moment after its deletion; the schedule would try twice a minute.
    pauses = itertools.count(60, 60)

    def stands() -> bool:
        bed.run(later=next(pauses))
        return "StatefulSet/denied" in bed.names(namespace)

    bed.until("the order to come up", stands)
    assert_standing(bed, namespace, ["denied", "admitted"])


def test_a_namespace_in_deletion_is_said(bed: Bed) -> None:
    namespace, elsewhere = bed.namespace(), bed.namespace()
    bed.order("chat", namespace, planned=plan())
    hold = ("patch", "inferenceservice", "chat", "-n", namespace, "--type=merge", "-p")
    bed.cluster.kubectl(*hold, json.dumps({"metadata": {"finalizers": ["example.com/hold"]}}))
    others = other_orders(bed, elsewhere)
    bed.cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    bed.until(
        "the namespace to terminate", lambda: bed.cluster.get("namespace", namespace)["status"]["phase"] != "Active"
    )
    # The order itself is being deleted by now: one that is not, because its deletion lags, is what the hook may see.
    found = bed.snapshots()
    for entry in found["orders"]:
        record = {**json.loads(entry["filterResult"]["record"]), "deleting": False}
        entry["filterResult"]["record"] = json.dumps(record)
    bindings.run(orders.main, found, binding="orders")
    assert bed.condition("chat", namespace)[1] == "NamespaceTerminating"
    assert_standing(bed, elsewhere, others)
    bed.cluster.kubectl(*hold, json.dumps({"metadata": {"finalizers": []}}))


def test_an_order_made_again_waits_for_the_former_workload(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    bed.settle()
    patch = json.dumps({"metadata": {"finalizers": ["example.com/hold"]}})
    bed.cluster.kubectl("patch", "statefulset", "chat", "-n", namespace, "--type=merge", "-p", patch)
    former = bed.get("statefulset", "chat", namespace)["metadata"]["uid"]
    bed.delete("inferenceservice", "chat", namespace)
    bed.order("chat", namespace, planned=plan())
    bed.run()
    assert bed.get("statefulset", "chat", namespace)["metadata"]["uid"] == former
    assert bed.condition("chat", namespace)[1] == "WorkloadProgressing"

    patch = json.dumps({"metadata": {"finalizers": []}})
    bed.cluster.kubectl("patch", "statefulset", "chat", "-n", namespace, "--type=merge", "-p", patch)
    bed.until("the former objects to go", lambda: not bed.names(namespace) & ALL)
    bed.run(later=60)
    assert bed.names(namespace) == ALL
    assert bed.get("statefulset", "chat", namespace)["metadata"]["uid"] != former


def test_replicas_that_somebody_scaled_survive_a_new_template(bed: Bed) -> None:
    namespace = bed.namespace()
    bounds = {"min": 1, "max": 4, "bound": 4}
    bed.order("chat", namespace, planned=plan(replicas=bounds))
    bed.settle()
    bed.cluster.kubectl("scale", "statefulset", "chat", "--replicas=3", "--namespace", namespace)
    bed.plan("chat", namespace, plan(replicas=bounds, **SHARE))
    bed.settle()
    assert bed.get("statefulset", "chat", namespace)["spec"]["replicas"] == 3


def test_the_old_claim_template_goes_only_after_the_new_workload_stands(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    bed.settle()
    (old,) = bed.cluster.get("resourceclaimtemplate", "-n", namespace)["items"]
    bed.cluster.kubectl(
        "create", "quota", "none", "--hard=count/resourceclaimtemplates.resource.k8s.io=1", "-n", namespace
    )
    bed.until("the quota to count", lambda: bed.get("resourcequota", "none", namespace).get("status", {}).get("used"))
    bed.plan("chat", namespace, plan(**SHARE))
    bed.run()
    assert bed.condition("chat", namespace)[1] == "WorkloadRefused"
    (still,) = bed.cluster.get("resourceclaimtemplate", "-n", namespace)["items"]
    assert still["metadata"]["uid"] == old["metadata"]["uid"]

    bed.cluster.kubectl("delete", "quota", "none", "-n", namespace)
    bed.run(later=60)
    (new,) = bed.cluster.get("resourceclaimtemplate", "-n", namespace)["items"]
    assert new["metadata"]["name"] != old["metadata"]["name"]
    spec = bed.get("statefulset", "chat", namespace)["spec"]["template"]["spec"]
    assert spec["resourceClaims"][0]["resourceClaimTemplateName"] == new["metadata"]["name"]
    assert [event[1] for event in bed.events(namespace)] == ["WorkloadRefused"]


def test_what_others_own_in_a_workload_survives(bed: Bed) -> None:
    """ai-models adds a gate, a mount and a variable; we edit the rest."""
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    bed.settle()
    theirs = {
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "chat", "namespace": namespace, "annotations": {"example.com/a": "b"}},
        "spec": {"template": {"spec": {
            "schedulingGates": [{"name": "ai.deckhouse.io/model-delivery"}],
            "volumes": [{"name": "model", "emptyDir": {}}],
            "containers": [{
                "name": "runtime", "env": [{"name": "AI_MODELS_MODELS_DIR", "value": "/models"}],
                "volumeMounts": [{"name": "model", "mountPath": "/models"}],
            }],
        }}},
    }  # fmt: skip
    bed.cluster.kubectl("apply", "--server-side", "--field-manager=ai-models", "-f", "-", input=theirs)
    bed.plan("chat", namespace, plan(**SHARE))
    bed.settle()
    workload = bed.get("statefulset", "chat", namespace)
    spec = workload["spec"]["template"]["spec"]
    assert spec["schedulingGates"] == [{"name": "ai.deckhouse.io/model-delivery"}]
    assert {"name": "AI_MODELS_MODELS_DIR", "value": "/models"} in spec["containers"][0]["env"]
    assert workload["metadata"]["annotations"]["example.com/a"] == "b"
    assert bed.condition("chat", namespace)[1] in ("ModelDeliveryPending", "WorkloadProgressing")


def test_refused_pods_are_told_and_come_when_the_quota_goes(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.cluster.kubectl("create", "quota", "none", "--hard=pods=0", "--namespace", namespace)
    bed.until("the quota to count", lambda: bed.get("resourcequota", "none", namespace).get("status", {}).get("hard"))
    bed.order("chat", namespace, planned=plan())
    bed.settle()

    def refused_condition() -> bool:
        bed.run()
        return bed.condition("chat", namespace)[1] == "ReplicasRefused"

    bed.until("the refusal to be told", refused_condition)
    assert "exceeded quota: none" in bed.condition("chat", namespace)[2]
    time.sleep(12)  # the controller's own pauses have grown by now
    bed.cluster.kubectl("delete", "quota", "none", "--namespace", namespace)
    bed.run(later=60)
    bed.until("a pod", lambda: bed.cluster.get("pod", "-n", namespace)["items"], seconds=5)


def test_a_replica_that_the_scheduler_finds_no_device_for_is_made_anew_unless_it_was_given_a_node(bed: Bed) -> None:
    """Whatever made kube-scheduler say so: here the card is too small, so that it says so for ever."""
    namespace = bed.namespace()
    large = {**plan()["deviceRequest"], "capacity": {"memory": "30Gi"}}
    with devices.loaded(bed.cluster, "05") as made:
        bed.order("chat", namespace, planned=plan(deviceClassName="dh-rtx-3090-physical", deviceRequest=large))
        bed.run()

        def pod() -> dict[str, Any]:
            return bed.get("pod", "chat-0", namespace) or {"metadata": {"uid": None}, "status": {}}

        def stranded() -> bool:
            return any(decide.NO_CLAIM in item.get("message", "") for item in pod()["status"].get("conditions", []))

        bed.until("the scheduler's words", stranded)
        first = pod()["metadata"]["uid"]
        bed.run()
        assert pod()["metadata"]["uid"] == first, "the scheduler may look again by itself"
        bed.run(later=20)
        bed.until("another pod", lambda: pod()["metadata"]["uid"] not in (None, first), seconds=10)
        (event,) = [event for event in bed.events(namespace) if event[1] == "ReplicaRescheduled"]
        assert event[2].startswith("chat-0 is made anew") and decide.NO_CLAIM in event[2]

        bed.until("the scheduler's words again", stranded)
        second = pod()["metadata"]["uid"]
        bed.run(later=40)
        assert pod()["metadata"]["uid"] == second, "the pause is not over"
        before = bed.snapshots()
        node = next(item["metadata"]["name"] for item in made if item["kind"] == "Node")
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        bed.api.request("POST", f"/api/v1/namespaces/{namespace}/pods/chat-0/binding", body={
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "chat-0"}, "target": target})  # fmt: skip
        bed.run(later=100, snapshots=before)
        assert pod()["metadata"]["uid"] == second, "it has a node by now"
        assert len([event for event in bed.events(namespace) if event[1] == "ReplicaRescheduled"]) == 1


def test_a_deleted_order_takes_everything_with_it(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan(volume={"size": "16Gi"}, replicas=TWO), model=HUGGING_FACE)
    bed.settle()
    volumes = {"PersistentVolumeClaim/storage-chat-0", "PersistentVolumeClaim/storage-chat-1"}
    bed.until("volume claims", lambda: volumes <= bed.names(namespace))
    bed.delete("inferenceservice", "chat", namespace)
    bed.until("everything to go", lambda: not bed.names(namespace))
    bed.run()
    assert bed.names(namespace) == set()


def test_another_model_source_makes_the_set_anew(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    bed.settle()
    former = bed.get("statefulset", "chat", namespace)["metadata"]["uid"]
    bed.order("chat", namespace, planned=plan(volume={"size": "16Gi"}), model=HUGGING_FACE)
    bed.run()
    assert bed.condition("chat", namespace)[1:] == (
        "WorkloadProgressing", "the model volume changes: the workload is made anew",
    )  # fmt: skip
    bed.until("the former set to go", lambda: bed.get("statefulset", "chat", namespace) is None)
    bed.run(later=60)
    workload = bed.get("statefulset", "chat", namespace)
    assert workload["metadata"]["uid"] != former
    assert [claim["metadata"]["name"] for claim in workload["spec"]["volumeClaimTemplates"]] == ["storage"]


def test_a_new_release_alone_restarts_no_replica_with_a_model_volume(bed: Bed) -> None:
    """The claim template as the API server completed it is no edit of the order."""
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan(volume=VOLUME), model=HUGGING_FACE)
    bed.settle()
    before = bed.get("statefulset", "chat", namespace)
    assert before["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"
    bed.plan("chat", namespace, plan(volume={"size": "17Gi"}, recipe={**plan()["recipe"], "release": "2.0"}))
    bed.run()
    after = bed.get("statefulset", "chat", namespace)
    assert after["metadata"]["annotations"][names.EDIT] == before["metadata"]["annotations"][names.EDIT]
    assert after["spec"]["template"]["metadata"]["labels"][names.RELEASE] == "2.0"
    assert after["spec"]["updateStrategy"]["type"] == "OnDelete"


def test_a_settled_volume_region_is_kept(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan(volume=VOLUME), model=HUGGING_FACE)
    bed.settle()
    settled = bed.get("statefulset", "chat", namespace)["spec"]["volumeClaimTemplates"]
    bed.plan("chat", namespace, plan(volume={"size": "32Gi", "storageClassName": "slow"}, **SHARE))
    bed.settle()
    assert bed.get("statefulset", "chat", namespace)["spec"]["volumeClaimTemplates"] == settled
    reasons = {event[1]: event[2] for event in bed.events(namespace)}
    assert reasons["SettledRegionKept"] == "the model volume keeps 16Gi of fast; the plan asks for 32Gi of slow"
    bed.run()
    assert bed.condition("chat", namespace)[1] == "WorkloadProgressing"


def test_a_plan_that_is_withdrawn_stops_nothing(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    bed.settle()
    before = bed.get("statefulset", "chat", namespace)["metadata"]
    bed.plan("chat", namespace, refused("ResourceClaimExhausted", "needs 8Gi, free 2Gi, short of 6Gi"))
    bed.settle()
    after = bed.get("statefulset", "chat", namespace)["metadata"]
    assert (after["uid"], after["generation"]) == (before["uid"], before["generation"])
    assert bed.condition("chat", namespace, "Planned") == (
        "False", "ResourceClaimExhausted", "needs 8Gi, free 2Gi, short of 6Gi",
    )  # fmt: skip


def start(bed: Bed, folder: Path) -> subprocess.CompletedProcess[str]:
    """`orders.py` as a process, with its files in `folder`."""
    context = [{"binding": "orders", "type": "Group", "groupName": "orders", "snapshots": bed.snapshots()}]
    files = {
        "BINDING_CONTEXT_PATH": context, "VALUES_PATH": bindings.values(), "CONFIG_VALUES_PATH": {},
        "VALUES_JSON_PATCH_PATH": None, "METRICS_PATH": None, "KUBERNETES_PATCH_PATH": None,
    }  # fmt: skip
    environment = {
        "KUBECONFIG": str(bed.cluster.kubeconfig),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for name, content in files.items():
        path = folder / name
        path.write_text("" if content is None else json.dumps(content))
        environment[name] = str(path)
    return subprocess.run(
        [bindings.ROOT / "hooks" / "orders.py"], env=environment, capture_output=True, text=True, check=False
    )


def test_the_hook_runs_as_the_operator_runs_it(bed: Bed, tmp_path: Path) -> None:
    """A process with files in its environment; what it prints and writes is what the operator reads."""
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    done = start(bed, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert bed.names(namespace) == ALL
    assert (tmp_path / "VALUES_JSON_PATCH_PATH").read_text() == ""
    assert (tmp_path / "KUBERNETES_PATCH_PATH").read_text() == ""
    assert (tmp_path / "METRICS_PATH").read_text() == ""

    # What it wrote makes another run; one that writes nothing gives the metrics.
    bed.settle()
    assert start(bed, tmp_path).returncode == 0
    first = json.loads((tmp_path / "METRICS_PATH").read_text().splitlines()[0])
    assert first == {"action": "expire", "group": "ai_inference_orders"}


def test_a_release_record_left_in_uninstalling_is_removed(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = bed.namespace()
    monkeypatch.setenv("ADDON_OPERATOR_NAMESPACE", namespace)
    for name, module, status in (
        ("sh.helm.release.v1.ai-inference.v1", "ai-inference", "superseded"),
        ("sh.helm.release.v1.ai-inference.v2", "ai-inference", "uninstalling"),
        ("sh.helm.release.v1.other.v2", "other", "uninstalling"),
    ):
        labels = {"owner": "helm", "name": module, "status": status}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        bed.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "helm.sh/release.v1"})
    assert release.clear_uninstalling() == ["sh.helm.release.v1.ai-inference.v2"]
    assert release.clear_uninstalling() == []
    assert bed.names(namespace) == {"Secret/sh.helm.release.v1.ai-inference.v1", "Secret/sh.helm.release.v1.other.v2"}


def test_release_records_are_sought_where_the_operator_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deckhouse and a stock operator with the variable; a stock operator told by a flag, in a pod; no pod at all."""
    account = tmp_path / "namespace"
    monkeypatch.setattr(release, "_ACCOUNT_NAMESPACE", account)
    monkeypatch.delenv("ADDON_OPERATOR_NAMESPACE", raising=False)
    assert release.operator_namespace() == "d8-system"
    account.write_text("")
    assert release.operator_namespace() == "d8-system"
    account.write_text("addons\n")
    assert release.operator_namespace() == "addons"
    monkeypatch.setenv("ADDON_OPERATOR_NAMESPACE", " ")
    assert release.operator_namespace() == "addons"
    monkeypatch.setenv("ADDON_OPERATOR_NAMESPACE", "operators")
    assert release.operator_namespace() == "operators"


def test_a_missing_secret_of_the_model_creates_nothing_and_heals_within_a_minute(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan(volume=VOLUME), model=GATED)
    others = other_orders(bed, namespace)
    bed.run()
    assert bed.condition("chat", namespace, "ModelResolved") == (
        "False", "CredentialsMissing",
        f"no Secret hf in the namespace {namespace}; it has to hold a token as one of token, HF_TOKEN, "
        "HUGGING_FACE_HUB_TOKEN",
    )  # fmt: skip
    assert bed.condition("chat", namespace, "Ready")[:2] == ("False", "CredentialsMissing")
    assert bed.condition("chat", namespace)[0] == "Unknown"
    assert not ALL & bed.names(namespace)
    assert_standing(bed, namespace, others)

    bed.settle()
    assert bed.condition("chat", namespace, "ModelResolved")[1] == "CredentialsMissing", "between two attempts"
    bed.cluster.apply(secret("hf", namespace, password="hf_do-not-show", token=""))
    bed.run(later=30)
    assert bed.condition("chat", namespace, "ModelResolved") == (
        "False", "CredentialsMissing",
        "the Secret hf holds no token: none of the keys token, HF_TOKEN, HUGGING_FACE_HUB_TOKEN has a value",
    )  # fmt: skip
    assert not ALL & bed.names(namespace)

    bed.cluster.apply(secret("hf", namespace, HF_TOKEN="hf_do-not-show"))
    bed.run(later=60)
    assert bed.names(namespace) >= ALL
    assert bed.condition("chat", namespace, "ModelResolved")[0] == "True"
    assert bed.condition("chat", namespace) == ("False", "WorkloadProgressing", "the workload is being created")


def test_a_secret_that_goes_away_leaves_the_workload_and_what_the_module_changes_of_it(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.cluster.apply(secret("hf", namespace, token="hf_do-not-show"))
    bed.order("chat", namespace, planned=plan(volume=VOLUME), model=GATED)
    bed.settle()
    before = bed.get("statefulset", "chat", namespace)["metadata"]
    bed.delete("secret", "hf", namespace)
    bed.delete("service", "chat", namespace)
    bed.run()
    assert bed.names(namespace) >= ALL
    assert bed.condition("chat", namespace, "ModelResolved")[0] == "True"

    bed.plan("chat", namespace, plan(volume=VOLUME, **SHARE))
    bed.run()
    after = bed.get("statefulset", "chat", namespace)["metadata"]
    assert (after["uid"], after["generation"]) == (before["uid"], before["generation"])
    assert bed.condition("chat", namespace, "ModelResolved")[:2] == ("False", "CredentialsMissing")

    bed.cluster.apply(secret("hf", namespace, token="hf_do-not-show"))
    bed.run(later=60)
    after = bed.get("statefulset", "chat", namespace)["metadata"]
    assert (after["uid"], after["generation"]) == (before["uid"], before["generation"] + 1)
    assert bed.condition("chat", namespace, "ModelResolved")[0] == "True"


@pytest.mark.parametrize("content", [{"token": "hf_do-not-show"}, {"other": "hf_do-not-show"}], ids=["good", "bad"])
def test_the_token_of_a_model_is_written_nowhere(bed: Bed, tmp_path: Path, content: dict[str, str]) -> None:
    namespace = bed.namespace()
    bed.cluster.apply(secret("hf", namespace, **content))
    bed.order("chat", namespace, planned=plan(volume=VOLUME), model=GATED)
    done = start(bed, tmp_path)
    assert done.returncode == 0
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    kinds = "statefulset,service,resourceclaimtemplate,controllerrevision,event,inferenceservice"
    written += [done.stdout, done.stderr, json.dumps(bed.cluster.get(kinds, "--namespace", namespace))]
    for value in content.values():
        coded = base64.b64encode(value.encode()).decode()
        assert not [text for text in written if value in text or coded in text]


def test_an_order_deleted_while_it_is_applied_leaves_nothing(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan(volume=VOLUME, replicas=TWO), model=HUGGING_FACE)
    found = bed.snapshots()
    bed.delete("inferenceservice", "chat", namespace)
    bindings.run(orders.main, found, binding="orders")
    assert bed.get("inferenceservice", "chat", namespace) is None, "a status makes no order"
    bed.until("everything to go", lambda: not bed.names(namespace))


def test_an_order_made_again_while_the_former_is_applied_gets_nothing_of_it(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    found = bed.snapshots()
    former = bed.get("inferenceservice", "chat", namespace)["metadata"]["uid"]
    bed.delete("inferenceservice", "chat", namespace)
    bed.order("chat", namespace)
    bindings.run(orders.main, found, binding="orders")
    made = bed.get("inferenceservice", "chat", namespace)
    assert made["metadata"]["uid"] != former
    assert "status" not in made, "neither the status of the former order nor its plan"
    bed.run(later=10)
    assert bed.condition("chat", namespace, "Planned")[1] == "PlanPending"
    bed.until("the former objects to go", lambda: not bed.names(namespace))

    bed.plan("chat", namespace, plan())
    bed.run(later=60)
    assert bed.names(namespace) == ALL
    owners = bed.get("statefulset", "chat", namespace)["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in owners] == [made["metadata"]["uid"]]


def test_an_object_replaced_while_its_order_is_applied_is_left_alone(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    bed.settle()
    bed.plan("chat", namespace, plan(**SHARE))
    found = bed.snapshots()
    bed.delete("service", "chat", namespace)
    metadata = {"name": "chat", "namespace": namespace}
    spec = {"ports": [{"port": 5000}], "selector": {"app": "mine"}}
    bed.cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    before = frozen(bed.get("service", "chat", namespace))
    bindings.run(orders.main, found, binding="orders")
    assert frozen(bed.get("service", "chat", namespace)) == before
    reason, message = bed.condition("chat", namespace)[1:]
    assert (reason, message.partition(":")[0]) == ("WorkloadProgressing", "Service chat was replaced meanwhile")
    bed.run()
    assert bed.condition("chat", namespace)[1] == "NameConflict"


def test_an_api_server_that_does_not_answer_changes_nothing(bed: Bed) -> None:
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    found = bed.snapshots()
    bed.cluster.stop_apiserver()
    try:
        with pytest.raises(Unreachable):
            bindings.run(orders.main, found, binding="orders")
    finally:
        bed.cluster.start_apiserver()
    bed.until("the API server to have its orders again", lambda: lists_orders(bed))
    bed.run()
    assert bed.names(namespace) == ALL


def test_switching_the_module_off_and_on(bed: Bed) -> None:
    """Workloads go in every namespace; orders, tokens and volumes stay, and so does what is not ours."""
    first, second = bed.namespace(), bed.namespace()
    bed.order("chat", first, planned=plan(volume={"size": "16Gi"}, replicas=TWO), model=HUGGING_FACE)
    bed.order("search", second, planned=plan())
    bed.settle()
    volumes = {"PersistentVolumeClaim/storage-chat-0", "PersistentVolumeClaim/storage-chat-1"}
    bed.until("volume claims", lambda: volumes <= bed.names(first))
    bed.cluster.apply({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "mine", "namespace": first},
        "spec": {"ports": [{"port": 5000}], "selector": {"app": "mine"}},
    })  # fmt: skip
    token = bed.get("secret", "chat-token", first)["data"]

    bindings.run(disable.main, binding="onStartup")
    assert "StatefulSet/chat" in bed.names(first), "only the module's removal removes anything"
    out = bindings.run(disable.main, binding="afterDeleteHelm")
    assert bed.names(first) == {"Secret/chat-token", "Service/mine", *volumes}
    assert bed.names(second) == {"Secret/search-token"}
    assert out.metrics.data == [
        {"action": "expire", "group": "ai_inference_orders"},
        {"action": "expire", "group": "ai_inference_devices"},
    ]
    assert release.remove_workloads() == 0, "it can be called again"

    bed.settle(later=60)
    assert bed.names(first) == {*ALL, "PodDisruptionBudget/chat", "Service/mine", *volumes}
    assert bed.get("secret", "chat-token", first)["data"] == token
    assert bed.names(second) >= {"StatefulSet/search", "Service/search"}


def test_workloads_are_removed_also_when_the_kinds_of_the_module_are_gone(bed: Bed) -> None:
    """The last test of this file: it takes the CRDs away."""
    namespace = bed.namespace()
    bed.order("chat", namespace, planned=plan())
    bed.settle()
    workload = bed.get("statefulset", "chat", namespace)
    bed.cluster.kubectl("delete", "crd", "inferenceservices.ai.deckhouse.io", "inferenceserviceclasses.ai.deckhouse.io")
    bed.until("garbage collection", lambda: bed.get("statefulset", "chat", namespace) is None)
    for key in ("uid", "resourceVersion", "ownerReferences", "managedFields"):
        workload["metadata"].pop(key)
    bed.cluster.apply(workload)
    assert release.remove_workloads() == 1
    assert "StatefulSet/chat" not in bed.names(namespace)
