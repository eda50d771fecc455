"""Each published layout, built as its documentation describes it, in miniature."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookalike.datasets.protocols import PROTOCOLS, Benchmark, read_protocol
from lookalike.datasets.revisited import read_truth
from lookalike.errors import InputError, NotFoundError, UnknownNameError


def write(path: Path, *rows: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n")


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")


def asked(benchmark: Benchmark) -> list[str]:
    return [benchmark.pictures.names[row] for row in benchmark.query]


def answers(benchmark: Benchmark) -> list[str]:
    return [benchmark.pictures.names[row] for row in benchmark.gallery]


def make_cub(root: Path) -> None:
    folder = root / "CUB_200_2011"
    write(folder / "images.txt", "1 100.Pelican/a.jpg", "2 101.Tern/b.jpg", "3 101.Tern/c.jpg", "4 200.Wren/d.jpg")
    write(folder / "image_class_labels.txt", "1 100", "2 101", "3 101", "4 200")
    write(folder / "classes.txt", *(f"{number} {number:03d}.Bird" for number in range(1, 201)))
    (folder / "images").mkdir()


def annotations(rows: list[tuple[Any, ...]], fields: list[str]) -> Any:
    record = np.zeros(len(rows), dtype=[(field, object) for field in fields])
    record[:] = rows
    return record


def make_cars(root: Path) -> None:
    from scipy.io import savemat

    rows = [("car_ims/000001.jpg", 10, 98, 0), ("car_ims/000002.jpg", 5, 99, 0), ("car_ims/000003.jpg", 5, 196, 1)]
    names = np.array([f"Model {number}" for number in range(1, 197)], dtype=object)
    content = {"annotations": annotations(rows, ["relative_im_path", "bbox_x1", "class", "test"]), "class_names": names}
    root.mkdir(exist_ok=True)
    savemat(root / "cars_annos.mat", content)


def make_sop(root: Path) -> None:
    folder = root / "Stanford_Online_Products"
    head = "image_id class_id super_class_id path"
    write(folder / "Ebay_train.txt", head, "1 1 1 bicycle_final/1_0.JPG", "2 1 1 bicycle_final/1_1.JPG")
    write(folder / "Ebay_test.txt", head, "3 11319 1 bicycle_final/9_0.JPG", "4 11320 12 coffee_maker_final/8_0.JPG")


def make_inshop(root: Path) -> None:
    prefix = "img/WOMEN/Dresses"
    write(
        root / "Eval/list_eval_partition.txt", "4", "image_name item_id evaluation_status",
        f"{prefix}/id_00000001/02_1_front.jpg                    id_00000001 train",
        f"{prefix}/id_00000002/02_1_front.jpg                    id_00000002 query",
        f"{prefix}/id_00000002/02_2_side.jpg                     id_00000002 gallery",
        "img/MEN/Denim/id_00000003/01_1_front.jpg id_00000003 gallery",
    )  # fmt: skip
    (root / "Img/img").mkdir(parents=True)


def make_market(root: Path) -> None:
    folder = root / "Market-1501-v15.09.15"
    touch(folder, "bounding_box_train/0007_c3s3_077419_03.jpg", "query/0002_c1s1_000451_00.jpg")
    test = ("0002_c2s1_000801_01", "0002_c1s1_000351_01", "0000_c3s2_107328_04", "-1_c6s4_018577_02")
    touch(folder, *(f"bounding_box_test/{name}.jpg" for name in test), "bounding_box_test/Thumbs.db")


GROUND = {
    "imlist": ["a", "b", "c", "d"],
    "qimlist": ["q1", "q2"],
    "gnd": [
        {"bbx": [1.0, 2.5, 30, 40], "easy": [0], "hard": [2], "junk": [3]},
        {"bbx": [0, 0, 5, 5], "easy": [], "hard": [1, 2], "junk": []},
    ],
}


def make_revisited(name: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / name / "jpg").mkdir(parents=True)
        content = pickle.dumps(GROUND, protocol=2)
        (root / name / f"gnd_{name}.pkl").write_bytes(content)

    return make


MAKERS: dict[str, Callable[[Path], None]] = {
    "cub": make_cub, "cars": make_cars, "sop": make_sop, "inshop": make_inshop, "market1501": make_market,
    "roxford5k": make_revisited("roxford5k"), "rparis6k": make_revisited("rparis6k"),
}  # fmt: skip


def test_every_protocol_is_tested_here() -> None:
    assert set(MAKERS) == set(PROTOCOLS)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_folder_and_the_one_around_it_are_both_taken(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path)
    benchmark = read_protocol(name, tmp_path)
    assert benchmark.protocol is PROTOCOLS[name]
    again = read_protocol(name, benchmark.pictures.root)
    assert (again.pictures, again.query, again.gallery) == (benchmark.pictures, benchmark.query, benchmark.gallery)
    assert all(path.startswith(str(tmp_path)) for path in benchmark.pictures.paths)
    assert benchmark.protocol.column in benchmark.pictures.columns or benchmark.truth is not None


@pytest.mark.parametrize("name", PROTOCOLS)
def test_missing_files_are_named_with_the_layout_expected(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"is not .* is missing\. Expected: "):
        read_protocol(name, tmp_path)
    with pytest.raises(NotFoundError, match="there is no such folder"):
        read_protocol(name, tmp_path / "nowhere")


def test_an_unknown_protocol_lists_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'market1501'"):
        read_protocol("market", tmp_path)


def test_the_last_hundred_birds_ask_one_another(tmp_path: Path) -> None:
    make_cub(tmp_path)
    benchmark = read_protocol("cub", tmp_path)
    assert benchmark.leave_one_out
    assert asked(benchmark) == [f"images/{name}" for name in ("101.Tern/b.jpg", "101.Tern/c.jpg", "200.Wren/d.jpg")]
    assert benchmark.pictures.column("split") == ("train", "test", "test", "test")


def test_a_bird_without_a_class_is_refused(tmp_path: Path) -> None:
    make_cub(tmp_path)
    write(tmp_path / "CUB_200_2011/image_class_labels.txt", "1 100", "2 101", "3 101")
    with pytest.raises(InputError, match=r"picture 4 of images\.txt has no class"):
        read_protocol("cub", tmp_path)


def test_the_last_ninety_eight_cars_ask_one_another_in_either_layout(tmp_path: Path) -> None:
    from scipy.io import savemat

    make_cars(tmp_path)
    benchmark = read_protocol("cars", tmp_path)
    assert asked(benchmark) == ["car_ims/000002.jpg", "car_ims/000003.jpg"]
    assert benchmark.pictures.column("label") == ("Model 98", "Model 99", "Model 196")

    kit = tmp_path / "kit/devkit"
    kit.mkdir(parents=True)
    names = np.array([f"Model {number}" for number in range(1, 197)], dtype=object)
    savemat(kit / "cars_meta.mat", {"class_names": names})
    for file, rows in (
        ("cars_train_annos", [(98, "1.jpg"), (196, "2.jpg")]),
        ("cars_test_annos_withlabels", [(99, "1.jpg")]),
    ):
        savemat(kit / f"{file}.mat", {"annotations": annotations(rows, ["class", "fname"])})
    benchmark = read_protocol("cars", tmp_path / "kit")
    assert asked(benchmark) == ["cars_train/2.jpg", "cars_test/1.jpg"]


def test_a_broken_annotation_file_of_cars_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cars_annos.mat").write_bytes(b"not a MATLAB file at all" * 20)
    with pytest.raises(InputError, match="cannot be read as a MATLAB file"):
        read_protocol("cars", tmp_path)


def test_products_ask_one_another_within_the_test_list(tmp_path: Path) -> None:
    make_sop(tmp_path)
    benchmark = read_protocol("sop", tmp_path)
    assert asked(benchmark) == ["bicycle_final/9_0.JPG", "coffee_maker_final/8_0.JPG"]
    assert benchmark.pictures.column("identity") == ("1", "1", "11319", "11320")
    assert benchmark.pictures.column("label")[3] == "coffee_maker"
    assert benchmark.protocol.ks == (1, 10, 100, 1000)


def test_a_short_line_of_a_list_is_named(tmp_path: Path) -> None:
    make_sop(tmp_path)
    write(tmp_path / "Stanford_Online_Products/Ebay_test.txt", "image_id class_id super_class_id path", "3 11319 1")
    with pytest.raises(InputError, match=r"Ebay_test.txt: line 2 has 3 fields where 4 are expected"):
        read_protocol("sop", tmp_path)


def test_garments_ask_a_gallery_of_their_own(tmp_path: Path) -> None:
    make_inshop(tmp_path)
    benchmark = read_protocol("inshop", tmp_path)
    assert asked(benchmark) == ["Img/img/WOMEN/Dresses/id_00000002/02_1_front.jpg"]
    assert len(benchmark.gallery) == 2
    assert not benchmark.leave_one_out
    assert benchmark.pictures.values("label") == {"Denim": 1, "Dresses": 3}


def test_an_unknown_status_of_a_garment_is_refused(tmp_path: Path) -> None:
    make_inshop(tmp_path)
    write(tmp_path / "Eval/list_eval_partition.txt", "1", "head", "img/WOMEN/A/id_1/1.jpg id_1 quary")
    with pytest.raises(InputError, match="status 'quary'"):
        read_protocol("inshop", tmp_path)


def test_junk_leaves_the_gallery_and_distractors_stay_without_an_identity(tmp_path: Path) -> None:
    make_market(tmp_path)
    benchmark = read_protocol("market1501", tmp_path)
    assert asked(benchmark) == ["query/0002_c1s1_000451_00.jpg"]
    found = {benchmark.pictures.names[row]: benchmark.pictures.column("identity")[row] for row in benchmark.gallery}
    assert found == {
        "bounding_box_test/0000_c3s2_107328_04.jpg": None,
        "bounding_box_test/0002_c1s1_000351_01.jpg": "0002",
        "bounding_box_test/0002_c2s1_000801_01.jpg": "0002",
    }
    assert benchmark.pictures.values("camera") == {"1": 2, "2": 1, "3": 2, "6": 1}
    assert benchmark.pictures.values("split") == {"gallery": 3, "junk": 1, "query": 1, "train": 1}
    assert benchmark.pictures.skipped == {"other name": 1}


def test_easy_hard_and_junk_keep_their_pictures_when_one_cannot_be_read(tmp_path: Path) -> None:
    make_revisited("roxford5k")(tmp_path)
    benchmark = read_protocol("roxford5k", tmp_path)
    assert asked(benchmark) == ["jpg/q1.jpg", "jpg/q2.jpg"]
    assert benchmark.pictures.column("box")[:3] == ("1.0,2.5,30.0,40.0", "0.0,0.0,5.0,5.0", None)
    assert benchmark.truth is not None
    assert benchmark.truth.positions(asked(benchmark), answers(benchmark)) == {
        "easy": [[0], []], "hard": [[2], [1, 2]], "junk": [[3], []],
    }  # fmt: skip
    without_b = [name for name in answers(benchmark) if name != "jpg/b.jpg"]
    assert benchmark.truth.positions(asked(benchmark), without_b) == {
        "easy": [[0], []], "hard": [[1], [1]], "junk": [[2], []],
    }  # fmt: skip
    with pytest.raises(InputError, match=r"holds no query 'jpg/a\.jpg'"):
        benchmark.truth.positions(["jpg/a.jpg"], without_b)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_ground_truth_of_numpy_values_reads_like_one_of_lists(tmp_path: Path, protocol: int) -> None:
    make_revisited("roxford5k")(tmp_path)
    wanted = read_truth(tmp_path, "oxford")
    as_arrays = {
        **GROUND,
        "gnd": [{key: np.asarray(values) for key, values in each.items()} for each in GROUND["gnd"]],  # type: ignore[attr-defined]
    }
    as_arrays["gnd"][0]["easy"] = [np.int64(0)]  # type: ignore[index]
    as_arrays["gnd"][1]["junk"] = np.array([], dtype=np.float64)  # type: ignore[index]
    (tmp_path / "roxford5k/gnd_roxford5k.pkl").write_bytes(pickle.dumps(as_arrays, protocol=protocol))
    assert read_truth(tmp_path, "oxford") == wanted


def test_json_holds_the_same_ground_truth(tmp_path: Path) -> None:
    make_revisited("rparis6k")(tmp_path)
    wanted = read_truth(tmp_path, "paris")
    (tmp_path / "rparis6k/gnd_rparis6k.pkl").unlink()
    write(tmp_path / "rparis6k/gnd_rparis6k.json", json.dumps(GROUND))
    assert read_truth(tmp_path, "paris") == wanted


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_names_a_function_runs_nothing(tmp_path: Path, protocol: int) -> None:
    make_revisited("roxford5k")(tmp_path)
    mark = tmp_path / "owned"
    content = pickle.dumps({**GROUND, "extra": Evil(mark)}, protocol=protocol)
    (tmp_path / "roxford5k/gnd_roxford5k.pkl").write_bytes(content)
    with pytest.raises(InputError, match="no plain data"):
        read_protocol("roxford5k", tmp_path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nonsense", "cannot be read as a pickle"),
        (b"cbuiltins\nbytes\n(I1000000000000\ntR.", "cannot be read as a pickle"),
        (pickle.dumps([1]), "holds no dictionary of imlist"),
        (pickle.dumps({**GROUND, "qimlist": ["q1"]}), "has 1 queries and 2 answers"),
        (pickle.dumps({**GROUND, "qimlist": ["q"], "gnd": [{"bbx": []}]}), "the query q has no easy, hard, junk"),
        (
            pickle.dumps({**GROUND, "qimlist": ["q"], "gnd": [{**GROUND["gnd"][0], "easy": [4]}]}),  # type: ignore[dict-item]
            "points outside its 4 pictures",
        ),
    ],
)
def test_a_ground_truth_that_does_not_fit_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    make_revisited("roxford5k")(tmp_path)
    (tmp_path / "roxford5k/gnd_roxford5k.pkl").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_protocol("roxford5k", tmp_path)
