# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Delays between tries."""

from planner.kube.backoff import Backoff


def test_delays_double_up_to_the_most_and_never_fall_under_half() -> None:
    backoff = Backoff(first=1.0, most=8.0)
    for failures, whole in ((0, 1.0), (1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 8.0), (10_000, 8.0)):
        delays = [backoff.delay(failures) for _ in range(200)]
        assert whole / 2 <= min(delays) <= max(delays) <= whole


def test_two_replicas_do_not_ask_in_the_same_instant() -> None:
    assert len({Backoff().delay(3) for _ in range(50)}) > 1
