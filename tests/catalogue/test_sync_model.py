"""Sync against a model of a folder: any history of edits, any moment of syncing, gives what a fresh index gives."""

from __future__ import annotations

import os
import shutil

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.catalogue.catalogue import Catalogue

NAMES = ["a.png", "b.png", "sub/c.png", "sub/d.png", "sub/deep/e.png"]
names = st.sampled_from(NAMES)
edits = st.one_of(
    st.tuples(st.just("write"), names, st.integers(0, 5)),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("copy"), names, names),
    st.tuples(st.just("touch"), names),
    st.tuples(st.just("break"), names),
    st.tuples(
        st.just("age"),
    ),
    st.tuples(
        st.just("sync"),
    ),
    st.tuples(
        st.just("reopen"),
    ),
)


def apply(root, picture, edit):
    verb, *arguments = edit
    paths = [root / argument for argument in arguments if isinstance(argument, str)]
    if verb == "write":
        picture(paths[0], arguments[1])
    elif verb == "break":
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        paths[0].write_bytes(b"\x89PNG\r\n\x1a\n broken")
    elif verb == "age":
        for number, path in enumerate(sorted(root.rglob("*.png"))):
            os.utime(path, (1_000_000 + number, 1_000_000 + number))
    elif paths and paths[0].exists():
        if verb == "remove":
            paths[0].unlink()
        elif verb == "touch":
            paths[0].touch()
        elif len(paths) == 2 and paths[0] != paths[1]:
            paths[1].parent.mkdir(parents=True, exist_ok=True)
            (paths[0].replace if verb == "rename" else lambda to: shutil.copy(paths[0], to))(paths[1])


def contents(shop):
    ids = shop.ids()
    rows = {path: row.tobytes() for path, row in zip(shop.paths(ids), shop.vectors(ids), strict=True)}
    failures = {(failure.path, failure.reason) for failure in shop.failures()}
    return rows, failures, {item.path: item.file.content for item in shop.items(ids)}


@settings(max_examples=40, deadline=None)
@given(history=st.lists(edits, max_size=14))
def test_any_history_of_a_folder_ends_where_a_fresh_index_of_it_does(tmp_path_factory, picture, make_grid, history):
    place = tmp_path_factory.mktemp("model")
    root = place / "photos"
    picture(root / "always.png", 50)
    encoder = make_grid()
    shop = Catalogue.create(place / "shop.la", root=root, encoder=encoder, threads=1)
    ids = {}
    try:
        for edit in [*history, ("sync",)]:
            if edit[0] == "reopen":
                shop.close()
                shop = Catalogue.open(place / "shop.la", encoder=encoder, threads=1)
            elif edit[0] == "sync":
                result = shop.sync()
                now = dict(zip(shop.paths(shop.ids()), shop.ids().tolist(), strict=True))
                scanned = len(list(root.rglob("*.png")))
                parts = result.added + result.updated + result.moved + result.unchanged + len(result.failed)
                assert parts == scanned
                assert result.items == len(now) == scanned - len(result.failed)
                assert {path: now[path] for path in ids if path in now} == {
                    path: ids[path] for path in ids if path in now
                }
                ids = now
            else:
                apply(root, picture, edit)
        with Catalogue.create(place / "fresh.la", root=root, encoder=encoder, threads=1) as fresh:
            fresh.sync()
            assert contents(shop) == contents(fresh)
        assert shop.verify().ok
        again = shop.sync()
        assert (again.added, again.updated, again.moved, again.removed) == (0, 0, 0, 0)
        assert np.array_equal(shop.ids(), np.array(sorted(ids.values())))
    finally:
        shop.close()
