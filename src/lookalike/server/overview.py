"""What a page must know to start: the catalogue, its encoders and columns, and what can be asked."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter

from lookalike.catalogue import columns
from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Card
from lookalike.embed.text import no_text_tower
from lookalike.errors import MissingExtraError
from lookalike.images.load import REASONS
from lookalike.index.kinds import KINDS
from lookalike.index.neighbours import higher_is_better
from lookalike.rank.rerankers import RERANKERS
from lookalike.server.items import label_column, plain, sendable
from lookalike.server.schemas.catalogue import (
    CatalogueInfo,
    Choice,
    ColumnInfo,
    EncoderInfo,
    FailureList,
    FailureRow,
)
from lookalike.server.settings import Settings
from lookalike.server.shop import Shop
from lookalike.server.training import missing
from lookalike.train.losses import LOSSES

_UMAP = "neighbours kept together; axes and distances between groups mean nothing"


def catalogue_info(shop: Shop) -> CatalogueInfo:
    """Describe the catalogue."""
    store = shop.store()
    info = store.index_info()
    root = store.root
    return CatalogueInfo(
        name=store.folder.name,
        folder=sendable(str(store.folder)),
        root=None if root is None else sendable(str(root)),
        items=len(store),
        revision=store.revision,
        metric=store.metric,
        higher_is_better=higher_is_better(store.metric),
        dim=store.dim,
        encoder=store.card.name,
        encoders=[encoder_info(card) for card in store.cards()],
        columns=column_infos(store),
        label=label_column(store),
        failures=len(store.failures()),
        readonly=not _writable(shop),
        index=None if info is None else plain(info.to_dict()),
        rerankers=[Choice(name=name, summary=row.summary) for name, row in RERANKERS.items()],
        maps=[
            Choice(name="pca", summary="the two directions of largest variance"),
            _choice("umap", _UMAP, "maps", importlib.util.find_spec("umap") is None),
        ],
        index_kinds=list(KINDS),
        losses=list(LOSSES),
        train=_choice("train", "a head on the stored vectors", "train", bool(missing())),
        limits=_limits(shop.settings),
    )


def encoder_info(card: Card) -> EncoderInfo:
    """Describe an encoder."""
    refusal = None if card.supports_text else str(no_text_tower(card.name))
    return EncoderInfo(
        name=card.name, dim=card.dim, digest=card.digest, pooling=card.pooling, image_size=card.image_size,
        normalised=card.normalised, licence=card.licence, supports_text=card.supports_text, text_refusal=refusal,
    )  # fmt: skip


def column_infos(store: Catalogue) -> list[ColumnInfo]:
    """Describe the columns a filter may name."""
    builtin = [ColumnInfo(name=name, type=field.type, builtin=True) for name, field in columns.BUILTIN.items()]
    return [*(ColumnInfo(name=each.name, type=each.type, builtin=False) for each in store.columns()), *builtin]


def failures(store: Catalogue) -> FailureList:
    """Return the files that have no vector."""
    rows = store.failures()
    return FailureList(
        failures=[
            FailureRow(path=sendable(path), reason=reason, meaning=REASONS.get(reason, ""), detail=sendable(detail))
            for path, reason, detail in rows
        ],
        by_reason=dict(Counter(row.reason for row in rows)),
    )


def _choice(name: str, summary: str, extra: str, lacking: bool) -> Choice:
    reason = str(MissingExtraError(f"`{name}`", extra)) if lacking else None
    return Choice(name=name, summary=summary, available=not lacking, reason=reason)


def _limits(settings: Settings) -> dict[str, int]:
    return {"body": settings.max_body, "upload": settings.max_upload, "pixels": settings.max_pixels, "k": 1_000}


def _writable(shop: Shop) -> bool:
    return os.access(shop.settings.catalogue, os.W_OK)
