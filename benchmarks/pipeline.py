"""Pictures a second: the network alone, the decoder alone, and the pipeline that does both.

    python benchmarks/pipeline.py [--pictures 300] [--repeats 5] [--threads N] [--json FILE]

"Alone" means with the whole machine to itself:
- `session, calls in turn`: ONNX Runtime as it is usually driven, one call after another on ready tensors, all threads
  inside the call, at the batch size (1, 8, 32) that is quickest here;
- `session, calls side by side`: the same tensors the way the built-in encoder runs them, one picture a call, one
  single-threaded call on each core;
- `decode + prepare`: files to network inputs on all threads, no network.

The pipeline shares the cores between both jobs, so next to the second and third figure it cannot pass the sum of
their costs, 1 / (1 / session + 1 / decode); that bound is printed too. Repeats are interleaved, medians shown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from figure import Figure, add_option, write

from lookalike import threads as processors
from lookalike.embed.builtin import BuiltinEncoder
from lookalike.embed.pipeline import embed_files
from lookalike.images.load import load

SETS = {"500x400": (500, 400), "224x224": (224, 224)}
IN_TURN = (1, 8, 32)


class Row(NamedTuple):
    """One printed figure."""

    set: str
    what: str
    pictures_per_s: float
    cpu_ms_per_picture: float


def photographs(folder: Path, count: int, size: tuple[int, int], seed: int = 0) -> list[Path]:
    """Write JPEG files with the detail of photographs: soft shapes, edges and sensor noise, about 2 bits a pixel."""
    from PIL import Image

    width, height = size
    generator = np.random.default_rng(seed)
    paths = []
    for number in range(count):
        coarse = generator.integers(0, 255, (height // 40 + 2, width // 40 + 2, 3), dtype=np.uint8)
        soft = np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)).astype(np.int16)
        y, x = np.mgrid[0:height, 0:width]
        edge = ((x * np.cos(number) + y * np.sin(number)) % 97 < 40)[..., None] * np.int16(40)
        noise = generator.normal(0, 5, (height, width, 1)).astype(np.int16)
        path = folder / f"{number:05d}.jpg"
        Image.fromarray((soft + edge + noise).clip(0, 255).astype(np.uint8)).save(path, quality=88)
        paths.append(path)
    return paths


def _in_turn(session: Any, tensors: Sequence[Any], batch: int) -> None:
    for start in range(0, len(tensors), batch):
        session.run(None, {"pixels": np.stack(tensors[start : start + batch])})


def _session(threads: int) -> Any:
    import onnxruntime

    import lookalike.embed.builtin as builtin

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    model = Path(builtin.__file__).with_name("effnet_lite0.onnx")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _jobs(paths: Sequence[Path], threads: int) -> Iterator[tuple[str, Callable[[], object]]]:
    encoder = BuiltinEncoder(threads=threads)

    def prepared(path: Path) -> Any:
        return encoder.prepare(load(path, short_side=encoder.short_side).pixels)

    def decode() -> None:
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(prepared, paths):
                pass

    tensors = [prepared(path) for path in paths]
    shared = _session(threads)
    for batch in IN_TURN:
        yield f"session, calls in turn, batch {batch}", lambda batch=batch: _in_turn(shared, tensors, batch)
    yield "session, calls side by side", lambda: encoder.encode_prepared(tensors)
    yield "decode + prepare", decode
    yield "pipeline", lambda: list(embed_files(paths, encoder, threads=threads))


def _measure(name: str, paths: Sequence[Path], threads: int, repeats: int) -> list[Row]:
    jobs = list(_jobs(paths, threads))
    taken: dict[str, list[tuple[float, float]]] = {what: [] for what, _ in jobs}
    for turn in range(repeats + 1):
        for what, job in jobs:
            wall, cpu = time.perf_counter(), time.process_time()
            job()
            if turn:  # the first turn warms up files, sessions and memory
                taken[what].append((time.perf_counter() - wall, time.process_time() - cpu))
    rows = []
    for what, values in taken.items():
        wall, cpu = (statistics.median(column) for column in zip(*values, strict=True))
        rows.append(Row(name, what, len(paths) / wall, cpu / len(paths) * 1e3))
    return rows


def run(*, pictures: int = 300, repeats: int = 5, threads: int | None = None) -> list[Row]:
    """Measure every set; the rows of one set stand together."""
    rows = []
    for name, size in SETS.items():
        with tempfile.TemporaryDirectory() as folder:
            rows += _measure(name, photographs(Path(folder), pictures, size), processors.resolve(threads), repeats)
    return rows


def summary(rows: Sequence[Row]) -> list[str]:
    """Return the sentences under the table: the pipeline against each figure."""
    lines = []
    for name in dict.fromkeys(row.set for row in rows):
        speed = {row.what: row.pictures_per_s for row in rows if row.set == name}
        decode, pipeline = speed["decode + prepare"], speed["pipeline"]
        lines += [
            f"{name}: the pipeline reaches {pipeline / min(speed[session], decode):.0%} of the slower of decoder and "
            f"{session}"
            for session in speed
            if session.startswith("session")
        ]
        bound = 1 / (1 / speed["session, calls side by side"] + 1 / decode)
        lines.append(f"{name}: and {pipeline / bound:.0%} of {bound:.0f}/s, what these cores can do for both jobs")
    return lines


def figures(rows: Sequence[Row], pictures: int) -> Iterator[Figure]:
    """Yield the pipeline beside what each half of its work does alone, and its share of the slower one."""
    for place, name in enumerate(dict.fromkeys(row.set for row in rows)):
        key = ("pipeline.large", "pipeline.small")[place]
        here = {row.what: row for row in rows if row.set == name}
        for unit, end in (("pictures/s", "rate"), ("ms of CPU a picture", "cpu")):
            what = f"{pictures} JPEG files of {name}, files to vectors"
            for row in here.values():
                who = {"pipeline": "lookalike", "decode + prepare": "decoder alone"}.get(row.what, row.what)
                value = row.pictures_per_s if end == "rate" else row.cpu_ms_per_picture
                yield Figure(key=f"{key}.{end}", what=what, value=value, unit=unit, who=who)
        speed = {what: row.pictures_per_s for what, row in here.items()}
        alone = max(rate for what, rate in speed.items() if what.startswith("session, calls in turn"))
        share = speed["pipeline"] / min(alone, speed["decode + prepare"])
        what = f"pipeline on {name}, of the session alone at its quickest batch or the decoder alone, the slower one"
        yield Figure(key=f"{key}.share", what=what, value=share, unit="")
        what = f"pipeline on {name}, of what these processors can do for both jobs, 1 / (1 / session + 1 / decoder)"
        both = 1 / (1 / speed["session, calls side by side"] + 1 / speed["decode + prepare"])
        yield Figure(key=f"{key}.bound", what=what, value=speed["pipeline"] / both, unit="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int)
    add_option(parser)
    options = parser.parse_args()
    rows = run(pictures=options.pictures, repeats=options.repeats, threads=options.threads)
    print(f"{'set':<10}{'what':<36}{'pictures/s':>12}{'CPU ms a picture':>20}")
    for row in rows:
        print(f"{row.set:<10}{row.what:<36}{row.pictures_per_s:>12.0f}{row.cpu_ms_per_picture:>20.2f}")
    print(*summary(rows), sep="\n")
    write(options.json, figures(rows, options.pictures))


if __name__ == "__main__":
    main()
