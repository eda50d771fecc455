"""Optional libraries: imported where they are needed, and named with their extra where they are missing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from lookalike.errors import MissingExtraError


def library(module: str, *, feature: str, extra: str) -> Any:
    """Import an optional library.

    Raises:
        MissingExtraError: it is not installed; the extra that brings it is named.

    >>> library("json", feature="reading JSON", extra="none").loads("[1]")
    [1]
    """
    require(module, feature=feature, extra=extra)
    return importlib.import_module(module)


def require(*modules: str, feature: str, extra: str) -> None:
    """Tell within milliseconds, without importing anything, that a library is missing.

    Raises:
        MissingExtraError: one of the modules is not installed.
    """
    if not all(installed(module) for module in modules):
        raise MissingExtraError(feature, extra)


def installed(module: str) -> bool:
    """Tell whether a library can be imported, without importing it.

    >>> installed("json"), installed("not_a_library_of_ours")
    (True, False)
    """
    return importlib.util.find_spec(module.partition(".")[0]) is not None
