"""What training a head gains on identities it has not seen, and what mining costs.

    python benchmarks/train.py [--full]

- `semi-hard`: mining and loss of one batch of 512 × 128, CPU time on one thread, median of five: ours, pyvisim's
  (where it imports; both build a cube of 512³ comparisons) and the cubic form written here, in one process.
- `heads`: five losses on cached vectors of the built-in encoder, three folds of whole identities, every fold trained
  on the other two and the queries of all folds put together. `among all`: an unseen identity is looked for among all
  pictures, those trained on included, as in a catalogue that grows. `among unseen`: among the held-out identities
  alone. `seen`: other pictures of identities that were trained on. Intervals are paired bootstraps over identities.

One setting for every loss and every set, chosen on another generated catalogue (seed 1): a linear head of 128 from the
principal directions, AdamW at 1e-3, 20 epochs of 16 × 4, the last epoch kept. `--full` adds the generated catalogue,
which takes a minute or two to draw and embed. Grocery and dreambooth30 are read from the shared folder.
"""

from __future__ import annotations

import csv
import dataclasses
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from lookalike.arrays import Vectors, factorise, unit
from lookalike.evaluate.confidence import Paired, paired
from lookalike.evaluate.metrics import mean
from lookalike.evaluate.splits import Split, class_folds, holdout
from lookalike.train.judge import Judge, Measured
from lookalike.train.losses import make_loss
from lookalike.train.material import Material
from lookalike.train.objective import Objective
from lookalike.train.pseudo import agreement, near_duplicates
from lookalike.train.run import train
from lookalike.train.settings import Settings

SHARED = Path(os.environ.get("LOOKALIKE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
LOSSES = ("triplet", "contrastive", "supcon", "multi-similarity", "proxy-anchor")
FOLDS, EPOCHS = 3, 20
BATCH, DIM = 512, 128


class Row(NamedTuple):
    """One loss on one set under one protocol."""

    data: str
    protocol: str
    loss: str
    queries: int
    identities: int
    recall_before: float
    recall_after: float
    recall: Paired
    map_before: float
    map_after: float
    map: Paired
    cpu_s: float


class Mining(NamedTuple):
    """CPU time of mining and loss of one batch."""

    who: str
    ms: float


@dataclass(frozen=True)
class Data:
    """A labelled set as the built-in encoder sees it; `asks` and `answers` are its own split, where it has one."""

    name: str
    vectors: Vectors
    labels: list[str]
    names: list[str]
    asks: frozenset[int]
    answers: frozenset[int]


def real(name: str) -> Data | None:
    """Read a set of the shared folder, or None where it is absent."""
    folder = SHARED / "data" / name
    if not folder.is_dir():
        return None
    rows = list(csv.DictReader((folder / "manifest.csv").read_text(encoding="utf-8").splitlines()))
    vectors = unit(np.load(folder / "effnet_lite0_f16.npy").astype(np.float32))
    splits = [row.get("split", "") for row in rows]
    every = frozenset(range(len(rows)))
    asks = frozenset(i for i in every if splits[i] in ("", "test"))
    answers = frozenset(i for i in every if splits[i] in ("", "train"))
    return Data(name, vectors, [row["label"] for row in rows], [row["path"] for row in rows], asks, answers)


def drawn(*, seed: int = 0) -> Data:
    """Draw the generated catalogue and embed it; its identities are single objects."""
    from lookalike.datasets.generated.catalogue import generate
    from lookalike.embed.builtin import BuiltinEncoder
    from lookalike.images.load import load

    encoder = BuiltinEncoder()
    with tempfile.TemporaryDirectory() as folder:
        manifest = generate(folder, seed=seed)
        rows = list(csv.DictReader(manifest.read_text(encoding="utf-8").splitlines()))
        parts = [
            encoder.encode_images([load(Path(folder) / row["path"]).pixels for row in rows[start : start + 64]])
            for start in range(0, len(rows), 64)
        ]
    every = frozenset(range(len(rows)))
    names = [row["path"] for row in rows]
    return Data("generated", np.concatenate(parts), [row["identity"] for row in rows], names, every, every)


def among_all(data: Data) -> Iterator[tuple[Split, list[int]]]:
    """Yield each fold's split and training rows: unseen identities against every picture that may answer."""
    for fold in class_folds(data.names, data.labels, FOLDS):
        yield _cut(fold, set(fold.query) & data.asks, data.answers), sorted(set(fold.rest) & data.answers)


def among_unseen(data: Data) -> Iterator[tuple[Split, list[int]]]:
    """Yield the same with a gallery of the fold's own identities."""
    for fold in class_folds(data.names, data.labels, FOLDS):
        gallery = set(fold.query) & data.answers
        yield _cut(fold, set(fold.query) & data.asks, gallery), sorted(set(fold.rest) & data.answers)


def seen(data: Data) -> Iterator[tuple[Split, list[int]]]:
    """Yield one split by picture: the gallery is trained on, the queries are other pictures of the same identities."""
    split = holdout(data.names, data.labels, 0.3)
    if data.asks != data.answers:
        split = _cut(split, data.asks, data.answers)
    yield split, sorted(split.gallery)


PROTOCOLS: dict[str, Callable[[Data], Iterator[tuple[Split, list[int]]]]] = {
    "among all": among_all,
    "among unseen": among_unseen,
    "seen": seen,
}


def _cut(split: Split, query: Sequence[int] | set[int], gallery: Sequence[int] | set[int] | frozenset[int]) -> Split:
    return dataclasses.replace(split, query=tuple(sorted(query)), gallery=tuple(sorted(gallery)), rest=())


def settings(loss: str) -> Settings:
    """Return the one setting of all rows."""
    return Settings(loss=make_loss(loss), epochs=EPOCHS, validation=0.0, threads=1)


def measure(data: Data, protocol: str, loss: str) -> Row:
    """Train and judge every fold, and put the queries together."""
    started = time.process_time()
    before, after, groups = [], [], []
    for split, rows in PROTOCOLS[protocol](data):
        made = Material(vectors=data.vectors, labels=data.labels, names=data.names, test=split, train=rows)
        trained = train(made, settings(loss))
        judge = Judge(split, data.labels, data.names)
        before.append(judge.measure(data.vectors[judge.rows]))
        after.append(judge.measure(trained.encode(data.vectors[judge.rows])))
        groups += [data.labels[row] for row in split.query]
    old, new = _joined(before), _joined(after)
    codes = factorise(groups)[0]
    evaluated = ~np.isnan(old["map"])
    return Row(
        data.name,
        protocol,
        loss,
        int(evaluated.sum()),
        int(np.unique(codes[evaluated]).size),
        mean(old["recall@1"]),
        mean(new["recall@1"]),
        paired(old["recall@1"], new["recall@1"], groups=groups),
        mean(old["map"]),
        mean(new["map"]),
        paired(old["map"], new["map"], groups=groups),
        time.process_time() - started,
    )


def _joined(measured: list[Measured]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([one.per_query[name] for one in measured]) for name in ("recall@1", "map")}


def cubic(vectors: torch.Tensor, codes: torch.Tensor, margin: float = 0.2) -> torch.Tensor:
    """Compare every pair with every negative at once, (b, b, b): the form public code uses, for every positive."""
    distance = torch.cdist(vectors, vectors)
    same = codes[:, None] == codes[None, :]
    positive = same & ~torch.eye(len(codes), dtype=torch.bool)
    cube = distance[:, None, :].expand(len(codes), len(codes), len(codes))
    beyond = ~same[:, None, :] & (cube > distance[:, :, None]) & (cube < distance[:, :, None] + margin)
    nearest = cube.masked_fill(~beyond, torch.inf).amin(dim=2)
    hardest = distance.masked_fill(same, torch.inf).amin(dim=1, keepdim=True)
    chosen = torch.where(beyond.any(dim=2), nearest, hardest)
    return torch.relu(distance - chosen + margin)[positive].mean()


def mining() -> list[Mining]:
    """Measure one batch of 512, 128 classes of 4, ours and the cubic forms in turn."""
    torch.set_num_threads(1)
    vectors = torch.nn.functional.normalize(torch.randn(BATCH, DIM, generator=torch.Generator().manual_seed(0)))
    codes = torch.arange(BATCH) // 4
    jobs: dict[str, Callable[[], object]] = {"the cubic form": lambda: cubic(vectors, codes)}
    for name in ("semi-hard", "semi-hard-pairs"):
        objective = Objective(make_loss("triplet"), mining=name, classes=BATCH // 4, dim=DIM)
        jobs[f"lookalike {name}"] = lambda objective=objective: objective(vectors, codes)
    try:
        from pyvisim.neural_networks.losses.triplet import TripletLoss

        peer = TripletLoss(margin=0.2, mining="semi_hard", squared=False)
        jobs["pyvisim semi_hard"] = lambda: peer(vectors, codes)
    except ImportError:  # it wants torchvision beside torch
        pass
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(6):
        for name, job in jobs.items():
            started = time.process_time()
            job()
            taken[name].append(1000 * (time.process_time() - started))
    return [Mining(name, statistics.median(times[1:])) for name, times in taken.items()]


def unlabelled(data: Data) -> str:
    """Say what guessed labels are worth on a set: how right they are, and what a head gains from them."""
    found = near_duplicates(data.vectors)
    right = agreement(found.codes, data.labels)
    guessed = [None if code < 0 else f"group {code}" for code in found.codes.tolist()]
    made = Material(vectors=data.vectors, labels=guessed, truth=data.labels, guessed=True, names=data.names, train=None)
    trained = train(made, settings("multi-similarity"))
    verdict = "nothing held out" if trained.verdict is None else trained.verdict.sentence
    return (
        f"{data.name}: {found.groups} groups, {found.covered:.0%} of the pictures, pairs {right.precision:.0%} right, "
        f"{right.recall:.0%} found. {verdict}"
    )


def sets(full: bool) -> list[Data]:
    """Return the sets that are here."""
    found = [data for data in (real("grocery"), real("dreambooth30")) if data is not None]
    return [*found, drawn()] if full else found


def run(full: bool = False) -> list[Row | Mining | str]:
    """Measure mining, then every loss on every set under every protocol, then labels that are guessed."""
    rows: list[Row | Mining | str] = [*mining()]
    for data in sets(full):
        rows += [measure(data, protocol, loss) for protocol in PROTOCOLS for loss in LOSSES]
        rows.append(unlabelled(data))
    return rows


def _change(pair: Paired) -> str:
    return f"{pair.difference:+.3f} ({pair.low:+.3f} to {pair.high:+.3f})"


def main() -> None:
    """Print the table in markdown."""
    full = "--full" in sys.argv
    rows = run(full)
    for row in rows:
        if isinstance(row, Mining):
            print(f"{row.who:28} {row.ms:8.1f} ms of CPU for a batch of {BATCH}")
    print("\n| data | protocol | loss | recall@1 | change (95 %) | mAP | change (95 %) | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        if isinstance(row, Row):
            print(
                f"| {row.data} | {row.protocol} | {row.loss} | {row.recall_before:.3f} → {row.recall_after:.3f} "
                f"| {_change(row.recall)} | {row.map_before:.3f} → {row.map_after:.3f} | {_change(row.map)} "
                f"| {row.cpu_s:.1f} |",
                flush=True,
            )
    counts = dict.fromkeys((r.data, r.protocol, r.queries, r.identities) for r in rows if isinstance(r, Row))
    print()
    for name, protocol, queries, identities in counts:
        print(f"{name}, {protocol}: {queries} queries of {identities} identities")
    print()
    for row in rows:
        if isinstance(row, str):
            print(row)


if __name__ == "__main__":
    main()
