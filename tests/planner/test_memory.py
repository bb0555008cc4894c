# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""What is remembered between two looks at the same objects, and what is not."""

import pytest
from planner.memory import Memory, Once


class Counted:
    """Says how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def __call__(self, part: object) -> str:
        self.asked.append(part)
        return str(part)


def test_the_same_inputs_are_not_computed_again() -> None:
    memory, one, other = Memory(), [1], [1]
    results = [memory.result("a", (one,), lambda once: object()) for _ in range(2)]
    assert results[0] is results[1]
    # Equal is not the same: an object that came anew may have been changed.
    assert memory.result("a", (other,), lambda once: object()) is not results[0]


def test_two_names_and_another_number_of_inputs_are_other_results() -> None:
    memory, one = Memory(), [1]
    first = memory.result("a", (one,), lambda once: object())
    assert memory.result("b", (one,), lambda once: object()) is not first
    assert memory.result("a", (one, one), lambda once: object()) is not first


def test_parts_are_made_once_while_they_are_asked_for() -> None:
    memory, make = Memory(), Counted()
    one, two, three = [1], [2], [3]

    def over(*parts: list[int]) -> list[str]:
        def compute(once: Once) -> list[str]:
            return [once(make, part) for part in parts]

        return memory.result("a", (parts,), compute)

    assert over(one, two) == ["[1]", "[2]"]
    assert over(two, three) == ["[2]", "[3]"]
    assert make.asked == [one, two, three]
    # `one` was not asked for the last time: it is forgotten and read again.
    assert over(one, three) == ["[1]", "[3]"]
    assert make.asked == [one, two, three, one]


def test_another_maker_of_the_same_part_gives_its_own() -> None:
    memory, part = Memory(), [1]
    assert memory.result("a", (1,), lambda once: (once(str, part), once(len, part))) == ("[1]", 1)


def test_a_failure_is_not_remembered() -> None:
    memory, part, tries = Memory(), [1], []

    def make(value: object) -> str:
        tries.append(value)
        if len(tries) == 1:
            raise ValueError("not yet")
        return "made"

    with pytest.raises(ValueError, match="not yet"):
        memory.result("a", (part,), lambda once: once(make, part))
    assert memory.result("a", (part,), lambda once: once(make, part)) == "made"
