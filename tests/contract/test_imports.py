# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Hooks and planner import what their own requirements pin and nothing else.

Tests run in one environment that has everything. An import that only a test's package supplies would be found in
production.
"""

import ast
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN = {"hooks": {"lib"}, "images/resource-planner": {"planner"}}
PINS = {"hooks": "requirements", "images/resource-planner": "images/resource-planner/requirements"}


def imported(folder: Path) -> Iterator[tuple[str, Path]]:
    """Top-level names that modules import, wherever in the file, with where."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from ((item.name.partition(".")[0], file) for item in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield (node.module or "").partition(".")[0], file


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(file: Path) -> set[str]:
    """Distributions that a requirements file names."""
    lines = (line.strip() for line in file.read_text().splitlines())
    return {normal(found[0]) for line in lines if (found := re.match(r"[A-Za-z0-9][\w.-]*", line))}


def provided() -> dict[str, set[str]]:
    return {name: {normal(item) for item in made_by} for name, made_by in metadata.packages_distributions().items()}


@pytest.mark.parametrize("folder", OWN)
def test_every_import_is_pinned(folder: str) -> None:
    pinned, distributions = names(ROOT / f"{PINS[folder]}.txt"), provided()
    found = {(name, file) for name, file in imported(ROOT / folder) if name not in sys.stdlib_module_names}
    foreign = {(name, file) for name, file in found if name not in OWN[folder]}
    assert foreign, "nothing was looked at"
    missing = {
        f"{name} in {file.relative_to(ROOT)}" for name, file in foreign if not distributions.get(name, set()) & pinned
    }
    assert missing == set()


def test_the_planner_asks_for_nothing_that_it_does_not_import() -> None:
    asked = names(ROOT / "images/resource-planner/requirements.in")
    used = {name for name, _ in imported(ROOT / "images/resource-planner")}
    distributions = provided()
    assert asked == {item for name in used for item in distributions.get(name, set())} - {"resource-planner"}
