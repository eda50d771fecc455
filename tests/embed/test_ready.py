"""Ready vectors: read as they are, or refused with the file's name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lookalike.embed.ready import VectorsEncoder, load_vectors
from lookalike.errors import InputError, NonFiniteError, NotFoundError, ShapeError


def test_float32_rows_are_mapped_and_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    loaded = load_vectors(tmp_path / "v.npy")
    assert loaded.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert isinstance(loaded.base, np.memmap) or isinstance(loaded, np.memmap)


def test_other_numbers_are_converted(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.array([[1.5, 2.5]], dtype=np.float16))
    assert load_vectors(tmp_path / "v.npy").dtype == np.float32


def test_what_is_no_matrix_of_finite_numbers_is_refused_with_the_path(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    np.save(path, np.array([[1.0, np.nan]]))
    with pytest.raises(NonFiniteError, match=r"v\.npy.*row 0"):
        load_vectors(path)
    np.save(path, np.ones(3))
    with pytest.raises(ShapeError, match=r"v\.npy.*\(n, d\), not \(3,\)"):
        load_vectors(path)
    np.save(path, np.ones((2, 3)))
    with pytest.raises(ShapeError, match="3 columns where 4 were expected"):
        load_vectors(path, dim=4)


def test_a_file_that_is_no_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    path.write_bytes(b"not an array")
    with pytest.raises(InputError, match=r"v\.npy.*cannot be read"):
        load_vectors(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"v\.npy.*cannot be read"):
        load_vectors(path)
    np.save(path, np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(InputError, match=r"v\.npy.*cannot be read"):
        load_vectors(path)
    np.savez(tmp_path / "two.npz", a=np.ones(2))
    (tmp_path / "two.npz").rename(path)
    with pytest.raises(InputError, match="archive of several arrays"):
        load_vectors(path)
    with pytest.raises(NotFoundError):
        load_vectors(tmp_path / "nowhere.npy")


def test_the_card_sees_every_byte_and_whether_rows_are_unit() -> None:
    one, two = VectorsEncoder(np.eye(3)), VectorsEncoder(2 * np.eye(3))
    assert one.card.digest == VectorsEncoder(np.eye(3)).card.digest != two.card.digest
    assert (one.card.normalised, two.card.normalised) == (True, False)


def test_ready_vectors_cannot_encode() -> None:
    with pytest.raises(InputError, match="cannot encode a picture"):
        VectorsEncoder(np.eye(3)).encode_images([])
