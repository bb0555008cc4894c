# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Functions of texts and patterns."""

from collections.abc import Mapping, Sequence
from typing import Final

from .. import formatting
from ..values import Failure, Value, pattern, type_name
from .limits import Implementation, bounded


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise Failure(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise Failure(f"index out of range: {offset}")
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    if len(text.encode("utf-8", "replace")) < len(part.encode("utf-8", "replace")):
        return -1
    return _last_index_from(text, part, len(text) - 1)


def _last_index_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise Failure(f"index out of range: {offset}")
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_UPPER: Final = {code: code - 32 for code in range(97, 123)}


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = len(text) + 1 if not old else text.count(old)
    found = found if count < 0 else min(found, count)
    bounded(len(text) + found * len(new))
    return text.replace(old, new, found)


def _split(text: str, separator: str, count: int = -1) -> list[Value]:
    if count == 0:
        return []
    if not separator:
        characters = list(text)
        if 0 < count < len(characters):
            return [*characters[: count - 1], "".join(characters[count - 1 :])]
        return characters
    return list(text.split(separator, -1 if count < 0 else count - 1))


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if end is not None and start > end:
        raise Failure(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise Failure(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise Failure(f"index out of range: {stop}")
    return text[start:stop]


_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTES: Final = str.maketrans(
    {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\",
     '"': '\\"'}
)  # fmt: skip


def _join(parts: Sequence[Value], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            raise Failure(f"join: invalid input of type {type_name(part)}")
    bounded(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _find(text: str, expression: str) -> str:
    match = pattern(expression).search(text)
    return match.group() if match else ""


def _find_all(text: str, expression: str, limit: int = -1) -> list[Value]:
    """Go's FindAllString: an empty match right after another match does not count."""
    compiled = pattern(expression)
    found: list[Value] = []
    position, previous = 0, -1
    while position <= len(text) and (limit < 0 or len(found) < limit):
        match = compiled.search(text, position)
        if match is None:
            break
        start, end = match.span()
        if end > start or start != previous:
            found.append(match.group())
        previous = end
        position = end if end > position else position + 1
        if end == start and end >= position:
            position = end + 1
    return found


TEXTS: Final[Mapping[str, Implementation]] = {
    "contains_string": lambda text, part: part in text,
    "starts_with_string": lambda text, part: text.startswith(part),
    "ends_with_string": lambda text, part: text.endswith(part),
    "matches": lambda text, expression: pattern(expression).search(text) is not None,
    "matches_string": lambda text, expression: pattern(expression).search(text) is not None,
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_from,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring,
    "string_trim": lambda text: text.strip(_SPACE),
    "string_format": formatting.formatted,
    "strings_quote": lambda text: '"' + text.translate(_QUOTES) + '"',
    "list_join": _join,
    "list_join_string": _join,
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}
"""By overload."""
