"""pytorch-metric-learning, imported so that it leaves faiss as it is.

Its `utils.inference` imports `faiss.contrib.torch_utils`, which replaces `search` of every faiss index in the process
by one that takes no search parameters: an engine that shares the process (Milvus Lite) then fails. Nothing here needs
that module, so an empty one stands in its place while the library loads.
"""

# mypy: disable-error-code="import-not-found,import-untyped"

from __future__ import annotations

import sys
import types

_PATCH = "faiss.contrib.torch_utils"

if _PATCH in sys.modules:
    import pytorch_metric_learning.utils.inference
else:
    sys.modules[_PATCH] = types.ModuleType(_PATCH)
    try:
        import pytorch_metric_learning.utils.inference
    finally:
        del sys.modules[_PATCH]

from pytorch_metric_learning import distances, losses, miners, reducers  # noqa: E402 - only after the above

__all__ = ["distances", "losses", "miners", "pytorch_metric_learning", "reducers"]
