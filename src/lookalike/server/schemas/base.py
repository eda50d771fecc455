"""The base of every model, and the form of an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

ItemId: TypeAlias = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""The number of an item; within what a JavaScript number holds exactly."""
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
FilterText: TypeAlias = Annotated[str, Field(max_length=10_000)]
Cell: TypeAlias = str | int | float | bool | None
"""A value of a column."""
Metric: TypeAlias = Literal["cosine", "ip", "l2"]


class Model(BaseModel):
    """A model that knows its fields and finite numbers only."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Problem(Model):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    title: str
    """The kind of error: `InputError`, `UnknownNameError`, …"""
    status: int
    detail: str
    """What is wrong, naming the value and the limit."""
    hint: str = ""
    """The next step, or empty."""
    errors: list[dict[str, Any]] = Field(default_factory=list)
    """Which fields of the request are wrong, where that is the reason."""
    job: str | None = None
    """The job in the way, where one is."""
