from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.datasets.table import read_label_columns, read_table
from lookalike.errors import InputError, MissingExtraError, NotFoundError, ShapeError


def table(folder: Path, text: str | bytes, name: str = "manifest.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    return path


def test_paths_start_at_the_folder_of_the_table_or_at_the_root_given(tmp_path: Path) -> None:
    path = table(tmp_path, "path,label\nimages/a.jpg,mug\n/elsewhere/b.jpg,lamp\n")
    assert read_table(path).paths == (str(tmp_path / "images/a.jpg"), "/elsewhere/b.jpg")
    assert read_table(path, root="/data").paths == ("/data/images/a.jpg", "/elsewhere/b.jpg")
    assert read_table(path).names == ("images/a.jpg", "/elsewhere/b.jpg")


def test_values_stay_text_and_an_empty_cell_is_none(tmp_path: Path) -> None:
    pictures = read_table(table(tmp_path, "path,label,identity\na,007,16777217\nb,,NA\nc, mug ,\n"))
    assert pictures.columns == {"label": ("007", None, "mug"), "identity": ("16777217", "NA", None)}
    assert pictures.missing("label") == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("m.csv", "path,label\na b.jpg,mug\n"),
        ("m.csv", "path;label\r\na b.jpg;mug\r\n"),
        ("m.csv", "path\tlabel\na b.jpg\tmug\n"),
        ("m.tsv", "path\tlabel\na b.jpg\tmug"),
        ("m.csv", "\n\npath,label\n\na b.jpg,mug\n\n"),
        ("m.csv", b"\xef\xbb\xbfpath,label\na b.jpg,mug\n"),
        ("m.csv", "path,label\na b.jpg,mug\n".encode("utf-16")),
        ("m.csv", '"path","label"\n"a b.jpg","mug"\n'),
        ("m.csv", " path , label \na b.jpg,mug\n"),
    ],
)
def test_every_usual_way_of_writing_a_table_reads_the_same(tmp_path: Path, name: str, content: str | bytes) -> None:
    pictures = read_table(table(tmp_path, content, name))
    assert (pictures.names, pictures.columns) == (("a b.jpg",), {"label": ("mug",)})


def test_a_delimiter_is_chosen_by_the_header_never_by_the_values(tmp_path: Path) -> None:
    pictures = read_table(table(tmp_path, "path;caption\na.jpg;red, round, small, shiny, cheap\n"))
    assert pictures.column("caption") == ("red, round, small, shiny, cheap",)
    pictures = read_table(table(tmp_path, "path,a;b;c\nx.jpg,1\n"))
    assert pictures.columns == {"a;b;c": ("1",)}


def test_a_file_name_may_hold_any_bytes_and_a_label_may_not(tmp_path: Path) -> None:
    pictures = read_table(table(tmp_path, b"path,label\ncaf\xe9.jpg,mug\n"))
    assert os.fsencode(pictures.paths[0]).endswith(b"/caf\xe9.jpg")
    with pytest.raises(InputError, match="the label on line 2 is not UTF-8"):
        read_table(table(tmp_path, b"path,label\na.jpg,caf\xe9\n"))


def test_the_unnamed_row_number_of_a_data_frame_is_kept_apart(tmp_path: Path) -> None:
    assert read_table(table(tmp_path, ",path,label\n0,a,mug\n")).columns == {"column_1": ("0",), "label": ("mug",)}


def test_a_missing_picture_is_left_to_the_loader_to_report(tmp_path: Path) -> None:
    assert len(read_table(table(tmp_path, "path,label\nnowhere.jpg,mug\n"))) == 1


REFUSED = {
    "path twice": ("path,label\na.jpg,x\nb.jpg,y\n./a.jpg,z\n", r"'./a.jpg' stands on line 2 and on line 4"),
    "no path": ("path,label\na.jpg,x\n,y\n", "line 3 has no path"),
    "no path column": ("file,lable\na.jpg,x\n", "no column 'path'.*The columns are: file, lable"),
    "did you mean": ("paht,label\na.jpg,x\n", "Did you mean 'paht'"),
    "too many fields": ("path,label\na.jpg,x\nb.jpg,y,z\n", "line 3 has 3 fields where the header has 2"),
    "too few fields": ("path,label,camera\na.jpg,x\n", "line 2 has 2 fields where the header has 3"),
    "unclosed quote": ('path,label\n"a.jpg,x\n', "not well-formed"),
    "column twice": ("path,label,label\na,b,c\n", "names the column 'label' more than once"),
    "no rows": ("path,label\n", "has a header and no rows"),
    "nothing": ("", "is empty"),
    "blanks": (" \n\n", "is empty"),
    "binary": (b"\x89PNG\r\n\x00\x00", "is not a text file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_that_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, case: str) -> None:
    content, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        read_table(table(tmp_path, content))


def test_the_line_named_is_the_one_an_editor_shows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 5 has 1 fields"):
        read_table(table(tmp_path, 'path,caption\na.jpg,"two\nlines"\n\nb.jpg\n'))


def test_no_table_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no file .*m\.csv"):
        read_table(tmp_path / "m.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path)


def test_an_unknown_column_lists_those_that_exist(tmp_path: Path) -> None:
    pictures = read_table(table(tmp_path, "path,label,camera\na,b,c\n"))
    with pytest.raises(InputError, match=r"no column 'lable'\. Did you mean 'label'\? The columns are: label, camera"):
        pictures.column("lable")


def test_an_unknown_split_lists_those_that_exist(tmp_path: Path) -> None:
    pictures = read_table(table(tmp_path, "path,split\na,train\nb,test\nc,test\n"))
    assert pictures.rows("split", "test") == [1, 2]
    with pytest.raises(InputError, match=r"No picture has split = 'tset'\. Did you mean 'test'\?"):
        pictures.rows("split", "tset")


def test_selected_rows_keep_their_columns(tmp_path: Path) -> None:
    pictures = read_table(table(tmp_path, "path,label\na,1\nb,2\nc,3\n")).select([2, 0])
    assert (pictures.names, pictures.column("label")) == (("c", "a"), ("3", "1"))


def test_ready_labels_match_the_number_of_vectors(tmp_path: Path) -> None:
    path = table(tmp_path, "label,camera\nmug,1\n,2\n")
    assert read_label_columns(path, 2) == {"label": ("mug", None), "camera": ("1", "2")}
    with pytest.raises(ShapeError, match="2 rows for 5 vectors"):
        read_label_columns(path, 5)


@pytest.mark.parametrize("ending", ["", "\n", "\n\n\n"])
def test_a_blank_line_of_a_single_column_is_a_vector_without_a_label(tmp_path: Path, ending: str) -> None:
    path = table(tmp_path, "label\nmug\n\nlamp" + ending)
    assert read_label_columns(path, 3) == {"label": ("mug", None, "lamp")}


def test_a_last_vector_without_a_label_is_not_lost(tmp_path: Path) -> None:
    assert read_label_columns(table(tmp_path, "label\nmug\n\n"), 2) == {"label": ("mug", None)}


def test_parquet_reads_like_the_same_csv(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the parquet extra")
    import pyarrow.parquet as parquet

    columns = {"path": ["a.jpg", "b.jpg"], "label": [7.0, None], "sku": [16777217, 2], "vector": [[1.0], [2.0]]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "m.parquet")
    pictures = read_table(tmp_path / "m.parquet")
    assert pictures.names == ("a.jpg", "b.jpg")
    assert pictures.columns == {"label": ("7", None), "sku": ("16777217", "2")}
    parquet.write_table(pyarrow.table({"path": ["a", "a"]}), tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="row 1 and on row 2"):
        read_table(tmp_path / "twice.parquet")
    (tmp_path / "text.parquet").write_text("path,label\n")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_table(tmp_path / "text.parquet")


def test_parquet_without_its_extra_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "m.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"lookalike\[parquet\]"):
        read_table(tmp_path / "m.parquet")


CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8), delimiter=st.sampled_from([",", "\t", ";"]))
def test_what_the_csv_module_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str
) -> None:
    path = tmp_path_factory.mktemp("tables") / "m.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["path", "label", "note"])
        writer.writerows((f"{row}.jpg", *cells) for row, cells in enumerate(rows))
    pictures = read_table(path)
    assert pictures.column("label") == tuple(label.strip() or None for label, _ in rows)
    assert pictures.column("note") == tuple(note.strip() or None for _, note in rows)
