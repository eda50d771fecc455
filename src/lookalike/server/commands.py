"""The command line that does what a request does, for the page to show."""

from __future__ import annotations

import shlex
from typing import Any

_SHORT = ("k", "P", "K")
"""Options of one dash; `--m`, the parts of a product code, has two."""


def command(verb: str, *words: object, **options: Any) -> str:
    r"""Write a command; options that are None or False are left out, those that are True stand alone.

    >>> command("search", "my shop.la", item=3, where="label = 'mug'", rerank=None)
    'lookalike search \'my shop.la\' --item 3 --where \'label = \'"\'"\'mug\'"\'"\'\''
    """
    parts = ["lookalike", verb, *map(str, words)]
    for name, value in options.items():
        flag = f"-{name}" if name in _SHORT else f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        parts += [flag] if value is True else [flag, str(value)]
    return shlex.join(parts)
