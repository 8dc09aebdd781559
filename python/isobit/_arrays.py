# SPDX-License-Identifier: MIT
"""
From NumPy arrays to pointers, sizes and strides, and what is wrong with an array, by its name.

The library takes rows whose elements lie side by side, any distance apart. Arrays of that form are
passed as they are; of an input of another form (every second column, reversed rows) a copy is
made; an output of another form is refused.
"""
from __future__ import annotations

import ctypes
import math
from typing import Any, Optional, Sequence, Tuple

import numpy as np
import numpy.typing as npt

from . import _c

Floats = npt.NDArray[np.float32]
Shape = Tuple[int, ...]

_ITEM = 4
_LARGE = 1 << 20  # bytes from which the place of an output matters for speed


def floats(name: str, value: Any) -> Floats:
    """An input. Nothing is converted: what is not float32 is a TypeError."""
    array = any_array(name, value)
    if array.dtype != np.float32:
        raise TypeError(f"{name}: float32 expected, got {array.dtype}")
    return array


def any_array(name: str, value: Any) -> npt.NDArray[Any]:
    if value is None:
        raise TypeError(f"{name}: an array expected, got None")
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array; its mask would be ignored")
    return np.asarray(value)


def matrix(name: str, value: Any) -> Floats:
    return two_dimensions(name, floats(name, value))


def two_dimensions(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.ndim != 2:
        raise ValueError(f"{name}: 2 dimensions expected, got {array.ndim} (shape {array.shape})")
    return array


def vector(name: str, value: Any, length: int) -> Floats:
    return contiguous(shaped(name, floats(name, value), (length,)))


def shaped(name: str, array: npt.NDArray[Any], shape: Shape) -> npt.NDArray[Any]:
    if array.shape != shape:
        raise ValueError(f"{name}: shape {shape} expected, got {array.shape}")
    return array


def empty(shape: Shape) -> Floats:
    """Uninitialised; large ones begin at a multiple of 64 bytes, where they are written fastest."""
    count = math.prod(shape)
    if count * _ITEM < _LARGE:
        return np.empty(shape, np.float32)
    return aligned_floats(count).reshape(shape)


def aligned_floats(count: int) -> Floats:
    room = np.empty(count + 16, np.float32)
    skip = (-room.ctypes.data % 64) // _ITEM
    return room[skip : skip + count]


def output(name: str, value: Any, shape: Shape) -> Floats:
    """The array that the caller gave for a result, or a new one."""
    if value is None:
        return empty(shape)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name}: a NumPy array expected, got {type(value).__name__}")
    array: Floats = shaped(name, floats(name, value), shape)
    if not array.flags.writeable:
        raise ValueError(f"{name}: the array is read-only")
    return array


def address(array: Optional[npt.NDArray[Any]]) -> Optional[int]:
    if array is None:
        return None
    if array.flags.carray and array.size:  # far faster than array.ctypes
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    return int(array.ctypes.data)


def _copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copy = np.empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def contiguous(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array if array.flags.c_contiguous and array.flags.aligned else _copy(array)


# ------------------------------------------------------------------------------------- rows


def _row_stride(array: npt.NDArray[Any]) -> Optional[int]:
    """In elements, of a matrix whose rows the library can take; None if it cannot."""
    rows, columns = int(array.shape[0]), int(array.shape[1])
    item = int(array.itemsize)
    if array.size == 0:
        return columns
    if not array.flags.aligned or (columns > 1 and array.strides[1] != item):
        return None
    if rows == 1:
        return columns
    stride = int(array.strides[0])
    return stride // item if stride % item == 0 and stride // item >= columns else None


class Rows:
    """An array of any number of dimensions as a matrix: all but the last are its rows."""

    def __init__(self, name: str, array: npt.NDArray[Any], is_output: bool = False) -> None:
        if array.ndim == 0:
            raise ValueError(f"{name}: at least 1 dimension expected, got 0")
        self.n = array.shape[-1]
        self.count = math.prod(array.shape[:-1])
        # A view where that is possible.
        flat = array if array.ndim == 2 else array.reshape(self.count, self.n)
        flags = array.flags
        if flags.c_contiguous and flags.aligned:
            stride: Optional[int] = self.n
        elif is_output:
            stride = _row_stride(flat)
            if stride is None or (array.size and not np.may_share_memory(flat, array)):
                raise ValueError(
                    f"{name}: its rows must be contiguous and the same distance apart; "
                    f"shape {array.shape}, strides {array.strides}"
                )
        else:
            stride = _row_stride(flat)
            if stride is None:
                flat, stride = _copy(flat), self.n
        assert stride is not None
        self.array = flat  # owns the memory at `address`
        self.ld = stride
        self.address = address(flat)


def operand(array: npt.NDArray[Any]) -> Tuple[npt.NDArray[Any], int, bool]:
    """A factor of a product: the array, its stride, and whether it is passed transposed."""
    stride = _row_stride(array)
    if stride is not None:
        return array, stride, False
    stride = _row_stride(array.T)
    if stride is not None:
        return array, stride, True
    return _copy(array), array.shape[1], False


def rows_of_blocks(array: npt.NDArray[np.uint8], block: int) -> Tuple[npt.NDArray[np.uint8], int]:
    """Rows of whole blocks of so many bytes: the array, and its stride in blocks."""
    stride = _row_stride(array)
    if stride is None or stride % block:
        array, stride = _copy(array), int(array.shape[1])
    return array, stride // block


# -------------------------------------------------------------------------------- attention


class Heads:
    """An array [batch][head][position][element]; the dimensions on the left may be missing."""

    def __init__(self, name: str, array: Floats, shape: Shape, is_output: bool = False) -> None:
        self.array = np.broadcast_to(array, shape) if array.shape != shape else array
        strides = self._strides(self.array)
        if strides is None and is_output:
            raise ValueError(
                f"{name}: its last dimension must be contiguous; shape {array.shape}, "
                f"strides {array.strides}"
            )
        if strides is None:
            # The small array is copied, not what it is broadcast to, but for its own rows.
            rows = array.shape[:-2] + shape[-2:]
            self.array = np.broadcast_to(_copy(np.broadcast_to(array, rows)), shape)
            strides = self._strides(self.array)
        assert strides is not None
        self.strides = strides
        self.address = address(self.array)

    @staticmethod
    def _strides(array: Floats) -> Optional[_c.iso_strides]:
        last = array.shape[-1]
        if array.size == 0:
            return _c.iso_strides(last, last, last)
        if not array.flags.aligned or (last > 1 and array.strides[-1] != _ITEM):
            return None
        found = []
        for length, stride in zip(array.shape[:-1], array.strides[:-1]):
            if length == 1:
                stride = last * _ITEM  # never stepped over
            if stride < 0 or stride % _ITEM:
                return None
            found.append(stride // _ITEM)
        if array.shape[-2] > 1 and found[-1] < last:  # positions on top of each other
            return None
        return _c.iso_strides(*found)


def four_dimensions(name: str, array: Floats) -> Floats:
    if not 2 <= array.ndim <= 4:
        raise ValueError(
            f"{name}: 2 to 4 dimensions expected ([batch,] [head,] position, element), "
            f"got {array.ndim} (shape {array.shape})"
        )
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


# --------------------------------------------------------------------------------- integers


def lengths(name: str, value: Any, count: int, most: int) -> npt.NDArray[np.uintp]:
    array = at_most(name, shaped(name, integers(name, value), (count,)), most)
    return np.ascontiguousarray(array, np.uintp)


def at_most(name: str, array: npt.NDArray[Any], most: int) -> npt.NDArray[Any]:
    if array.size and not (0 <= array.min() and array.max() <= most):
        raise ValueError(
            f"{name}: values from 0 to {most} expected, got {array.min()} to {array.max()}"
        )
    return array


def token_ids(name: str, value: Any) -> npt.NDArray[np.uint32]:
    array = integers(name, value)
    if array.ndim != 1:
        raise ValueError(f"{name}: 1 dimension expected, got {array.ndim} (shape {array.shape})")
    if array.size and not (0 <= array.min() and array.max() < 2**32):
        raise ValueError(
            f"{name}: token ids are from 0 to {2**32 - 1}, got {array.min()} to {array.max()}"
        )
    return np.ascontiguousarray(array, np.uint32)


def integers(name: str, value: Any) -> npt.NDArray[Any]:
    array = any_array(name, value)
    if array.size == 0:
        return array.astype(np.uint32)  # an empty list has no type of its own
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: integers expected, got {array.dtype}")
    return array


def mask_bytes(name: str, value: Any, shape: Shape) -> npt.NDArray[np.uint8]:
    array = any_array(name, value)
    if array.dtype != np.bool_ and array.dtype != np.uint8:
        raise TypeError(f"{name}: bool or uint8 expected, got {array.dtype}")
    try:
        return np.broadcast_to(array, shape).view(np.uint8)
    except ValueError:
        raise ValueError(
            f"{name}: shape {array.shape} does not broadcast to {shape}"
        ) from None


def concatenated(
    arrays: Sequence[npt.NDArray[np.uint32]],
) -> Tuple[npt.NDArray[np.uint32], npt.NDArray[np.uintp]]:
    """Sequences one after the other, and the length of each."""
    joined = np.concatenate(arrays) if arrays else np.empty(0, np.uint32)
    return joined, np.array([len(a) for a in arrays], np.uintp)


