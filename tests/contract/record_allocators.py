# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Record what a real allocator answers to seeded random clusters.

    python tests/contract/record_allocators.py BINARY --release v0.37.2 > tests/fixtures/allocator-answers.json

BINARY is one that `go-allocator/build.sh` makes. One letter per question: allocated, none, error; `c` is the error that
an `All` member refused by a constraint is turned into, where the API text says none or another alternative.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tests.contract import random_clusters  # noqa: E402

RUNS = (("plain", 101, 500), ("plain", 102, 500), ("hazards", 201, 500), ("hazards", 202, 500), ("cards", 301, 400))
"""Kind, seed and number of questions."""

REFUSED_MEMBER = "because a claim constraint would not be satisfied"


def questions(kind: str, seed: int, count: int) -> Iterator[dict[str, Any]]:
    """The questions of a run."""
    if kind == "cards":
        return random_clusters.cards(seed, count)
    return random_clusters.questions(seed, count, hazards=kind == "hazards")


def asked(kind: str, seed: int, count: int) -> list[str]:
    """The questions of a run, a line each."""
    return [json.dumps(question, sort_keys=True) for question in questions(kind, seed, count)]


def fingerprint(lines: list[str]) -> str:
    """Tells whether the questions are still those that were answered."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def letters(binary: Path, lines: list[str]) -> str:
    """The answers, a letter each."""
    run = subprocess.run([binary], input="\n".join(lines), capture_output=True, text=True, check=True)
    found = []
    for line in run.stdout.splitlines():
        answer: dict[str, Any] = json.loads(line)
        found.append("c" if REFUSED_MEMBER in answer.get("cause", "") else answer["outcome"][0])
    return "".join(found)


def main() -> None:
    """Print the record."""
    parser = argparse.ArgumentParser(description="record the answers of a real allocator")
    parser.add_argument("binary", type=Path)
    parser.add_argument("--release", required=True)
    options = parser.parse_args()
    runs = []
    for kind, seed, count in RUNS:
        lines = asked(kind, seed, count)
        runs.append(
            {
                "kind": kind,
                "seed": seed,
                "count": count,
                "questions": fingerprint(lines),
                "answers": letters(options.binary, lines),
            }
        )
    print(json.dumps({"allocator": f"k8s.io/dynamic-resource-allocation {options.release}", "runs": runs}, indent=1))


if __name__ == "__main__":
    main()
