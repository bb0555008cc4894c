# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Labels, annotations, field managers, names that other parts rely on. Renaming one orphans live objects."""

from __future__ import annotations

from typing import Final

GROUP: Final = "ai-inference.deckhouse.io"
NAMESPACE: Final = "d8-ai-inference"

MANAGED: Final = f"{GROUP}/managed"
ORDER: Final = f"{GROUP}/inference-service"
RELEASE: Final = f"{GROUP}/runtime-release"
"""Label of pods: the runtime release that a replica runs. Not a hash of the template: ai-models edits that too."""

HASH: Final = f"{GROUP}/values-hash"
ORDER_UID: Final = f"{GROUP}/order-uid"
EDIT: Final = f"{GROUP}/edit-hash"
"""What user, class and placement ask of a replica. The class's update strategy is used when this changes."""
POD: Final = f"{GROUP}/pod-hash"
"""Everything that reaches the pod template. A difference here alone never restarts a replica that serves."""
INPUTS: Final = f"{GROUP}/inputs-hash"
"""Of a set: what its values were computed from, and how many objects they make. Saves computing them again."""
PLACEMENT: Final = f"{GROUP}/placement"
RETRIED: Final = f"{GROUP}/retried-at"

MODEL: Final = "ai.deckhouse.io/model"
CLUSTER_MODEL: Final = "ai.deckhouse.io/clustermodel"
DELIVERY_GATE: Final = "ai.deckhouse.io/model-delivery"
DELIVERY_BLOCKED_REASON: Final = "ai.deckhouse.io/model-delivery-blocked-reason"
DELIVERY_BLOCKED_MESSAGE: Final = "ai.deckhouse.io/model-delivery-blocked-message"

WORKLOAD_MANAGER: Final = "ai-inference"
STATUS_MANAGER: Final = "ai-inference-status"
RETRY_MANAGER: Final = "ai-inference-retry"

CLAIM_REQUEST: Final = "gpu"
VOLUME: Final = "storage"
RUNTIME_CONTAINER: Final = "runtime"

OURS: Final = {"heritage": "deckhouse", "module": "ai-inference", MANAGED: "true"}
"""The labels by which everything of every order is found, also when orders and their CRD are gone."""


def labels(order: str) -> dict[str, str]:
    """Labels of each object of the order `order`."""
    return {**OURS, ORDER: order}


def selector(order: str) -> dict[str, str]:
    """Labels of the order's pods and claims, and the selector that finds them."""
    return {MANAGED: "true", ORDER: order}
