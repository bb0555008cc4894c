#!/usr/bin/env python3
# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Global values → `aiInference.internal.discovery`; a release record left in `uninstalling` → removed.

The second is for a module that was being disabled when its operator died and that was enabled again before the operator
came back: Helm refuses every run of such a release, for ever. Hooks of this kind run before Helm.
"""

import json

from deckhouse import hook
from lib.ai_inference import release

CONFIG = {"configVersion": "v1", "onStartup": 10}


def main(ctx: hook.Context) -> None:
    release.clear_uninstalling()
    discovery = (ctx.values.get("global") or {}).get("discovery") or {}
    found = {
        "clusterDomain": str(discovery.get("clusterDomain") or "cluster.local"),
        "kubernetesVersion": str(discovery.get("kubernetesVersion") or ""),
    }
    internal = ctx.values.setdefault("aiInference", {}).setdefault("internal", {})
    if internal.get("discovery") != found:
        internal["discovery"] = found


if __name__ == "__main__":
    hook.run(main, config=json.dumps(CONFIG))
