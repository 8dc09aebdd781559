# SPDX-License-Identifier: MIT
"""JSON into dataclasses, by their type hints: a wrong key is named with its file and line."""

import dataclasses
import functools
import json
import math
import os
import re
import tempfile
import types
import typing
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from .errors import PerfError

T = TypeVar("T")
Key = str | int
_SPACE = re.compile(r"[ \t\r\n]*")
_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false",
          type(None): "null", dict: "an object", list: "a list"}


class WrongValue(Exception):
    """A value of the wrong type, or a key that lacks; `keys` is the way to it."""

    def __init__(self, keys: tuple[Key, ...], why: str) -> None:
        super().__init__(why)
        self.keys = keys


def _describe(hint: Any) -> str:
    if dataclasses.is_dataclass(hint):
        return "an object"
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_describe(h) for h in typing.get_args(hint))
    if origin is typing.Literal:
        return " or ".join(json.dumps(value) for value in typing.get_args(hint))
    if origin is tuple:
        return f"a list of {len(typing.get_args(hint))}"
    return _NAMES.get(origin or hint, str(hint))


def _convert(hint: Any, value: Any, keys: tuple[Key, ...]) -> Any:
    """`value` as the type `hint`, or WrongValue."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return _convert_object(hint, value, keys)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in args:
            return None
        left = [h for h in args if h is not type(None)]
        if len(left) == 1 and (value is not None):
            return _convert(left[0], value, keys)
    elif origin is typing.Literal and any(
            type(value) is type(arg) and value == arg for arg in args):
        return value
    elif origin is list and isinstance(value, list):
        if args[0] is float and all(type(v) is float and math.isfinite(v) for v in value):
            return value  # the blocks' times: nearly all that a file consists of
        return [_convert(args[0], v, keys + (i,)) for i, v in enumerate(value)]
    elif origin is tuple and isinstance(value, list) and len(value) == len(args):
        return tuple(_convert(h, v, keys + (i,))
                     for i, (h, v) in enumerate(zip(args, value, strict=True)))
    elif origin is dict and isinstance(value, dict):
        return {k: _convert(args[1], v, keys + (k,)) for k, v in value.items()}
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise WrongValue(keys, "is not finite")
        return float(value)
    elif hint in (str, int, bool, type(None)) and type(value) is hint:
        return value
    shown = json.dumps(value)
    raise WrongValue(keys, f"must be {_describe(hint)}, not "
                     + (shown if len(shown) <= 40 else shown[:37] + "..."))


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)  # takes longer than the rest of an object


def _convert_object(cls: Any, value: dict[str, Any], keys: tuple[Key, ...]) -> Any:
    hints = _hints(cls)
    found: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.name in value:
            found[field.name] = _convert(hints[field.name], value[field.name],
                                         keys + (field.name,))
        elif (field.default is dataclasses.MISSING
              and field.default_factory is dataclasses.MISSING):
            raise WrongValue(keys + (field.name,), "is missing")
    return cls(**found)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _offset(text: str, keys: tuple[Key, ...], at: int = 0) -> int:
    """Where in the valid JSON `text` the value of `keys` begins, or what should hold it."""
    decoder = json.JSONDecoder()
    start = at = _skip(text, at)
    if not keys or text[at] not in "{[":
        return start
    is_object, index = text[at] == "{", 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        name: Key = index
        if is_object:
            name, at = scanstring(text, at + 1, True)
            at = _skip(text, _skip(text, at) + 1)
        if name == keys[0]:
            return _offset(text, keys[1:], at)
        at = _skip(text, decoder.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)
        index += 1
    return start


def _way(keys: tuple[Key, ...]) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def parse(cls: type[T], text: str, name: str | Path, line: int = 1) -> T:
    """The JSON document `text`, which begins in `line` of the file `name`, as a `cls`."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise PerfError(f"{name}:{line + error.lineno - 1}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise PerfError(f"{name}:{line}: not JSON: {error}") from None
    try:
        return typing.cast(T, _convert(cls, value, ()))
    except WrongValue as error:
        line += text.count("\n", 0, _offset(text, error.keys))
        way = f'key "{_way(error.keys)}"' if error.keys else "the document"
        raise PerfError(f"{name}:{line}: {way} {error}") from None


def read_text(path: str | Path) -> str:
    """The text of a file, or a clear error."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise PerfError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PerfError(f"{path}: not text in UTF-8") from None


def read(cls: type[T], path: str | Path) -> T:
    """The JSON file `path` as a `cls`."""
    return parse(cls, read_text(path), path)


def dump(value: Any) -> str:
    """One line of JSON. A number that is not finite is an error of the program."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return json.dumps(value, allow_nan=False)


def write_text(path: str | Path, text: str) -> None:
    """Writes to a temporary name and renames, so that no reader sees half a file."""
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # /dev/stdout, /dev/full: no renaming there
            path.write_text(text, encoding="utf-8")
            return
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.",
                                         delete=False, encoding="utf-8") as file:
            temporary = file.name
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise PerfError(f"{path}: cannot be written: {error.strerror}") from None


def write(path: str | Path, value: Any) -> None:
    """Writes a dataclass, or what json knows, as an indented JSON file."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    write_text(path, json.dumps(value, allow_nan=False, indent=1) + "\n")
