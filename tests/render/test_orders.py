# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""One order's manifests: what the templates in `templates/orders/` make of values, and that Kubernetes takes them."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import orders
import pytest
import render as tool
import yaml
from lib.ai_inference import decide, names, render, values, world

from tests.hooks import bindings
from tests.hooks.objects import HUGGING_FACE, VOLUME, order, plan, service_class

GOLDEN = tool.CASES / "golden"
CASES = sorted(path.stem for path in tool.CASES.glob("*.yaml"))
VERSIONS = ("1.34", "1.35", "1.36", "1.37")


def applied(**changes: Any) -> dict[str, Any]:
    """Values of a small placed order; `changes` go to its plan, `model` to the order."""
    model = changes.pop("model", None)
    objects = [order(planned=plan(**changes), model=model), service_class()]
    seen = world.read(bindings.snapshots(orders.CONFIG, objects), bindings.values())
    apply = decide.wanted(seen, seen.orders[0], "templates")
    assert apply is not None
    return dict(apply.values)


def rendered(kind: str, order_values: dict[str, Any]) -> dict[str, Any]:
    (found,) = [item for item in render.manifests(order_values) if item["kind"] == kind]
    return found


def without_hashes(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hashes over everything are left out of golden files: they would hide the change that matters."""
    found = copy.deepcopy(manifests)
    for item in found:
        for name in (names.HASH, names.INPUTS):
            item["metadata"]["annotations"].pop(name, None)
    return found


@pytest.mark.parametrize("name", CASES)
def test_manifests_are_the_golden_ones(name: str) -> None:
    """`make golden` writes them anew; read the difference."""
    want = list(yaml.safe_load_all((GOLDEN / f"{name}.yaml").read_text()))
    assert without_hashes(render.manifests(tool.wanted(tool.case(name)).values)) == want


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CASES)
def test_manifests_fit_the_schemas_of_kubernetes_strictly(name: str, version: str) -> None:
    for manifest in render.manifests(tool.wanted(tool.case(name)).values):
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("name", CASES)
def test_every_object_belongs_to_the_order(name: str) -> None:
    apply = tool.wanted(tool.case(name))
    for manifest in render.manifests(apply.values):
        metadata = manifest["metadata"]
        assert metadata["labels"] == names.labels(apply.order.name)
        assert metadata["annotations"][names.ORDER_UID] == apply.order.uid
        assert metadata["annotations"][names.HASH] == apply.hash
        assert metadata["namespace"] == apply.order.namespace
        assert [owner["uid"] for owner in metadata["ownerReferences"]] == [apply.order.uid]


@pytest.mark.parametrize("name", CASES)
def test_what_is_rendered_is_what_decide_takes_to_be_contained(name: str) -> None:
    apply = tool.wanted(tool.case(name))
    made = {(item["kind"], item["metadata"]["name"]) for item in render.manifests(apply.values)}
    assert made == {identity for identity in values.contained(apply.values) if identity[0] != "Secret"}


@pytest.mark.parametrize("name", CASES)
def test_replicas_are_never_named(name: str) -> None:
    workload = rendered("StatefulSet", dict(tool.wanted(tool.case(name)).values))
    assert "replicas" not in workload["spec"]
    assert workload["spec"]["podManagementPolicy"] == "Parallel"


@pytest.mark.parametrize("name", CASES)
def test_no_token_reaches_values_or_manifests(name: str) -> None:
    """The Secret is only ever named."""
    apply = tool.wanted(tool.case(name))
    assert not [item for item in render.manifests(apply.values) if item["kind"] == "Secret"]


@pytest.mark.parametrize("name", CASES)
def test_pods_fit_the_restricted_pod_security_level(name: str) -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted, control by control."""
    pod = rendered("StatefulSet", dict(tool.wanted(tool.case(name)).values))["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {key for volume in pod["volumes"] for key in volume} <= {"name", "emptyDir"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    for container in pod["containers"] + pod["initContainers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"] == container["resources"]["limits"]


def test_strings_arrive_unchanged() -> None:
    """Quotes, braces, other alphabets, and words that YAML 1.1 takes for something else."""
    odd = {"a": 'он сказал "да" {{ .Values }}', "b": "on", "c": "1_000", "d": "12:30:45", "e": "0x1F", "f": '{"k":[1]}'}
    args = rendered("StatefulSet", applied(recipe={"release": "1", "parameters": odd}))
    assert args["spec"]["template"]["spec"]["containers"][0]["args"][-12:] == [
        part for name, value in odd.items() for part in (f"--{name}", value)
    ]


def test_the_claim_template_is_named_after_its_content() -> None:
    first, same, other = (
        applied(), applied(message="other words"), applied(deviceRequest={"capacity": {"memory": "9Gi"}}),
    )  # fmt: skip
    assert first["claimTemplate"]["name"] == same["claimTemplate"]["name"] != other["claimTemplate"]["name"]
    spec = rendered("StatefulSet", first)["spec"]["template"]["spec"]
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": first["claimTemplate"]["name"]}]


def test_the_longest_names_fit() -> None:
    name = "a" * 52
    objects = [order(name, planned=plan()), service_class()]
    seen = world.read(bindings.snapshots(orders.CONFIG, objects), bindings.values())
    apply = decide.wanted(seen, seen.orders[0], "templates")
    assert apply is not None
    assert all(len(item["metadata"]["name"]) <= 63 for item in render.manifests(apply.values))


def test_options_of_the_recipe_win_and_none_stands_twice() -> None:
    parameters = {"shutdownTimeout": "30", "enforceEager": "false", "enableAutoToolChoice": "true", "maxModelLen": "1"}
    args = applied(recipe={"release": "1", "parameters": parameters})["pod"]["runtime"]["args"]
    assert args == [
        "serve", "$(AI_MODELS_MODELS_DIR)/qwen3", "--host", "127.0.0.1", "--port", "8000",
        "--served-model-name", "qwen3",
        "--disable-fastapi-docs", "--disable-access-log-for-endpoints", "/health,/metrics",
        "--enable-auto-tool-choice", "--no-enforce-eager", "--max-model-len", "1", "--shutdown-timeout", "30",
    ]  # fmt: skip


def test_flags_are_kebab_case() -> None:
    flags = {
        "maxModelLen": "--max-model-len",
        "kvCacheMemoryBytes": "--kv-cache-memory-bytes",
        "dtype": "--dtype",
        "mmEncoderTpMode": "--mm-encoder-tp-mode",
        "cpuOffloadGb": "--cpu-offload-gb",
        "max-num-seqs": "--max-num-seqs",
    }
    assert {name: values.flag(name) for name in flags} == flags


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"hostResources": {"cpu": "two", "memory": "1Gi", "sharedMemory": "1Gi"}}, "pod.runtime.cpu"),
        ({"acceleratorCount": 0}, "claimTemplate.devices.requests.0.exactly.count"),
        ({"deviceClassName": ""}, "claimTemplate.devices.requests.0.exactly.deviceClassName"),
    ],
)
def test_values_that_break_the_schema_are_refused_with_their_path(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(render.Unfit, match=complaint):
        render.manifests(applied(**change))


def test_a_missing_image_digest_is_refused() -> None:
    objects = [order(planned=plan()), service_class()]
    seen = world.read(bindings.snapshots(orders.CONFIG, objects), {})
    apply = decide.wanted(seen, seen.orders[0], "templates")
    assert apply is not None
    with pytest.raises(render.Unfit, match="image"):
        render.manifests(apply.values)


def test_the_volume_belongs_to_the_order() -> None:
    workload = rendered("StatefulSet", applied(model=HUGGING_FACE, volume=VOLUME))
    (claim,) = workload["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["ownerReferences"] == workload["metadata"]["ownerReferences"]
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "16Gi"}},
        "storageClassName": "fast",
    }


def main() -> None:
    """Write the golden files."""
    GOLDEN.mkdir(exist_ok=True)
    for name in CASES:
        manifests = without_hashes(render.manifests(tool.wanted(tool.case(name)).values))
        (GOLDEN / f"{name}.yaml").write_text(yaml.safe_dump_all(manifests, allow_unicode=True, width=120))


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
    main()
