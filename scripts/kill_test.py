"""Kill a catalogue at random moments and count what is lost: nothing committed may be.

    python scripts/kill_test.py [--times 50] [--seed 0] [--files 400]

Each round starts one of index, sync, backup and build (the vector file and an index over it) in a process
of its own, kills it with SIGKILL after a random time, opens the catalogue and checks that it is sound, that every item
committed before is still there with its vector, and that it answers; the last sync must complete the folder.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from lookalike.arrays import Rgb
from lookalike.catalogue.catalogue import Catalogue

VERBS = ("index", "sync", "backup", "build")
ENCODER = "python:kill_encoder:colours"
ENCODER_SOURCE = '''
import numpy as np


def colours(images):
    """Thirty-two numbers a picture, slow enough to be killed in the middle of."""
    rows = []
    for image in images:
        flat = image.reshape(-1)[: 32 * 3].astype(float)
        rows.append(np.resize(flat, 32) + 1.0)
        _ = np.linalg.svd(np.resize(flat, (60, 60)))
    return np.array(rows)
'''
WORK = """
import sys, time
from lookalike.catalogue import sync
from lookalike.catalogue.catalogue import Catalogue
sync.COMMIT_ROWS = 16  # many commits to be killed between
verb, catalogue, folder, extra = sys.argv[1:5]
sys.stdout.write("started\\n"); sys.stdout.flush()
if verb == "index":
    with Catalogue.create(catalogue, root=folder, encoder=extra, threads=1) as made:
        made.sync(batch_size=8)
else:
    with Catalogue.open(catalogue, threads=1) as opened:
        if verb == "sync":
            opened.sync(batch_size=8)
        elif verb == "backup":
            opened.backup(extra)
        else:
            while True:
                opened.refresh()
                opened.build_index("hnsw")
"""


@dataclass
class Tally:
    """What happened, by verb."""

    killed: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    unsound: list[str] = field(default_factory=list)


def main() -> int:
    """Run the rounds and print the counts; 1 where anything was lost."""
    parser = argparse.ArgumentParser(description="Kill a catalogue at random moments and count what is lost.")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lookalike-kill-") as place:
        tally = torture(Path(place), times=options.times, files=options.files, seed=options.seed)
    for verb in VERBS:
        print(f"{verb:7} killed {tally.killed[verb]:3}  finished before the kill {tally.finished[verb]:3}")
    print(f"kills {sum(tally.killed.values())}, committed items lost {len(tally.lost)}, unsound {len(tally.unsound)}")
    for line in [*tally.lost, *tally.unsound]:
        print(f"  {line}")
    return 1 if tally.lost or tally.unsound else 0


def torture(place: Path, *, times: int, files: int, seed: int) -> Tally:
    """Run `times` rounds, the verbs in turn."""
    chance = random.Random(seed)
    (place / "kill_encoder.py").write_text(ENCODER_SOURCE)
    photos = place / "photos"
    photos.mkdir()
    for number in range(files):
        draw(photos / f"{number}.png", number)
    kept = place / "kept.la"
    sys.path.insert(0, str(place))
    with Catalogue.create(kept, root=photos, encoder=ENCODER, threads=1) as made:
        made.sync()
    tally = Tally()
    length = dict.fromkeys(VERBS, 1.0)
    rounds = 0
    while sum(tally.killed.values()) < times and rounds < 4 * times:
        verb = VERBS[rounds % len(VERBS)]
        rounds += 1
        if verb == "sync":
            change(photos, chance, files)
        one_round(place, verb, kept, photos, chance, length, tally)
    with Catalogue.open(kept, threads=1) as opened:
        opened.sync()
        check_complete(opened, photos, "the last sync", tally)
    return tally


def one_round(
    place: Path, verb: str, kept: Path, photos: Path, chance: random.Random, length: dict[str, float], tally: Tally
) -> None:
    """Start a verb, kill it at a random moment of its usual length, and look at what is left."""
    target = place / "fresh.la" if verb == "index" else kept
    copy = place / "copy.la"
    for old in (place / "fresh.la", copy):
        shutil.rmtree(old, ignore_errors=True)
    before = state(kept)
    arguments = [verb, str(target), str(photos), ENCODER if verb == "index" else str(copy)]
    process = subprocess.Popen([sys.executable, "-c", WORK, *arguments], cwd=place, stdout=subprocess.PIPE)
    if process.stdout is not None:
        process.stdout.readline()
    start = time.monotonic()
    try:
        code = process.wait(timeout=chance.uniform(0, 1.1 * length[verb]))
        length[verb] = time.monotonic() - start
        tally.finished[verb] += 1
        if code:
            tally.unsound.append(f"{verb} ended with exit code {code} before it was killed")
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        tally.killed[verb] += 1
        if length[verb] < time.monotonic() - start:
            length[verb] *= 1.5
    if process.stdout is not None:
        process.stdout.close()
    compare(kept, before, verb, photos, tally)
    if verb == "index" and target.exists():
        with Catalogue.open(target, threads=1) as opened:
            check_sound(opened, "a killed index", tally)
            opened.sync()
            check_complete(opened, photos, "a sync after a killed index", tally)
    if verb == "backup" and copy.exists():
        with Catalogue.open(copy, threads=1) as opened:
            check_sound(opened, "a backup", tally)
            if len(opened) != len(before):
                tally.lost.append(f"a backup holds {len(opened)} of {len(before)} items")


def state(folder: Path) -> dict[int, tuple[str, bytes | None, bytes]]:
    """Return path, content and vector of every item."""
    with Catalogue.open(folder, threads=1, readonly=True) as opened:
        ids = opened.ids()
        rows = opened.vectors(ids)
        return {
            item.id: (item.path, item.file.content, row.tobytes())
            for item, row in zip(opened.items(ids), rows, strict=True)
        }


def compare(
    folder: Path, before: dict[int, tuple[str, bytes | None, bytes]], verb: str, photos: Path, tally: Tally
) -> None:
    """Every item from before is there unless its file went, with the vector of its stored content."""
    with Catalogue.open(folder, threads=1) as opened:
        check_sound(opened, f"a killed {verb}", tally)
    after = state(folder)
    for number, (path, content, vector) in before.items():
        if number not in after:
            if verb != "sync" or (photos / path).exists():
                tally.lost.append(f"{verb}: item {number} ({path}) is gone")
        elif after[number][1] == content and after[number][2] != vector:
            tally.lost.append(f"{verb}: item {number} ({path}) has the same bytes and another vector")


def check_sound(opened: Catalogue, when: str, tally: Tally) -> None:
    """Verify a catalogue, and let one of its items look for itself."""
    found = opened.verify(sample=8)
    tally.unsound.extend(f"{when}: {problem.check}: {problem.detail}" for problem in found.problems)
    ids = opened.ids()
    if len(ids):
        probe = int(ids[len(ids) // 2])
        if opened.search(probe, k=1)[0].scores[0] < 1 - 1e-6:
            tally.unsound.append(f"{when}: item {probe} does not find itself")


def check_complete(opened: Catalogue, photos: Path, when: str, tally: Tally) -> None:
    """Compare the items with the files of the folder."""
    here = sorted(path.name for path in photos.iterdir())
    if sorted(opened.paths(opened.ids())) != here:
        tally.lost.append(f"{when} left the catalogue incomplete")
    check_sound(opened, when, tally)


def change(photos: Path, chance: random.Random, files: int) -> None:
    """Edit, add, rename and remove some pictures."""
    present = sorted(photos.iterdir())
    for path in chance.sample(present, len(present) // 5):
        draw(path, chance.randrange(1 << 30))
    for path in chance.sample(present, len(present) // 20):
        path.unlink()
    for path in chance.sample(sorted(photos.iterdir()), len(present) // 20):
        path.rename(photos / f"r{chance.randrange(1 << 30)}.png")
    while len(list(photos.iterdir())) < files:
        draw(photos / f"n{chance.randrange(1 << 30)}.png", chance.randrange(1 << 30))


def draw(path: Path, seed: int) -> None:
    """Write a picture that only this seed has."""
    pixels: Rgb = np.random.default_rng(seed).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, format="PNG", compress_level=1)


if __name__ == "__main__":
    raise SystemExit(main())
