"""A settled condition passes the rows the filter itself passes: with any nesting of `not`, and any missing values."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.catalogue.conditions import Chain, Condition, Field, Not, as_sql, settled
from lookalike.catalogue.where import tree

FIELDS = {
    "label": Field("c1", "text"),
    "year": Field("c2", "integer"),
    "price": Field("c3", "real"),
    "sold": Field("c4", "boolean"),
}
ROWS = [
    (label, year, price, sold)
    for label in ("mug", "Cup", "100%", None)
    for year in (-1, 0, 7, 2**53 + 1, None)
    for price in (0.5, 7.0, None)
    for sold in (0, 1, None)
]

numbers = st.sampled_from(["7", "7.0", "6.5", "0", "-1", "9007199254740993", "1e30", "-1e30", "1e999"])
comparisons = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
leaf = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(["year", "price"]), comparisons, numbers),
    st.builds("{} {}in ({}, {})".format, st.sampled_from(["year", "price"]), st.sampled_from(["", "not "]), numbers,
              numbers),
    st.builds("label {} '{}'".format, comparisons, st.sampled_from(["mug", "Cup", "", "n"])),
    st.builds("label {}like '{}'".format, st.sampled_from(["", "not "]), st.sampled_from(["MUG", "c%", "_u_", "%"])),
    st.builds("label {}contains '{}'".format, st.sampled_from(["", "not "]), st.sampled_from(["%", "U", "_"])),
    st.builds("sold {} {}".format, comparisons, st.sampled_from(["true", "false"])),
    st.builds("sold {}in (true, false)".format, st.sampled_from(["", "not "])),
    st.builds("{} is {}null".format, st.sampled_from(list(FIELDS)), st.sampled_from(["", "not "])),
)  # fmt: skip
filters = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.builds("not ({})".format, inner),
        st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner),
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def table():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (c1, c2, c3, c4)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
    yield connection
    connection.close()


def passing(table: sqlite3.Connection, condition: Condition) -> list[int]:
    text, values = as_sql(condition)
    return [row for (row,) in table.execute(f"SELECT rowid FROM t WHERE {text} ORDER BY rowid", values)]


def holds_not(condition: Condition) -> bool:
    return isinstance(condition, Not) or (isinstance(condition, Chain) and any(map(holds_not, condition.parts)))


@given(text=filters)
@settings(max_examples=300, deadline=None)
def test_settling_a_filter_changes_no_row_it_passes(table, text):
    condition = tree(text, FIELDS)
    plain = settled(condition)
    assert passing(table, plain) == passing(table, condition)
    assert not holds_not(plain)
