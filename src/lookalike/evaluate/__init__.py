"""An order to an honest number.

The package is callable: `lookalike.evaluate(…)` is `lookalike.evaluate.run.evaluate(…)`. Python binds a package's name
in its parent at import, so that a function of the same name could not stand there.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class _Callable(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from lookalike.evaluate.run import evaluate

        return evaluate(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
