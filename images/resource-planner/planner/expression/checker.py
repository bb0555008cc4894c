# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Types a tree as cel-go's checker does, with the validators Kubernetes adds.

A fault says what is wrong with the expression whatever the device: the API server would refuse it, the scheduler
would call it a compile error.
"""

from collections.abc import Iterator, Mapping, Sequence

from . import formatting, library, types
from .library import Overload
from .syntax import Call, Fold, Ident, ListOf, Literal, MapOf, MessageOf, Node, Select
from .types import Substitution, Type
from .values import Duration, Failure, Timestamp, Uint, duration_of, pattern, timestamp_of


def _fields(attribute: Type) -> Mapping[str, Type]:
    return {
        "driver": types.STRING,
        "attributes": types.map_of(types.STRING, types.map_of(types.STRING, attribute)),
        "capacity": types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY)),
        "allowMultipleAllocations": types.BOOL,
    }


class TypeFault(Exception):
    """The expression cannot be typed; the message says why."""


class NotHere(Exception):
    """The expression uses a part of the language this engine does not know: nothing can be said about it."""


def check(tree: Node, functions: Mapping[str, tuple[Overload, ...]], attribute: Type = types.ANY) -> Type:
    """Types every node of `tree` in place and returns the result's type. Raises `TypeFault` or `NotHere`.

    `attribute` is the type of a device's attribute: `any`, or `dyn` where attributes can be lists.
    """
    checker = _Checker(functions, _fields(attribute))
    checker.check(tree, ())
    for node in checker.seen:
        node.type = types.substitute(checker.mapping, node.type, final=True)
    _validate(tree)
    return tree.type


Scope = tuple[Mapping[str, Type], ...]


class _Checker:
    def __init__(self, functions: Mapping[str, tuple[Overload, ...]], fields: Mapping[str, Type]) -> None:
        self.functions = functions
        self.fields = fields
        self.mapping = Substitution()
        self.seen: list[Node] = []
        self.variables = 0

    def fresh(self) -> Type:
        self.variables += 1
        return types.param(f"_{self.variables}")

    def assignable(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        found = types.assignable(self.mapping, ones, others)
        if found is not None:
            self.mapping = found
        return found is not None

    def check(self, node: Node, scope: Scope) -> Type:
        node.type = self.typed(node, scope)
        self.seen.append(node)
        return node.type

    def typed(self, node: Node, scope: Scope) -> Type:
        if isinstance(node, Literal):
            return _literal(node)
        if isinstance(node, Ident):
            return self.ident(node, scope)
        if isinstance(node, Select):
            return self.select(node, scope)
        if isinstance(node, Call):
            return self.call(node, scope)
        if isinstance(node, ListOf):
            return self.list(node, scope)
        if isinstance(node, MapOf):
            return self.map(node, scope)
        if isinstance(node, Fold):
            return self.fold(node, scope)
        if isinstance(node, MessageOf):
            if node.name.startswith("google."):
                raise NotHere(f"a literal of message {node.name}")
            raise TypeFault(f"undeclared reference to {node.name!r}")
        raise AssertionError(node)

    def ident(self, node: Ident, scope: Scope) -> Type:
        for names in reversed(scope):
            if node.name in names:
                return names[node.name]
        if node.name == "device":
            return types.DEVICE
        named = library.TYPE_NAMES.get(node.name)
        if named is None:
            raise TypeFault(f"undeclared reference to {node.name!r}")
        node.constant = named
        return types.type_of(named)

    def select(self, node: Select, scope: Scope) -> Type:
        if not node.test and (name := _qualified(node)) is not None:
            root = name.partition(".")[0]
            named = library.TYPE_NAMES.get(name)
            if named is not None and not any(root in names for names in scope):
                node.resolved = Ident(name)
                node.resolved.constant = named
                return types.type_of(named)
        result = self.field(self.check(node.operand, scope), node.name, optional=False)
        return types.BOOL if node.test else types.substitute(self.mapping, result)

    def field(self, operand: Type, name: str, *, optional: bool) -> Type:
        operand = types.substitute(self.mapping, operand)
        target = types.unwrapped(operand)
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            if target != types.DEVICE or name not in self.fields:
                raise TypeFault(f"undefined field {name!r}")
            result = self.fields[name]
        elif target.kind == "param":
            self.assignable((types.DYN,), (target,))
            result = types.DYN
        elif types.is_dyn(target):
            result = types.DYN
        else:
            raise TypeFault(f"type {target} does not support field selection")
        return types.optional_of(result) if optional or types.is_optional(operand) else result

    def call(self, node: Call, scope: Scope) -> Type:
        if node.function == "_?._":
            operand, name = node.args
            assert isinstance(name, Literal) and isinstance(name.value, str)
            self.check(name, scope)
            node.overloads = ["select_optional_field"]
            result = self.field(self.check(operand, scope), name.value, optional=True)
            return types.substitute(self.mapping, result)
        for arg in node.args:
            self.check(arg, scope)
        if node.target is not None and (prefix := _qualified(node.target)) is not None:
            full = f"{prefix}.{node.function}"
            if full in self.functions:
                node.function, node.target = full, None
        if node.target is not None:
            self.check(node.target, scope)
        overloads = self.functions.get(node.function)
        if overloads is None:
            raise TypeFault(f"undeclared reference to {node.function!r}")
        return self.resolve(node, overloads)

    def resolve(self, node: Call, overloads: Sequence[Overload]) -> Type:
        args = [arg.type for arg in node.args]
        if node.function in ("_&&_", "_||_"):
            for arg in args:
                if not self.assignable((arg,), (types.BOOL,)):
                    raise TypeFault(f"expected type bool but found {types.substitute(self.mapping, arg, final=True)}")
            node.overloads = [overloads[0].id]
            return types.BOOL
        if node.target is not None:
            args.insert(0, node.target.type)
        result: Type | None = None
        for overload in overloads:
            if overload.member != (node.target is not None):
                continue
            fresh = Substitution({param: self.fresh() for param in overload.params})
            declared = [types.substitute(fresh, arg) for arg in overload.args]
            if not self.assignable(args, declared):
                continue
            node.overloads.append(overload.id)
            output = types.substitute(self.mapping, types.substitute(fresh, overload.result))
            if result is None:
                result = output
            elif not types.is_dyn(result) and output != result:
                result = types.DYN
        if result is None:
            shown = ", ".join(str(types.substitute(self.mapping, arg, final=True)) for arg in args)
            raise TypeFault(f"found no matching overload for {node.function!r} applied to ({shown})")
        return result

    def element(self, node: Node, scope: Scope, *, optional: bool) -> Type:
        found = self.check(node, scope)
        if optional:
            if not types.is_optional(found) and not types.is_dyn(found):
                raise TypeFault(f"expected type optional_type but found {found}")
            return types.unwrapped(found)
        return found

    def join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.assignable((previous,), (current,)):
            return types.most_general(previous, current)
        return types.DYN  # mixed elements: the validator refuses them outside of `format`

    def list(self, node: ListOf, scope: Scope) -> Type:
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            joined = self.join(joined, self.element(element, scope, optional=index in node.optional))
        return types.list_of(joined or self.fresh())

    def map(self, node: MapOf, scope: Scope) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self.join(keys, self.check(key, scope))
            values = self.join(values, self.element(value, scope, optional=optional))
        return types.map_of(keys or self.fresh(), values or self.fresh())

    def fold(self, node: Fold, scope: Scope) -> Type:
        self.check(node.over, scope)
        accumulated = self.check(node.initial, scope)
        over = types.substitute(self.mapping, node.over.type)
        outer = (*scope, {node.accumulator: accumulated})
        if over.kind == "list":
            one, two = (types.INT, over.params[0]) if node.second else (over.params[0], types.DYN)
        elif over.kind == "map":
            one, two = over.params
        elif over.kind in ("dyn", "param"):
            self.assignable((types.DYN,), (over,))
            one = two = types.DYN
        else:
            raise TypeFault(f"expression of type {over} cannot be range of a comprehension")
        names = {node.variable: one}
        if node.second:
            names[node.second] = two
        inner = (*outer, names)
        self.expect(types.BOOL, self.check(node.condition, inner))
        self.expect(accumulated, self.check(node.step, inner))
        self.check(node.result, outer)
        return types.substitute(self.mapping, node.result.type)

    def expect(self, wanted: Type, found: Type) -> None:
        if not self.assignable((wanted,), (found,)):
            raise TypeFault(f"expected type {wanted} but found {found}")


def _literal(node: Literal) -> Type:
    kinds: Mapping[type, Type] = {
        bool: types.BOOL,
        int: types.INT,
        Uint: types.UINT,
        float: types.DOUBLE,
        str: types.STRING,
        bytes: types.BYTES,
        type(None): types.NULL,
    }
    return kinds[type(node.value)]


def _qualified(node: Node) -> str | None:
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and (prefix := _qualified(node.operand)) is not None:
        return f"{prefix}.{node.name}"
    return None


def children(node: Node) -> Sequence[Node]:
    """The nodes one level below."""
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, Call):
        return [*([node.target] if node.target is not None else []), *node.args]
    if isinstance(node, ListOf):
        return node.elements
    if isinstance(node, MapOf):
        return [part for key, value, _ in node.entries for part in (key, value)]
    if isinstance(node, Fold):
        return [node.over, node.initial, node.condition, node.step, node.result]
    return []


def _walk(node: Node, *, formatted: bool = False) -> Iterator[tuple[Node, bool]]:
    """Every node, and whether it stands somewhere inside a call of `format`."""
    yield node, formatted
    formatted = formatted or (isinstance(node, Call) and node.function == "format")
    for child in children(node):
        yield from _walk(child, formatted=formatted)


def _validate(tree: Node) -> None:
    for node, formatted in _walk(tree):
        if isinstance(node, Call):
            _validate_call(node)
        elif isinstance(node, ListOf) and not formatted:
            elements = (
                element.type.params[0] if index in node.optional and element.type.params else element.type
                for index, element in enumerate(node.elements)
            )
            _homogeneous(elements)
        elif isinstance(node, MapOf) and not formatted:
            _homogeneous(key.type for key, _, _ in node.entries)
            _homogeneous(
                value.type.params[0] if optional and value.type.params else value.type
                for _, value, optional in node.entries
            )


def _homogeneous(found: Iterator[Type]) -> None:
    first: Type | None = None
    for one in found:
        if first is None:
            first = one
        elif one != first:
            raise TypeFault(f"expected type {first} but found {one}")


def _validate_call(node: Call) -> None:
    if node.args and isinstance(node.args[0], Literal):
        value = node.args[0].value
        try:
            if node.function == "duration" and not isinstance(value, Duration):
                duration_of(value)
            elif node.function == "timestamp" and not isinstance(value, Timestamp):
                timestamp_of(value)
            elif node.function == "matches" and isinstance(value, str):
                pattern(value)
        except Failure as failure:
            raise TypeFault(f"invalid {node.function} argument: {failure}") from None
    if node.function == "format" and node.target is not None and isinstance(node.args[0], ListOf):
        target = node.target
        if isinstance(target, Literal) and isinstance(target.value, str):
            try:
                formatting.validate(target.value, [_shape(element) for element in node.args[0].elements])
            except Failure as failure:
                raise TypeFault(str(failure)) from None


def _shape(node: Node) -> formatting.Shape:
    """What is known of an argument of `format` before evaluation."""
    inner: tuple[formatting.Shape, ...] = ()
    if isinstance(node, ListOf):
        inner = tuple(_shape(element) for element in node.elements)
    elif isinstance(node, MapOf):
        inner = tuple(_shape(part) for key, value, _ in node.entries for part in (key, value))
    return formatting.Shape(node.type, inner, literal=isinstance(node, ListOf | MapOf), keyed=isinstance(node, MapOf))
