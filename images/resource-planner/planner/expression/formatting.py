# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`"…%s…".format([…])`: the clauses s, d, f, e, b, x, X and o, with their checks before and during evaluation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from . import types
from .types import Type
from .values import (
    Duration,
    Failure,
    Map,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    text_of_double,
    text_of_duration,
    text_of_timestamp,
    type_name,
)

_DEFAULT_PRECISION: Final = 6
_LONGEST: Final = 1_000
_CLAUSES: Final = {
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
    "s": (
        "list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null_type",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """An argument before evaluation: its type, and what a list or map literal holds."""

    type: Type
    inner: tuple["Shape", ...] = ()
    literal: bool = False
    keyed: bool = False


def clauses(text: str) -> Iterator[str | tuple[str, int | None]]:
    """Plain pieces of the format and its clauses (letter, precision). Raises `Failure`."""
    position, plain = 0, ""
    while position < len(text):
        if text[position] != "%":
            plain += text[position]
            position += 1
        elif text[position + 1 : position + 2] == "%":
            plain += "%"
            position += 2
        else:
            yield plain
            plain = ""
            position += 1
            precision: int | None = None
            if text[position : position + 1] == ".":
                end = position + 1
                while end < len(text) and text[end] in "0123456789":
                    end += 1
                if end == len(text) or end == position + 1:
                    raise Failure("error while parsing precision")
                if end - position > 9:
                    raise Failure("precision out of range")
                precision, position = int(text[position + 1 : end]), end
            if position == len(text):
                raise Failure("unexpected end of string")
            if text[position] not in _CLAUSES:
                raise Failure(f"unrecognized formatting clause {text[position]!r}")
            yield text[position], precision
            position += 1
    yield plain


def validate(text: str, shapes: Sequence[Shape]) -> None:
    """Raises `Failure` when the literal format and the literal list do not fit."""
    used = 0
    for clause in clauses(text):
        if isinstance(clause, str):
            continue
        if used >= len(shapes):
            raise Failure(f"index {used} out of range")
        if not _admits(clause[0], shapes[used]):
            raise Failure(f"clause %{clause[0]} cannot be given {shapes[used].type}")
        used += 1
    if used < len(shapes):
        raise Failure(f"too many arguments supplied to string.format (expected {used}, got {len(shapes)})")


def _admits(clause: str, shape: Shape) -> bool:
    if shape.type != types.DYN and shape.type.kind not in _CLAUSES[clause]:
        return False
    return clause != "s" or all(_admits("s", inner) for inner in shape.inner)


def formatted(text: str, args: Sequence[Value]) -> str:
    """The formatted text. Raises `Failure`."""
    pieces: list[str] = []
    used = 0
    for clause in clauses(text):
        if isinstance(clause, str):
            pieces.append(clause)
            continue
        if used >= len(args):
            raise Failure(f"index {used} out of range")
        pieces.append(_CALLS[clause[0]](args[used], clause[1]))
        used += 1
    return "".join(pieces)


def _refused(clause: str, value: Value) -> Failure:
    return Failure(f"clause %{clause} cannot be given {type_name(value)}")


def text_of(value: Value) -> str:
    """%s."""
    cls = type(value)
    if cls is str:
        return str(value)
    if cls is bool:
        return "true" if value else "false"
    if cls is int or cls is Uint:
        return str(int(value))
    if cls is float:
        return text_of_double(value)
    if cls is bytes:
        return _utf8(value)
    if value is None:
        return "null"
    if cls is Duration:
        return text_of_duration(value)
    if cls is Timestamp:
        return text_of_timestamp(value)
    if cls is TypeValue:
        return str(value.name)
    if cls is list:
        return "[" + ", ".join(map(_nested, value)) + "]"
    if isinstance(value, Map):
        entries = sorted((_nested_key(key), _nested(inner)) for key, inner in value.items())
        return "{" + ", ".join(f"{key}:{inner}" for key, inner in entries) + "}"
    raise _refused("s", value)


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Failure("invalid UTF-8 in bytes, cannot convert to string") from None


def _quote(text: str) -> str:
    simple = {
        "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
        '"': '\\"', "\\": "\\\\",
    }  # fmt: skip
    return (
        '"'
        + "".join(
            simple.get(character) or (character if character.isprintable() else _point(character)) for character in text
        )
        + '"'
    )


def _point(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _nested(value: Value) -> str:
    cls = type(value)
    if cls is str:
        return _quote(value)
    if cls is bytes:
        return "b" + _quote(_utf8(value))
    if cls is float:
        if value != value or value in (float("inf"), float("-inf")):
            return _quote("NaN" if value != value else "+Inf" if value > 0 else "-Inf")
        return f"{value:.{_DEFAULT_PRECISION}f}"
    if cls is Timestamp:
        return f'timestamp("{text_of_timestamp(value)}")'
    if cls is Duration:
        return f'duration("{text_of_duration(value)}")'
    if cls is TypeValue:
        return f"type({value.name})"
    return text_of(value)


def _nested_key(value: Value) -> str:
    if type(value) in (str, bool, int, Uint):
        return _nested(value)
    raise Failure(f"no formatting function for map key of type {type_name(value)}")


def _decimal(value: Value, _: int | None) -> str:
    if type(value) in (int, Uint):
        return str(int(value))
    raise _refused("d", value)


def _number(clause: str, value: Value) -> float:
    if type(value) is float:
        return value
    named = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    if type(value) is str and value in named:
        return float(named[value])
    raise _refused(clause, value)


def _special(number: float) -> str | None:
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "∞" if number > 0 else "-∞"
    return None


def _precision(precision: int | None) -> int:
    if precision is None:
        return _DEFAULT_PRECISION
    if precision > _LONGEST:
        raise Failure("precision out of range")
    return precision


def _fixed(value: Value, precision: int | None) -> str:
    number = _number("f", value)
    return _special(number) or f"{number:,.{_precision(precision)}f}"


def _scientific(value: Value, precision: int | None) -> str:
    number = _number("e", value)
    special = _special(number)
    if special is not None:
        return special
    mantissa, _, exponent = f"{number:.{_precision(precision)}e}".partition("e")
    raised = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in f"{abs(int(exponent)):02d}")
    return f"{mantissa}\u202f×\u202f10{'⁻' if int(exponent) < 0 else ''}{raised}"


def _binary(value: Value, _: int | None) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) in (int, Uint):
        return f"{int(value):b}"
    raise _refused("b", value)


def _octal(value: Value, _: int | None) -> str:
    if type(value) in (int, Uint):
        return f"{int(value):o}"
    raise _refused("o", value)


def _hex(value: Value, _: int | None) -> str:
    cls = type(value)
    if cls is str:
        return str(value.encode("utf-8", "surrogateescape").hex())
    if cls is bytes:
        return str(value.hex())
    if cls in (int, Uint):
        return f"{int(value):x}"
    raise _refused("x", value)


_CALLS: Final[dict[str, Callable[[Value, int | None], str]]] = {
    "s": lambda value, _: text_of(value),
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": lambda value, precision: _hex(value, precision).upper(),
    "o": _octal,
}
