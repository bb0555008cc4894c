# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Our engine renders orders byte for byte as Helm does, in the release that addon-operator links.

Helm's answers are recorded in tests/fixtures/render/helm-3.19.5, each with the values it was asked with and a digest of
the order templates: building `go-helm` takes minutes, so only `make golden` does it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import render as tool
import yaml
from lib.ai_inference import render

PROGRAM: Final = Path(__file__).parent / "go-helm"
RELEASE: Final = "3.19.5"
RECORDS: Final = tool.CASES / f"helm-{RELEASE}"
CASES: Final = sorted(path.stem for path in tool.CASES.glob("*.yaml"))
RELEASE_NAME: Final = {"name": "ai-inference", "namespace": "d8-ai-inference"}
HINT: Final = "the record of Helm's answer is stale: run `make golden`, which needs Go, and read the difference"


def test_every_case_is_recorded_and_nothing_else() -> None:
    assert sorted(path.stem for path in RECORDS.glob("*.yaml")) == CASES, HINT


@pytest.mark.parametrize("name", CASES)
def test_helm_renders_the_same_bytes(name: str) -> None:
    record = yaml.safe_load((RECORDS / f"{name}.yaml").read_text())
    assert record["templates"] == render.templates_digest(), HINT
    assert render._chart().render(record["values"], **RELEASE_NAME) == record["rendered"]


def test_the_program_and_the_operator_link_the_recorded_release() -> None:
    for module in (PROGRAM, tool.ROOT / "tools" / "testbed" / "go" / "addon-operator"):
        required = [line.split() for line in (module / "go.mod").read_text().splitlines()]
        found = {words[1] for words in required if words[:1] == ["helm.sh/helm/v3"] and len(words) > 1}
        found |= {words[2] for words in required if words[:2] == ["require", "helm.sh/helm/v3"]}
        assert found == {f"v{RELEASE}"}, module


class _Text(yaml.SafeDumper):
    """Rendered manifests as they are, line by line."""


_Text.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def main() -> None:
    """Ask Helm and write the records. Raises SystemExit where there is no Go."""
    if shutil.which("go") is None:
        raise SystemExit(f"no Go here: the records of {RECORDS.relative_to(tool.ROOT)} stay as they are")
    binary = tool.ROOT / "build" / "go-helm"
    print("building Helm's engine: minutes for the first time", file=sys.stderr)
    subprocess.run(["go", "build", "-trimpath", "-o", binary, "."], cwd=PROGRAM, check=True)
    files = {"Chart.yaml": render._CHART.decode(), **{path: data.decode() for path, data in render._files().items()}}
    cases: dict[str, Any] = {
        name: {"aiInference": {"internal": {"order": dict(tool.wanted(tool.case(name)).values)}}} for name in CASES
    }
    asked = "\n".join(json.dumps({"files": files, "values": json.dumps(values)}) for values in cases.values())
    done = subprocess.run([binary], input=asked, stdout=subprocess.PIPE, text=True, check=True)
    RECORDS.mkdir(exist_ok=True)
    for path in RECORDS.glob("*.yaml"):
        path.unlink()
    for (name, values), answer in zip(cases.items(), done.stdout.splitlines(), strict=True):
        record = {"templates": render.templates_digest(), "values": values, "rendered": json.loads(answer)}
        (RECORDS / f"{name}.yaml").write_text(
            yaml.dump(record, Dumper=_Text, allow_unicode=True, sort_keys=False, width=120)
        )


if __name__ == "__main__":
    main()
