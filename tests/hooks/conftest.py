# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A real API server without an operator: tests run the hook, as the operator would, on snapshots of live objects."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import orders
import pytest
from lib.ai_inference import attempts, notes, settled
from lib.ai_inference.api import Api
from testbed import Cluster

from tests.hooks import bindings, objects

_numbers = itertools.count(1)
CRDS = sorted(path for path in (bindings.ROOT / "crds").glob("*.yaml") if not path.name.startswith("doc-"))


class Bed:
    """The module's API on a control plane, and what a test does with it: make orders, plan them, run the hook, look."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.api = Api(1)

    def namespace(self) -> str:
        name = f"hooks-{next(_numbers)}"
        self.cluster.kubectl("create", "namespace", name)
        return name

    def service_class(self, name: str = "default", **spec: Any) -> None:
        made = objects.service_class(name, **spec)
        made["metadata"] = {"name": name}
        self.cluster.apply(made)

    def order(self, name: str, namespace: str, *, planned: Mapping[str, Any] | None = None, **changes: Any) -> None:
        """Make or change an order, and answer it as the planner does: for the generation that stands then."""
        made = objects.order(name, namespace=namespace, **changes)
        made["metadata"] = {"name": name, "namespace": namespace}
        self.cluster.apply(made)
        if planned is not None:
            self.plan(name, namespace, planned)

    def plan(self, name: str, namespace: str, planned: Mapping[str, Any]) -> None:
        generation = self.get("inferenceservice", name, namespace)["metadata"]["generation"]
        body = {
            "apiVersion": "ai.deckhouse.io/v1alpha1", "kind": "InferenceService",
            "metadata": {"name": name, "namespace": namespace},
            "status": {"plan": {**planned, "observedGeneration": generation}},
        }  # fmt: skip
        self.cluster.kubectl(
            "apply",
            "--server-side",
            "--subresource=status",
            "--field-manager=ai-inference-planner",
            "-f",
            "-",
            input=body,
        )

    def snapshots(self) -> bindings.Snapshots:
        return bindings.live(orders.CONFIG, self.api)

    def run(self, *, later: float = 0, snapshots: bindings.Snapshots | None = None) -> Any:
        """One run of the hook, `later` seconds from now by its own clock, on what is there or was there."""
        return self._run(self.snapshots() if snapshots is None else snapshots, later)

    def settle(self, *, later: float = 0) -> None:
        """Run until there is nothing new to see, as events of what the hook itself wrote make the operator do."""
        before: bindings.Snapshots = {}
        for _ in range(10):
            found = self.snapshots()
            if found == before:
                return
            self._run(found, later)
            before = found
            time.sleep(0.3)

    def _run(self, found: bindings.Snapshots, later: float) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            now = time.time()
            patch.setattr("orders.time.time", lambda: now + later)
            return bindings.run(orders.main, found, binding="orders")

    def get(self, kind: str, name: str, namespace: str) -> Any:
        return self.cluster.get(kind, name, "--namespace", namespace, "--show-managed-fields")

    def delete(self, kind: str, name: str, namespace: str, *flags: str) -> None:
        self.cluster.kubectl("delete", kind, name, "--namespace", namespace, *flags)

    def names(self, namespace: str) -> set[str]:
        """Kind and name of everything that stands for orders in the namespace, claim templates without their hash."""
        kinds = "statefulset,service,resourceclaimtemplate,poddisruptionbudget,secret,persistentvolumeclaim"
        found = self.cluster.get(kinds, "--namespace", namespace)["items"]
        return {
            f"{item['kind']}/{item['metadata']['name']}"
            if item["kind"] != "ResourceClaimTemplate"
            else f"ResourceClaimTemplate/{item['metadata']['name'].rsplit('-', 1)[0]}"
            for item in found
            if not item["metadata"].get("deletionTimestamp")
        }

    def condition(self, name: str, namespace: str, kind: str = "WorkloadReady") -> tuple[str, str, str]:
        status = self.get("inferenceservice", name, namespace)["status"]
        (found,) = [entry for entry in status["conditions"] if entry["type"] == kind]
        return found["status"], found["reason"], found["message"]

    def versions(self, namespace: str) -> dict[str, str]:
        kinds = "statefulset,service,resourceclaimtemplate,poddisruptionbudget,secret,inferenceservice"
        return {
            f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for item in self.cluster.get(kinds, "--namespace", namespace)["items"]
        }

    def events(self, namespace: str) -> list[tuple[str, str, str]]:
        found = self.cluster.get("events", "--namespace", namespace)["items"]
        return [
            (item["involvedObject"]["name"], item["reason"], item["message"])
            for item in found
            if item.get("source", {}).get("component") == "ai-inference"
        ]

    def until(self, what: str, holds: Any, *, seconds: float = 60) -> None:
        """Wait for what others do. The garbage collector alone takes half a minute to notice a kind that is new."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, f"waited {seconds:.0f} s for {what}"
            time.sleep(0.25)


@pytest.fixture(scope="module")
def bed(own_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A control plane with the module's CRDs and the class `default`; the hooks find it by KUBECONFIG."""
    for path in CRDS:
        own_cluster.kubectl("apply", "--server-side", "-f", str(path))
    own_cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
    contexts = tmp_path_factory.mktemp("operator") / "context.json"
    contexts.write_text(json.dumps([]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(own_cluster.kubeconfig))
        patch.setenv("BINDING_CONTEXT_PATH", str(contexts))
        made = Bed(own_cluster)
        made.service_class()
        yield made


@pytest.fixture(autouse=True)
def forgotten(request: pytest.FixtureRequest) -> None:
    """Each test starts without the notes of earlier runs."""
    if "bed" in request.fixturenames:
        for name in (attempts.NOTE, settled.NOTE):
            notes.file(name).unlink(missing_ok=True)
