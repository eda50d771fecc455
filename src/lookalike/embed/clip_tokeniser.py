"""CLIP's byte-pair encoding as a `tokenizer.json`, so that an exported model reads text without open_clip."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.embed.extras import library
from lookalike.errors import InputError

FEATURE, EXTRA = "Saving a tokenizer", "hf"
PROBES: Sequence[str] = (
    "a photo of a red shoe",
    "Two  spaces,\ttabs and CAPITALS",
    "it's 3,50 € — café naïve, 北京 日本語 Привет",
    "don't we'll they've I'm you're he'd",
    "emoji 🙂 and (brackets) #hashtag @user",
    "a " * 100 + "very long text that is cut",
    "",
)
_SPLIT = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def save(tokeniser: Any, length: int, path: Path) -> None:
    """Write open_clip's tokeniser to `path`, padding and truncation in it, once it gives the same tokens.

    Raises:
        InputError: it does not, so that the text tower cannot be exported.
    """
    backend = getattr(getattr(tokeniser, "tokenizer", None), "backend_tokenizer", None)
    made = _from_fast(backend, tokeniser, length) if backend is not None else _from_bpe(tokeniser, length)
    wanted = [[int(token) for token in row] for row in tokeniser(list(PROBES))]
    for probe, row, found in zip(PROBES, wanted, made.encode_batch(list(PROBES)), strict=True):
        if row != found.ids:
            raise no_tokenizer_json(tokeniser, f"{probe!r} differs")
    made.save(str(path))


def _from_bpe(tokeniser: Any, length: int) -> Any:
    """Rebuild open_clip's `SimpleTokenizer` (Radford et al., 2021): lower case, byte-level BPE, start and end token."""
    if not hasattr(tokeniser, "bpe_ranks"):
        raise no_tokenizer_json(tokeniser, "it has no fast form")
    tokenizers = library("tokenizers", feature=FEATURE, extra=EXTRA)
    start, end = (tokeniser.decoder[token] for token in (tokeniser.sot_token_id, tokeniser.eot_token_id))
    ranks = sorted(tokeniser.bpe_ranks, key=tokeniser.bpe_ranks.__getitem__)
    made = tokenizers.Tokenizer(tokenizers.models.BPE(
        vocab=tokeniser.encoder, merges=ranks, end_of_word_suffix="</w>", fuse_unk=False, unk_token=end))  # fmt: skip
    pieces, cut = tokenizers.normalizers, tokenizers.pre_tokenizers
    made.normalizer = pieces.Sequence([pieces.NFC(), pieces.Replace(tokenizers.Regex(r"\s+"), " "), pieces.Lowercase()])
    made.pre_tokenizer = cut.Sequence([
        cut.Split(tokenizers.Regex(_SPLIT), behavior="removed", invert=True),
        cut.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{start} $A {end}",
        special_tokens=[(start, tokeniser.sot_token_id), (end, tokeniser.eot_token_id)],
    )
    made.enable_truncation(length)
    made.enable_padding(length=length, pad_id=0, pad_token=tokeniser.decoder[0])
    return made


def _from_fast(backend: Any, tokeniser: Any, length: int) -> Any:
    """Copy a transformers tokeniser that open_clip wraps, its own cleaning in front."""
    tokenizers = library("tokenizers", feature=FEATURE, extra=EXTRA)
    made = tokenizers.Tokenizer.from_str(backend.to_str())
    inner = tokeniser.tokenizer
    made.enable_truncation(length)
    made.enable_padding(length=length, pad_id=inner.pad_token_id, pad_token=inner.pad_token)
    return made


def no_tokenizer_json(tokeniser: Any, why: str) -> InputError:
    """Return the refusal to export a text tower whose tokenizer cannot be written down."""
    return InputError(
        f"The tokenizer {type(tokeniser).__name__} cannot be written as tokenizer.json: {why}.",
        hint="Export the picture half with --no-text.",
    )
