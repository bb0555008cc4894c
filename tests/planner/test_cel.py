# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What a selector's answer looks like: causes, shapes, limits. Agreement with Kubernetes: `tests/contract`."""

from typing import Any

import pytest
from planner import cel
from planner.cel import Answer, Verdict
from planner.semver import Version

GPU: dict[str, Any] = {
    "name": "gpu-0",
    "attributes": {
        "type": {"string": "gpu"},
        "index": {"int": 1},
        "good": {"bool": True},
        "driverVersion": {"version": "580.95.5"},
        "other.example.com/numa": {"int": 0},
    },
    "capacity": {"memory": {"value": "81559Mi"}},
}
NVIDIA = 'device.attributes["gpu.nvidia.com"]'


def judged(expression: str, raw: dict[str, Any] | None = None, release: tuple[int, int] = (1, 36)) -> Answer:
    return cel.compile(expression, release).judge(cel.cel_device("gpu.nvidia.com", GPU if raw is None else raw))


CASES = {
    "a match has no cause": (f'{NVIDIA}.type == "gpu"', Answer(Verdict.MATCH)),
    "so has no match": (f'{NVIDIA}.type == "mig"', Answer(Verdict.NO_MATCH)),
    "a missing attribute is named": (
        f'{NVIDIA}.migProfile == "1g"',
        Answer(Verdict.RUNTIME_ERROR, "no such key: migProfile"),
    ),
    "an attribute that is no bool is no answer": (
        f"{NVIDIA}.type",
        Answer(Verdict.RUNTIME_ERROR, "the result is of type string, not bool"),
    ),
    "a result that can never be a bool does not compile": (
        "1",
        Answer(Verdict.COMPILE_ERROR, "must evaluate to bool or the unknown type, not int"),
    ),
    "an unknown field is named": ("device.nosuch", Answer(Verdict.COMPILE_ERROR, "undefined field 'nosuch'")),
    "an unknown name is named": ("nosuch", Answer(Verdict.COMPILE_ERROR, "undeclared reference to 'nosuch'")),
    "what no overload takes is shown with its types": (
        'device.capacity["gpu.nvidia.com"].memory >= quantity("40Gi")',
        Answer(
            Verdict.COMPILE_ERROR,
            "found no matching overload for '_>=_' applied to (kubernetes.Quantity, kubernetes.Quantity)",
        ),
    ),
    "a bad quantity is named": (
        'quantity("40GB").isInteger()',
        Answer(Verdict.RUNTIME_ERROR, "'40GB' is no quantity: a number with an optional suffix is expected"),
    ),
    "the end of the text is a place too": ("device.driver ==", Answer(Verdict.COMPILE_ERROR, "unexpected end")),
    "what costs too much ends as in Kubernetes": (
        "lists.range(1000).all(a, lists.range(1000).all(b, true))",
        Answer(Verdict.RUNTIME_ERROR, "cost limit exceeded"),
    ),
    "what this engine does not know is not guessed": (
        "google.protobuf.Int64Value{value: 1} == 1",
        Answer(
            Verdict.COMPILE_ERROR,
            "not supported here: a literal of message google.protobuf.Int64Value",
            unsupported=True,
        ),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_answer(case: tuple[str, Answer]) -> None:
    expression, wanted = case
    assert judged(expression) == wanted


def test_a_program_tells_its_error() -> None:
    assert cel.compile("true", (1, 36)).error is None
    assert cel.compile("?!", (1, 36)).error == "unexpected '?' at 0"


def test_includes_exists_from_1_36_on() -> None:
    verdicts = [judged(f'{NVIDIA}.type.includes("gpu")', release=(1, minor)).verdict for minor in range(33, 40)]
    assert verdicts == [Verdict.COMPILE_ERROR] * 3 + [Verdict.MATCH] * 4


def test_one_release_is_compiled_once() -> None:
    assert cel.compile("true", (1, 36)) is cel.compile("true", (1, 36))


def test_devices_of_one_shape_are_equal_whatever_their_names() -> None:
    one = cel.cel_device("gpu.nvidia.com", GPU)
    other = cel.cel_device("gpu.nvidia.com", {**GPU, "name": "gpu-7", "consumesCounters": []})
    assert (one == other, hash(one) == hash(other)) == (True, True)
    assert one.attributes == (
        ("gpu.nvidia.com/driverVersion", Version(580, 95, 5)),
        ("gpu.nvidia.com/good", True),
        ("gpu.nvidia.com/index", 1),
        ("gpu.nvidia.com/type", "gpu"),
        ("other.example.com/numa", 0),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"bool": True}, {"int": 1}),
        ({"bool": False}, {"int": 0}),
        ({"string": "1.0.0"}, {"version": "1.0.0"}),
        ({"version": "1.0.0"}, {"version": "1.0.0+a"}),
        ({"int": 1}, {"string": "1"}),
    ],
)
def test_shapes_that_a_selector_can_tell_apart_differ(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert cel.cel_device("d", {"attributes": {"a": one}}) != cel.cel_device("d", {"attributes": {"a": other}})


def test_equal_amounts_written_differently_are_different_shapes() -> None:
    one, other = ({"capacity": {"a": {"value": text}}} for text in ("1", "1000m"))
    assert cel.cel_device("d", one) != cel.cel_device("d", other)
    expression = 'device.capacity["d"].a.isInteger()'
    program = cel.compile(expression, (1, 36))
    assert [program.judge(cel.cel_device("d", raw)).verdict for raw in (one, other)] == [
        Verdict.MATCH,
        Verdict.NO_MATCH,
    ]


def test_what_an_evaluation_does_to_an_amount_is_forgotten_with_it() -> None:
    expression = (
        'device.capacity["gpu.nvidia.com"].memory.isGreaterThan(quantity("1.5Gi")) '
        '&& !device.capacity["gpu.nvidia.com"].memory.isInteger()'
    )
    device = cel.cel_device("gpu.nvidia.com", GPU)
    assert [cel.compile(expression, (1, 36)).evaluate(device).verdict for _ in range(2)] == [Verdict.MATCH] * 2
    integer = cel.compile('device.capacity["gpu.nvidia.com"].memory.isInteger()', (1, 36))
    assert integer.judge(device).verdict is Verdict.MATCH


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        ({"attributes": {"a": {}}}, "attribute a: unsupported attribute value"),
        ({"attributes": {"a": {"version": "1"}}}, "attribute a: '1' is no version: major.minor.patch expected"),
        ({"capacity": {"m": {"value": "40GB"}}}, "capacity m: '40GB' is no quantity: a number with an optional suffix"),
        ({"attributes": {"a": {"strings": ["x"]}}}, "attribute d/a: unsupported attribute value"),
    ],
)
def test_a_device_nobody_can_read_makes_every_answer_an_error(raw: dict[str, Any], cause: str) -> None:
    answer = cel.compile("true", (1, 36)).judge(cel.cel_device("d", raw))
    assert answer.verdict is Verdict.RUNTIME_ERROR
    assert answer.cause.startswith(cause)


def test_list_attributes_are_read_where_the_gate_is_on() -> None:
    device = cel.cel_device("d", {"attributes": {"names": {"strings": ["x", "y"]}, "ids": {"ints": [1, 2]}}})
    names = 'device.attributes["d"].names'
    for expression in (
        f'{names}.includes("x")',
        f'"y" in {names}',
        f'{names}.exists(n, n == "y")',
        f"{names}[1] == 'y'",
    ):
        program = cel.compile(expression, (1, 36), list_attributes=True)
        assert program.judge(device) == Answer(Verdict.MATCH), expression


def test_the_betas_nested_device_reads_the_same() -> None:
    flat = {"attributes": {"a": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}}
    nested = {"name": "d", "basic": {"attributes": {"a": {"int": 1}}, "capacity": {"m": "1Gi"}}}
    assert cel.cel_device("d", nested) == cel.cel_device("d", flat)


@pytest.mark.parametrize("expression", ["(" * 80 + "true" + ")" * 80, "!" * 5000 + "true", "true && " * 1000 + "true"])
def test_long_selectors_are_judged(expression: str) -> None:
    assert judged(expression) == Answer(Verdict.MATCH)


@pytest.mark.parametrize(
    "expression",
    [
        "1" + " + 1" * 2400 + " > 0",
        '"a"' + '.replace("a", "aaaaaaaaaaaaaaaa")' * 12 + ' == ""',
        "true" + " " * 11_000,
        "[" * 150 + "]" * 150 + " == []",
    ],
)
def test_beyond_our_own_limits_the_answer_is_that_there_is_none(expression: str) -> None:
    answer = judged(expression)
    assert answer.verdict in (Verdict.COMPILE_ERROR, Verdict.RUNTIME_ERROR)
    assert answer.unsupported or "[[" in expression
