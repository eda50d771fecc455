"""Options that mean the same on every verb."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from lookalike import network

Function = TypeVar("Function", bound=Callable[..., Any])


def output_format(*choices: str) -> Callable[[Function], Function]:
    """--format, the first choice being the default."""
    return click.option(
        "--format", "output_format", type=click.Choice(choices), default=choices[0], show_default=True,
        help="How the result is written to standard output.",
    )  # fmt: skip


def running(function: Function) -> Function:
    """-q, --no-progress, --threads and --offline: how a verb runs, not what it computes."""
    decorators: Sequence[Callable[[Function], Function]] = (
        click.option("-q", "--quiet", is_flag=True, help="No notes and no progress."),
        click.option("--progress/--no-progress", default=True, help="Draw progress on standard error."),
        click.option("--threads", type=click.IntRange(min=1), help="For decoding, BLAS and search. [default: all]"),
        click.option("--offline", is_flag=True, callback=_stay_here, help="Ask no other machine, whatever is missing."),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def _stay_here(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """Forbid other machines until the verb ends."""
    del param
    if value:
        ctx.with_resource(network.forbidden())
    return value


class CutOffs(click.ParamType[tuple[int, ...]]):
    """A list of cut-offs such as `1,5,10`."""

    name = "K,K,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Parse and check: whole numbers from 1."""
        if isinstance(value, tuple):
            return value
        try:
            ks = tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is no list of whole numbers such as 1,5,10.", param, ctx)
        if min(ks) < 1:
            self.fail(f"K={min(ks)}: a cut-off is at least 1.", param, ctx)
        return tuple(sorted(set(ks)))


class Threshold(click.ParamType[tuple[str, float]]):
    """A check such as `recall@1=0.6`."""

    name = "METRIC=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """Parse into the metric's name and the least value that passes."""
        if isinstance(value, tuple):
            return value
        name, sign, number = str(value).rpartition("=")
        try:
            least = float(number)
        except ValueError:
            sign = ""
        if not sign or not name:
            self.fail(f"{value!r} is no check such as recall@1=0.6.", param, ctx)
        return name, least
