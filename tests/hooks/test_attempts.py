# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""When a refused order is tried again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orders
import pytest
from lib.ai_inference import attempts, decide, render, world
from lib.ai_inference.conditions import Outcome

from tests.hooks import bindings
from tests.hooks.objects import only, order, plan, pod, service_class, stood, uid

REFUSED = Outcome(reason="WorkloadRefused", message="no")
KEY = ("team-a", "chat")


def work(**changes: object) -> decide.Work:
    objects = [order(planned=plan(**changes)), service_class()]
    return decide.work(world.read(bindings.snapshots(orders.CONFIG, objects), bindings.values()), "templates")


def test_a_refused_order_is_tried_at_growing_pauses_and_always_within_the_minute() -> None:
    clock, ledger, tried = 1000.0, attempts.Ledger(), []
    while clock < 1200:
        due = attempts.due(work(), ledger, clock)
        if due.applies:
            tried.append(clock - 1000)
            ledger = attempts.noted(due, {KEY: REFUSED}, ledger, clock)
        clock += 1
    assert tried == [0, 5, 20, 50, 80, 110, 140, 170]


def test_a_missing_secret_is_looked_for_again_within_the_minute() -> None:
    missing = Outcome(reason="CredentialsMissing", message="no Secret hf")
    ledger = attempts.noted(work(), {KEY: missing}, {}, 1000)
    assert not attempts.due(work(), ledger, 1004).applies
    assert attempts.due(work(), ledger, 1005).applies


def test_a_change_of_the_order_is_tried_at_once() -> None:
    ledger = attempts.noted(work(), {KEY: REFUSED}, {}, 1000)
    assert not attempts.due(work(), ledger, 1001).applies
    assert attempts.due(work(share={"memory": "9Gi"}), ledger, 1001).applies


def test_an_applied_order_is_forgotten() -> None:
    ledger = attempts.noted(work(), {KEY: REFUSED}, {}, 1000)
    assert attempts.noted(work(), {KEY: Outcome()}, ledger, 1010) == {}


def test_an_order_that_the_run_did_not_come_to_keeps_its_pauses() -> None:
    ledger = attempts.noted(work(), {KEY: REFUSED}, {}, 1000)
    assert attempts.noted(work(), {}, ledger, 1010) == ledger


def test_an_order_that_waits_for_a_deletion_is_tried_at_the_next_event() -> None:
    waiting = Outcome(reason="WorkloadProgressing", message="waiting for the deletion of the former StatefulSet chat")
    assert attempts.noted(work(), {KEY: waiting}, {}, 1000) == {}


def test_a_clock_that_was_set_back_holds_nobody() -> None:
    ledger = attempts.noted(work(), {KEY: REFUSED}, {}, 1000)
    assert attempts.due(work(), ledger, 10).applies


SINCE = datetime(2026, 11, 30, 10, tzinfo=UTC).timestamp()


def stranded(*, of_set: int | None = None, since: str | None = "2026-11-30T10:00:00Z") -> decide.Work:
    objects = stood(order(planned=plan()), service_class(), ready=False)
    if of_set is not None:
        only(objects, "StatefulSet")["metadata"]["uid"] = uid(of_set)
    words = "0/3 nodes are available: 3 cannot allocate all claims."
    waiting = pod(only(objects, "StatefulSet"), ready=False, served=False, unschedulable=words, since=since)
    objects = [*(item for item in objects if item["kind"] != "Pod"), waiting]
    seen = world.read(bindings.snapshots(orders.CONFIG, objects), bindings.values())
    return decide.work(seen, render.templates_digest())


def test_a_stranded_replica_is_left_to_the_scheduler_first_and_then_tried_at_growing_pauses() -> None:
    found = stranded()
    clock, ledger, tried = SINCE - 5, attempts.Ledger(), []
    while clock < SINCE + 1200:
        due = attempts.due(found, ledger, clock)
        if due.stranded:
            tried.append(clock - SINCE)
            ledger = attempts.noted(due, {}, ledger, clock)
        clock += 1
    assert tried == [10, 40, 100, 220, 520, 820, 1120]


def test_a_set_that_is_made_anew_inherits_no_pause() -> None:
    found = stranded()
    ledger = attempts.noted(attempts.due(found, {}, SINCE + 10), {}, {}, SINCE + 10)
    assert not attempts.due(found, ledger, SINCE + 11).stranded
    anew = stranded(of_set=77)
    assert attempts.due(anew, ledger, SINCE + 11).stranded


def test_a_replica_stranded_at_a_time_that_is_not_known_is_left_to_the_scheduler() -> None:
    found = stranded(since=None)
    assert found.stranded
    assert not attempts.due(found, {}, SINCE + 100).stranded


def test_a_ledger_that_cannot_be_read_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINDING_CONTEXT_PATH", str(tmp_path / "context.json"))
    assert attempts.read() == {}
    ledger = attempts.noted(work(), {KEY: REFUSED}, {}, 1000)
    attempts.write(ledger)
    assert attempts.read() == ledger
    (tmp_path / "ai-inference-attempts.json").write_text('["not a ledger"]')
    assert attempts.read() == {}
