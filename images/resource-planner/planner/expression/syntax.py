# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The text of an expression becomes a tree; macros are expanded on the way.

Long chains of && and || stay flat: the tree says the same as cel-go's balanced one, because both absorb errors and
answer in the same order.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from . import types
from .values import Uint, Value

MAX_DEPTH: Final = 250
"""Nested expressions cel-go's parser reads before it refuses."""

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"

RESERVED: Final = frozenset(
    ("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
     "namespace", "return", "var", "void", "while")
)  # fmt: skip


class SyntaxFault(Exception):
    """The text is no expression; the message says where and why."""


@dataclass(slots=True, eq=False)
class Node:
    """One expression; `type` is set by the checker."""

    type: types.Type = field(default=types.ERROR, init=False)


@dataclass(slots=True, eq=False)
class Literal(Node):
    value: Value


@dataclass(slots=True, eq=False)
class Ident(Node):
    name: str
    constant: Value | types.Type | None = field(default=None, init=False)
    """The type value a type's name stands for."""


@dataclass(slots=True, eq=False)
class Select(Node):
    operand: Node
    name: str
    test: bool = False
    """`has(operand.name)`."""
    resolved: Ident | None = field(default=None, init=False)
    """Set when the dotted name is one identifier (a type's name)."""


@dataclass(slots=True, eq=False)
class Call(Node):
    function: str
    target: Node | None
    args: list[Node]
    overloads: list[str] = field(default_factory=list, init=False)
    """The overloads whose declared types admit the arguments, in order of declaration."""


@dataclass(slots=True, eq=False)
class ListOf(Node):
    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapOf(Node):
    entries: list[tuple[Node, Node, bool]]
    """Key, value, and whether the value is optional."""


@dataclass(slots=True, eq=False)
class MessageOf(Node):
    name: str
    fields: list[tuple[str, Node, bool]]


@dataclass(slots=True, eq=False)
class Fold(Node):
    """What every comprehension becomes: range, iteration variables, accumulator, condition, step, result."""

    over: Node
    variable: str
    second: str | None
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    at: int


_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_QUOTED = (
    rf'"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"|\'(?:{_ESCAPE}|[^\\\'\n\r])*\''
)
_RAW = r'[rR](?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"[^"\n\r]*"|\'[^\'\n\r]*\')'
_TOKEN: Final = re.compile(
    rf"""(?P<space>[\t \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_QUOTED}|{_RAW}))
    |(?P<string>{_QUOTED}|{_RAW})
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>==|!=|<=|>=|&&|\|\||[\[\]{{}}().,\-!?:+*/%<>])""",
    re.VERBOSE,
)
_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    '"': '"', "'": "'", "\\": "\\", "?": "?", "`": "`",
}  # fmt: skip
_LEVELS: Final[tuple[frozenset[str], ...]] = (
    frozenset(("<", "<=", ">=", ">", "==", "!=", "in")),
    frozenset(("+", "-")),
    frozenset(("*", "/", "%")),
)


def parse(text: str) -> Node:
    """The tree of `text`, macros expanded. Raises `SyntaxFault`."""
    return _Parser(text).whole()


def tokens(text: str) -> list[Token]:
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SyntaxFault(f"unexpected character {text[position]!r} at {position}")
        if match.lastgroup != "space" and match.lastgroup is not None:
            found.append(Token(match.lastgroup, match.group(), position))
        position = match.end()
    found.append(Token("end", "", len(text)))
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.position = 0
        self.depth = 0

    def whole(self) -> Node:
        tree = self.expression()
        if self.peek().kind != "end":
            raise self.fault()
        return tree

    def peek(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        token = self.tokens[self.position]
        if token.text == text and token.kind in ("op", "name"):
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.fault()

    def fault(self) -> SyntaxFault:
        token = self.peek()
        return SyntaxFault(f"unexpected {token.text!r} at {token.at}" if token.kind != "end" else "unexpected end")

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SyntaxFault(f"expression recursion limit exceeded: {MAX_DEPTH}")
        condition = self.chain("||")
        if self.accept("?"):
            truthy = self.chain("||")
            self.expect(":")
            condition = Call("_?_:_", None, [condition, truthy, self.expression()])
        self.depth -= 1
        return condition

    def chain(self, operator: str) -> Node:
        terms = [self.chain("&&") if operator == "||" else self.binary(0)]
        while self.accept(operator):
            terms.append(self.chain("&&") if operator == "||" else self.binary(0))
        return terms[0] if len(terms) == 1 else Call(f"_{operator}_", None, terms)

    def binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while True:
            token = self.peek()
            if token.kind not in ("op", "name") or token.text not in _LEVELS[level]:
                return left
            self.take()
            right = self.binary(level + 1)
            left = Call("@in" if token.text == "in" else f"_{token.text}_", None, [left, right])

    def unary(self) -> Node:
        operators = 0
        token = self.peek()
        if token.kind != "op" or token.text not in "!-":
            return self.member()
        while self.accept(token.text):
            operators += 1
        if token.text == "-" and operators == 1 and self.peek().kind in ("int", "float"):
            return self.suffixes(self.number(self.take(), negative=True))
        operand = self.member()
        if operators % 2 == 0:
            return operand
        return Call("!_" if token.text == "!" else "-_", None, [operand])

    def member(self) -> Node:
        return self.suffixes(self.primary())

    def suffixes(self, node: Node) -> Node:
        while True:
            if self.accept("."):
                optional = self.accept("?")
                name = self.take()
                if name.kind != "name" or name.text in ("in", "true", "false", "null"):
                    self.position -= 1
                    raise self.fault()
                if optional:
                    node = Call("_?._", None, [node, Literal(name.text)])
                elif self.accept("("):
                    node = self.call(name.text, node, self.arguments())
                else:
                    node = Select(node, name.text)
            elif self.accept("["):
                optional = self.accept("?")
                index = self.expression()
                self.expect("]")
                node = Call("_[?_]" if optional else "_[_]", None, [node, index])
            elif self.peek().text == "{" and self.peek().kind == "op" and (name_of := _dotted(node)):
                self.take()
                node = MessageOf(name_of, self.fields())
            else:
                return node

    def arguments(self) -> list[Node]:
        args: list[Node] = []
        if self.accept(")"):
            return args
        args.append(self.expression())
        while self.accept(","):
            args.append(self.expression())
        self.expect(")")
        return args

    def primary(self) -> Node:
        token = self.take()
        if token.kind == "op":
            if token.text == "(":
                inner = self.expression()
                self.expect(")")
                return inner
            if token.text == "[":
                return self.list_literal()
            if token.text == "{":
                return self.map_literal()
            if token.text == ".":
                token = self.take()
                if token.kind == "name":
                    return self.named(token, leading="")
            self.position -= 1
            raise self.fault()
        if token.kind == "name":
            return self.named(token)
        if token.kind in ("int", "uint", "float"):
            return self.number(token, negative=False)
        if token.kind == "string":
            return Literal(_string(token.text))
        if token.kind == "bytes":
            return Literal(_bytes(token.text[1:]))
        self.position -= 1
        raise self.fault()

    def named(self, token: Token, leading: str = "") -> Node:
        constants: dict[str, bool | None] = {"true": True, "false": False, "null": None}
        if token.text in constants:
            return Literal(constants[token.text])
        if token.text == "in":
            self.position -= 1
            raise self.fault()
        if token.text in RESERVED:
            raise SyntaxFault(f"reserved identifier: {token.text}")
        if self.accept("("):
            return self.call(token.text, None, self.arguments())
        return Ident(leading + token.text)

    def number(self, token: Token, *, negative: bool) -> Node:
        sign = "-" if negative else ""
        if token.kind == "float":
            value = float(sign + token.text)
            if value in (float("inf"), float("-inf")):
                raise SyntaxFault("invalid double literal")
            return Literal(value)
        text = token.text.rstrip("uU")
        if len(text) > 40:
            raise SyntaxFault(f"invalid {token.kind} literal")
        number = int(text, 16 if text.startswith("0x") else 10)
        if token.kind == "uint":
            if number >= 1 << 64:
                raise SyntaxFault("invalid uint literal")
            return Literal(Uint(number))
        number = -number if negative else number
        if not -(1 << 63) <= number < 1 << 63:
            raise SyntaxFault("invalid int literal")
        return Literal(number)

    def list_literal(self) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self.accept("]"):
            if elements and not self.accept(","):
                raise self.fault()
            if elements and self.accept("]"):
                break
            if not elements and self.accept(","):
                self.expect("]")
                break
            if self.accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
        return ListOf(elements, frozenset(optional))

    def map_literal(self) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self.accept("}"):
            if entries and not self.accept(","):
                raise self.fault()
            if entries and self.accept("}"):
                break
            if not entries and self.accept(","):
                self.expect("}")
                break
            optional = self.accept("?")
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
        return MapOf(entries)

    def fields(self) -> list[tuple[str, Node, bool]]:
        found: list[tuple[str, Node, bool]] = []
        while not self.accept("}"):
            if found:
                self.expect(",")
                if self.accept("}"):
                    break
            optional = self.accept("?")
            name = self.take()
            if name.kind != "name":
                self.position -= 1
                raise self.fault()
            self.expect(":")
            found.append((name.text, self.expression(), optional))
        return found

    def call(self, name: str, target: Node | None, args: list[Node]) -> Node:
        if target is not None:
            expander = MACROS.get((name, len(args)))
            if expander is not None:
                expanded = expander(target, args)
                if expanded is not None:
                    return expanded
        elif name == "has" and len(args) == 1:
            operand = args[0]
            if not isinstance(operand, Select) or operand.test:
                raise SyntaxFault("invalid argument to has() macro")
            return Select(operand.operand, operand.name, test=True)
        return Call(name, target, args)


def _dotted(node: Node) -> str | None:
    """`a.b.c` as a name, for `a.b.c{…}`."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and (prefix := _dotted(node.operand)):
        return f"{prefix}.{node.name}"
    return None


def _body(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[width:-width].replace("\r\n", "\n").replace("\r", "\n"), raw


def _string(text: str) -> str:
    body, raw = _body(text)
    return body if raw else re.sub(_ESCAPE, _character, body)


def _character(match: re.Match[str]) -> str:
    escape = match.group()[1:]
    if escape[0] in _SIMPLE:
        return _SIMPLE[escape[0]]
    code = int(escape[1:], 16) if escape[0] in "xXuU" else int(escape, 8)
    if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        raise SyntaxFault("invalid unicode code point")
    return chr(code)


def _bytes(text: str) -> bytes:
    body, raw = _body(text)
    if raw:
        return body.encode()
    out, position = bytearray(), 0
    for match in re.finditer(_ESCAPE, body):
        out += body[position : match.start()].encode()
        escape = match.group()[1:]
        if escape[0] in "uU":
            raise SyntaxFault("unicode escapes are not allowed in bytes")
        if escape[0] in _SIMPLE:
            out += _SIMPLE[escape[0]].encode()
        else:
            out.append(int(escape[1:], 16) if escape[0] in "xX" else int(escape, 8))
        position = match.end()
    return bytes(out + body[position:].encode())


def _variable(node: Node, *, message: str = "argument must be a simple name") -> str:
    if not isinstance(node, Ident):
        raise SyntaxFault(message)
    if node.name in (ACCUMULATOR, "__result__"):
        raise SyntaxFault("iteration variable overwrites accumulator variable")
    return node.name


def _accu() -> Ident:
    return Ident(ACCUMULATOR)


def _call(function: str, *args: Node) -> Call:
    return Call(function, None, list(args))


def _over(target: Node, names: Sequence[str], initial: Node, condition: Node, step: Node, result: Node) -> Fold:
    second = names[1] if len(names) == 2 else None
    return Fold(target, names[0], second, ACCUMULATOR, initial, condition, step, result)


def _names(args: Sequence[Node], count: int) -> list[str]:
    names = [_variable(arg) for arg in args[:count]]
    if count == 2 and names[0] == names[1]:
        raise SyntaxFault(f"duplicate variable name: {names[0]}")
    return names


Expander = Callable[[Node, list[Node]], Node | None]


def _all(count: int) -> Expander:
    def expand(target: Node, args: list[Node]) -> Node:
        condition = _call("@not_strictly_false", _accu())
        step = _call("_&&_", _accu(), args[count])
        return _over(target, _names(args, count), Literal(True), condition, step, _accu())

    return expand


def _exists(count: int) -> Expander:
    def expand(target: Node, args: list[Node]) -> Node:
        condition = _call("@not_strictly_false", _call("!_", _accu()))
        step = _call("_||_", _accu(), args[count])
        return _over(target, _names(args, count), Literal(False), condition, step, _accu())

    return expand


def _exists_one(count: int) -> Expander:
    def expand(target: Node, args: list[Node]) -> Node:
        step = _call("_?_:_", args[count], _call("_+_", _accu(), Literal(1)), _accu())
        result = _call("_==_", _accu(), Literal(1))
        return _over(target, _names(args, count), Literal(0), Literal(True), step, result)

    return expand


def _gather(count: int, *, filtered: bool) -> Callable[[Node, list[Node]], Node]:
    def expand(target: Node, args: list[Node]) -> Node:
        step: Node = _call("_+_", _accu(), ListOf([args[-1]]))
        if filtered:
            step = _call("_?_:_", args[count], step, _accu())
        return _over(target, _names(args, count), ListOf([]), Literal(True), step, _accu())

    return expand


def _filter(target: Node, args: list[Node]) -> Node:
    names = _names(args, 1)
    step = _call("_?_:_", args[1], _call("_+_", _accu(), ListOf([args[0]])), _accu())
    return _over(target, names, ListOf([]), Literal(True), step, _accu())


def _transform_map(*, entry: bool, filtered: bool) -> Expander:
    def expand(target: Node, args: list[Node]) -> Node:
        names = _names(args, 2)
        if entry:
            step: Node = _call("cel.@mapInsert", _accu(), args[-1])
        else:
            step = _call("cel.@mapInsert", _accu(), Ident(names[0]), args[-1])
        if filtered:
            step = _call("_?_:_", args[2], step, _accu())
        return _over(target, names, MapOf([]), Literal(True), step, _accu())

    return expand


def _local(name: str, value: Node, result: Node) -> Fold:
    """A variable bound to `value` while `result` is computed: a fold over nothing."""
    return Fold(ListOf([]), UNUSED, None, name, value, Literal(False), Ident(name), result)


def _bind(target: Node, args: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise SyntaxFault("cel.bind() variable names must be simple identifiers")
    return _local(args[0].name, args[1], args[2])


def _opt_map(*, flat: bool) -> Expander:
    def expand(target: Node, args: list[Node]) -> Node:
        if not isinstance(args[0], Ident):
            raise SyntaxFault("optMap() variable name must be a simple identifier")
        inner: Node = _local(args[0].name, Call("value", target, []), args[1])
        if not flat:
            inner = _call("optional.of", inner)
        return _call("_?_:_", Call("hasValue", target, []), inner, _call("optional.none"))

    return expand


def _sort_by(target: Node, args: list[Node]) -> Node:
    if isinstance(target, Literal | MapOf | MessageOf):
        raise SyntaxFault("sortBy can only be applied to a list, identifier, comprehension, call or select expression")
    name = "@__sortBy_input__"
    keys = _gather(1, filtered=False)(Ident(name), args)
    return _local(name, target, Call("@sortByAssociatedKeys", Ident(name), [keys]))


MACROS: Final[dict[tuple[str, int], Expander]] = {
    ("all", 2): _all(1),
    ("all", 3): _all(2),
    ("exists", 2): _exists(1),
    ("exists", 3): _exists(2),
    ("exists_one", 2): _exists_one(1),
    ("exists_one", 3): _exists_one(2),
    ("existsOne", 3): _exists_one(2),
    ("map", 2): _gather(1, filtered=False),
    ("map", 3): _gather(1, filtered=True),
    ("filter", 2): _filter,
    ("transformList", 3): _gather(2, filtered=False),
    ("transformList", 4): _gather(2, filtered=True),
    ("transformMap", 3): _transform_map(entry=False, filtered=False),
    ("transformMap", 4): _transform_map(entry=False, filtered=True),
    ("transformMapEntry", 3): _transform_map(entry=True, filtered=False),
    ("transformMapEntry", 4): _transform_map(entry=True, filtered=True),
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map(flat=False),
    ("optFlatMap", 2): _opt_map(flat=True),
    ("sortBy", 2): _sort_by,
}
"""Macros by name and number of arguments, all called on a receiver (`has` apart)."""
