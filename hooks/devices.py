#!/usr/bin/env python3
# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""DRA objects → `aiInference.internal.devices` (a summary) and capacity metrics.

Values are compared before they are patched: a Helm run that changes nothing still takes half a second of the queue that
all modules share.
"""

import json

from deckhouse import hook
from lib.ai_inference import devices

QUEUE = "/modules/ai-inference/devices"
CONFIG = {
    "configVersion": "v1",
    "settings": {"executionMinInterval": "10s", "executionBurst": 1},
    "kubernetes": [bound.binding(group="devices", queue=QUEUE) for bound in devices.BOUND],
}


def main(ctx: hook.Context) -> None:
    internal = ctx.values.setdefault("aiInference", {}).setdefault("internal", {})
    found = devices.summary(ctx.snapshots)
    if internal.get("devices") != found:
        internal["devices"] = found
    devices.measure(ctx.metrics, ctx.snapshots)


if __name__ == "__main__":
    hook.run(main, config=json.dumps(CONFIG))
