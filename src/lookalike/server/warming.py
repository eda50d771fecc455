"""The encoder made ready while nobody waits, so that the first picture asked with costs what the next ones do."""

from __future__ import annotations

import logging

import numpy as np

from lookalike.server.shop import Shop

_log = logging.getLogger(__name__)
_SIDE = 256


def warm(shop: Shop) -> bool:
    """Load the encoder served and run it once; return whether it could be.

    Where it cannot, a note says why and items still answer: the first query that needs it is refused with the reason.
    """
    store = shop.store()
    rng = np.random.default_rng(0)  # a picture of one colour may have a vector of length zero
    try:
        store.encoder.encode_images([rng.integers(0, 256, (_SIDE, _SIDE, 3), dtype=np.uint8)])
    except Exception as error:  # an encoder is anybody's code, and this is no query yet
        _log.info("%s is not ready, so only items can be asked with: %s", store.card.name, error)
        return False
    return True
