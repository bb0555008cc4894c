# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The record of the module's own Helm release, and everything that must go when the module is switched off."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

from lib.ai_inference import kinds, names

_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_NAMESPACE: Final = "d8-system"
_REMOVED: Final = ("StatefulSet", "PodDisruptionBudget", "Service", "ResourceClaimTemplate")
"""Sets first, so that no pod comes back. Tokens and volumes stay: they go with their orders."""
_ROUNDS: Final = 5
_PAUSE_SECONDS: Final = 1.0


def operator_namespace() -> str:
    """Where the operator keeps its release records.

    Hooks inherit the operator's environment: Deckhouse names the namespace there. A stock operator may have been told
    by a flag, which no hook sees, so the namespace of its pod comes next, and Deckhouse's own where there is no pod.
    """
    named = os.environ.get("ADDON_OPERATOR_NAMESPACE", "").strip()
    if named:
        return named
    try:
        return _ACCOUNT_NAMESPACE.read_text().strip() or _DEFAULT_NAMESPACE
    except OSError:
        return _DEFAULT_NAMESPACE


def clear_uninstalling() -> list[str]:
    """Delete the module's release records that were left in `uninstalling`; the names of those deleted."""
    from lib.ai_inference.api import Api

    namespace = operator_namespace()
    api = Api(1)
    selector = {"owner": "helm", "name": "ai-inference", "status": "uninstalling"}
    found = api.list_metadata(kinds.path("Secret", namespace), selector)
    for record in found:
        api.delete(kinds.path("Secret", namespace, record["name"]), uid=record["uid"])
        print(f"removed the release record {record['name']}, left in uninstalling", file=sys.stderr)  # noqa: T201
    return [record["name"] for record in found]


def remove_workloads() -> int:
    """Delete every workload of every order in every namespace; how many objects. Orders, classes, tokens, weights stay.

    Found by label, not by order: orders and their CRD may be gone. Rounds are repeated until nothing is found: a run of
    `orders` that had begun before the module was switched off may still be writing. Can be called again.
    """
    from lib.ai_inference.api import Api

    api = Api(4)
    removed: set[str] = set()
    for attempt in range(_ROUNDS):
        found = [
            (kind, item)
            for kind in _REMOVED
            for item in api.list_metadata(kinds.path(kind, None), names.OURS)
            if not item.get("deletionTimestamp")
        ]
        for kind, item in found:
            api.delete(kinds.path(kind, item["namespace"], item["name"]), uid=item["uid"])
            removed.add(item["uid"])
        if not found and attempt > 0:
            break
        time.sleep(_PAUSE_SECONDS)
    return len(removed)
