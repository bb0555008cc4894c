# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Orders for which nothing was left to do: a run reads only the others, so that it costs what changed.

An order is settled under the digest of everything that it was judged by (`world.World.digests`), so that any change of
it makes it be read again. The clock is the only thing outside the digest: an order that waits for a time is not
settled.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from lib.ai_inference import decide, notes, render
from lib.ai_inference.decide import Record, SetStatus, Work
from lib.ai_inference.world import Key, World

NOTE: Final = "settled"


def read() -> dict[Key, str]:
    """Digests of the orders that earlier runs left settled; empty when there is no note or it cannot be read."""
    found = notes.read(NOTE)
    try:
        return {(namespace, name): str(digest) for namespace, name, digest in found}
    except (TypeError, ValueError):
        return {}


def write(settled: Mapping[Key, str], before: Mapping[Key, str]) -> None:
    """Note what is settled after this run, if it differs from what was `before`."""
    if settled != before:
        notes.write(NOTE, [(*key, digest) for key, digest in settled.items()])


def after(
    world: World, work: Work, statuses: Collection[SetStatus], records: Collection[Record], now: str
) -> dict[Key, str]:
    """What is settled after a run that found this work and published these statuses and events.

    Whatever was written, or has yet to be, is looked at again by the next run: also what the API server refused.
    """
    pending = work.busy | {item.order.key for item in statuses} | {(item.namespace, item.name) for item in records}
    pending |= {order.key for order in world.orders if decide.newborn(order, now)}
    return {key: digest for key, digest in world.digests.items() if key not in pending}


@functools.cache
def rules() -> str:
    """A digest of what orders are judged with: the templates and the code of the hooks themselves."""
    code = {path.name: path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))}
    return render.files_digest({"templates": render.templates_digest().encode(), **code})
