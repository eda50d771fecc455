"""Tiny models with random weights, saved in each library's own format; the real loading code opens them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.arrays import Rgb

WORDS = (
    "a photo of red blue shoe shoes cup cups two on the table white product picture close up cat dog it very long text"
)
SENTENCES = ("a photo of a red shoe", "two cups on the table", "dog", "")


def random_pictures(*sizes: tuple[int, int], seed: int = 0) -> list[Rgb]:
    """Draw smooth pictures with noise, (h, w) each: worst cases for resampling are in them."""
    generator = np.random.default_rng(seed)
    pictures = []
    for height, width in sizes:
        y, x = np.mgrid[0:height, 0:width]
        smooth = np.stack([x * 255 // max(width, 1), y * 255 // max(height, 1), (x + y) % 256], axis=-1)
        noise = generator.integers(-30, 31, (height, width, 3))
        pictures.append((smooth + noise).clip(0, 255).astype(np.uint8))
    return pictures


def save_dinov2(folder: Path, *, seed: int = 0, **processor: Any) -> Path:
    """A DINOv2 with registers to spare: 56 px, patches of 14, 32 values."""
    import transformers as hf

    config = hf.Dinov2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=56, patch_size=14, mlp_ratio=2
    )
    _save(folder, lambda: hf.Dinov2Model(config), seed)
    values: dict[str, Any] = {
        "size": {"shortest_edge": 64}, "crop_size": {"height": 56, "width": 56}, "resample": 3,
        "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
    }  # fmt: skip
    hf.BitImageProcessor(**(values | processor)).save_pretrained(folder)
    return folder


def save_dinov3(folder: Path, *, seed: int = 0) -> Path:
    """A DINOv3 with two registers: 48 px, patches of 16; its processor resizes fractions of grey levels."""
    import transformers as hf

    config = hf.DINOv3ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=48, patch_size=16,
        num_register_tokens=2,
    )  # fmt: skip
    _save(folder, lambda: hf.DINOv3ViTModel(config), seed)
    hf.DINOv3ViTImageProcessor(size={"height": 48, "width": 48}).save_pretrained(folder)
    return folder


def save_convnext(folder: Path, *, seed: int = 0) -> Path:
    """A ConvNeXt, for the pooled output of a convolutional network."""
    import transformers as hf

    config = hf.ConvNextConfig(hidden_sizes=[16, 16, 24, 32], depths=[1, 1, 1, 1], image_size=64)
    _save(folder, lambda: hf.ConvNextModel(config), seed)
    hf.BitImageProcessor(size={"shortest_edge": 64}, crop_size={"height": 64, "width": 64}).save_pretrained(folder)
    return folder


def save_clip(folder: Path, *, seed: int = 0) -> Path:
    """A CLIP with a word-level tokenizer: 48 px, 16 tokens, 24 values."""
    import transformers as hf

    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    tokeniser = _words(folder, length=16, start="<s>", end="</s>", pad="<pad>")
    config = hf.CLIPConfig(
        text_config=tower | {
            "vocab_size": len(tokeniser), "max_position_embeddings": 16, "bos_token_id": tokeniser.bos_token_id,
            "eos_token_id": tokeniser.eos_token_id, "pad_token_id": tokeniser.pad_token_id,
        },
        vision_config=tower | {"image_size": 48, "patch_size": 16},
        projection_dim=24,
    )  # fmt: skip
    _save(folder, lambda: hf.CLIPModel(config), seed)
    hf.CLIPImageProcessor(size={"shortest_edge": 48}, crop_size={"height": 48, "width": 48}).save_pretrained(folder)
    return folder


def save_siglip(folder: Path, *, seed: int = 0, words: int = 0) -> Path:
    """A SigLIP: 48 px squashed, text padded to 12 tokens."""
    import transformers as hf

    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    tokeniser = _words(folder, length=12, start=None, end="</s>", pad="</s>")
    config = hf.SiglipConfig(
        text_config=tower | {"vocab_size": words or len(tokeniser), "max_position_embeddings": 12},
        vision_config=tower | {"image_size": 48, "patch_size": 16},
    )
    _save(folder, lambda: hf.SiglipModel(config), seed)
    hf.SiglipImageProcessor(size={"height": 48, "width": 48}).save_pretrained(folder)
    return folder


def use_sentencepiece(folder: Path, length: int) -> None:
    """Put SigLIP's own tokenizer, trained on our few words, in the place of a folder's."""
    import sentencepiece
    import transformers as hf

    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).unlink(missing_ok=True)
    (folder / "words.txt").write_text("\n".join([*WORDS.split(), *SENTENCES] * 3))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "words.txt"), model_prefix=str(folder / "spiece"), vocab_size=40, pad_id=0, eos_id=1,
        unk_id=2, bos_id=-1, minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    hf.SiglipTokenizer(str(folder / "spiece.model"), model_max_length=length).save_pretrained(folder)


def save_timm(folder: Path, model: str = "resnet18", *, seed: int = 0, **settings: Any) -> Path:
    """A timm model as `local-dir:` reads it."""
    import timm
    import torch
    from timm.models import save_for_hf

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = timm.create_model(model, pretrained=False, **settings)
    folder.mkdir(parents=True)
    save_for_hf(module, str(folder), model_config={"input_size": module.pretrained_cfg["input_size"]})
    return folder


def weights_of(folder: Path) -> Path:
    """The file of weights in a folder, whichever format the library's version prefers."""
    return next(path for path in sorted(folder.iterdir()) if path.suffix in (".safetensors", ".bin"))


def save_open_clip(folder: Path, *, seed: int = 0, **preprocess: Any) -> Path:
    """An open_clip model as `local-dir:` reads it: 48 px, CLIP's own tokenizer."""
    import open_clip
    import torch

    folder.mkdir(parents=True)
    config = {
        "embed_dim": 24,
        "vision_cfg": {"image_size": 48, "layers": 2, "width": 64, "patch_size": 16, "head_width": 16},
        "text_cfg": {"context_length": 20, "vocab_size": 49408, "width": 32, "heads": 4, "layers": 2},
    }
    described = {"model_cfg": config, "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(described))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = open_clip.create_model(f"local-dir:{folder}", load_weights=False)
    torch.save(module.state_dict(), folder / "open_clip_pytorch_model.bin")
    return folder


def _save(folder: Path, make: Callable[[], Any], seed: int) -> None:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        make().save_pretrained(folder)


def _words(folder: Path, *, length: int, start: str | None, end: str, pad: str) -> Any:
    """Save a tokenizer of whole words in the format every fast tokenizer has."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    special = list(dict.fromkeys(token for token in ("<unk>", pad, start, end) if token))
    vocabulary = {word: place for place, word in enumerate([*special, *dict.fromkeys(WORDS.split())])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    pattern = f"{start} $A {end}" if start else f"$A {end}"
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=pattern, special_tokens=[(token, vocabulary[token]) for token in dict.fromkeys((start, end)) if token]
    )
    inputs = ["input_ids", "attention_mask"] if start else ["input_ids"]
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", pad_token=pad, bos_token=start, eos_token=end,
        model_max_length=length, model_input_names=inputs, padding_side="right",
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    fast.save_pretrained(folder)
    return fast
