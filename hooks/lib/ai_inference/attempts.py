# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""When a refused order, or a replica without a device, is tried again: after a pause that grows.

A refused order that changed in anything is tried at once.

The ledger only saves work: lost, every refused order is tried once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lib.ai_inference import notes
from lib.ai_inference.conditions import REFUSALS, Outcome
from lib.ai_inference.decide import Nudge, Work
from lib.ai_inference.world import Key, Replica

NOTE: Final = "attempts"
PAUSES: Final = (5, 15, 30)
"""Seconds before the second, third and every later attempt. A schedule runs the hook twice a minute: an order comes up
within a minute after the cause is gone."""
STRANDED_AFTER: Final = 10
"""Seconds that a replica is left to kube-scheduler, which may be about to look again by itself."""
STRANDED_PAUSES: Final = (30, 60, 120, 300)
"""Seconds between attempts at one replica. kube-scheduler itself looks again after 300."""


@dataclass(frozen=True, slots=True)
class Attempt:
    hash: str
    failures: int
    due: float


Ledger = dict[str, Attempt]


def read() -> Ledger:
    """What earlier runs noted; empty when there is no note or it cannot be read."""
    noted = notes.read(NOTE)
    try:
        return {uid: Attempt(*entry) for uid, entry in noted.items()}
    except (AttributeError, TypeError):
        return {}


def write(ledger: Ledger) -> None:
    notes.write(NOTE, {uid: [entry.hash, entry.failures, entry.due] for uid, entry in ledger.items()})


def due(work: Work, ledger: Ledger, clock: float) -> Work:
    """The part of the work whose time has come. `clock` in seconds."""

    def waits(uid: str, hash_: str, pauses: Sequence[int] = PAUSES) -> bool:
        noted = ledger.get(uid)
        # A clock that was set back must not hold anybody for long.
        return noted is not None and noted.hash == hash_ and clock < noted.due <= clock + max(pauses)

    return replace(
        work,
        applies=tuple(apply for apply in work.applies if not waits(apply.order.uid, apply.hash)),
        scales=tuple(item for item in work.scales if not waits(item[0].uid, "scale")),
        nudges=tuple(item for item in work.nudges if not waits(_nudged(item), "")),
        stranded=tuple(
            (order, pod)
            for order, pod in work.stranded
            if _without_node(pod, clock) >= STRANDED_AFTER and not waits(_stranded(pod), "", STRANDED_PAUSES)
        ),
    )


def _without_node(pod: Replica, clock: float) -> float:
    """Seconds for which kube-scheduler has found no node; a time that is not known, or to come, is none."""
    return clock - datetime.fromisoformat(pod.unschedulable_since).timestamp() if pod.unschedulable_since else 0.0


def _nudged(item: Nudge) -> str:
    return f"{item.kind}/{item.namespace}/{item.name}"


def _stranded(pod: Replica) -> str:
    # What comes instead of the pod has its name and another uid; a set that is made anew starts afresh.
    return f"stranded/{pod.owner}/{pod.name}"


def noted(work: Work, outcomes: Mapping[Key, Outcome], ledger: Ledger, clock: float) -> Ledger:
    """The ledger after this run: `work` is what was attempted. Orders that are applied, or gone, are forgotten."""
    result = {uid: entry for uid, entry in ledger.items() if entry.due > clock - 10 * max(PAUSES)}
    attempted = [(apply.order, apply.hash) for apply in work.applies if apply.key in outcomes]
    attempted += [(order, "scale") for order, _ in work.scales]
    for order, hash_ in attempted:
        outcome = outcomes.get(order.key)
        # An order that waits for something of ours to go is not refused: the event of its going makes the next attempt.
        if outcome is None or outcome.reason not in REFUSALS:
            result.pop(order.uid, None)
            continue
        result[order.uid] = _again(ledger.get(order.uid), hash_, PAUSES, clock)
    for _, pod in work.stranded:
        result[_stranded(pod)] = _again(ledger.get(_stranded(pod)), "", STRANDED_PAUSES, clock)
    for item in work.nudges:
        result[_nudged(item)] = Attempt("", 1, clock + PAUSES[-1] - 2)
    return result


def _again(before: Attempt | None, hash_: str, pauses: Sequence[int], clock: float) -> Attempt:
    """The note of one more attempt at the same: the pause after it is the next of `pauses`, at the end the last."""
    failures = before.failures if before is not None and before.hash == hash_ else 0
    return Attempt(hash_, failures + 1, clock + pauses[min(failures, len(pauses) - 1)])
