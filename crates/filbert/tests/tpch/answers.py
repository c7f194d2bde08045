"""DuckDB's rows for the queries beside this file, over the tables that the test `tpch` has written:

    mkdir tables
    FILBERT_TPCH_DATA=$PWD/tables cargo test --release -p filbert --test sql tpch
    pip install duckdb==1.4.1
    python answers.py tables
"""

import pathlib
import re
import sys

import duckdb

HERE = pathlib.Path(__file__).parent
SOURCE = (HERE.parent / "sql" / "tpch.rs").read_text()


def text(value):
    """A value as the test writes it."""
    if value is None:
        return "NULL"
    if hasattr(value, "as_tuple"):
        plain = format(value, "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    return repr(value) if isinstance(value, float) else str(value)


def main(tables):
    database = duckdb.connect()
    declared = re.search(r"const TABLES.*?^];", SOURCE, re.S | re.M).group()
    for name, columns in re.findall(r'"(\w+)",\s*"((?:[^"\\]|\\\s)*)"', declared):
        columns = re.sub(r"\\\s+", "", columns)
        database.execute(f"CREATE TABLE {name} ({columns})")
        # Each value has a separator behind it, the last as well.
        fields = ", ".join(column.split()[0] for column in columns.split(", "))
        types = ", ".join(f"'{c.split()[0]}': '{c.split()[1]}'" for c in columns.split(", "))
        path = pathlib.Path(tables) / f"{name}.tbl"
        database.execute(
            f"INSERT INTO {name} SELECT {fields} FROM read_csv('{path}', delim='|', header=false, quote='', "
            f"columns={{{types}, 'rest': 'VARCHAR'}})"
        )
    for query in sorted(HERE.glob("q*.sql")):
        result = database.execute(query.read_text())
        lines = ["|".join(str(column[1]) for column in result.description)]
        lines += ["|".join(text(value) for value in row) for row in result.fetchall()]
        query.with_suffix(".csv").write_text("\n".join(lines) + "\n")
        print(query.stem, len(lines) - 1)


main(sys.argv[1])
