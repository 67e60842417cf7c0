"""Columns between numpy and Arrow, by their buffers. Pure.

pyarrow's own conversions do the same and import pandas, which costs every command a third of a second of CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]


def column(values: npt.NDArray[Any], null: Mask | None = None) -> pa.Array:
    """A column of numbers, null where the mask says so."""
    validity = None if null is None or not null.any() else _bits(~null)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, data])


def nullable(values: npt.NDArray[Any], null: int) -> pa.Array:
    """A column of numbers of which one stands for null."""
    missing = values == null
    return nothing(len(values), values.dtype) if missing.all() else column(values, missing)


def nothing(size: int, dtype: np.dtype[Any]) -> pa.Array:
    """A column without a value. Its zeros are the system's, which takes no memory for them until they are written."""
    buffers = [_no_bits(size), pa.py_buffer(np.zeros(size, dtype))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(dtype), size, buffers, null_count=size)


def no_lists(size: int, kind: pa.DataType) -> pa.Array:
    """A column of lists without a value."""
    none = pa.Array.from_buffers(kind, 0, [None, pa.py_buffer(b"")])
    buffers = [_no_bits(size), pa.py_buffer(np.zeros(size + 1, np.int32))]
    return pa.Array.from_buffers(pa.list_(kind), size, buffers, null_count=size, children=[none])


def truths(mask: Mask) -> pa.Array:
    """A column of truth values, by which rows can be chosen."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, _bits(mask)])


def texts(values: Sequence[str]) -> pa.Array:
    """A column of texts."""
    encoded = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def numbers(array: pa.Array | pa.ChunkedArray, null: float = 0) -> npt.NDArray[Any]:
    """The numbers of a column; ``null`` where it is null."""
    array = _whole(array)
    dtype = np.dtype(array.type.to_pandas_dtype())
    data = array.buffers()[1]
    if data is None or array.null_count == len(array):
        return np.broadcast_to(dtype.type(null), len(array))
    values = np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)
    return np.where(present(array), values, dtype.type(null)) if array.null_count else values


def coded(column: pa.ChunkedArray) -> tuple[npt.NDArray[Any], list[str]]:
    """The numbers of a column of names, -1 where it is null, and the names they mean."""
    if not column.num_chunks:  # no rows
        return np.zeros(0, np.int64), []
    whole = column.combine_chunks()
    return numbers(whole.indices, null=-1), whole.dictionary.to_pylist()


def present(array: pa.Array | pa.ChunkedArray) -> Mask:
    """The rows in which a column is not null."""
    array = _whole(array)
    validity = array.buffers()[0]
    if not array.null_count or validity is None:
        return np.full(len(array), not array.null_count)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].astype(bool)


def _whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    if not array.num_chunks:  # it has no rows, and without pandas nothing would make an array of none
        return pa.nulls(0, array.type)
    whole, *more = array.iterchunks()
    return pa.concat_arrays([whole, *more]) if more else whole


def _bits(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def _no_bits(size: int) -> pa.Buffer:
    return pa.py_buffer(np.zeros((size + 7) // 8, np.uint8))
