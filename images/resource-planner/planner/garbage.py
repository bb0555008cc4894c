# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""How often Python looks for garbage in cycles: seldom, because a plan makes hundreds of thousands of records and none.

By default everything that stands is walked after every few hundred new records. At 5,000 orders on 8,000 devices that
was a quarter of the CPU time of a plan, and a walk in the middle of one decision was its worst case.
"""

from __future__ import annotations

import gc
from typing import Final

RECORDS: Final = 200_000
"""New records (minus freed ones) between two looks at the young ones; some 50 MiB at most wait for a look."""


def seldom() -> None:
    """For the life of this process. What stands now is never looked at again (freed all the same when unused)."""
    gc.set_threshold(RECORDS, 10, 10)
    gc.collect()
    gc.freeze()
