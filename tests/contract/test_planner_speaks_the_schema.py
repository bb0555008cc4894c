# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The planner's reader and writer against the schemas: what the API server accepts it reads, what it writes fits."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from planner import wire
from planner.model import Key

MANIFESTS = Path(__file__).parents[1] / "fixtures" / "manifests"
GOOD: dict[str, dict[str, Any]] = yaml.safe_load((MANIFESTS / "good.yaml").read_text())


def test_a_plan_with_every_field_of_the_schema_is_read_and_written_without_losing_one() -> None:
    """The schema's fields are the fixture's (test_crds); a field that only the planner knew would be dropped there."""
    plan = yaml.safe_load((MANIFESTS / "full-status.yaml").read_text())["plan"]
    assert wire.plan_status(wire.read_plan(plan, Key(namespace="team-a", name="drafts"))) == plan


@pytest.mark.parametrize("manifest", GOOD.values(), ids=GOOD)
def test_the_planner_reads_whatever_the_api_server_accepts(manifest: dict[str, Any]) -> None:
    read = wire.read_order if manifest["kind"] == "InferenceService" else wire.read_class
    read(manifest)
