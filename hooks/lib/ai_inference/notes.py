# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What one run of a hook leaves for the next: small files beside the operator's other temporary files.

A hook is a process per event, and the operator's container may lose the files at any time. So a note only saves work:
without it everything is looked at, or tried, once more. Nothing secret belongs here.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def read(name: str) -> Any:
    """The content of a note; None: there is none, or it cannot be read."""
    try:
        return json.loads(file(name).read_text())
    except (OSError, ValueError):
        return None


def write(name: str, content: Any) -> None:
    """Replace a note whole; one that cannot be written is left as it was."""
    path = file(name)
    fresh = path.with_suffix(f".{os.getpid()}")
    try:
        fresh.write_text(json.dumps(content))
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)


def file(name: str) -> Path:
    """Where a note lies."""
    contexts = os.environ.get("BINDING_CONTEXT_PATH")
    folder = Path(contexts).parent if contexts else Path(tempfile.gettempdir())
    return folder / f"ai-inference-{name}.json"
