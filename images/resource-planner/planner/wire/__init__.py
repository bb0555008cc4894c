# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Kubernetes objects → `Snapshot`, `OrderPlan` ↔ `status.plan`, and the replay file. camelCase lives only here.

Objects come as parsed JSON with a word on where they were read. Kinds that don't matter to a decision are left alone.
What the CRD would refuse is refused here too (`BadInput` names source and field), so that an answer is never built on a
field that was overlooked. Two copies of one object: equal ones count once, of different ones the higher
`resourceVersion` counts; without both versions they are refused, because the answer must not depend on file order.
"""

from planner.wire.answers import capacity_json, class_status, plan_json
from planner.wire.classes import read_class
from planner.wire.documents import BadInput, Document, by_kind, flatten, parse_value
from planner.wire.objects import snapshot
from planner.wire.orders import read_order
from planner.wire.plans import milli, plan_status, read_plan
from planner.wire.replay import REPLAY_KIND, from_replay, replay

__all__ = [
    "REPLAY_KIND",
    "BadInput",
    "Document",
    "by_kind",
    "capacity_json",
    "class_status",
    "flatten",
    "from_replay",
    "milli",
    "parse_value",
    "plan_json",
    "plan_status",
    "read_class",
    "read_order",
    "read_plan",
    "replay",
    "snapshot",
]
