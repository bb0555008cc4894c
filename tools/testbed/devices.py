# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Recorded DRA objects in a real cluster: nodes the scheduler can use, resource slices, device classes.

A fixture is a file of `tests/fixtures/dra`, named by its path or by the start of its name: "05" is
`05-deckhouse-rtx3090-a30.yaml`. kwok makes the nodes Ready and heeds the size given here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from testbed.cluster import Cluster
from testbed.process import until

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures" / "dra"
NODE_SIZE: Mapping[str, str] = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110"}
LAYOUT_1_34 = ("02-nvidia-a100-mig-combined-slice-1.34.yaml", "05b-deckhouse-a30-combined-slice-1.34.yaml")
"""Slices with counters and devices in one: 1.35 and later refuse them."""
STORAGE_CLASS = "kwok-volume"
"""The class whose volumes kwok provisions and binds at once."""


def find(fixture: str | Path) -> Path:
    """The fixture's file. Raises ValueError unless exactly one file's name begins so."""
    if isinstance(fixture, Path) or "/" in fixture:
        return Path(fixture)
    found = sorted(FIXTURES.glob(f"{fixture}*.yaml"))
    exact = [path for path in found if path.name.split("-")[0] == fixture]
    if len(exact or found) != 1:
        raise ValueError(f"{fixture!r} names {len(exact or found)} files of {FIXTURES.name}: {[p.name for p in found]}")
    return (exact or found)[0]


def objects(fixture: str | Path) -> list[dict[str, Any]]:
    """The fixture's objects in the file's order, lists unpacked."""
    found: list[dict[str, Any]] = []
    for document in yaml.safe_load_all(find(fixture).read_text()):
        if document:
            found.extend(document["items"] if document.get("kind", "").endswith("List") else [document])
    return found


def load(
    cluster: Cluster, *fixtures: str | Path, node_size: Mapping[str, str] = NODE_SIZE, timeout: float = 120
) -> list[dict[str, Any]]:
    """Make the fixtures' objects and wait until their nodes are Ready and free of kwok's and the server's taints.

    Objects that stand already are replaced. Returns what was made. Raises KubectlError in the API server's words.
    """
    made = [thing for fixture in fixtures for thing in objects(fixture)]
    nodes = [thing for thing in made if thing["kind"] == "Node"]
    for node in nodes:
        add_node(cluster, node, size=node_size)
    rest = [thing for thing in made if thing["kind"] != "Node"]
    if rest:
        cluster.apply(*rest)
    wait_nodes(cluster, [node["metadata"]["name"] for node in nodes], timeout=timeout)
    return made


def unload(cluster: Cluster, made: Sequence[Mapping[str, Any]]) -> None:
    """Remove the objects; what is gone already is left alone."""
    if made:
        cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=made)


@contextmanager
def loaded(
    cluster: Cluster, *fixtures: str | Path, node_size: Mapping[str, str] = NODE_SIZE
) -> Iterator[list[dict[str, Any]]]:
    """`load`, and `unload` at the end."""
    made = load(cluster, *fixtures, node_size=node_size)
    try:
        yield made
    finally:
        unload(cluster, made)


def add_node(cluster: Cluster, node: Mapping[str, Any], *, size: Mapping[str, str] = NODE_SIZE) -> None:
    """Make one node; `size` becomes capacity and allocatable, which kwok leaves as they are."""
    cluster.apply(node)
    status = {"status": {"capacity": dict(size), "allocatable": dict(size)}}
    cluster.kubectl(
        "patch", "node", node["metadata"]["name"], "--subresource=status", "--type=merge", "-p", json.dumps(status)
    )


def wait_nodes(cluster: Cluster, names: Sequence[str], *, timeout: float = 60) -> None:
    """Wait until the nodes are Ready and carry no `node.kubernetes.io/…` taint: only then pods are scheduled there."""
    until(f"nodes {', '.join(names)} to be usable", lambda: _usable(cluster, set(names)), timeout=timeout)


def storage(cluster: Cluster) -> None:
    """Make STORAGE_CLASS the default storage class; claims of it are bound as soon as they are made."""
    cluster.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": STORAGE_CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "kwok.x-k8s.io/volume",
            "volumeBindingMode": "Immediate",
            "allowVolumeExpansion": True,
        }
    )


def _usable(cluster: Cluster, names: set[str]) -> bool:
    nodes = {node["metadata"]["name"]: node for node in cluster.get("nodes")["items"]}
    return names <= nodes.keys() and all(_is_usable(nodes[name]) for name in names)


def _is_usable(node: Mapping[str, Any]) -> bool:
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in node.get("status", {}).get("conditions", [])
    )
    taints = node["spec"].get("taints", [])
    return ready and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)
