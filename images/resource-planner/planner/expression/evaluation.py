# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""A checked tree becomes a program: closures over a frame that counts what the evaluation costs.

What upstream computes while it builds a program is computed here while planning: constant lists and maps, conversions
of constants, constant regular expressions, membership in constant lists. Faults there are compile errors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from planner.semver import Version

from . import functions, library, types
from .functions import COST_LIMIT, CostExceeded, Implementation, index, lookup
from .library import Overload, Release
from .syntax import UNUSED, Call, Fold, Ident, ListOf, Literal, MapOf, Node, Select
from .types import Type
from .values import (
    NONE,
    NOTHING,
    Abort,
    Failure,
    Format,
    Map,
    Optional,
    TypeValue,
    Uint,
    Value,
    agrees,
    equal,
    no_overload,
    pattern,
)

MAX_STEPS: Final = 2_000_000
"""Loop turns of one evaluation beyond which no answer is attempted; the cost limit is met long before."""


class Frame:
    """One evaluation: what `device` is, the variables, the cost so far."""

    __slots__ = ("cost", "device", "slots")

    def __init__(self, device: Value, slots: int) -> None:
        self.device = device
        self.cost = 0
        self.slots: list[Value] = [None] * slots


Run = Callable[[Frame], Value]


@dataclass(slots=True)
class Plan:
    """How to compute a node; `constant` when its value is known already."""

    run: Run
    constant: bool = False
    value: Value = None


class _Broken:
    """An accumulator or variable whose value is an error."""

    __slots__ = ("failure",)

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Program:
    run: Run
    slots: int
    uses: frozenset[tuple[str, ...]] | None
    """The paths below `device` it can read (`("attributes", domain, id)`), or None when it may read anything."""

    def evaluate(self, device: Value) -> tuple[Value, int]:
        """The value and what it cost. Raises `Failure` or `Abort`."""
        frame = Frame(device, self.slots)
        value = self.run(frame)
        if frame.cost > COST_LIMIT:
            raise CostExceeded("cost limit exceeded")
        return value, frame.cost


def program(tree: Node, release: Release) -> Program:
    """The program of a checked tree. Raises `Failure` where upstream finds a fault in a constant."""
    planner = _Planner(library.functions(release))
    run = planner.plan(tree, {}).run
    return Program(run, planner.slots, None if planner.reads_anything else frozenset(planner.uses))


def _constant(value: Value) -> Plan:
    return Plan(lambda _: value, constant=True, value=value)


Scope = dict[str, int]


class _Planner:
    def __init__(self, table: Mapping[str, tuple[Overload, ...]]) -> None:
        self.table = table
        self.slots = 0
        self.uses: set[tuple[str, ...]] = set()
        self.reads_anything = False

    def slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def plan(self, node: Node, scope: Scope) -> Plan:
        if isinstance(node, Literal):
            return _constant(node.value)
        if isinstance(node, ListOf):
            return self.list(node, scope)
        if isinstance(node, MapOf):
            return self.map(node, scope)
        if isinstance(node, Fold):
            return Plan(self.local(node, scope) if node.variable == UNUSED else self.fold(node, scope))
        if isinstance(node, Select) and node.test:
            return Plan(self.presence(node, scope))
        if isinstance(node, Ident) and node.constant is not None:
            return _constant(_type_value(node.constant))
        if isinstance(node, Select) and node.resolved is not None:
            return _constant(_type_value(node.resolved.constant))
        if _is_attribute(node):
            return Plan(self.attribute(node, scope))
        assert isinstance(node, Call)
        return self.call(node, scope)

    # Attributes: an identifier or a computed value, and the qualifiers behind it.

    def attribute(self, node: Node, scope: Scope) -> Run:
        resolve, conditional = self.resolved(node, scope)
        if conditional:
            return resolve

        def run(frame: Frame) -> Value:
            frame.cost += 1
            return resolve(frame)

        return run

    def resolved(self, node: Node, scope: Scope) -> tuple[Run, bool]:
        """The attribute without its own unit of cost, and whether it stands on a ternary, which has none."""
        base, qualifiers = self.chain(node, scope)
        conditional = isinstance(base, Call) and base.function == "_?_:_"
        if conditional:
            assert isinstance(base, Call)
            start = self.conditional(base, scope)
        elif isinstance(base, Ident) and base.constant is None:
            self.note(base, scope, [qualifier.key for qualifier in qualifiers])
            start = self.variable(base, scope)
        else:
            start = self.plan(base, scope).run
        return (_qualified(start, qualifiers) if qualifiers else start), conditional

    def note(self, base: Ident, scope: Scope, keys: Sequence[Value]) -> None:
        """Remembers what is read of the device."""
        if base.name in scope:
            return
        depth = 1 if keys and keys[0] in ("driver", "allowMultipleAllocations") else 3
        if len(keys) >= depth and all(type(key) is str for key in keys[:depth]):
            self.uses.add(tuple(keys[:depth]))
        else:
            self.reads_anything = True

    def chain(self, node: Node, scope: Scope) -> tuple[Node, list["_Qualifier"]]:
        """The base of a chain of selections, and the selections in order."""
        if isinstance(node, Select) and not node.test and node.resolved is None:
            base, qualifiers = self.chain(node.operand, scope)
            return base, [*qualifiers, _Qualifier(None, node.name, optional=False)]
        if isinstance(node, Call) and node.function in ("_?._", "_[_]", "_[?_]"):
            base, qualifiers = self.chain(node.args[0], scope)
            optional = node.function != "_[_]"
            key = node.args[1]
            if _is_attribute(key):
                return base, [*qualifiers, _Qualifier(self.resolved(key, scope)[0], None, optional=optional)]
            plan = self.plan(key, scope)
            if plan.constant:
                return base, [*qualifiers, _Qualifier(None, plan.value, optional=optional)]
            return base, [*qualifiers, _Qualifier(plan.run, None, optional=optional)]
        return node, []

    def variable(self, node: Ident, scope: Scope) -> Run:
        at = scope.get(node.name)
        if at is None:
            return lambda frame: frame.device

        def run(frame: Frame) -> Value:
            value = frame.slots[at]
            cls = type(value)
            if cls is _Broken:
                raise value.failure
            if cls is _Lazy:
                return value.force(frame, at)
            return value

        return run

    def presence(self, node: Select, scope: Scope) -> Run:
        base, qualifiers = self.chain(node.operand, scope)
        if isinstance(base, Ident) and base.constant is None:
            self.note(base, scope, [*(qualifier.key for qualifier in qualifiers), node.name])
            start = self.variable(base, scope)
        else:
            start = self.resolved(base, scope)[0] if _is_attribute(base) else self.plan(base, scope).run
        prefix = _qualified(start, qualifiers) if qualifiers else start
        name = node.name

        def run(frame: Frame) -> bool:
            owner = prefix(frame)
            if type(owner) is Optional:
                found = owner.value is not NOTHING and lookup(owner.value, name) is not NOTHING
                frame.cost += found
                return found
            frame.cost += 1
            return lookup(owner, name) is not NOTHING

        return run

    def conditional(self, node: Call, scope: Scope) -> Run:
        condition = self.plan(node.args[0], scope).run
        truthy, falsy = (self.branch(branch, scope) for branch in node.args[1:])

        def run(frame: Frame) -> Value:
            chosen = condition(frame)
            if chosen is True:
                return truthy(frame)
            if chosen is False:
                return falsy(frame)
            raise no_overload(chosen)

        return run

    def branch(self, node: Node, scope: Scope) -> Run:
        if isinstance(node, Select) and node.test:
            node, test = Select(node.operand, node.name), node
            if not any(qualifier.optional for qualifier in self.chain(node, scope)[1]):
                node = test  # upstream resolves a branch that asks an optional chain to the optional itself
        if _is_attribute(node):
            return self.resolved(node, scope)[0]
        return self.plan(node, scope).run

    # Literals with parts.

    def list(self, node: ListOf, scope: Scope) -> Plan:
        plans = [self.plan(element, scope) for element in node.elements]
        runs = [plan.run for plan in plans]
        optional = node.optional

        def build(frame: Frame) -> list[Value]:
            found: list[Value] = []
            for at, run in enumerate(runs):
                value = run(frame)
                if at in optional:
                    if type(value) is not Optional:
                        raise Failure("cannot initialize an optional list element from a non-optional value")
                    if value.value is NOTHING:
                        continue
                    value = value.value
                found.append(value)
            return found

        if all(plan.constant for plan in plans):
            return _constant(build(Frame(None, 0)))

        def run_list(frame: Frame) -> list[Value]:
            found = build(frame)
            frame.cost += 10
            return found

        return Plan(run_list)

    def map(self, node: MapOf, scope: Scope) -> Plan:
        entries = [(self.plan(key, scope), self.plan(value, scope), optional) for key, value, optional in node.entries]

        def build(frame: Frame) -> Map:
            found: list[tuple[Value, Value]] = []
            for key, value, optional in entries:
                one, other = key.run(frame), value.run(frame)
                if optional:
                    if type(other) is not Optional:
                        raise Failure("cannot initialize an optional map entry from a non-optional value")
                    if other.value is NOTHING:
                        continue
                    other = other.value
                found.append((one, other))
            return Map(found)

        if all(key.constant and value.constant for key, value, _ in entries):
            return _constant(build(Frame(None, 0)))

        def run_map(frame: Frame) -> Map:
            found = build(frame)
            frame.cost += 30
            return found

        return Plan(run_map)

    # Comprehensions.

    def local(self, node: Fold, scope: Scope) -> Run:
        """A variable that is computed when it is first read."""
        at = self.slot()
        initial = self.plan(node.initial, scope).run
        result = self.plan(node.result, {**scope, node.accumulator: at}).run

        def run(frame: Frame) -> Value:
            frame.slots[at] = _Lazy(initial)
            return result(frame)

        return run

    def fold(self, node: Fold, scope: Scope) -> Run:
        over = self.plan(node.over, scope).run
        initial = self.plan(node.initial, scope).run
        accumulator, first, second = self.slot(), self.slot(), self.slot()
        outer = {**scope, node.accumulator: accumulator}
        inner = {**outer, node.variable: first}
        two = node.second is not None
        if node.second is not None:
            inner[node.second] = second
        condition = self.plan(node.condition, inner).run
        step = self.plan(node.step, inner).run
        result = self.plan(node.result, outer).run

        def run(frame: Frame) -> Value:
            found = over(frame)
            pairs: Iterable[tuple[Value, Value]]
            if type(found) is list:
                pairs = enumerate(found) if two else ((part, None) for part in found)
            elif isinstance(found, Map):
                pairs = found.items()
            else:
                raise Failure("unsupported comprehension range")
            slots = frame.slots
            slots[accumulator] = initial(frame)
            for one, other in pairs:
                slots[first], slots[second] = one, other
                try:
                    if condition(frame) is False:
                        break
                except Failure:
                    pass
                try:
                    slots[accumulator] = step(frame)
                except Failure as failure:
                    slots[accumulator] = _Broken(failure)
                if frame.cost > COST_LIMIT:
                    raise CostExceeded("cost limit exceeded")
            return result(frame)

        return run

    # Calls.

    def call(self, node: Call, scope: Scope) -> Plan:
        function = node.function
        nodes = node.args if node.target is None else [node.target, *node.args]
        plans = [self.plan(arg, scope) for arg in nodes]
        runs = [plan.run for plan in plans]
        if function == "_&&_":
            return Plan(_decided_by(False, runs))
        if function == "_||_":
            return Plan(_decided_by(True, runs))
        if function == "_==_":
            return Plan(_equality(runs[0], plans[1]))
        if function == "_!=_":
            return Plan(_inequality(runs[0], runs[1]))
        if function == "@not_strictly_false":
            return Plan(_not_strictly_false(runs[0]))
        if function == "or" or function == "orValue":
            return Plan(_either(runs[0], runs[1], whole=function == "or"))
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        if function == "@in" and overload == "in_list" and plans[1].constant:
            membership = _membership(runs[0], plans[1].value)
            if membership is not None:
                return membership
        if function in functions.CONVERSIONS and plans[0].constant:
            return _constant(self.implementation(node, overload)(plans[0].value))
        if function in ("find", "findAll", "matches") and plans[1].constant and type(plans[1].value) is str:
            pattern(plans[1].value)
        return Plan(_applied(self.implementation(node, overload), functions.cost_of(function, overload), runs))

    def implementation(self, node: Call, overload: str) -> Implementation:
        direct = functions.OPERATORS.get(node.function) or functions.UNGUARDED.get(node.function)
        if direct is not None:
            return direct
        count = len(node.args) + (node.target is not None)
        candidates: list[tuple[tuple[Type, ...], Implementation]] = []
        for declared in self.table[node.function]:
            found = functions.IMPLEMENTATIONS.get(declared.id)
            if found is not None and len(declared.args) == count and (not overload or declared.id == overload):
                candidates.append((declared.args, found))
        return _dispatched(node.function, candidates)


class _Lazy:
    """A variable nobody has read yet."""

    __slots__ = ("initial",)

    def __init__(self, initial: Run) -> None:
        self.initial = initial

    def force(self, frame: Frame, at: int) -> Value:
        try:
            frame.slots[at] = value = self.initial(frame)
        except Failure as failure:
            frame.slots[at] = _Broken(failure)
            raise
        return value


@dataclass(frozen=True, slots=True)
class _Qualifier:
    run: Run | None
    key: Value
    optional: bool


def _is_attribute(node: Node) -> bool:
    if isinstance(node, Ident):
        return node.constant is None
    if isinstance(node, Select):
        return not node.test and node.resolved is None
    return isinstance(node, Call) and node.function in ("_?._", "_[_]", "_[?_]", "_?_:_")


def _type_value(one: Value | Type | None) -> TypeValue:
    assert isinstance(one, Type)
    if types.is_optional(one):
        return TypeValue("optional_type")
    return TypeValue(one.name or one.kind)


def _qualified(start: Run, qualifiers: Sequence[_Qualifier]) -> Run:
    if all(qualifier.run is None and not qualifier.optional for qualifier in qualifiers):
        keys = tuple(qualifier.key for qualifier in qualifiers)
        if all(type(key) is str for key in keys):
            return _plain(start, keys)
    steps = [(qualifier.run, qualifier.key, qualifier.optional) for qualifier in qualifiers]

    def run(frame: Frame) -> Value:
        value = start(frame)
        optional = type(value) is Optional
        if optional:
            if value.value is NOTHING:
                return value
            value = value.value
        for compute, key, asks in steps:
            optional = optional or asks
            if compute is not None:
                key = compute(frame)
                if type(key) not in (str, int, Uint, bool, float):
                    raise Failure("invalid qualifier type")
            if optional:
                value = lookup(value, key)
                if value is NOTHING:
                    return NONE
                frame.cost += 1
            else:
                frame.cost += 1
                value = index(value, key)
        if optional:
            return value if type(value) is Optional else Optional(value)
        return value

    return run


def _plain(start: Run, keys: tuple[str, ...]) -> Run:
    """The common case: texts only, nothing optional asked."""
    count = len(keys)

    def run(frame: Frame) -> Value:
        value = start(frame)
        if type(value) is Optional:
            for key in keys:
                if value.value is NOTHING:
                    return NONE
                found = lookup(value.value, key)
                frame.cost += found is not NOTHING
                value = Optional(found)
            return NONE if value.value is NOTHING else value
        frame.cost += count
        for key in keys:
            if type(value) is Map:
                entry = value.entries.get(key)
                if entry is None:
                    raise Failure(f"no such key: {key}")
                value = entry[1]
            else:
                value = index(value, key)
        return value

    return run


def _decided_by(deciding: bool, runs: Sequence[Run]) -> Run:
    """`&&` (decided by False) and `||` (by True): a term that decides absorbs failures of the others on either side."""
    otherwise = not deciding

    def run(frame: Frame) -> bool:
        failure: Failure | None = None
        for term in runs:
            try:
                value = term(frame)
            except Failure as found:
                failure = failure or found
                continue
            if value is deciding:
                return not otherwise
            if value is not otherwise:
                failure = failure or no_overload(value)
        if failure is not None:
            raise failure
        return otherwise

    return run


def _pair(frame: Frame, left: Run, right: Run) -> tuple[Value, Value]:
    """Both operands; the right one is computed, and paid for, even when the left one failed."""
    try:
        one = left(frame)
    except Failure:
        with suppress(Failure):
            right(frame)
        frame.cost += 1
        raise
    return one, right(frame)


def _equality(left: Run, right: Plan) -> Run:
    cost = functions.equality_cost
    compute = right.run
    if right.constant and type(right.value) is str and right.value:
        text = right.value
        length = len(text)

        def run_text(frame: Frame) -> bool:
            try:
                one = left(frame)
            except Failure:
                frame.cost += 1
                raise
            if type(one) is str:
                frame.cost += (min(len(one), length) + 9) // 10 if length <= 20 else cost((one, text), None)
                return bool(one == text)
            frame.cost += 1
            return equal(one, text)

        return run_text

    def run(frame: Frame) -> bool:
        one, other = _pair(frame, left, compute)
        frame.cost += cost((one, other), None)
        return equal(one, other)

    return run


def _inequality(left: Run, right: Run) -> Run:
    cost = functions.smaller_cost

    def run(frame: Frame) -> bool:
        one, other = _pair(frame, left, right)
        frame.cost += cost((one, other), None)
        try:
            return not equal(one, other)
        except Failure:
            return True

    return run


def _not_strictly_false(inner: Run) -> Run:
    def run(frame: Frame) -> bool:
        frame.cost += 1
        try:
            value = inner(frame)
        except Failure:
            return True
        return value is not False

    return run


def _either(left: Run, right: Run, *, whole: bool) -> Run:
    def run(frame: Frame) -> Value:
        one = left(frame)
        if type(one) is not Optional:
            return one
        if one.value is NOTHING:
            return right(frame)
        return one if whole else one.value

    return run


def _membership(left: Run, parts: Sequence[Value]) -> Plan | None:
    """`in` a constant list: free of cost, and fatal for values upstream cannot hash."""
    if not parts:
        return _constant(False)
    if any(type(part) not in (bool, int, Uint, float, str) for part in parts):
        return None
    numbers = {part for part in parts if type(part) in (int, Uint, float)}
    texts = {part for part in parts if type(part) is str}
    booleans = {part for part in parts if type(part) is bool}

    def run(frame: Frame) -> bool:
        value = left(frame)
        cls = type(value)
        if cls is str:
            return value in texts
        if cls is bool:
            return value in booleans
        if cls is int or cls is Uint or cls is float:
            return value in numbers
        if cls is bytes or cls is Version or cls is Format:
            raise Abort("internal error: hash of unhashable type")
        return False

    return Plan(run)


def _applied(implementation: Implementation, cost: functions.Cost | None, runs: Sequence[Run]) -> Run:
    if len(runs) == 1:
        only = runs[0]

        def run_one(frame: Frame) -> Value:
            try:
                one = only(frame)
            except Failure:
                frame.cost += 1
                raise
            if cost is None:
                frame.cost += 1
                return implementation(one)
            value = implementation(one)
            frame.cost += cost((one,), value)
            return value

        return run_one
    if len(runs) == 2:
        left, right = runs

        def run_two(frame: Frame) -> Value:
            one, other = _pair(frame, left, right)
            if cost is None:
                frame.cost += 1
                return implementation(one, other)
            value = implementation(one, other)
            frame.cost += cost((one, other), value)
            return value

        return run_two

    def run_many(frame: Frame) -> Value:
        args = [run(frame) for run in runs]
        value = implementation(*args)
        frame.cost += 1 if cost is None else cost(args, value)
        return value

    return run_many


def _dispatched(function: str, candidates: Sequence[tuple[tuple[Type, ...], Implementation]]) -> Implementation:
    """The first overload whose declared types the values have."""
    if len(candidates) == 1:
        declared, only = candidates[0]

        def call_only(*args: Value) -> Value:
            for one, value in zip(declared, args, strict=True):
                if not agrees(one, value):
                    raise no_overload(value)
            return only(*args)

        return call_only

    def call(*args: Value) -> Value:
        for types_of_args, implementation in candidates:
            if all(map(agrees, types_of_args, args)):
                return implementation(*args)
        raise Failure(f"no such overload: {function}")

    return call
