# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Types of expressions, and which can stand for which.

The rules are cel-go's (checker/types.go): `dyn` and `any` agree with everything, a type parameter takes the most
general type it has met.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A kind, a name where the kind has several (opaque and struct types, parameters), and parameters."""

    kind: str
    name: str = ""
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        name = self.name or self.kind
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name


BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
DURATION: Final = Type("duration", "google.protobuf.Duration")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
DYN: Final = Type("dyn")
ANY: Final = Type("any")
ERROR: Final = Type("error")
QUANTITY: Final = Type("struct", "kubernetes.Quantity")
SEMVER: Final = Type("struct", "kubernetes.Semver")
URL: Final = Type("struct", "kubernetes.URL")
FORMAT: Final = Type("struct", "kubernetes.NamedFormat")
IP: Final = Type("opaque", "net.IP")
CIDR: Final = Type("opaque", "net.CIDR")
DEVICE: Final = Type("struct", "kubernetes.DRADevice")

_NULLABLE: Final = frozenset(("opaque", "struct", "any", "duration", "timestamp"))


def list_of(element: Type) -> Type:
    return Type("list", "", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "", (key, value))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type("type", "", (value,))


def param(name: str) -> Type:
    return Type("param", name)


def is_dyn(one: Type) -> bool:
    return one.kind in ("dyn", "any")


def is_optional(one: Type) -> bool:
    return one.kind == "opaque" and one.name == "optional_type"


def unwrapped(one: Type) -> Type:
    """The value's type of an optional; any other type as it is."""
    return one.params[0] if is_optional(one) else one


_NAMED: Final = {
    known.kind: known for known in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, DURATION, TIMESTAMP, DYN, ANY)
} | {"quantity": QUANTITY, "semver": SEMVER, "url": URL, "format": FORMAT, "ip": IP, "cidr": CIDR, "null": NULL}


def read(text: str) -> Type:
    """A type written as in the tables of `library`: `list(A)`, `map(string, B)`, `optional(int)`, `A`."""
    parts = re.findall(r"[A-Za-z_.]+|[(),]", text)
    found, rest = _read(parts)
    if rest:
        raise ValueError(f"{text!r} is no type")
    return found


def _read(parts: Sequence[str]) -> tuple[Type, Sequence[str]]:
    name, rest = parts[0], parts[1:]
    params: list[Type] = []
    if rest and rest[0] == "(":
        while rest[0] != ")":
            one, rest = _read(rest[1:])
            params.append(one)
        rest = rest[1:]
    if name in ("list", "map", "type"):
        return Type(name, "", tuple(params)), rest
    if name == "optional":
        return optional_of(params[0]), rest
    if name in _NAMED:
        return _NAMED[name], rest
    return (param(name) if len(name) == 1 else Type("opaque", name)), rest


class Substitution(dict[Type, Type]):
    """What each type parameter stands for so far."""


def assignable(mapping: Substitution, ones: Sequence[Type], others: Sequence[Type]) -> Substitution | None:
    """The substitution under which every type of `ones` can stand for its fellow in `others`, or None."""
    trial = Substitution(mapping)
    return trial if _all_assignable(trial, ones, others) else None


def _all_assignable(mapping: Substitution, ones: Sequence[Type], others: Sequence[Type]) -> bool:
    return len(ones) == len(others) and all(_assignable(mapping, *pair) for pair in zip(ones, others, strict=True))


def _assignable(mapping: Substitution, one: Type, other: Type) -> bool:
    if other.kind == "param":
        valid, substituted = _substitutes(mapping, one, other)
        if valid or substituted:
            return valid
    if one.kind == "param":
        return _substitutes(mapping, other, one)[0]
    if one.kind in ("dyn", "any", "error") or other.kind in ("dyn", "any", "error"):
        return True
    if one.kind == "null_type" or other.kind == "null_type":
        nullable = other if one.kind == "null_type" else one
        return nullable.kind in _NULLABLE or nullable.kind == "null_type"
    if one.kind == "type":
        return other.kind == "type"
    if one.kind in ("opaque", "list", "map"):
        same = one.kind == other.kind and one.name == other.name
        return same and _all_assignable(mapping, one.params, other.params)
    return one == other


def _substitutes(mapping: Substitution, one: Type, parameter: Type) -> tuple[bool, bool]:
    """Whether `one` can stand for `parameter`, and whether the parameter already stands for something."""
    if one == parameter:
        return True, True
    standing = mapping.get(parameter)
    if standing is not None:
        if one == standing:
            return True, True
        if _assignable(mapping, one, standing):
            general = most_general(one, standing)
            if _absent(mapping, parameter, general):
                mapping[parameter] = general
            return True, True
        return False, True
    if _absent(mapping, parameter, one):
        mapping[parameter] = one
        return True, False
    return False, False


def most_general(one: Type, other: Type) -> Type:
    """The more general of two types that agree."""
    return one if _less_specific(one, other) else other


def _less_specific(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind == "param":
        return True
    if is_dyn(other) or other.kind == "param" or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in ("opaque", "list", "map"):
        same = one.name == other.name and len(one.params) == len(other.params)
        return same and all(_less_specific(*pair) for pair in zip(one.params, other.params, strict=True))
    return one == other


def _absent(mapping: Substitution, parameter: Type, within: Type) -> bool:
    """The parameter does not occur in `within`, however deep."""
    if parameter == within:
        return False
    if within.kind == "param":
        standing = mapping.get(within)
        return standing is None or _absent(mapping, parameter, standing)
    return all(_absent(mapping, parameter, inner) for inner in within.params)


def substitute(mapping: Substitution, one: Type, *, final: bool = False) -> Type:
    """`one` with every parameter replaced by what it stands for; with `final`, by `dyn` where that is nothing."""
    standing = mapping.get(one)
    if standing is not None:
        return substitute(mapping, standing, final=final)
    if one.kind == "param":
        return DYN if final else one
    if not one.params:
        return one
    return Type(one.kind, one.name, tuple(substitute(mapping, inner, final=final) for inner in one.params))
