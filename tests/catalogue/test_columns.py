"""User columns: one type each, chosen so that nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.columns import typed
from lookalike.errors import InputError, InputTypeError, ShapeError, UnknownNameError


@pytest.fixture
def shop(tmp_path, grid):
    with Catalogue.create(tmp_path / "shop.la", encoder=grid) as made:
        made.upsert(["a", "b", "c"], np.eye(8)[:3])
        yield made


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2", ""], ("integer", [1, 2, None])),
        (["007", "8"], ("text", ["007", "8"])),
        (["1.0", "2"], ("text", ["1.0", "2"])),
        (["1.5", "2.25"], ("real", [1.5, 2.25])),
        (["+1", "2"], ("text", ["+1", "2"])),
        (["9223372036854775808"], ("text", ["9223372036854775808"])),
        ([9223372036854775807], ("integer", [9223372036854775807])),
        ([1.0, float("nan"), 3.0], ("integer", [1, None, 3])),
        ([True, False, None], ("boolean", [True, False, None])),
        ([True, 2], ("text", ["True", "2"])),
        (np.array([1, 2], np.int32), ("integer", [1, 2])),
        (np.array(["x", "1"]), ("text", ["x", "1"])),
        (["nan", "1.5"], ("text", ["nan", "1.5"])),
        (["inf", "-Infinity"], ("text", ["inf", "-Infinity"])),
        ([None, ""], ("text", [None, None])),
        (["true", "false"], ("text", ["true", "false"])),
        (["1_000"], ("text", ["1_000"])),
    ],
)
def test_a_column_takes_the_narrowest_type_that_loses_nothing(values, expected):
    assert typed("c", values) == expected


def test_a_stated_type_is_obeyed_or_the_value_is_named():
    assert typed("c", ["1", "0", "yes"], "boolean") == ("boolean", [True, False, True])
    assert typed("c", [1, 2.0], "text") == ("text", ["1", "2"])
    with pytest.raises(InputError, match=r"'c' holds integer, and 'x' is not"):
        typed("c", ["x"], "integer")
    with pytest.raises(InputError, match=r"1\.5"):
        typed("c", [1.5], "integer")
    with pytest.raises(InputTypeError, match="list"):
        typed("c", [[1]])


def test_columns_come_back_as_they_were_set_and_can_be_filtered(shop):
    shop.set_columns({"sku": ["007", "8", ""], "year": ["2020", "", "2021"]}, paths=["a", "b", "c"])
    assert [(column.name, column.type) for column in shop.columns()] == [("sku", "text"), ("year", "integer")]
    assert shop.column("sku") == ["007", "8", None]
    assert shop.paths(shop.ids(where="sku = '007' or year > 2020")) == ["a", "c"]
    assert shop.paths(shop.ids(where="path = 'b' and width is null")) == ["b"]
    assert shop.paths(shop.ids(where="id > 2")) == ["c"]


def test_a_column_keeps_its_type_and_partial_updates_leave_the_rest(shop):
    shop.set_columns({"year": [2020, 2021]}, paths=["a", "b"])
    shop.set_columns({"year": ["1999"]}, paths=["b"])
    assert shop.column("year") == [2020, 1999, None]
    with pytest.raises(InputError, match="'year' holds integer, and 'soon' is not"):
        shop.set_columns({"year": ["soon"]}, paths=["c"])
    with pytest.raises(InputError, match="holds integer and the new values are text"):
        shop.set_columns({"year": ["soon"]}, paths=["c"], types={"year": "text"})
    assert shop.column("year") == [2020, 1999, None]


def test_booleans_come_back_as_booleans(shop):
    shop.set_columns({"sold": [True, False]}, ids=[1, 2])
    assert shop.column("sold") == [True, False, None]
    assert shop.ids(where="sold = true").tolist() == [1]


def test_any_name_is_a_column_but_those_of_the_catalogue(shop):
    names = ["drop table items; --", "naïve ☃", "c1", 'with "quotes" and `ticks`', "select"]
    shop.set_columns({name: [name, None, None] for name in names}, ids=[1, 2, 3])
    for name in names:
        ticked = name.replace("`", "``")
        assert shop.ids(where=f"`{ticked}` is not null").tolist() == [1]
        assert shop.column(name)[0] == name
    for taken in ("id", "Path", "width", " "):
        with pytest.raises(InputError, match="cannot be the name"):
            shop.set_columns({taken: [1, 2, 3]}, ids=[1, 2, 3])


def test_an_indexed_column_is_used_by_the_filter(shop):
    shop.set_columns({"label": ["x", "y", "z"]}, ids=[1, 2, 3])
    shop.index_column("label")
    assert shop.columns()[0].indexed
    with shop.database.reading() as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT id FROM items WHERE items.c1 = ?", ("x",)).fetchall()
    assert "items_c1" in plan[0][3]


def test_a_dropped_column_is_gone_and_its_place_is_not_reused(shop):
    shop.set_columns({"label": ["x", "y", "z"]}, ids=[1, 2, 3])
    shop.index_column("label")
    shop.drop_column("label")
    assert shop.columns() == []
    shop.set_columns({"label": [1]}, ids=[2])
    assert shop.column("label") == [None, 1, None]
    with pytest.raises(UnknownNameError, match=r"Did you mean 'label'"):
        shop.drop_column("lable")


def test_items_that_are_not_there_are_named_or_passed_over(shop):
    with pytest.raises(InputError, match="no item 'x'"):
        shop.set_columns({"label": ["1", "2"]}, paths=["a", "x"])
    assert shop.columns() == []
    assert shop.set_columns({"label": ["mug", "cup"]}, paths=["a", "x"], missing_ok=True) == 1
    with pytest.raises(ShapeError, match="label has 1"):
        shop.set_columns({"label": ["mug"]}, paths=["a", "b"])
    with pytest.raises(InputError, match="which items"):
        shop.set_columns({"label": ["mug"]})
