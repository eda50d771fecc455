"""Parquet files as columns of text."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from lookalike.datasets.pictures import Column
from lookalike.errors import InputError, MissingExtraError


def read_parquet(path: Path) -> dict[str, Column]:
    """Read the plain columns of a Parquet file as text; nested columns and columns of vectors are left out.

    A whole number stored as a float, as data frames do once a value is missing, reads as the whole number: 7.0 is "7".

    Raises:
        MissingExtraError: pyarrow is not installed.
        InputError: not a Parquet file.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Reading Parquet", "parquet") from error
    try:
        schema = pyarrow.parquet.read_schema(path)
        plain = [each.name for each in schema if not pyarrow.types.is_nested(each.type)]
        table = pyarrow.parquet.ParquetFile(path).read(columns=plain)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return {name: tuple(_text(value) for value in table.column(name).to_pylist()) for name in plain}


def _text(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return os.fsdecode(value) if isinstance(value, bytes) else str(value) or None
