# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""One chart serves both: the module's release never holds an order, and an order's render never holds the module."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest
import render as tool
import yaml
from helm_python import Chart
from lib.ai_inference import render

from tests.hooks import bindings

CASES = sorted(path.stem for path in tool.CASES.glob("*.yaml"))
ROOMS = ("Chart.yaml", "templates", "charts", "monitoring")


@pytest.fixture(scope="module")
def whole() -> Chart:
    """The module's chart as it is shipped: every template, not only those of orders."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for room in ROOMS:
            if (render.MODULE / room).exists():
                archive.add(render.MODULE / room, f"ai-inference/{room}")
    return Chart.load_archive(buffer.getvalue())


def rendered(chart: Chart, order: Any = None) -> dict[str, str]:
    """Non-empty documents by template, with the module's values and, if given, those of an order."""
    found = bindings.values()
    if order is not None:
        found["aiInference"]["internal"]["order"] = dict(order)
    documents = chart.render(found, name="ai-inference", namespace="d8-system")
    return {
        path: text
        for path, text in documents.items()
        if not path.endswith((".tpl", "NOTES.txt")) and any(yaml.safe_load_all(text))
    }


def test_the_release_of_the_module_holds_no_order(whole: Chart) -> None:
    made = rendered(whole)
    assert made
    assert not [path for path in made if "/templates/orders/" in path]


@pytest.mark.parametrize("name", CASES)
def test_the_render_of_an_order_holds_nothing_of_the_module(whole: Chart, name: str) -> None:
    """And the manifests are those that the hook makes from its chart of order templates alone."""
    case = yaml.safe_load((tool.CASES / f"{name}.yaml").read_text())
    order_values = tool.wanted(case).values
    made = rendered(whole, order_values)
    assert not [path for path in made if "/templates/orders/" not in path]
    by_kind = {item["kind"]: item for item in map(yaml.safe_load, made.values())}
    assert by_kind == {item["kind"]: item for item in render.manifests(order_values)}
