# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The module's own release: what is rendered when, who may do what, and what a Deckhouse linter asks of a component."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.render import module

ON_178 = {"global": {"deckhouseVersion": "v1.78.0"}}
READ = ["get", "list", "watch"]
WRITE = ["create", "update", "patch", "delete", "deletecollection"]


def release(*over: Mapping[str, Any], kinds: tuple[str, ...] = module.OPTIONAL, **own: Any) -> list[module.Manifest]:
    given = module.values(**own)
    for layer in over:
        given = module.merged(given, layer)
    return module.render(given, kinds=kinds)


def titles(objects: list[module.Manifest]) -> set[str]:
    return {f"{item['kind']} {item['metadata']['name']}" for item in objects}


def test_an_order_in_the_values_leaves_nothing_of_the_module() -> None:
    # The order templates are another test's; here only the module's own templates are loaded with an order.
    order = {"name": "chat"}
    given = module.merged(module.values(), {"aiInference": {"internal": {"order": order}}})
    assert module.render(given, orders=False) == []


def test_the_release_never_contains_a_workload_of_an_order() -> None:
    kinds = {item["kind"] for item in release()}
    assert kinds & {"StatefulSet", "ResourceClaimTemplate", "HorizontalPodAutoscaler", "InferenceService"} == set()


def test_a_stock_cluster_gets_no_optional_kind() -> None:
    optional = {"VerticalPodAutoscaler", "ServiceMonitor", "PrometheusRule", "GrafanaDashboardDefinition"}
    assert {item["kind"] for item in release()} >= optional
    assert {item["kind"] for item in release(kinds=())} & optional == set()


def test_every_object_carries_the_labels_of_the_module() -> None:
    for item in release():
        labels = item["metadata"]["labels"]
        assert (labels["heritage"], labels["module"]) == ("deckhouse", "ai-inference"), item["metadata"]["name"]


def test_no_object_is_rendered_twice() -> None:
    for layer in ({}, ON_178):
        keys = [(i["kind"], i["metadata"].get("namespace"), i["metadata"]["name"]) for i in release(layer)]
        assert sorted(set(keys), key=str) == sorted(keys, key=str)


@pytest.mark.parametrize("version", ["1.34", "1.37"])
def test_native_objects_are_valid_for_kubernetes(version: str) -> None:
    own = (
        "deckhouse.io",
        "monitoring.coreos.com",
        "autoscaling.k8s.io",
        "ai.deckhouse.io",
        "observability.deckhouse.io",
    )
    for item in release():
        if not item["apiVersion"].startswith(own):
            kubernetes_validate.validate(item, version, strict=True)


# Rights.


def human_roles(objects: list[module.Manifest]) -> list[module.Manifest]:
    """Every role that Deckhouse hands to people: by access level or by one of the two RBACv2 models."""
    found = []
    for item in objects:
        if item["kind"] not in ("ClusterRole", "Role"):
            continue
        metadata = item["metadata"]
        by_level = "user-authz.deckhouse.io/access-level" in metadata.get("annotations", {})
        by_kind = any(label.startswith("rbac.deckhouse.io/") for label in metadata["labels"])
        if by_level or by_kind:
            found.append(item)
    return found


SCHEMES = {"permissions": {}, "capabilities": ON_178}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_role_of_a_person_reaches_status_planner_secrets_or_other_peoples_rights(scheme: str) -> None:
    roles = human_roles(release(SCHEMES[scheme]))
    assert len(roles) == 10
    for role in roles:
        for rule in role["rules"]:
            assert rule["apiGroups"] in (["ai.deckhouse.io"], ["deckhouse.io"])
            for resource in rule["resources"]:
                assert "/" not in resource, role["metadata"]["name"]
                assert resource in ("inferenceservices", "inferenceserviceclasses", "moduleconfigs")
            assert set(rule["verbs"]) <= {*READ, *WRITE}, role["metadata"]["name"]


def test_access_levels_say_exactly_what_the_guide_says() -> None:
    levels = {
        item["metadata"]["annotations"]["user-authz.deckhouse.io/access-level"]: item["rules"]
        for item in release()
        if item["metadata"]["name"].startswith("d8:user-authz:ai-inference:")
    }

    def on(resource: str, verbs: list[str]) -> list[dict[str, list[str]]]:
        return [{"apiGroups": ["ai.deckhouse.io"], "resources": [resource], "verbs": verbs}]

    assert levels == {
        "User": on("inferenceservices", READ),
        "PrivilegedUser": [],
        "Editor": on("inferenceservices", WRITE),
        "Admin": [],
        "ClusterEditor": on("inferenceserviceclasses", [*READ, *WRITE]),
        "ClusterAdmin": [],
    }


VERSIONS = {
    "v1.75.0": "permissions",
    "1.77.9": "permissions",
    "v1.78.0-alpha.1": "capabilities",
    "v1.78.0": "capabilities",
    "v1.100.2": "capabilities",
    "v2.0.0": "capabilities",
    "dev": "capabilities",
    "unknown": "capabilities",
    "": "capabilities",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_role_model_follows_the_version_of_deckhouse(version: str) -> None:
    found = release({"global": {"deckhouseVersion": version}})
    names = {item["metadata"]["name"] for item in human_roles(found)} - {
        item["metadata"]["name"] for item in found if "user-authz" in item["metadata"]["name"]
    }
    assert (
        names
        == {
            "permissions": {
                "d8:use:capability:module:ai-inference:view",
                "d8:use:capability:module:ai-inference:edit",
                "d8:manage:permission:module:ai-inference:view",
                "d8:manage:permission:module:ai-inference:edit",
            },
            "capabilities": {
                "d8:namespace-capability:ai-inference:view",
                "d8:namespace-capability:ai-inference:edit",
                "d8:system-capability:ai-inference:view",
                "d8:system-capability:ai-inference:edit",
            },
        }[VERSIONS[version]]
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_role_for_a_namespace_never_names_a_cluster_wide_kind(scheme: str) -> None:
    for item in human_roles(release(SCHEMES[scheme])):
        labels = item["metadata"]["labels"]
        if labels.get("rbac.deckhouse.io/kind") == "use" or labels.get("rbac.deckhouse.io/scope") == "namespace":
            assert [rule["resources"] for rule in item["rules"]] == [["inferenceservices"]]


def test_capabilities_are_described_in_both_languages() -> None:
    for item in human_roles(release(ON_178)):
        if item["metadata"]["labels"].get("rbac.deckhouse.io/kind") == "capability":
            assert set(item["metadata"]["annotations"]) == {
                f"{language}.meta.deckhouse.io/{what}" for language in ("en", "ru") for what in ("title", "description")
            }


def test_no_rule_has_a_wildcard() -> None:
    for item in release() + release(ON_178):
        for rule in item.get("rules", []) if item["kind"] in ("Role", "ClusterRole") else []:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_bindings_name_accounts_of_this_release_or_of_monitoring() -> None:
    found = release()
    accounts = {item["metadata"]["name"] for item in found if item["kind"] == "ServiceAccount"}
    for item in found:
        for subject in item.get("subjects", []):
            if subject["kind"] == "ServiceAccount" and subject["namespace"] == "d8-ai-inference":
                assert subject["name"] in accounts
            else:
                assert subject["name"] in ("d8-monitoring:scraper", "prometheus")


def test_the_planner_reads_no_secret_and_writes_three_things() -> None:
    found = release()
    writes = {}
    for name, kind in (("d8:ai-inference:resource-planner", "ClusterRole"), ("resource-planner", "Role")):
        for rule in module.one(found, kind, name)["rules"]:
            assert "secrets" not in rule["resources"]
            for verb in set(rule["verbs"]) - set(READ):
                for resource in rule["resources"]:
                    writes[f"{kind} {resource} {verb}"] = rule.get("resourceNames")
    assert writes == {
        "ClusterRole inferenceservices/status patch": None,
        "ClusterRole tokenreviews create": None,
        "ClusterRole subjectaccessreviews create": None,
        "Role leases create": None,
        "Role leases update": ["resource-planner"],
        "Role configmaps create": ["resource-planner-classes"],
        "Role configmaps patch": ["resource-planner-classes"],
    }


def test_without_the_catalog_the_planner_has_no_rights_on_it_and_is_told_so() -> None:
    for mode, rights in (("Enabled", True), ("None", False)):
        found = release(catalog={"mode": mode})
        role = module.one(found, "ClusterRole", "d8:ai-inference:resource-planner")
        assert any("clustermodels" in rule["resources"] for rule in role["rules"]) is rights
        assert f"--catalog-mode={mode}" in planner(found)["args"]


# The component.


def pod(objects: list[module.Manifest]) -> dict[str, Any]:
    found: dict[str, Any] = module.one(objects, "Deployment", "resource-planner")["spec"]["template"]["spec"]
    return found


def planner(objects: list[module.Manifest]) -> dict[str, Any]:
    found: dict[str, Any] = pod(objects)["containers"][0]
    assert found["name"] == "resource-planner"
    return found


def test_containers_cannot_write_or_gain_anything_and_are_probed() -> None:
    for container in pod(release())["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 64535,
            "runAsGroup": 64535,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert {"livenessProbe", "readinessProbe"} <= set(container)
        assert set(container["resources"]["requests"]) == {"cpu", "memory", "ephemeral-storage"}
        assert container["image"].endswith("@" + module.DIGEST)


def test_a_component_has_what_the_linter_of_deckhouse_asks_for() -> None:
    found = release()
    deployment = module.one(found, "Deployment", "resource-planner")
    assert deployment["spec"]["revisionHistoryLimit"] <= 2
    assert (pod(found)["dnsPolicy"], pod(found)["priorityClassName"]) == ("ClusterFirst", "cluster-medium")
    for kind in ("PodDisruptionBudget", "VerticalPodAutoscaler", "ServiceAccount"):
        module.one(found, kind, "resource-planner")
    vpa = module.one(found, "VerticalPodAutoscaler", "resource-planner")
    assert [item["containerName"] for item in vpa["spec"]["resourcePolicy"]["containerPolicies"]] == [
        container["name"] for container in pod(found)["containers"]
    ]
    service = module.one(found, "Service", "resource-planner")
    assert [port["targetPort"] for port in service["spec"]["ports"]] == ["https"]


def test_copies_follow_the_availability_of_the_cluster() -> None:
    for layer, replicas, budget in (
        ({}, 1, 0),
        ({"global": {"highAvailability": True}}, 2, 1),
        ({"aiInference": {"highAvailability": False}, "global": {"highAvailability": True}}, 1, 0),
    ):
        found = release(layer)
        assert module.one(found, "Deployment", "resource-planner")["spec"]["replicas"] == replicas
        assert module.one(found, "PodDisruptionBudget", "resource-planner")["spec"]["minAvailable"] == budget
        assert ("affinity" in pod(found)) is (replicas == 2)


def test_a_cluster_without_deckhouse_renders_too() -> None:
    bare = {
        "global": {
            "enabledModules": [],
            "modulesImages": {
                "registry": {"base": "registry.example.com"},
                "digests": {
                    "aiInference": {"resourcePlanner": module.DIGEST},
                    "common": {"kubeRbacProxy": module.DIGEST},
                },
            },
        },
        "aiInference": {"internal": {}},
    }
    found = module.render(bare, kinds=())
    assert "priorityClassName" not in pod(found)
    assert "nodeSelector" not in pod(found)
    assert "Secret deckhouse-registry" not in titles(found)


def test_the_values_file_of_the_module_is_enough_for_a_stock_operator() -> None:
    shipped = yaml.safe_load((module.ROOT / "modules-values.yaml").read_text())
    given = {"global": shipped["global"], "aiInference": {"catalog": {"mode": "Enabled"}, "internal": {}}}
    assert titles(module.render(given, kinds=())) >= {"Deployment resource-planner", "Namespace d8-ai-inference"}


def test_images_come_from_the_modules_own_registry_where_it_has_one() -> None:
    found = release(registry={"base": "registry.example.com/modules/", "dockercfg": "e30="})
    assert planner(found)["image"] == f"registry.example.com/modules/ai-inference@{module.DIGEST}"
    assert module.one(found, "Secret", "deckhouse-registry")["type"] == "kubernetes.io/dockerconfigjson"


def test_the_proxy_lets_probes_pass_and_asks_a_right_for_everything_else() -> None:
    proxy = pod(release())["containers"][1]
    config = yaml.safe_load(next(e["value"] for e in proxy["env"] if e["name"] == "KUBE_RBAC_PROXY_CONFIG"))
    listen = next(arg.removeprefix("--listen=") for arg in planner(release())["args"] if arg.startswith("--listen="))
    assert config["excludePaths"] == ["/healthz", "/readyz"]
    assert {u["path"]: u["upstream"] for u in config["upstreams"]} == {
        "/": f"http://{listen}/",
        "/metrics": f"http://{listen}/metrics",
    }
    assert config["upstreams"][0]["authorization"]["resourceAttributes"] == {
        "apiGroup": "ai.deckhouse.io",
        "apiVersion": "v1alpha1",
        "resource": "inferenceserviceclasses",
        "subresource": "planner",
    }


# Monitoring.


@pytest.mark.parametrize("observability", [False, True])
def test_both_alerts_name_the_order_in_its_own_namespace(observability: bool) -> None:
    kinds = (*module.OPTIONAL, module.OBSERVABILITY) if observability else module.OPTIONAL
    found = release(kinds=kinds)
    if observability:
        assert "PrometheusRule" not in {item["kind"] for item in found}
        rules = module.one(found, "ClusterObservabilityPropagatedMetricsRulesGroup", "ai-inference-capacity-0")["spec"][
            "rules"
        ]
    else:
        rule = module.one(found, "PrometheusRule", "ai-inference-propagated-capacity")
        assert rule["metadata"]["labels"]["prometheus"] == "main"
        (group,) = rule["spec"]["groups"]
        rules = group["rules"]
    assert [rule["alert"] for rule in rules] == [
        "D8AIInferenceCapacityPreempted",
        "D8AIInferenceDonorHeldAtLoweredBound",
    ]
    for rule in rules:
        assert '"namespace", "$1", "order_namespace", "(.+)"' in rule["expr"]
        assert "{{ $labels.namespace }}/{{ $labels.order }}" in rule["annotations"]["description"]
        assert rule["labels"]["severity_level"] in list("123456789")
        assert rule["annotations"]["plk_protocol_version"] == "1"
    assert "__SCRAPE_INTERVAL" not in json.dumps(rules)


def test_alerts_ask_for_metrics_that_the_planner_has() -> None:
    from planner.metrics import Metrics

    metrics = Metrics()
    replicas = {"min": 1, "max": 3, "bound": 1}
    metrics.decided(
        {
            "team/needy": {"preemption": {"role": "Recipient"}, "deviceClassName": "gpu", "replicas": replicas},
            "team/giver": {"preemption": {"role": "Donor"}, "replicas": replicas},
        }
    )
    text = metrics.text().decode()
    assert (
        'ai_inference_planner_capacity_preempted{device_class="gpu",order="needy",order_namespace="team"} 1.0' in text
    )
    assert 'ai_inference_planner_donor_lowered_by{order="giver",order_namespace="team"} 2.0' in text
    expressions = json.dumps(module.one(release(), "PrometheusRule", "ai-inference-propagated-capacity"))
    assert "(ai_inference_planner_capacity_preempted)" in expressions
    assert "(ai_inference_planner_donor_lowered_by)" in expressions


def test_dashboards_are_small_current_and_keyed_by_namespace_and_order() -> None:
    found = [item for item in release() if item["kind"] == "GrafanaDashboardDefinition"]
    assert [item["metadata"]["name"] for item in found] == [
        "d8-ai-inference-ai-inference-performance-statistics",
        "d8-ai-inference-ai-inference-query-statistics",
    ]
    for item in found:
        text = item["spec"]["definition"]
        board = json.loads(text)
        assert len(text) < 60_000
        assert [v["name"] for v in board["templating"]["list"]] == ["ds_prometheus", "namespace", "order"]
        assert {panel["type"] for panel in board["panels"]} == {"timeseries"}
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
        for panel in board["panels"]:
            for target in panel["targets"]:
                assert "model_name" not in target["expr"]
                assert target["datasource"]["uid"] == "${ds_prometheus}"
                assert "rate(" not in target["expr"] or "[$__rate_interval]" in target["expr"]
