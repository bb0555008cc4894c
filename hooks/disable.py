#!/usr/bin/env python3
# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The module is switched off → every order's workload is removed and the hooks' metrics expire.

Orders, classes, tokens and model volumes are kept: enabling the module brings every order back as it was.
"""

import json

from deckhouse import hook
from lib.ai_inference import metrics, release

CONFIG = {"configVersion": "v1", "afterDeleteHelm": 10}


def main(ctx: hook.Context) -> None:
    if ctx.binding_context.get("binding") != "afterDeleteHelm":
        return
    release.remove_workloads()
    for group in metrics.GROUPS:
        ctx.metrics.expire(group)


if __name__ == "__main__":
    hook.run(main, config=json.dumps(CONFIG))
