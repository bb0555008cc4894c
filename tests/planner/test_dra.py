# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Readers of DRA objects: what a record says, what is let alone, and which path a bad object is told by."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from planner import dra
from planner.dra import (
    Allocation,
    Ask,
    Capacity,
    Claim,
    ClaimRequestConfig,
    Constraint,
    Consumption,
    CounterSet,
    DeviceClass,
    DeviceId,
    DeviceSpec,
    Effect,
    Expression,
    Malformed,
    Node,
    NodeSelector,
    Policy,
    Reach,
    Request,
    Result,
    Slice,
    Taint,
    TaintRule,
    Term,
    Toleration,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "dra"


def test_a_slice_is_read_with_everything_that_it_says() -> None:
    device = {
        "name": "d0",
        "attributes": {"model": {"string": "m"}, "x.example/n": {"int": 3}, "tags": {"strings": ["a", "b"]}},
        "capacity": {
            "memory": {
                "value": "8Gi",
                "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}},
            },
            "seats": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["4", "1", "2"]}},
        },
        "consumesCounters": [{"counterSet": "cs", "counters": {"u": {"value": "500m"}}}],
        "taints": [{"key": "t", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}],
        "allowMultipleAllocations": True,
        "bindsToNode": True,
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["failed"],
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
        },
        "aFieldOfALaterRelease": {"x": 1},
    }
    raw = {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "x.example",
            "pool": {"name": "p", "generation": 3, "resourceSliceCount": 2},
            "perDeviceNodeSelection": True,
            "devices": [device],
            "sharedCounters": [{"name": "cs", "counters": {"u": {"value": "2"}}}],
        },
    }
    assert dra.read_slice(raw) == Slice(
        name="s",
        driver="x.example",
        pool="p",
        generation=3,
        slice_count=2,
        reach=Reach(),
        per_device=True,
        devices=(
            DeviceSpec(
                name="d0",
                attributes={"model": ("string", "m"), "x.example/n": ("int", 3), "tags": ("strings", ("a", "b"))},
                capacity={
                    "memory": Capacity(
                        value=8 << 30,
                        policy=Policy(default=1 << 30, minimum=1 << 30, maximum=8 << 30, step=1 << 30, ranged=True),
                    ),
                    "seats": Capacity(value=4, policy=Policy(default=1, values=(1, 2, 4))),
                },
                consumes=(Consumption(counter_set="cs", counters={"u": Fraction(1, 2)}),),
                taints=(Taint(key="t", value="v", effect=Effect.NO_EXECUTE),),
                shareable=True,
                reach=Reach(
                    selector=NodeSelector(terms=(Term(labels=(Expression(key="zone", operator="In", values=("a",)),)),))
                ),
                binds_to_node=True,
                binding_conditions=("ready",),
                binding_failure_conditions=("failed",),
            ),
        ),
        shared_counters=(CounterSet(name="cs", counters={"u": 2}),),
    )


def test_a_claim_is_read_with_what_it_asks_and_what_it_holds() -> None:
    raw = {
        "metadata": {
            "name": "c",
            "namespace": "n",
            "uid": "u-1",
            "labels": {"app": "x"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [
                {"kind": "StatefulSet", "name": "set", "uid": "0"},
                {"kind": "Pod", "name": "pod-0", "uid": "1"},
            ],
        },
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "g",
                        "exactly": {
                            "deviceClassName": "k",
                            "selectors": [{"cel": {"expression": "true"}}],
                            "count": 2,
                            "adminAccess": True,
                            "tolerations": [{"key": "t", "operator": "Exists", "effect": "NoSchedule"}],
                            "capacity": {"requests": {"memory": "1Gi"}},
                        },
                    },
                    {
                        "name": "f",
                        "firstAvailable": [
                            {"name": "big", "deviceClassName": "k", "allocationMode": "All"},
                            {"name": "small", "deviceClassName": "k"},
                        ],
                    },
                ],
                "constraints": [
                    {"requests": ["g"], "matchAttribute": "x.example/root"},
                    {"distinctAttribute": "x.example/id"},
                ],
                "config": [{"requests": ["g"], "opaque": {"driver": "x.example", "parameters": {"a": 1}}}],
            }
        },
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {
                            "request": "f/small",
                            "driver": "x.example",
                            "pool": "p",
                            "device": "d0",
                            "shareID": "s-1",
                            "consumedCapacity": {"memory": "1Gi"},
                            "adminAccess": True,
                        }
                    ],
                    "config": [{"source": "FromClass", "opaque": {"driver": "x.example", "parameters": {"b": 2}}}],
                },
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
                    ]
                },
            },
            "reservedFor": [{"resource": "pods", "name": "pod-0", "uid": "1"}],
        },
    }
    assert dra.read_claim(raw) == Claim(
        namespace="n",
        name="c",
        uid="u-1",
        labels={"app": "x"},
        owner_pod="pod-0",
        requests=(
            Request(
                name="g",
                asks=(
                    Ask(
                        name="",
                        device_class="k",
                        selectors=("true",),
                        count=2,
                        admin_access=True,
                        tolerations=(Toleration(key="t", operator="Exists", effect=Effect.NO_SCHEDULE),),
                        capacity={"memory": 1 << 30},
                    ),
                ),
            ),
            Request(
                name="f",
                asks=(
                    Ask(name="big", device_class="k", mode="All", count=0),
                    Ask(name="small", device_class="k"),
                ),
                prioritized=True,
            ),
        ),
        constraints=(Constraint(requests=("g",), match="x.example/root"), Constraint(distinct="x.example/id")),
        config=(ClaimRequestConfig(driver="x.example", parameters={"a": 1}, requests=("g",)),),
        allocation=Allocation(
            results=(
                Result(
                    request="f/small",
                    device=DeviceId(driver="x.example", pool="p", name="d0"),
                    admin_access=True,
                    share_id="s-1",
                    consumed={"memory": 1 << 30},
                ),
            ),
            node_selector=NodeSelector(
                terms=(Term(fields=(Expression(key="metadata.name", operator="In", values=("node-a",)),)),)
            ),
            config=(ClaimRequestConfig(driver="x.example", parameters={"b": 2}),),
        ),
        deleting=True,
        reserved_for=("pod-0",),
    )


def test_a_device_class_a_taint_rule_and_a_node_are_read() -> None:
    assert dra.read_device_class(
        {
            "metadata": {"name": "k"},
            "spec": {
                "selectors": [{"cel": {"expression": "true"}}],
                "config": [{"opaque": {"driver": "x.example", "parameters": {"a": 1}}}],
                "extendedResourceName": "x.example/gpu",
            },
        }
    ) == DeviceClass(
        name="k",
        selectors=("true",),
        config=(ClaimRequestConfig(driver="x.example", parameters={"a": 1}),),
        extended_resource="x.example/gpu",
    )
    rule = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "t", "effect": "NoSchedule"}}}
    taint = Taint(key="t", effect=Effect.NO_SCHEDULE)
    assert dra.read_taint_rule(rule) == TaintRule(name="r", taint=taint, selects_nothing=True)
    rule["spec"]["deviceSelector"] = {"driver": "x.example", "pool": "p", "device": "d0"}  # type: ignore[index]
    assert dra.read_taint_rule(rule) == TaintRule(name="r", taint=taint, driver="x.example", pool="p", device="d0")
    assert dra.read_node(
        {
            "metadata": {"name": "n", "labels": {"zone": "a"}},
            "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "PreferNoSchedule"}]},
            "status": {
                "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "Unknown"}],
                "allocatable": {"cpu": "7910m", "memory": "64Gi"},
            },
        }
    ) == Node(
        name="n",
        labels={"zone": "a"},
        ready=False,
        unschedulable=True,
        taints=(Taint(key="k", effect=Effect.PREFER_NO_SCHEDULE),),
        cpu_milli=7910,
        memory=64 << 30,
    )


def test_a_node_of_a_dump_without_a_status_counts_as_ready() -> None:
    assert dra.read_node({"metadata": {"name": "n"}}).ready


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_fixture_object_can_be_read(path: Path) -> None:
    for raw in yaml.safe_load_all(path.read_text()):
        assert dra.READERS[raw["kind"]](raw).name == raw["metadata"]["name"]


SLICE: Mapping[str, Any] = {
    "metadata": {"name": "s"},
    "spec": {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n"},
}


def slice_with(**spec: Any) -> Mapping[str, Any]:
    return {**SLICE, "spec": {**SLICE["spec"], **spec}}


BAD = {
    "no spec": (dra.read_slice, {"metadata": {"name": "s"}}, "spec"),
    "no name": (dra.read_slice, {"metadata": {}, "spec": SLICE["spec"]}, "metadata.name"),
    "a generation that is no number": (
        dra.read_slice,
        slice_with(pool={"name": "p", "generation": "1"}),
        "spec.pool.generation",
    ),
    "devices that are no list": (dra.read_slice, slice_with(devices={}), "spec.devices"),
    "a device that is no object": (dra.read_slice, slice_with(devices=["d0"]), "spec.devices[0]"),
    "an attribute without a value": (
        dra.read_slice,
        slice_with(devices=[{"name": "d0", "attributes": {"a": {}}}]),
        "spec.devices[0].attributes[a]",
    ),
    "an attribute with two values": (
        dra.read_slice,
        slice_with(devices=[{"name": "d0", "attributes": {"a": {"int": 1, "string": "x"}}}]),
        "spec.devices[0].attributes[a]",
    ),
    "a capacity that is no quantity": (
        dra.read_slice,
        slice_with(devices=[{"name": "d0"}, {"name": "d1", "capacity": {"memory": {"value": "40GB"}}}]),
        "spec.devices[1].capacity[memory].value",
    ),
    "a policy with a bad step": (
        dra.read_slice,
        slice_with(
            devices=[
                {
                    "name": "d0",
                    "capacity": {"m": {"value": "1", "requestPolicy": {"validRange": {"min": "0", "step": []}}}},
                }
            ]
        ),
        "spec.devices[0].capacity[m].requestPolicy.validRange.step",
    ),
    "a counter without a value": (
        dra.read_slice,
        slice_with(sharedCounters=[{"name": "cs", "counters": {"u": {}}}]),
        "spec.sharedCounters[0].counters[u]",
    ),
    "a request that is both": (
        dra.read_claim,
        {
            "metadata": {"name": "c"},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {"deviceClassName": "k"},
                            "firstAvailable": [{"name": "a", "deviceClassName": "k"}],
                        }
                    ]
                }
            },
        },
        "spec.devices.requests[0]",
    ),
    "a result without a device": (
        dra.read_claim,
        {
            "metadata": {"name": "c"},
            "status": {"allocation": {"devices": {"results": [{"driver": "d", "pool": "p"}]}}},
        },
        "status.allocation.devices.results[0].device",
    ),
    "a selector without CEL": (
        dra.read_device_class,
        {"metadata": {"name": "k"}, "spec": {"selectors": [{"future": {}}]}},
        "spec.selectors[0].cel",
    ),
    "an allocatable memory that is no quantity": (
        dra.read_node,
        {"metadata": {"name": "n"}, "status": {"allocatable": {"memory": "lots"}}},
        "status.allocatable.memory",
    ),
}


@pytest.mark.parametrize(("read", "raw", "path"), BAD.values(), ids=BAD)
def test_a_bad_object_is_told_by_the_path_of_its_field(read: Any, raw: Any, path: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(raw)
    assert caught.value.path == path


TOLERATIONS = {
    "an equal key and value": (
        Toleration(key="k", value="v"),
        Taint(key="k", value="v", effect=Effect.NO_EXECUTE),
        True,
    ),
    "another value": (Toleration(key="k", value="w"), Taint(key="k", value="v", effect=Effect.NO_EXECUTE), False),
    "Exists with the key": (
        Toleration(key="k", operator="Exists"),
        Taint(key="k", value="v", effect=Effect.NO_SCHEDULE),
        True,
    ),
    "Exists without a key": (Toleration(operator="Exists"), Taint(key="k", effect=Effect.NO_SCHEDULE), True),
    "another effect": (
        Toleration(key="k", operator="Exists", effect=Effect.NO_SCHEDULE),
        Taint(key="k", effect=Effect.NO_EXECUTE),
        False,
    ),
    "an operator of a later release": (
        Toleration(key="k", operator="Gt", value="1"),
        Taint(key="k", value="2", effect=Effect.NO_SCHEDULE),
        False,
    ),
}


@pytest.mark.parametrize(("toleration", "taint", "want"), TOLERATIONS.values(), ids=TOLERATIONS)
def test_a_toleration_covers_a_taint(toleration: Toleration, taint: Taint, want: bool) -> None:
    assert toleration.tolerates(taint) is want


EXPRESSIONS = {
    "In": (Expression(key="k", operator="In", values=("a", "b")), {"a": True, "c": False, None: False}),
    "NotIn": (Expression(key="k", operator="NotIn", values=("a",)), {"a": False, "c": True, None: True}),
    "Exists": (Expression(key="k", operator="Exists"), {"a": True, None: False}),
    "DoesNotExist": (Expression(key="k", operator="DoesNotExist"), {"a": False, None: True}),
    "Gt": (Expression(key="k", operator="Gt", values=("5",)), {"6": True, "5": False, "x": False, None: False}),
    "Lt": (Expression(key="k", operator="Lt", values=("5",)), {"4": True, "5": False, None: False}),
    "unknown": (Expression(key="k", operator="Near", values=("5",)), {"5": False}),
}


@pytest.mark.parametrize(("expression", "want"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_a_node_requirement_admits(expression: Expression, want: Mapping[str | None, bool]) -> None:
    assert {value: expression.admits(value) for value in want} == want


def test_an_empty_node_selector_and_an_empty_term_admit_no_node() -> None:
    node = Node(name="n")
    assert not NodeSelector().admits(node)
    assert not NodeSelector(terms=(Term(),)).admits(node)
    assert not Reach().admits(node)


def test_an_attribute_is_found_with_or_without_the_domain_of_its_driver() -> None:
    fields = {"bare": 1, "x.example/full": 2, "other.example/foreign": 3}
    names = ("bare", "x.example/bare", "full", "x.example/full", "other.example/foreign", "foreign", "y.example/bare")
    assert [dra.lookup(fields, "x.example", name) for name in names] == [1, 1, 2, 2, 3, None, None]
