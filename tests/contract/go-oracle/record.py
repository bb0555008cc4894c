# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Asks the real evaluators and writes what they say.

    python tests/contract/go-oracle/record.py selectors 1.34=./selectors-1.34 1.36=./selectors-1.36 …
    python tests/contract/go-oracle/record.py values ./values

Each binary is this directory's `selectors` (or `values`) built against the `k8s.io/dynamic-resource-allocation` of that
Kubernetes version: in a copy of this directory,

    go get k8s.io/dynamic-resource-allocation@v0.34.9 && go mod tidy && go build -o selectors-1.34 ./selectors

The recorded run used v0.34.9, v0.35.6, v0.36.2 and v0.37.0-alpha.2 (the versions of `cel-golden.json`), and v0.37.2 for
values. Maps iterate in random order there, so the cost of a few cases differs from run to run; outcomes do not.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import questions
import value_questions

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def ask(binary: str, lines: list[str]) -> list[dict[str, Any]]:
    """The answers of a binary, one for each line."""
    run = subprocess.run([binary], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(lines)
    return answers


def record_selectors(binaries: dict[str, str]) -> None:
    asked = list(questions.questions())
    cases = [
        {"id": one["id"], "expression": one["expression"], "device": kind, "outcome": {}, "cost": {}}
        for one in asked
        for kind in [next(name for name, device in questions.DEVICES.items() if device["device"] is one["device"])]
    ]
    for version, binary in binaries.items():
        for case, answer in zip(cases, ask(binary, [json.dumps(one) for one in asked]), strict=True):
            case["outcome"][version] = answer["outcome"]
            if isinstance(answer["outcome"], bool):
                case["cost"][version] = answer["cost"]
    for case in cases:
        for key in ("outcome", "cost"):
            values = list(case[key].values())
            if len(values) == len(binaries) and all(value == values[0] for value in values):
                case[key] = values[0]
    document = {"format": 2, "versions": list(binaries), "devices": questions.DEVICES}
    write(FIXTURES / "cel-golden-more.json", document, "cases", cases)


def record_values(binary: str) -> None:
    for name, kind in (("quantity", "quantity"), ("semver", "semver")):
        asked = list(value_questions.questions(kind))
        answers = ask(binary, [json.dumps({"kind": kind, **one}) for one in asked])
        cases = [{**one, **answer} for one, answer in zip(asked, answers, strict=True)]
        write(FIXTURES / f"{name}-golden.json", {"format": 1}, "cases", cases)


def write(path: Path, document: dict[str, Any], key: str, cases: list[dict[str, Any]]) -> None:
    """One case a line: a change is then read as one."""
    head = json.dumps(document, ensure_ascii=False)[:-1]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    path.write_text(f'{head}, "{key}": [\n{lines}\n]}}\n')
    print(f"{path.name}: {len(cases)} cases", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "selectors":
        record_selectors(dict(argument.split("=", 1) for argument in sys.argv[2:]))
    else:
        record_values(sys.argv[2])
