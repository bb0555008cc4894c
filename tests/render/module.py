# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The module's own release, rendered by the Helm engine from this checkout with values as Deckhouse supplies them."""

from __future__ import annotations

import copy
import functools
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from helm_python import Chart

ROOT: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = ("templates", "monitoring", "Chart.yaml")
OPTIONAL: Final = (
    "autoscaling.k8s.io/v1/VerticalPodAutoscaler",
    "monitoring.coreos.com/v1/ServiceMonitor",
    "monitoring.coreos.com/v1/PrometheusRule",
    "deckhouse.io/v1/GrafanaDashboardDefinition",
)
OBSERVABILITY: Final = "observability.deckhouse.io/v1alpha1/ClusterObservabilityPropagatedMetricsRulesGroup"
DIGEST: Final = "sha256:" + "0" * 64

Manifest = dict[str, Any]


def values(**module: Any) -> dict[str, Any]:
    """Values of a small Deckhouse cluster; `module` goes over the module's own."""
    return {
        "global": {
            "deckhouseVersion": "v1.76.2",
            "enabledModules": [
                "priority-class",
                "prometheus-crd",
                "operator-prometheus-crd",
                "vertical-pod-autoscaler-crd",
            ],
            "highAvailability": False,
            "discovery": {
                "prometheusScrapeInterval": 30,
                "kubernetesVersion": "1.37.2",
                "clusterControlPlaneIsHighlyAvailable": False,
                "d8SpecificNodeCountByRole": {"system": 1},
            },
            "internal": {"modules": {"kubeRBACProxyCA": {"cert": "CERTIFICATE"}}},
            "modulesImages": {
                "registry": {"base": "registry.example.com/deckhouse", "dockercfg": "e30="},
                "digests": {
                    "aiInference": {"resourcePlanner": DIGEST},
                    "common": {"kubeRbacProxy": DIGEST},
                },
            },
        },
        "aiInference": {"catalog": {"mode": "Enabled"}, "internal": {}, **module},
    }


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` laid over it, dictionaries entry by entry."""
    result = copy.deepcopy(dict(base))
    for key, value in over.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return result


def render(given: Mapping[str, Any], *, kinds: Iterable[str] = OPTIONAL, orders: bool = True) -> list[Manifest]:
    """Every object of the release; `kinds`: the optional `group/version/Kind` that the cluster serves.

    `orders` False leaves the order templates out of the chart.
    """
    discovered = {"global": {"discovery": {"apiVersions": list(kinds)}}}
    rendered = _chart(orders).render(merged(given, discovered), name="ai-inference", namespace="d8-system")
    documents = (document for text in rendered.values() for document in yaml.safe_load_all(text))
    return [document for document in documents if document]


def one(objects: Iterable[Manifest], kind: str, name: str) -> Manifest:
    """The object of that kind and name; fails when there is not exactly one."""
    found = [item for item in objects if item["kind"] == kind and item["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind} {name}: {len(found)} found"
    return found[0]


@functools.cache
def _chart(orders: bool) -> Any:
    def chosen(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if not orders and entry.name.startswith("ai-inference/templates/orders/") else entry

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for room in ROOMS:
            archive.add(ROOT / room, arcname=f"ai-inference/{room}", filter=chosen)
    return Chart.load_archive(buffer.getvalue())
