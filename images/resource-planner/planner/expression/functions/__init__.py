# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What each overload computes and what it costs."""

from collections.abc import Mapping
from typing import Final

from .costs import Cost, cost_of, equality_cost, smaller_cost
from .kubernetes import KUBERNETES
from .limits import COST_LIMIT, CostExceeded, Implementation
from .lists import LISTS, UNGUARDED
from .operators import CONVERSIONS, OPERATORS, index, lookup
from .texts import TEXTS
from .times import TIMES

__all__ = [
    "CONVERSIONS", "COST_LIMIT", "IMPLEMENTATIONS", "OPERATORS", "UNGUARDED", "Cost", "CostExceeded", "Implementation",
    "cost_of", "equality_cost", "index", "lookup", "smaller_cost",
]  # fmt: skip

IMPLEMENTATIONS: Final[Mapping[str, Implementation]] = {**TEXTS, **LISTS, **KUBERNETES, **TIMES}
"""By overload; one that is missing here exists upstream but has no values a selector could reach."""
