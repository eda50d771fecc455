"""The filter language against a literal three-valued evaluation of what it says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.catalogue.where import MAX_VALUES, Field, FilterError, mask, parse

COLUMNS = {
    "label": ["mug", "cup", None, "it's", "50%", "Mug", ""],
    "year": [2019, 2020, 2021, None, 2020, -3, 0],
    "price": [1.5, None, 2.0, 0.25, 1e3, -0.5, 2.0],
    "sold": [True, False, None, True, False, True, False],
    "shelf no": ["a", "b", "c", None, "e", "f", "g"],
}
TYPES = {"label": "text", "year": "integer", "price": "real", "sold": "boolean", "shelf no": "text"}
ROWS = range(len(COLUMNS["label"]))


def rows(text):
    return np.flatnonzero(mask(text, COLUMNS, TYPES)).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("label = 'mug'", [0]),
        ('label = "mug"', [0]),
        ("label != 'mug'", [1, 3, 4, 5, 6]),
        ("label <> 'mug' and label is not null", [1, 3, 4, 5, 6]),
        ("label = 'it''s'", [3]),
        ("LABEL like 'm%'", [0, 5]),
        ("label contains '%'", [4]),
        ("label not contains 'U'", [3, 4, 6]),
        ("label is null or label = ''", [2, 6]),
        ("label in ('mug', 'cup', 'x')", [0, 1]),
        ("label not in ('mug', 'cup')", [3, 4, 5, 6]),
        ("year >= 2020", [1, 2, 4]),
        ("year = '2020'", [1, 4]),
        ("year < 2019.5 and year > -3", [0, 6]),
        ("not (year >= 2020 or year < 0)", [0, 6]),
        ("not year = 2020", [0, 2, 5, 6]),
        ("price <= .25", [3, 5]),
        ("price = 1e3", [4]),
        ("price = 2", [2, 6]),
        ("sold = true", [0, 3, 5]),
        ("sold = false and price > 1", [4, 6]),
        ("`shelf no` = 'b' or \"shelf no\" in ('c')", [1, 2]),
        ("year = 2020 or year = 2021 and price = 2", [1, 2, 4]),
        ("(year = 2020 or year = 2021) and price = 2", [2]),
        ("year > 99999999999999999999", []),
    ],
)
def test_a_filter_selects_what_it_says(text, expected):
    assert rows(text) == expected


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "nothing to compare"),
        ("lable = 'mug'", 0, "no column 'lable'.*Did you mean 'label'"),
        ("label = mug", 8, "'mug' stands where a value.*quotes: 'mug'"),
        ("label == 'mug", 9, "a quote is opened and not closed"),
        ("label 'mug'", 6, "where a comparison"),
        ("label = 'a' label = 'b'", 12, "'and', 'or' or the end"),
        ("(label = 'a'", 12, r"the filter ends where .*'\)'"),
        ("year = 'new'", 7, "holds whole numbers, and 'new'"),
        ("sold = 'maybe'", 7, "holds true or false"),
        ("label = null", 8, "nothing equals null.*is null"),
        ("label in 'a'", 9, r"where '\(' and a list"),
        ("label in ()", 10, "a value"),
        ("label is 'x'", 9, "'null'"),
        ("label not = 'x'", 10, "'in', 'like' or 'contains'"),
        ("year = 1; drop table items", 8, "';' means nothing here"),
        ("year = 1 -- comment", 9, "'-' means nothing"),
        ("year = 12abc", 7, "means nothing"),
        ("and = 1", 0, "'and' stands where a column"),
    ],
)
def test_an_error_names_the_place_and_the_way_out(text, position, message):
    with pytest.raises(FilterError, match=re.compile(message, re.DOTALL)) as caught:
        rows(text)
    assert caught.value.position == position


def test_no_text_of_the_user_becomes_sql():
    condition = parse("label = '1; DROP TABLE items' and `shelf no` like '%'')--'", {
        name: Field(f"items.c{i}", TYPES[name]) for i, name in enumerate(COLUMNS)
    })  # fmt: skip
    assert condition.sql == "(items.c0 = ? AND items.c4 LIKE ?)"
    assert condition.values == ("1; DROP TABLE items", "%')--")


def test_sizes_that_sqlite_would_refuse_are_refused_here():
    assert rows(f"year in ({', '.join(['2019'] * MAX_VALUES)})") == [0]
    with pytest.raises(FilterError, match="more than 900 values"):
        rows(f"year in ({', '.join(['2019'] * (MAX_VALUES + 1))})")
    assert rows(" or ".join(["year is null"] * 800)) == [3]
    with pytest.raises(FilterError, match="more than 800 comparisons"):
        rows(" or ".join(["year is null"] * 801))
    assert rows("(" * 99 + "year = 2019" + ")" * 99) == [0]
    with pytest.raises(FilterError, match="more than 100 parentheses"):
        rows("(" * 101 + "year = 2019" + ")" * 101)
    with pytest.raises(FilterError, match="longer than"):
        rows(f"label = '{'x' * 60_000}'")


# The oracle: SQL's three-valued logic, written out. None is unknown.
def negate(value):
    return None if value is None else not value


def compare(operator, left, right):
    if left is None:
        return None
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def both(values):
    return False if False in values else None if None in values else True


def either(values):
    return True if True in values else None if None in values else False


quoted = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4) | st.sampled_from(
    [label for label in COLUMNS["label"] if label]
)
VALUES = {
    "label": quoted,
    "shelf no": quoted,
    "year": st.integers(-5, 2025),
    "price": st.floats(-1e6, 1e6) | st.sampled_from([1.5, 2.0, 0.25]),
    "sold": st.booleans(),
}


def written(value):
    if isinstance(value, bool):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def named(column):
    return f"`{column}`" if " " in column else column


@st.composite
def comparisons(draw):
    column = draw(st.sampled_from(sorted(COLUMNS)))
    kind = draw(st.sampled_from(["ordered", "in", "null"]))
    not_ = draw(st.sampled_from(["", "not "]))
    cells = COLUMNS[column]
    if kind == "ordered":
        operator, value = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), draw(VALUES[column])
        return f"{named(column)} {operator} {written(value)}", [compare(operator, cell, value) for cell in cells]
    if kind == "null":
        return f"{named(column)} is {not_}null", [(cell is None) != bool(not_) for cell in cells]
    wanted = draw(st.lists(VALUES[column], min_size=1, max_size=3))
    inside = [None if cell is None else cell in wanted for cell in cells]
    text = f"{named(column)} {not_}in ({', '.join(map(written, wanted))})"
    return text, [negate(cell) if not_ else cell for cell in inside]


def joined(parts):
    pair, word, rule = parts
    (left, first), (right, second) = pair
    return f"({left}) {word} ({right})", [rule([a, b]) for a, b in zip(first, second, strict=True)]


filters = st.recursive(
    comparisons(),
    lambda inner: (
        st.tuples(st.tuples(inner, inner), st.just("and"), st.just(both)).map(joined)
        | st.tuples(st.tuples(inner, inner), st.just("or"), st.just(either)).map(joined)
        | inner.map(lambda part: (f"not ({part[0]})", [negate(value) for value in part[1]]))
    ),
    max_leaves=6,
)


@given(filters)
def test_any_filter_selects_what_three_valued_logic_says(case):
    text, truth = case
    assert mask(text, COLUMNS, TYPES).tolist() == [value is True for value in truth]


@given(st.text(max_size=60) | st.text("()'\"`=<>!, abornotinlikenull0123456789.-;%_", max_size=60))
def test_any_text_is_a_filter_or_a_filter_error(text):
    try:
        mask(text, COLUMNS, TYPES)
    except FilterError as error:
        assert 0 <= error.position <= len(text)


def test_an_error_points_at_the_character_that_is_no_text_and_repeats_little_of_a_long_filter():
    with pytest.raises(FilterError, match="at character 10") as error:
        parse("label = '\udcff'", {"label": Field("c1", "text")})
    assert error.value.position == 9
    with pytest.raises(FilterError) as error:
        parse("(" * 3_000 + "label = 1" + ")" * 3_000, {"label": Field("c1", "text")})
    assert len(str(error.value)) < 400
