#!/usr/bin/env python3
# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Orders, plans, classes and standing workloads → each order's workload, status and events. Writes no values.

decide (pure) → render → execute; see `lib/ai_inference`. Orders are applied one by one, outside the module's release:
whatever is refused to one order stays with it.
"""

import gc
import json
import time

from deckhouse import hook
from lib.ai_inference import attempts, decide, execute, kinds, metrics, render, settled, world

gc.disable()  # a run ends before there is garbage worth looking for, and the snapshots of a thousand orders are large
QUEUE = "/modules/ai-inference/orders"
CONFIG = {
    "configVersion": "v1",
    # A run takes longer than this: events that come meanwhile are one run all the same.
    "settings": {"executionMinInterval": "200ms", "executionBurst": 5},
    "kubernetes": [bound.binding(group="orders", queue=QUEUE) for bound in kinds.BOUND],
    "schedule": [{"name": "retry", "crontab": "*/30 * * * * *", "group": "orders", "queue": QUEUE}],
}


def main(ctx: hook.Context) -> None:
    before = settled.read()
    seen = world.read(ctx.snapshots, ctx.values, before, settled.rules())
    work = decide.work(seen, render.templates_digest())
    ledger = attempts.read()
    due = attempts.due(work, ledger, time.time())
    outcomes = {}
    left: set[world.Key] = set()
    if due.applies or due.scales or due.deletes or due.nudges or due.stranded:
        outcomes = execute.run(due)
        left = {apply.key for apply in due.applies} - outcomes.keys()
        attempts.write(attempts.noted(due, outcomes, ledger, time.time()))
    now = execute.now(time.time())
    statuses, records = decide.reports(seen, work, outcomes, now, left)
    if statuses or records:
        execute.report(statuses, records)
    settled.write(settled.after(seen, work, statuses, records, now), before)
    if not (outcomes or statuses):
        # What a run writes makes another one: the operator's work on a thousand series waits for the last of them.
        metrics.orders(ctx.metrics, world.every_order(ctx.snapshots))


if __name__ == "__main__":
    hook.run(main, config=json.dumps(CONFIG))
