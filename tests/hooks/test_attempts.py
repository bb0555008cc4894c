# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""When a refused order is tried again."""

from __future__ import annotations

from pathlib import Path

import orders
import pytest
from lib.ai_inference import attempts, decide, world
from lib.ai_inference.conditions import Outcome

from tests.hooks import bindings
from tests.hooks.objects import order, plan, service_class

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


def test_a_ledger_that_cannot_be_read_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINDING_CONTEXT_PATH", str(tmp_path / "context.json"))
    assert attempts.read() == {}
    ledger = attempts.noted(work(), {KEY: REFUSED}, {}, 1000)
    attempts.write(ledger)
    assert attempts.read() == ledger
    (tmp_path / "ai-inference-attempts.json").write_text('["not a ledger"]')
    assert attempts.read() == {}
