# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Which orders a run does not read again, and what makes it read them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orders
import pytest
from lib.ai_inference import decide, render, settled, world

from tests.hooks import bindings, test_decide
from tests.hooks.objects import HUGGING_FACE, VOLUME, event, only, order, plan, pod, service_class, stood

NOW = "2026-11-30T10:00:00Z"
KEY = ("team-a", "chat")
OTHER = ("team-b", "code")
Objects = list[dict[str, Any]]


def read(objects: Objects, quiet: dict[world.Key, str] | None = None, **changes: Any) -> world.World:
    values = {**bindings.values(), **changes.pop("values", {})}
    return world.read(bindings.snapshots(orders.CONFIG, objects), values, quiet, **{"rules": "r", **changes})


def after(seen: world.World, now: str = NOW) -> dict[world.Key, str]:
    work = decide.work(seen, render.templates_digest())
    return settled.after(seen, work, *decide.reports(seen, work, {}, now), now)


def told(objects: Objects) -> Objects:
    """The same objects with the status of every order as a run publishes it."""
    seen = read(objects)
    statuses, _ = decide.reports(seen, decide.work(seen, render.templates_digest()), {}, NOW)
    published = {item.order.key: item.status for item in statuses}
    found = copy.deepcopy(objects)
    for item in found:
        key = item["metadata"].get("namespace"), item["metadata"]["name"]
        if item["kind"] == "InferenceService":
            item["status"] = {**item.get("status", {}), **published.get(key, {})}
    return found


def two() -> Objects:
    planned = plan(volume=VOLUME, replicas={"min": 2, "max": 2, "bound": 2})
    placed = order(planned=planned, model=HUGGING_FACE)
    elsewhere = order("code", namespace="team-b", number=2, planned=planned, model=HUGGING_FACE)
    namespaces: Objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("team-a", "team-b")
    ]
    return told([*stood(placed, elsewhere, service_class(), replicas=2), *namespaces])


STANDING = two()


def own(objects: Objects, kind: str) -> dict[str, Any]:
    """The (first) object of that kind in the namespace of the first order."""
    return next(item for item in objects if item["kind"] == kind and item["metadata"].get("namespace") == KEY[0])


def test_orders_that_stand_and_are_told_so_are_settled_and_not_read_again() -> None:
    quiet = after(read(STANDING))
    assert quiet.keys() == {KEY, OTHER}
    again = read(STANDING, quiet)
    assert again.orders == () and again.standing == {} and again.replicas == {}
    assert after(again) == quiet


def labels(item: dict[str, Any]) -> None:
    item["metadata"]["annotations"]["ai-inference.deckhouse.io/values-hash"] = "other"


def remade(item: dict[str, Any]) -> None:
    item["metadata"]["uid"] = "another"


def going(item: dict[str, Any]) -> None:
    item["metadata"]["deletionTimestamp"] = NOW


CHANGES: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "the order is edited": ("InferenceService", lambda item: item["metadata"].update(generation=2)),
    "the order goes": ("InferenceService", going),
    "its plan changes": ("InferenceService", lambda item: item["status"]["plan"].update(message="moved")),
    "somebody writes over its status": ("InferenceService", lambda item: item["status"].update(phase="Failed")),
    "its set is edited": ("StatefulSet", labels),
    "its set is scaled": ("StatefulSet", lambda item: item["spec"].update(replicas=3)),
    "a replica is ready no more": ("StatefulSet", lambda item: item["status"].update(readyReplicas=0)),
    "its claim template is made anew": ("ResourceClaimTemplate", remade),
    "its claim template goes": ("ResourceClaimTemplate", going),
    "its service is edited": ("Service", labels),
    "its token is made anew": ("Secret", remade),
    "its disruption budget goes": ("PodDisruptionBudget", going),
    "a pod waits for its image": (
        "Pod",
        lambda item: item["status"].update(
            containerStatuses=[{"name": "runtime", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
        ),
    ),
    "its namespace goes": ("Namespace", going),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_order_is_read_again_when_anything_of_it_changed_and_the_other_is_not(name: str) -> None:
    objects = copy.deepcopy(STANDING)
    quiet = after(read(objects))
    kind, change = CHANGES[name]
    if kind == "Namespace":
        change(next(item for item in objects if item["kind"] == kind and item["metadata"]["name"] == KEY[0]))
    else:
        change(own(objects, kind))
    again = read(objects, quiet)
    assert [item.key for item in again.orders] == [KEY]
    assert again.standing.keys() == {KEY} and again.replicas.keys() == {KEY}
    assert len(again.own(again.orders[0])) == len(read(objects).own(again.orders[0]))


@pytest.mark.parametrize(
    "kind", ["StatefulSet", "Service", "ResourceClaimTemplate", "Secret", "PodDisruptionBudget", "Pod"]
)
def test_an_order_is_read_again_when_something_of_it_is_gone(kind: str) -> None:
    objects = copy.deepcopy(STANDING)
    quiet = after(read(objects))
    objects.remove(own(objects, kind))
    assert [item.key for item in read(objects, quiet).orders] == [KEY]


def test_an_order_is_read_again_when_a_pod_or_claim_is_refused_in_its_namespace() -> None:
    quiet = after(read(STANDING))
    refusal = event(own(STANDING, "StatefulSet"), "FailedCreate", "exceeded quota")
    assert [item.key for item in read([*STANDING, refusal], quiet).orders] == [KEY]


def test_an_order_made_again_under_its_name_is_read() -> None:
    quiet, objects = after(read(STANDING)), copy.deepcopy(STANDING)
    own(objects, "InferenceService")["metadata"]["uid"] = "another"
    assert [item.key for item in read(objects, quiet).orders] == [KEY]


@pytest.mark.parametrize(
    "spec",
    [
        {"exposurePolicy": {"authentication": "None"}},
        {"updatePolicy": {"strategy": "OnDelete"}},
        {"modelPolicy": {"allowedEndpointTypes": ["Embeddings"]}},
    ],
)
def test_every_order_is_read_again_when_a_class_is_edited(spec: dict[str, Any]) -> None:
    quiet = after(read(STANDING))
    edited = [item for item in STANDING if item["kind"] != "InferenceServiceClass"]
    assert len(read([*edited, service_class(generation=2, **spec)], quiet).orders) == 2
    assert len(read(edited, quiet).orders) == 2


def test_every_order_is_read_again_when_templates_code_or_what_the_platform_supplies_change() -> None:
    quiet = after(read(STANDING))
    assert not read(STANDING, quiet).orders
    assert len(read(STANDING, quiet, rules="other").orders) == 2
    changes: Objects = [
        {"global": {"modulesImages": {"registry": {"base": "elsewhere"}}}},
        {"global": {"modulesImages": {"digests": {"aiInference": {"vllm": "sha256:2"}}}}},
        {"global": {"discovery": {"clusterDomain": "example"}}},
    ]
    for supplied in changes:
        assert len(read(STANDING, quiet, values=supplied).orders) == 2


def test_the_rules_are_the_templates_and_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = settled.rules()
    assert len(known) == 16 and settled.rules() == known
    settled.rules.cache_clear()
    monkeypatch.setattr(render, "templates_digest", lambda: "other")
    other = settled.rules()
    settled.rules.cache_clear()
    monkeypatch.setattr(settled, "__file__", str(tmp_path / "settled.py"))
    (tmp_path / "decide.py").write_text("changed")
    assert len({known, other, settled.rules()}) == 3
    settled.rules.cache_clear()


@pytest.mark.parametrize("name", test_decide.CASES)
def test_an_order_is_busy_exactly_when_something_is_to_be_written_for_it(name: str) -> None:
    objects, _ = test_decide.CASES[name]
    found, seen = test_decide.intents(copy.deepcopy(objects)), read(objects)
    work = decide.work(seen, render.templates_digest())
    assert bool(work.busy) == (found != test_decide.Intents())
    assert not settled.after(seen, work, (), (), NOW).keys() & work.busy


def test_an_order_whose_status_is_not_published_is_not_settled() -> None:
    objects = copy.deepcopy(STANDING)
    own(objects, "InferenceService")["status"]["phase"] = "Failed"
    assert after(read(objects)).keys() == {OTHER}
    # A status that the API server refused is found again by the next run, which reads the order once more.
    assert [item.key for item in read(objects, after(read(objects))).orders] == [KEY]


def test_an_order_that_an_event_is_recorded_for_is_not_settled() -> None:
    seen = read(STANDING)
    noted = decide.rescheduled(seen.orders[0], seen.replicas[KEY][0])
    work = decide.work(seen, render.templates_digest())
    assert settled.after(seen, work, (), (noted,), NOW).keys() == {OTHER}


def test_an_order_that_waits_for_a_time_is_not_settled() -> None:
    born = order()
    born["metadata"]["creationTimestamp"] = NOW
    assert after(read([born, service_class()])) == {}
    told_so = told([born, service_class()])
    later = after(read(told_so, None), "2026-11-30T10:00:06Z")
    assert later == {}, "the status that it waits is due, so it is looked at again"

    found = stood(order(planned=plan()), service_class(), ready=False)
    workload = only(found, "StatefulSet")
    lost = pod(workload, ready=False, served=False, unschedulable=f"0/2 nodes: {decide.NO_CLAIM}")
    waits = told([*(item for item in found if item["kind"] != "Pod"), lost])
    assert after(read(waits)) == {}


def test_an_order_that_is_gone_is_forgotten_and_what_carried_its_label_is_not_read() -> None:
    quiet = after(read(STANDING))
    rest = [item for item in STANDING if item is not own(STANDING, "InferenceService")]
    seen = read(rest, quiet)
    assert seen.orders == () and seen.standing == {}
    assert after(seen).keys() == {OTHER}
    assert read(rest).standing.keys() == {OTHER}


def test_the_note_is_written_when_it_changed_and_one_that_cannot_be_read_settles_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BINDING_CONTEXT_PATH", str(tmp_path / "context.json"))
    assert settled.read() == {}
    settled.write({}, {})
    assert not list(tmp_path.iterdir())
    settled.write({KEY: "d1", OTHER: "d2"}, {})
    assert settled.read() == {KEY: "d1", OTHER: "d2"}
    for broken in ("{", "[1]", '{"a": 1}', '[["a"]]', "null", "[[1, 2, 3, 4]]"):
        (tmp_path / "ai-inference-settled.json").write_text(broken)
        assert settled.read() == {}


def test_metrics_are_told_of_every_order_settled_or_not() -> None:
    snapshots = bindings.snapshots(orders.CONFIG, STANDING)
    assert [item.key for item in world.every_order(snapshots)] == [KEY, OTHER]
    assert list(world.every_order(snapshots)) == list(read(STANDING).orders)
