# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""For how long `serve` lets changes gather before it plans."""

from __future__ import annotations

from typing import Any

from planner.kube.resources import OWN, Resource, watched
from planner.kube.view import View
from planner.serve import LULL_SECONDS, QUIET_SECONDS, settle

KINDS = {resource.kind: resource for resource in watched(True)}


def named(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": str(version)}}


class Watched(View):
    """A view that is told the next of `coming` while it is waited for, and notes how long that would have been."""

    def __init__(self, *coming: str) -> None:
        super().__init__(tuple(KINDS.values()))
        self.coming = [KINDS[kind] for kind in coming]
        self.waited: list[float] = []

    def change(self, resource: Resource) -> None:
        self.put(resource, named(f"o{self.count}", self.count + 1), OWN)

    def wait(self, seen: int, seconds: float) -> int:
        self.waited.append(seconds)
        if self.coming:
            self.change(self.coming.pop(0))
        return self.count


def test_an_order_or_a_class_is_planned_after_a_short_silence() -> None:
    for kind in ("InferenceService", "InferenceServiceClass"):
        view = Watched()
        answered = view.asked
        view.change(KINDS[kind])
        settle(view, answered)
        assert view.waited == [QUIET_SECONDS]


def test_what_becomes_of_a_plan_gathers_for_longer() -> None:
    for kind in ("ResourceClaim", "Pod", "PersistentVolumeClaim", "StatefulSet", "Node", "ResourceSlice"):
        view = Watched("ResourceClaim")
        answered = view.asked
        view.change(KINDS[kind])
        settle(view, answered)
        assert view.waited == [LULL_SECONDS, LULL_SECONDS]


def test_an_order_that_comes_meanwhile_ends_the_long_wait() -> None:
    view = Watched("InferenceService", "Pod")
    answered = view.asked
    view.change(KINDS["ResourceClaim"])
    settle(view, answered)
    assert view.waited == [LULL_SECONDS, QUIET_SECONDS, QUIET_SECONDS]


def test_the_first_plan_and_what_cannot_be_read_wait_for_no_lull() -> None:
    view = Watched()
    view.change(KINDS["ResourceClaim"])
    settle(view, None)
    answered = view.asked
    view.wake()
    settle(view, answered)
    assert view.waited == [QUIET_SECONDS, QUIET_SECONDS]
