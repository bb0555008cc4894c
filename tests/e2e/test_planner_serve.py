# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The serving part of the planner against a real API server, with the rights that the module renders and no others.

The decision is `small_planner`'s, so that what is seen here is watching, leading and writing, not placement.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self

import pytest
import yaml
from planner.kube import resources
from planner.kube.client import connect
from planner.kube.view import View
from planner.kube.writer import Writer
from testbed import Cluster, PlannerProcess, devices
from testbed.process import Process, free_port, until

from tests.render import module

pytestmark = pytest.mark.testbed

ROOT: Final = Path(__file__).resolve().parents[2]
NAMESPACE: Final = "d8-ai-inference"
RIGHTS: Final = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
DEVICE_CLASS: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "a-class"},
    "spec": {},
}
SERVICE_CLASS: Final = {
    "apiVersion": "ai.deckhouse.io/v1alpha1",
    "kind": "InferenceServiceClass",
    "metadata": {"name": "a-service-class"},
    "spec": {"modelPolicy": {"allowedEndpointTypes": ["Chat"]}},
}


def rights() -> list[module.Manifest]:
    """The planner's account and its rights as the module renders them."""
    return [
        item
        for item in module.render(module.values())
        if item["kind"] in RIGHTS and "authz" not in item["metadata"]["name"]
    ]


def order(name: str, namespace: str = "team") -> dict[str, Any]:
    return {
        "apiVersion": "ai.deckhouse.io/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "inferenceServiceClassName": "a-service-class",
            "model": {"src": "HuggingFace", "ref": {"name": "acme/tiny-chat"}},
        },
    }


class Planner:
    """One planner process with the rendered account's token."""

    def __init__(self, cluster: Cluster, identity: str = "planner-0", **settings: Any) -> None:
        self.cluster, self.identity = cluster, identity
        self.port = free_port()
        folder = cluster.directory / f"serve-{identity}-{self.port}"
        folder.mkdir()
        self.replays = folder / "replays"
        token = cluster.token(NAMESPACE, "resource-planner")
        kubeconfig = cluster.token_kubeconfig(folder / "kubeconfig", token)
        given = {
            "identity": identity,
            "listen": f"127.0.0.1:{self.port}",
            "replays": str(self.replays),
            "grace_seconds": 2.0,
            "lease_seconds": 3.0,
            "renew_deadline_seconds": 2.0,
            "renew_period_seconds": 0.5,
        }
        self.process = Process(
            f"planner {identity}",
            [sys.executable, "-m", "tests.e2e.small_planner"],
            log=cluster.logs / f"serve-{identity}-{self.port}.log",
            cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "images" / "resource-planner")]),
                "HOME": str(folder),
                "KUBECONFIG": str(kubeconfig),
                "SETTINGS": json.dumps({**given, **settings}),
            },
        )

    def __enter__(self) -> Self:
        self.process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill9()

    def ask(self, path: str, body: Any = None) -> tuple[int, str]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data=None if body is None else json.dumps(body).encode()
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (urllib.error.URLError, OSError) as error:
            return 0, str(error)

    def ready(self) -> Self:
        until("the planner to be ready", lambda: self.ask("/readyz")[0] == 200, process=self.process)
        return self

    def metric(self, line: str) -> float:
        """The value of one series; absent counts as 0."""
        for text in self.ask("/metrics")[1].splitlines():
            if text.startswith(line + " "):
                return float(text.rsplit(" ", 1)[1])
        return 0.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A control plane of this file: its API server is killed and its rights are changed."""
    with Cluster() as made:
        for path in ("inferenceservice", "inferenceserviceclass"):
            made.apply((ROOT / "crds" / f"{path}.yaml").read_text())
        for path in ("inferenceservice", "inferenceserviceclass"):
            name = yaml.safe_load((ROOT / "crds" / f"{path}.yaml").read_text())["metadata"]["name"]
            made.wait(f"crd/{name}", "--for=condition=Established")
        made.apply(*rights())
        made.kubectl("create", "namespace", "team")
        yield made


@pytest.fixture
def world(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with one class of either kind and no orders."""
    cluster.apply(DEVICE_CLASS, SERVICE_CLASS)
    yield cluster
    cluster.apply(*rights())
    cluster.kubectl("delete", "inferenceservices", "--all", "-A")
    cluster.kubectl("delete", "lease", "--all", "-n", NAMESPACE)
    cluster.kubectl("delete", "configmap", "resource-planner-classes", "-n", NAMESPACE, "--ignore-not-found")
    cluster.kubectl("delete", "crd", "models.ai.deckhouse.io", "clustermodels.ai.deckhouse.io", "--ignore-not-found")


def plan(cluster: Cluster, name: str) -> dict[str, Any]:
    found = cluster.get("inferenceservice", name, "-n", "team")
    return dict(((found or {}).get("status") or {}).get("plan") or {})


def planned(cluster: Cluster, name: str, decision: str = "Placed", timeout: float = 15) -> dict[str, Any]:
    until(f"{name} to be {decision}", lambda: plan(cluster, name).get("decision") == decision, timeout=timeout)
    return plan(cluster, name)


def unchanged(cluster: Cluster, seconds: float) -> bool:
    """Whether no order is written for so long."""
    versions = _versions(cluster)
    time.sleep(seconds)
    return _versions(cluster) == versions


def _versions(cluster: Cluster) -> dict[str, str]:
    return {
        i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in cluster.get("inferenceservices", "-A")["items"]
    }


def test_an_order_gets_its_plan_and_nothing_else_of_it_is_touched(world: Cluster) -> None:
    world.apply(order("first"))
    before = world.get("inferenceservice", "first", "-n", "team")
    with Planner(world) as planner:
        assert planned(world, "first") == {
            "observedGeneration": 1,
            "decision": "Placed",
            "reason": "LaunchPlanCalculated",
            "message": "version (1, 37)",
            "deviceClassName": "a-class",
        }
        after = world.get("inferenceservice", "first", "-n", "team", "--show-managed-fields")
        assert list(after["status"]) == ["plan"]
        assert after["spec"] == before["spec"]
        owned = [entry for entry in after["metadata"]["managedFields"] if entry["manager"] == "ai-inference-planner"]
        assert [(e["operation"], e["subresource"], e["fieldsV1"]) for e in owned] == [
            ("Apply", "status", {"f:status": {"f:plan": {}}})
        ]
        assert planner.ready().ask("/healthz") == (200, "ok")
        assert planner.metric('ai_inference_planner_orders{decision="Placed",reason="LaunchPlanCalculated"}') == 1
        assert planner.metric("ai_inference_planner_leader") == 1


def test_what_others_write_into_the_status_stays(world: Cluster) -> None:
    world.apply(order("first"))
    with Planner(world):
        planned(world, "first")
        world.kubectl(
            "patch", "inferenceservice", "first", "-n", "team", "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": {"phase": "Pending", "observedGeneration": 1}}),
        )  # fmt: skip
        world.kubectl("delete", "deviceclass", "a-class")
        planned(world, "first", "Refused")
    status = world.get("inferenceservice", "first", "-n", "team")["status"]
    assert (status["phase"], status["observedGeneration"]) == ("Pending", 1)
    assert "deviceClassName" not in status["plan"]


def test_nothing_is_written_while_nothing_changes(world: Cluster) -> None:
    world.apply(*(order(f"order-{number}") for number in range(10)))
    with Planner(world) as planner:
        for number in range(10):
            planned(world, f"order-{number}")
        plans = planner.metric("ai_inference_planner_plan_duration_seconds_count")
        assert unchanged(world, 3)
        assert planner.metric("ai_inference_planner_writes_total") == 10
        assert planner.metric("ai_inference_planner_plan_duration_seconds_count") == plans
        world.kubectl("annotate", "inferenceservice", "order-3", "-n", "team", "note=one")
        world.kubectl("label", "node", "--all", "some=label")
        assert unchanged(world, 1)


def test_a_plan_that_somebody_overwrote_comes_back(world: Cluster) -> None:
    world.apply(order("first"))
    with Planner(world):
        wanted = planned(world, "first")
        world.kubectl(
            "patch", "inferenceservice", "first", "-n", "team", "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": {"plan": {"message": "mine"}}}),
        )  # fmt: skip
        until("the plan to come back", lambda: plan(world, "first") == wanted)


def test_a_plan_with_a_field_that_the_schema_does_not_know_is_refused_and_counted(world: Cluster) -> None:
    world.apply(order("odd"), order("even"))
    with Planner(world) as planner:
        planned(world, "even")
        errors = 'ai_inference_planner_write_errors_total{reason="500",target="order"}'
        until("the refusal to be counted", lambda: planner.metric(errors) >= 1)
        time.sleep(3)
        assert planner.metric(errors) <= 5
        assert ".status.plan.strange: field not declared in schema" in planner.process.tail(50)
        assert plan(world, "odd") == {}


def test_an_order_whose_plan_is_refused_holds_up_nobody_and_is_tried_again(world: Cluster) -> None:
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-plans"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["ai.deckhouse.io"],
                        "apiVersions": ["v1alpha1"],
                        "operations": ["UPDATE"],
                        "resources": ["inferenceservices/status"],
                    }
                ]
            },
            "validations": [{"expression": "object.metadata.name != 'refused'"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-plans"},
        "spec": {"policyName": "no-plans", "validationActions": ["Deny"]},
    }
    world.apply(policy, binding)
    try:
        time.sleep(2)  # a policy is in force shortly after it was made
        world.apply(order("refused"), *(order(f"order-{number}") for number in range(5)))
        with Planner(world) as planner:
            for number in range(5):
                planned(world, f"order-{number}", timeout=5)
            until(
                "the refusal to be counted",
                lambda: planner.metric('ai_inference_planner_write_errors_total{reason="Invalid",target="order"}') >= 2,
            )
            assert plan(world, "refused") == {}
            world.kubectl("delete", "validatingadmissionpolicybinding", "no-plans")
            planned(world, "refused")
    finally:
        world.kubectl("delete", "validatingadmissionpolicybinding", "no-plans", "--ignore-not-found")
        world.kubectl("delete", "validatingadmissionpolicy", "no-plans")


def test_an_order_made_again_under_its_name_gets_its_own_plan(world: Cluster) -> None:
    world.apply(order("first"))
    with Planner(world):
        planned(world, "first")
        for _ in range(3):
            old = world.get("inferenceservice", "first", "-n", "team")["metadata"]["uid"]
            world.kubectl("delete", "inferenceservice", "first", "-n", "team")
            world.apply(order("first"))
            planned(world, "first")
            assert world.get("inferenceservice", "first", "-n", "team")["metadata"]["uid"] != old


def test_a_plan_of_a_former_order_is_not_written_to_the_one_made_again(world: Cluster) -> None:
    """The writer's view lags behind; both orders are of generation 1, so that the plan alone would not tell."""
    client = connect(str(world.kubeconfig))
    view = View(resources.watched(catalog=False))
    writer = Writer(client, view, namespace=NAMESPACE, allowed=lambda: True)
    found = {"observedGeneration": 1, "decision": "Placed", "reason": "LaunchPlanCalculated", "message": "former"}
    world.apply(order("again"))
    view.put(resources.ORDERS, world.get("inferenceservice", "again", "-n", "team"), resources.OWN)
    world.kubectl("delete", "inferenceservice", "again", "-n", "team")
    world.apply(order("again"))
    written = writer.write({"team/again": found})
    assert (written.written, written.failed) == (0, 0)
    assert plan(world, "again") == {}

    view.put(resources.ORDERS, world.get("inferenceservice", "again", "-n", "team"), resources.OWN)
    assert writer.write({"team/again": found}).written == 1
    assert plan(world, "again") == found
    writer.close()


def test_class_verdicts_stand_in_one_config_map(world: Cluster) -> None:
    with Planner(world):
        until("the ConfigMap", lambda: world.get("configmap", "resource-planner-classes", "-n", NAMESPACE))
        found = world.get("configmap", "resource-planner-classes", "-n", NAMESPACE)
        assert {key: json.loads(value) for key, value in found["data"].items()} == {
            "a-service-class.json": {
                "observedGeneration": world.get("inferenceserviceclass", "a-service-class")["metadata"]["generation"],
                "validated": {"status": "True", "reason": "Validated", "message": ""},
                "ready": {"status": "True", "reason": "Ready", "message": ""},
            }
        }


def test_a_restarted_api_server_costs_nothing_but_time(world: Cluster) -> None:
    world.apply(order("before"))
    with Planner(world) as planner:
        planned(world, "before")
        world.stop_apiserver()
        time.sleep(1)
        assert planner.ask("/healthz")[0] == 200
        world.start_apiserver()
        world.apply(order("after"))
        planned(world, "after", timeout=60)
        assert planner.process.running
        assert planner.ready().metric('ai_inference_planner_kind_readable{kind="InferenceService"}') == 1
        # The version that the watch stood at has expired by the restart: 410, and the kind was listed anew.
        assert planner.metric('ai_inference_planner_lists_total{kind="InferenceService"}') == 2


def test_without_the_catalog_module_orders_are_planned_and_its_kinds_are_found_when_they_come(world: Cluster) -> None:
    world.apply(order("first"))
    with Planner(world, absent_seconds=1.0) as planner:
        planned(world, "first")
        assert planner.metric('ai_inference_planner_kind_readable{kind="Model"}') == 1
        assert planner.metric('ai_inference_planner_objects{kind="Model"}') == 0
        world.apply((ROOT / "tests" / "fixtures" / "crds" / "ai-models.yaml").read_text())
        world.wait("crd/models.ai.deckhouse.io", "--for=condition=Established")
        world.apply(
            {
                "apiVersion": "ai.deckhouse.io/v1alpha1",
                "kind": "Model",
                "metadata": {"name": "tiny", "namespace": "team"},
                "spec": {"source": {"url": "https://huggingface.co/acme/tiny-chat"}},
            }
        )
        until("the model to be seen", lambda: planner.metric('ai_inference_planner_objects{kind="Model"}') == 1)
        world.kubectl("delete", "crd", "models.ai.deckhouse.io")
        world.apply(order("second"))
        planned(world, "second", timeout=30)
        until("the kind to be missed", lambda: planner.metric('ai_inference_planner_objects{kind="Model"}') == 0)


def test_a_forbidden_list_at_the_start_means_no_plan_at_all(world: Cluster) -> None:
    world.apply(order("first"), without(world, "resourceclaims"))
    with Planner(world) as planner:
        until(
            "the refusal to be told", lambda: "ResourceClaim (403" in planner.ask("/readyz")[1], process=planner.process
        )
        assert planner.ask("/readyz")[0] == 503
        assert planner.ask("/v1/capacity")[0] == 503
        assert unchanged(world, 3)
        assert plan(world, "first") == {}
        world.apply(*rights())
        planned(world, "first", timeout=45)
        planner.ready()


def test_a_right_that_goes_while_serving_makes_plans_undecidable_and_comes_back(world: Cluster) -> None:
    world.apply(order("first"))
    with Planner(world) as planner:
        planned(world, "first")
        world.apply(without(world, "resourceclaims"))
        world.restart_apiserver()  # an open watch outlives the right that opened it
        assert "ResourceClaim" in planned(world, "first", "Undecidable", timeout=60)["message"]
        assert planner.metric('ai_inference_planner_kind_readable{kind="ResourceClaim"}') == 0
        world.apply(*rights())
        planned(world, "first", timeout=60)


def test_a_killed_leader_is_followed_and_never_two_lead(world: Cluster) -> None:
    world.apply(order("first"))
    with Planner(world, "planner-0") as first:
        planned(world, "first")
        with Planner(world, "planner-1") as second:
            second.ready()
            world.apply(order("second"))
            planned(world, "second")
            assert second.metric("ai_inference_planner_leader") == 0
            assert second.metric("ai_inference_planner_writes_total") == 0
            status, text = second.ask("/v1/explain?order=team/first")
            assert (status, json.loads(text)["plan"]["decision"]) == (200, "Placed")
            first.process.kill9()
            killed = time.monotonic()
            world.apply(order("third"))
            planned(world, "third")
            assert 2.0 < time.monotonic() - killed < 8.0
            assert second.metric("ai_inference_planner_leader") == 1
            lease = world.get("lease", "resource-planner", "-n", NAMESPACE)["spec"]
            assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("planner-1", 1)


def test_a_leader_that_is_asked_to_stop_gives_the_lease_back(world: Cluster) -> None:
    world.apply(order("first"))
    with Planner(world, "planner-0") as first:
        planned(world, "first")
        with Planner(world, "planner-1", lease_seconds=30.0) as second:
            second.ready()
            first.process.stop()
            world.apply(order("second"))
            planned(world, "second", timeout=5)


def test_a_leader_that_was_frozen_ends_instead_of_writing(world: Cluster) -> None:
    import signal

    world.apply(order("first"))
    with Planner(world, "planner-0") as first:
        planned(world, "first")
        with Planner(world, "planner-1") as second:
            second.ready()
            first.process.send(signal.SIGSTOP)
            until("the second to lead", lambda: second.metric("ai_inference_planner_leader") == 1)
            world.kubectl("delete", "deviceclass", "a-class")
            planned(world, "first", "Refused")
            first.process.send(signal.SIGCONT)
            until("the first to end", lambda: not first.process.running)
            assert "ended" not in plan(world, "first").get("message", "")
            assert plan(world, "first")["decision"] == "Refused"


def test_an_error_of_the_planner_keeps_the_last_plans_and_saves_the_objects(world: Cluster) -> None:
    world.apply(order("first"))
    with Planner(world) as planner:
        standing = planned(world, "first")
        world.apply(order("crash"))
        until("the failure to be counted", lambda: planner.metric("ai_inference_planner_plan_failures_total") >= 1)
        assert plan(world, "first") == standing
        saved = json.loads(next(planner.replays.glob("*.json")).read_text())
        assert {"first", "crash"} <= {item["metadata"]["name"] for item in saved["objects"]}
        world.kubectl("delete", "inferenceservice", "crash", "-n", "team")
        world.apply(order("second"))
        planned(world, "second")
        devices = 'ai_inference_planner_devices{device_class="all",state="total"}'
        until("the capacity to follow", lambda: planner.metric(devices) == 2, process=planner.process)


def test_questions_are_answered_or_refused_in_words(world: Cluster) -> None:
    world.apply(order("first"))
    with Planner(world) as planner:
        planned(world, "first")
        planner.ready()
        assert json.loads(planner.ask("/v1/capacity")[1]) == {"deviceClasses": 1}
        assert planner.ask("/v1/explain?order=first")[0] == 400
        assert planner.ask("/v1/explain?order=team/nobody") == (
            404, '{"reason":"UnknownOrder","message":"there is no order team/nobody"}'
        )  # fmt: skip
        assert planner.ask("/v1/what-if", {"orders": []})[0] == 200
        assert planner.ask("/v1/what-if", {})[0] == 400
        assert planner.ask("/v1/what-if", [1])[0] == 400
        assert planner.ask("/v1/what-if")[0] == 405
        assert planner.ask("/v1/what-if", {"orders": "x" * (1 << 20)})[0] == 413


def test_the_rendered_deployment_plans_with_its_own_rights_and_answers_questions(
    world: Cluster, load_into: Callable[..., Any]
) -> None:
    load_into(world, "01")
    world.apply(*module.render(module.values(), kinds=()))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    placed, huge = order("placed"), order("huge")
    for item in (placed, huge):
        item["spec"]["inferenceServiceClassName"] = "default-llm"
    placed["spec"]["model"]["ref"]["name"] = "Qwen/Qwen3-0.6B"
    huge["spec"]["model"]["ref"]["name"] = "Qwen/Qwen3-235B-A22B"
    world.apply(placed, huge)
    with PlannerProcess(world, arguments=("--listen", f"127.0.0.1:{port}"), ready_url=f"{url}/readyz"):
        found = planned(world, "placed")
        assert found["servedName"] == "Qwen/Qwen3-0.6B"
        assert {device["driver"] for device in found["devices"]} == {"gpu.nvidia.com"}
        assert planned(world, "huge", "Refused")["alternatives"]
        told = asked(f"{url}/v1/explain?order=team/placed")
        assert told["plan"] == plan(world, "placed")
        assert asked(f"{url}/v1/capacity")["deviceClasses"]
        drained = asked(f"{url}/v1/what-if", {"drain": [told["seats"][0]["node"]]})
        assert drained["changed"]["team/placed"]["after"]["decision"] == "Refused"
        assert asked(f"{url}/v1/what-if", {"drain": ["nowhere"]})["reason"] == "BadQuestion"
        assert asked(f"{url}/v1/what-if", {"add": [{"kind": "Node"}]})["reason"] == "BadQuestion"
        assert asked(f"{url}/v1/what-if", {"dry": []})["message"] == "dry: one of add, remove, drain, set is expected"
        verdicts = world.get("configmap", "resource-planner-classes", "-n", NAMESPACE)["data"]
        assert json.loads(verdicts["default-llm.json"])["ready"]["status"] == "True"
        saved = world.directory / "saved.json"
        command("snapshot", "save", "--kubeconfig", str(world.kubeconfig), "-o", str(saved))
        offline = json.loads(command("plan", "-f", str(saved), "-o", "json"))["orders"]
        assert offline == {f"team/{name}": plan(world, name) for name in ("placed", "huge")}


def command(*arguments: str) -> str:
    """The planner's command line; its standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "planner", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "images" / "resource-planner")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(url: str, body: Any = None) -> Any:
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


@pytest.fixture
def load_into() -> Iterator[Callable[..., Any]]:
    """Devices of a fixture, removed with the test."""
    made: list[tuple[Cluster, list[dict[str, Any]]]] = []

    def load(cluster: Cluster, *fixtures: str) -> list[dict[str, Any]]:
        found = devices.load(cluster, *fixtures)
        made.append((cluster, found))
        return found

    yield load
    for cluster, found in made:
        devices.unload(cluster, found)


def without(cluster: Cluster, resource: str) -> dict[str, Any]:
    """The planner's cluster role without one resource."""
    role = module.one(rights(), "ClusterRole", "d8:ai-inference:resource-planner")
    rules = [{**rule, "resources": [name for name in rule["resources"] if name != resource]} for rule in role["rules"]]
    return {**role, "rules": [rule for rule in rules if rule["resources"]]}
