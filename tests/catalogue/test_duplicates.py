"""Duplicates at three levels, on pictures whose relation is known."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from lookalike.catalogue import components as module
from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.components import components
from lookalike.catalogue.duplicates import agreement, duplicates
from lookalike.errors import InputError


@pytest.fixture
def shop(tmp_path, photos, grid):
    """e.png: a copy, the same pixels with a comment and turned by a tag; a.png: one level brighter."""
    shutil.copy(photos / "e.png", photos / "e copy.png")
    picture = Image.open(photos / "e.png")
    comment = PngImagePlugin.PngInfo()
    comment.add_text("comment", "same pixels")
    picture.save(photos / "e comment.png", pnginfo=comment)
    turned = picture.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(photos / "e turned.png", exif=exif)
    pixels = np.asarray(Image.open(photos / "mug/a.png")).astype(int)
    Image.fromarray(np.clip(pixels + 1, 0, 255).astype(np.uint8)).save(photos / "mug/a brighter.png")
    for number, path in enumerate(sorted(photos.rglob("*.png"))):
        os.utime(path, (1_000_000 - number, 1_000_000 - number))
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as made:
        made.sync()
        yield made


def named(found):
    return {(group.level, frozenset(item.path for item in group.items)) for group in found.groups}


def test_each_level_holds_what_the_stronger_one_does_not(shop):
    found = duplicates(shop, at_least=0.9999)
    assert named(found) == {
        ("bytes", frozenset({"e.png", "e copy.png"})),
        ("pixels", frozenset({"e.png", "e copy.png", "e comment.png", "e turned.png"})),
        ("similar", frozenset({"mug/a.png", "mug/a brighter.png"})),
    }
    assert found.unreadable == ()
    assert all(path.exists() for path in shop.files(shop.ids()))


def test_without_pixels_no_file_is_opened(shop, photos):
    shutil.rmtree(photos)
    found = duplicates(shop, at_least=0.9999, pixels=False)
    assert {level for level, _ in named(found)} == {"bytes", "similar"}
    gone = duplicates(shop, at_least=0.9999)
    assert {failure.reason for failure in gone.unreadable} == {"missing"}


def test_the_keeper_is_the_largest_then_the_oldest_then_the_first_path(shop, photos, tmp_path):
    oldest = max(["e.png", "e copy.png"])  # the fixture gives later paths earlier times
    [group] = [group for group in duplicates(shop, at_least=1.0).groups if group.level == "bytes"]
    assert group.keeper.path == oldest
    shop.upsert(["x", "y", "z"], np.tile(np.eye(8)[7], (3, 1)))
    with shop.writing("sizes"), shop.database.commit() as connection:
        connection.execute("UPDATE items SET width = 9, height = 9 WHERE path = 'y'")
        connection.execute("UPDATE items SET width = 2, height = 2 WHERE path IN ('x', 'z')")
    [group] = [group for group in duplicates(shop, at_least=0.9999).groups if group.items[0].path in "xyz"]
    assert [item.path for item in group.items] == ["y", "x", "z"]


def test_a_filter_limits_the_items(shop):
    assert named(duplicates(shop, at_least=0.9999, where="path like 'mug/%'")) == {
        ("similar", frozenset({"mug/a.png", "mug/a brighter.png"}))
    }
    with pytest.raises(InputError, match="between -1 and 1"):
        duplicates(shop, at_least=97)


def test_agreement_counts_pairs_of_equal_labels(shop):
    found = duplicates(shop, at_least=-1.0)
    [group] = [group for group in found.groups if group.level == "similar"]
    labels = dict(
        zip([item.id for item in group.items], ["a", "a", "a", "b", "b", None, None, None, None], strict=True)
    )
    assert agreement(found, labels) == 4 / 10
    assert agreement(found, {}) is None


def slow_components(vectors, at_least):
    """Every pair in float64, every group by walking the links."""
    wide = vectors.astype(np.float64)
    lengths = np.sqrt((wide * wide).sum(1))
    n = len(vectors)
    label = list(range(n))
    changed = True
    while changed:
        changed = False
        for i in range(n):
            for j in range(n):
                if i != j and wide[i] @ wide[j] / (lengths[i] * lengths[j]) >= at_least and label[j] != label[i]:
                    label[i] = label[j] = min(label[i], label[j])
                    changed = True
    return label


@given(st.integers(0, 10_000), st.integers(1, 25), st.floats(-0.5, 0.99))
def test_components_are_those_of_a_literal_walk_for_any_block_size(seed, n, at_least):
    vectors = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
    expected = slow_components(vectors, at_least)
    for block in (1, 7, 2_048):
        before, module.BLOCK = module.BLOCK, block
        try:
            assert components(vectors, at_least).tolist() == expected
        finally:
            module.BLOCK = before


def test_a_threshold_of_exactly_one_links_only_equal_directions():
    vectors = np.array([[1, 2, 3], [2, 4, 6], [1, 2, 3.001], [3, 6, 9]], np.float32)
    assert components(vectors, 1 - 1e-12).tolist() == [0, 0, 2, 0]
