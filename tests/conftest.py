"""Fixtures every test folder may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real labelled pictures and golden numbers; a test that needs it is skipped where it is absent."""
    path = Path(os.environ.get("LOOKALIKE_SHARED", REPOSITORY.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"real pictures and golden numbers are not at {path} (set LOOKALIKE_SHARED)")
    return path
