# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How long to wait before the next try."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Doubling delays with jitter: the n-th try waits between half and the whole of min(first * 2**n, most) seconds.

    The jitter keeps a dozen watches, and two replicas, from asking a restarted API server in the same instant.
    """

    first: float = 0.5
    most: float = 30.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after `failures` failed tries in a row (0 counts as 1)."""
        whole = min(self.first * 2.0 ** min(max(failures - 1, 0), 30), self.most)
        return whole * random.uniform(0.5, 1.0)
