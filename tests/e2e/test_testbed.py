# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The test bed is what it claims to be: real parts of the versions named, working together, gone after the run."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed import AddonOperator, Cluster, build, devices
from testbed.cluster import KubectlError
from testbed.process import until

TOOLS = Path(__file__).parents[2] / "tools"
Load = Callable[..., list[dict[str, Any]]]

HOOK = """#!/usr/bin/env python3
import json
from deckhouse import hook
from lib.toy import answer

CONFIG = {
    "configVersion": "v1",
    "kubernetes": [{
        "name": "orders", "group": "orders", "queue": "/modules/toy-module/orders",
        "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"toy": "order"}},
        "jqFilter": "{name: .metadata.name, text: .data.text}",
    }],
}

def main(ctx):
    ctx.values["toyModule"]["internal"]["orders"] = answer(s["filterResult"] for s in ctx.snapshots["orders"])

if __name__ == "__main__":
    hook.run(main, config=json.dumps(CONFIG))
"""
TOY = {
    "module.yaml": "name: toy-module\nnamespace: toy\n",
    "Chart.yaml": "apiVersion: v2\nname: toy-module\nversion: 0.0.1\n",
    ".namespace": "toy\n",
    "modules-values.yaml": "toyModuleEnabled: true\n",
    "openapi/config-values.yaml": "type: object\nproperties: {}\n",
    "openapi/values.yaml": """\
x-extend: {schema: config-values.yaml}
type: object
properties:
  internal:
    type: object
    default: {}
    properties:
      orders:
        type: array
        default: []
        items: {type: object, additionalProperties: true}
""",
    "hooks/lib/__init__.py": "",
    "hooks/lib/toy.py": "def answer(orders):\n    return sorted(orders, key=lambda order: order['name'])\n",
    "hooks/orders.py": HOOK,
    "templates/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: toy}\n",
    "templates/orders.yaml": """\
{{- range .Values.toyModule.internal.orders }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .name }}-rendered, namespace: toy}
data: {text: {{ .text | quote }}}
{{- end }}
""",
    "crds/toys.yaml": """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Toy, plural: toys, singular: toy}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
""",
}


@pytest.fixture(scope="module")
def toy(own_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AddonOperator]:
    source = tmp_path_factory.mktemp("toy-module")
    for name, text in TOY.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (source / "hooks" / "orders.py").chmod(0o755)
    with AddonOperator(own_cluster, source=source) as operator:
        yield operator


def claim_template(name: str, device_class: str, capacity: dict[str, str] | None = None) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": device_class}
    if capacity:
        exactly["capacity"] = {"requests": capacity}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def stateful_set(name: str, template: str, *, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": "example.com/none", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "resourceClaims": claims},
            },
        },
    }


def run(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    cluster.apply(*({**thing, "metadata": {**thing["metadata"], "namespace": namespace}} for thing in objects))


def allocated(cluster: Cluster, namespace: str) -> list[tuple[str, str, str]]:
    """Driver, pool and device of every claim of the namespace, sorted."""
    return sorted(
        (result["driver"], result["pool"], result["device"])
        for claim in cluster.get("resourceclaims", "-n", namespace)["items"]
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    )


def test_the_parts_are_of_the_versions_named(cluster: Cluster) -> None:
    programs = build.ensure(build.KUBERNETES["1.37"])
    said = {
        name: subprocess.run([programs / name, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    }
    assert cluster.version() == "v1.37.2"
    assert set(said.values()) == {"Kubernetes v1.37.2"}
    client = json.loads(cluster.kubectl("version", "--client", "-o", "json"))
    assert client["clientVersion"]["gitVersion"] == "v1.37.2"


def test_a_stateful_set_with_a_claim_template_runs_on_a_device_the_scheduler_allocated(
    cluster: Cluster, namespace: str, load_devices: Load
) -> None:
    load_devices("05")
    run(cluster, namespace, claim_template("whole", "dh-rtx-3090-physical"), stateful_set("chat", "whole"))
    cluster.wait("statefulset/chat", "--for=jsonpath={.status.readyReplicas}=1", "-n", namespace)
    pod = cluster.get("pod", "chat-0", "-n", namespace)
    assert pod["spec"]["nodeName"] == "node-dk-a"
    assert pod["status"]["phase"] == "Running"
    (place,) = allocated(cluster, namespace)
    assert place[:2] == ("gpu.deckhouse.io", "gpus/node-dk-a")


def test_two_shares_sit_on_one_device_and_the_third_on_the_next(
    cluster: Cluster, namespace: str, load_devices: Load
) -> None:
    load_devices("05")
    share = {"memory": "10Gi", "sharePercent": "40"}
    run(
        cluster,
        namespace,
        claim_template("share", "dh-rtx-3090-physical", share),
        stateful_set("chat", "share", replicas=3),
    )
    cluster.wait("statefulset/chat", "--for=jsonpath={.status.readyReplicas}=3", "-n", namespace)
    places = allocated(cluster, namespace)
    assert len(places) == 3
    assert sorted(places.count(place) for place in set(places)) == [1, 2]
    consumed = [
        result["consumedCapacity"]
        for claim in cluster.get("resourceclaims", "-n", namespace)["items"]
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert consumed == [share] * 3


def test_a_partition_is_allocated(cluster: Cluster, namespace: str, load_devices: Load) -> None:
    load_devices("05")
    run(cluster, namespace, claim_template("part", "dh-a30-mig-2g12"), stateful_set("chat", "part", replicas=2))
    cluster.wait("statefulset/chat", "--for=jsonpath={.status.readyReplicas}=2", "-n", namespace)
    places = allocated(cluster, namespace)
    assert len(set(places)) == 2
    assert all(device.startswith("mig-") for _, _, device in places)


def test_a_volume_claim_is_bound_at_once(cluster: Cluster, namespace: str) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "weights"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}},
    }
    run(cluster, namespace, claim)
    cluster.wait("pvc/weights", "--for=jsonpath={.status.phase}=Bound", "-n", namespace)


@pytest.mark.parametrize("fixture", devices.LAYOUT_1_34)
def test_1_37_refuses_slices_of_the_1_34_layout(cluster: Cluster, fixture: str) -> None:
    made = devices.objects(devices.FIXTURES / fixture)
    (piece,) = (thing for thing in made if thing["kind"] == "ResourceSlice")
    with pytest.raises(KubectlError, match="only one of `sharedCounters` or `devices` is allowed"):
        cluster.apply(piece)


@pytest.mark.parametrize(
    "fixture", [path.name for path in sorted(devices.FIXTURES.glob("*.yaml")) if path.name not in devices.LAYOUT_1_34]
)
def test_1_37_takes_every_other_fixture(cluster: Cluster, fixture: str) -> None:
    cluster.kubectl("create", "--dry-run=server", "-f", str(devices.FIXTURES / fixture))


def test_the_floor_keeps_counters_only_with_its_gate(floor_cluster: Cluster) -> None:
    assert floor_cluster.version() == "v1.34.4"
    with devices.loaded(floor_cluster, devices.FIXTURES / devices.LAYOUT_1_34[0]) as made:
        (name,) = (thing["metadata"]["name"] for thing in made if thing["kind"] == "ResourceSlice")
        stored = floor_cluster.get("resourceslice", name)["spec"]
    assert ("sharedCounters" in stored) == bool(floor_cluster.feature_gates)


def test_addon_operator_enables_a_module_and_its_hook_renders(own_cluster: Cluster, toy: AddonOperator) -> None:
    own_cluster.kubectl("create", "configmap", "one", "-n", "default", "--from-literal=text=Привет {{ }}")
    own_cluster.kubectl("label", "configmap", "one", "-n", "default", "toy=order")
    rendered = until("the rendered object", lambda: own_cluster.get("configmap", "one-rendered", "-n", "toy"))
    assert rendered["data"] == {"text": "Привет {{ }}"}
    assert rendered["metadata"]["labels"]["heritage"] == "addon-operator"
    assert toy.values()["internal"] == {"orders": [{"name": "one", "text": "Привет {{ }}"}]}
    assert own_cluster.get("crd", "toys.example.com") is not None
    assert toy.enabled_modules() == ["toy-module"]


def test_the_module_is_switched_off_and_on(own_cluster: Cluster, toy: AddonOperator) -> None:
    toy.disable()
    until("the namespace to go", lambda: own_cluster.get("namespace", "toy") is None)
    toy.enable()
    until("the namespace to come back", lambda: own_cluster.get("namespace", "toy"))


def test_a_killed_operator_comes_back_on_the_same_files(own_cluster: Cluster, toy: AddonOperator) -> None:
    first = toy.pid
    toy.kill9()
    assert not toy.running
    toy.start().wait_ready()
    assert toy.pid != first
    assert own_cluster.get("namespace", "toy") is not None


def test_a_restart_of_the_api_server_is_survived(own_cluster: Cluster, toy: AddonOperator) -> None:
    before = own_cluster.pids
    own_cluster.restart_apiserver()
    after = own_cluster.pids
    assert {name for name in before if before[name] != after[name]} == {"kube-apiserver"}
    own_cluster.kubectl("create", "configmap", "two", "-n", "default", "--from-literal=text=2")
    own_cluster.kubectl("label", "configmap", "two", "-n", "default", "toy=order")
    until("the operator to see a change", lambda: own_cluster.get("configmap", "two-rendered", "-n", "toy"))
    with devices.loaded(own_cluster, "05"):
        run(own_cluster, "default", claim_template("whole", "dh-a30-physical"), stateful_set("after", "whole"))
        own_cluster.wait("statefulset/after", "--for=jsonpath={.status.readyReplicas}=1", "-n", "default")
    assert own_cluster.ended() == []


START = """
import time
from testbed import Cluster
cluster = Cluster().start()
print(*cluster.pids.values(), cluster.directory, flush=True)
time.sleep(600)
"""


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.testbed
def test_everything_dies_with_a_killed_run_and_the_next_one_tidies_up() -> None:
    environment = {**os.environ, "PYTHONPATH": str(TOOLS)}
    with subprocess.Popen([sys.executable, "-c", START], env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        *numbers, directory = child.stdout.readline().split()
        pids = [int(number) for number in numbers]
        assert len(alive(pids)) == 5
        child.send_signal(signal.SIGKILL)
    until("the programs to die", lambda: not alive(pids), timeout=10)
    assert Path(directory).exists()
    with Cluster(kwok=False):
        assert not Path(directory).exists()


@pytest.mark.testbed
def test_up_tells_where_the_kubeconfig_is_and_leaves_nothing_after_ctrl_c() -> None:
    command = [sys.executable, "-u", "-m", "testbed", "up", "--no-operator", "--fixture", "01"]
    environment = {**os.environ, "PYTHONPATH": str(TOOLS)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said: list[str] = []
        while not said or not said[-1].startswith("Ctrl-C"):
            said.append(child.stdout.readline())
            assert child.poll() is None
        (config,) = (Path(line.split("=")[1].strip()) for line in said if "export KUBECONFIG=" in line)
        assert config.exists()
        child.send_signal(signal.SIGINT)
        try:
            assert child.wait(30) == 0
        finally:
            child.kill()
    assert not config.parent.exists()


@pytest.mark.testbed
def test_a_stopped_cluster_leaves_neither_processes_nor_files() -> None:
    with Cluster(kwok=False) as made:
        pids, directory = list(made.pids.values()), made.directory
        assert len(alive(pids)) == 4
    assert alive(pids) == []
    assert not directory.exists()
    started = time.monotonic()
    made.stop()
    assert time.monotonic() - started < 1
