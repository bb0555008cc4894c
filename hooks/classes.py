#!/usr/bin/env python3
# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Service classes, the planner's verdicts, device and storage classes → the status of each class. Writes no values."""

import json

from deckhouse import hook
from lib.ai_inference import classes, execute

QUEUE = "/modules/ai-inference/classes"
CONFIG = {
    "configVersion": "v1",
    "settings": {"executionMinInterval": "1s", "executionBurst": 3},
    "kubernetes": [bound.binding(group="classes", queue=QUEUE) for bound in classes.BOUND],
}


def main(ctx: hook.Context) -> None:
    statuses = classes.statuses(ctx.snapshots, execute.now())
    if statuses:
        execute.report_classes(statuses)


if __name__ == "__main__":
    hook.run(main, config=json.dumps(CONFIG))
