# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The whole chain on one cluster: devices, the module in addon-operator, the planner with the rendered rights, orders.

A `Scene` asks the cluster and waits; it never decides and never repairs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import yaml
from testbed import devices
from testbed.cluster import Cluster
from testbed.operator import AddonOperator
from testbed.planner_process import PlannerProcess
from testbed.process import free_port, until

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"
CATALOG = REPOSITORY / "tests" / "fixtures" / "crds" / "ai-models.yaml"
MANAGED = "ai-inference.deckhouse.io/managed=true"
OF_ORDER = "ai-inference.deckhouse.io/inference-service"


class Scene:
    """A cluster with the module in it. `catalog`: the kinds of ai-models are served, with the examples' models."""

    def __init__(self, cluster: Cluster, *, catalog: bool = True, examples: bool = True) -> None:
        self.cluster = cluster
        self.catalog = catalog
        self.examples = examples
        self.operator = AddonOperator(cluster)
        port = free_port()
        self.planner = PlannerProcess(
            cluster, arguments=("--listen", f"127.0.0.1:{port}"), ready_url=f"http://127.0.0.1:{port}/readyz"
        )
        self.planner_url = f"http://127.0.0.1:{port}"

    def start(self) -> Self:
        devices.storage(self.cluster)
        if self.catalog:
            self.cluster.apply(CATALOG.read_text())
            self.cluster.wait("crd/clustermodels.ai.deckhouse.io", "--for=condition=Established")
            self.cluster.wait("crd/models.ai.deckhouse.io", "--for=condition=Established")
        if self.examples:
            devices.load(
                self.cluster,
                *(EXAMPLES / "cluster" / f"{name}.yaml" for name in ("nodes", "resourceslices", "deviceclasses")),
            )
            self.with_status(EXAMPLES / "cluster" / "resourceclaims.yaml")
            if self.catalog:
                self.with_status(EXAMPLES / "cluster" / "catalog.yaml")
        self.operator.start().wait_ready()
        self.planner.start().wait_ready()
        return self

    def stop(self) -> None:
        self.planner.kill9()
        self.operator.remove()

    # Making things

    def namespaces(self, *names: str) -> None:
        self.cluster.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names))

    def with_status(self, file: Path) -> None:
        """Create the objects of a dump with their status, as their controllers would have left them."""
        for item in objects(file):
            if namespace := item["metadata"].get("namespace"):
                self.namespaces(namespace)
            item["metadata"].pop("uid", None)
            self.cluster.apply({**{k: v for k, v in item.items() if k != "status"}, "spec": item.get("spec", {})})
            if status := item.get("status"):
                name = item["metadata"]["name"]
                place = ["--namespace", item["metadata"]["namespace"]] if item["metadata"].get("namespace") else []
                self.cluster.kubectl(
                    "patch", resource_of(item), name, *place, "--subresource=status", "--type=merge",
                    "-p", json.dumps({"status": status}),
                )  # fmt: skip

    def order(self, namespace: str, name: str, *, service_class: str = "default-llm", model: str = "Qwen/Qwen3-0.6B",
              device_classes: Sequence[str] = ()) -> None:  # fmt: skip
        """Create a Hugging Face order."""
        self.cluster.apply(hugging_face(namespace, name, service_class, model, device_classes))

    def delete_orders(self, *namespaces: str) -> None:
        """Delete all orders of the namespaces and wait until nothing of them is left."""
        for namespace in namespaces:
            self.cluster.kubectl("delete", "inferenceservices", "--all", "--namespace", namespace)
        for namespace in namespaces:
            self.until_gone(namespace)

    def until_gone(self, namespace: str, *, order: str | None = None) -> None:
        """Wait until nothing of the order, or of any order of the namespace, is left."""
        until(f"nothing left in {namespace}", lambda: not self.workload(namespace, order=order), timeout=60)

    # Seeing things

    def status(self, namespace: str, name: str) -> dict[str, Any]:
        found = self.cluster.get("inferenceservice", name, "--namespace", namespace)
        return dict(found.get("status", {})) if found else {}

    def condition(self, namespace: str, name: str, kind: str) -> dict[str, Any]:
        for condition in self.status(namespace, name).get("conditions", []):
            if condition["type"] == kind:
                return dict(condition)
        return {}

    def until_reason(self, namespace: str, name: str, kind: str, reason: str, *, timeout: float = 60) -> dict[str, Any]:
        """Wait until the order's condition has the reason; the condition."""

        def look() -> dict[str, Any] | None:
            condition = self.condition(namespace, name, kind)
            return condition if condition.get("reason") == reason else None

        try:
            return until(f"{namespace}/{name} {kind}={reason}", look, timeout=timeout)
        except Exception as error:
            raise AssertionError(f"{error}\n{json.dumps(self.status(namespace, name), indent=1)}") from error

    def until_ready(self, namespace: str, name: str, *, timeout: float = 60) -> dict[str, Any]:
        self.until_reason(namespace, name, "Ready", "Ready", timeout=timeout)
        return self.status(namespace, name)

    def workload(self, namespace: str, *, order: str | None = None) -> list[str]:
        """`kind/name` of everything that carries our label; Secrets and volume claims are not counted."""
        label = MANAGED if order is None else f"{OF_ORDER}={order}"
        found = self.cluster.get(
            "statefulsets,services,resourceclaimtemplates,poddisruptionbudgets,pods,resourceclaims",
            "--namespace", namespace, "--selector", label,
        )  # fmt: skip
        return sorted(f"{item['kind']}/{item['metadata']['name']}" for item in (found or {"items": []})["items"])

    def claims(self, namespace: str, order: str) -> list[dict[str, Any]]:
        """The order's claims that the scheduler allocated."""
        found = self.cluster.get("resourceclaims", "--namespace", namespace, "--selector", f"{OF_ORDER}={order}")
        return [item for item in found["items"] if item.get("status", {}).get("allocation")]

    def until_allocated(self, namespace: str, order: str, *, timeout: float = 60) -> list[dict[str, Any]]:
        return until(
            f"claims of {namespace}/{order} allocated", lambda: self.claims(namespace, order) or None, timeout=timeout
        )

    def pods(self, namespace: str, order: str) -> list[dict[str, Any]]:
        found = self.cluster.get("pods", "--namespace", namespace, "--selector", f"{OF_ORDER}={order}")
        return list(found["items"])


def hugging_face(
    namespace: str, name: str, service_class: str = "default-llm", model: str = "Qwen/Qwen3-0.6B",
    device_classes: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """An order of a Hugging Face model."""
    spec: dict[str, Any] = {
        "inferenceServiceClassName": service_class,
        "model": {"src": "HuggingFace", "ref": {"name": model}},
    }
    if device_classes:
        spec["resources"] = {"accelerator": {"deviceClasses": list(device_classes)}}
    return {
        "apiVersion": "ai.deckhouse.io/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def objects(file: Path) -> list[dict[str, Any]]:
    """The objects of a file, lists unpacked."""
    found: list[dict[str, Any]] = []
    for document in yaml.safe_load_all(file.read_text()):
        if document:
            found.extend(document["items"] if document["kind"] == "List" else [document])
    return found


def resource_of(item: Mapping[str, Any]) -> str:
    """The plural that kubectl takes for the kinds of our dumps."""
    return {
        "ResourceClaim": "resourceclaims.resource.k8s.io",
        "Model": "models.ai.deckhouse.io",
        "ClusterModel": "clustermodels.ai.deckhouse.io",
    }[item["kind"]]


def results(claims: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The devices that the scheduler allocated, in the claims' order."""
    return [result for claim in claims for result in claim["status"]["allocation"]["devices"]["results"]]


@contextmanager
def running(cluster: Cluster, *, catalog: bool = True, examples: bool = True) -> Iterator[Scene]:
    """A scene that is stopped at the end, whatever happened."""
    scene = Scene(cluster, catalog=catalog, examples=examples)
    try:
        yield scene.start()
    finally:
        scene.stop()
