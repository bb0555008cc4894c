# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How much one evaluation may cost, and how large one value may grow."""

from collections.abc import Callable
from typing import Final

from ..values import Abort, BeyondBudget, Value

COST_LIMIT: Final = 1_000_000
"""What one evaluation of a device selector may cost (resource.k8s.io, CELSelectorExpressionMaxCost)."""

LONGEST: Final = 1 << 22
"""Our own bound on characters or elements of one value: beyond it an answer is not attempted."""

Implementation = Callable[..., Value]


class CostExceeded(Abort):
    """Kubernetes' own limit: a run-time error there, and here."""


def bounded(length: int) -> None:
    if length > LONGEST:
        raise BeyondBudget(f"a value of {length} characters or elements")


def affordable(cost: int) -> None:
    """Spares computing what will cost more than an evaluation may."""
    if cost > COST_LIMIT:
        raise CostExceeded("cost limit exceeded")
