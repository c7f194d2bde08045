"""DuckDB as a driver of scans: the columns of experiment Q in a table in memory, in this very process.

A command per line, a line of JSON as its answer, as the Java drivers do (bench/java, Commands.java):

`load ENTRIES` makes the table; `closed QUERY CALLS_MIN SECONDS` makes call after call. The statements are prepared.
Every answer is compared with what the numbers of the keys add up to.
"""

import json
import sys
import time

import duckdb

THREADS = 2
MIDDLE = 1 << 30
NAMES = 32

# The number and the name of a key, as Formats.java makes them.
TABLE = """
CREATE OR REPLACE TABLE q AS
SELECT i::INTEGER AS key, ((i * 2654435761) & 2147483647)::BIGINT AS value, 'name-' || (i % 32) AS name
FROM range({entries}) AS keys(i)
"""

STATEMENTS = {
    "count": "SELECT count(*) FROM q",
    "sum": "SELECT sum(value) FROM q",
    "filter": "SELECT sum(value) FROM q WHERE value > ?",
    "group": "SELECT name, sum(value) FROM q GROUP BY name",
}


class Wrong(Exception):
    """An answer is not the one that the loaded data gives."""


class Scans:
    """A table and what the statements over it must answer."""

    def __init__(self):
        self.connection = duckdb.connect(":memory:", config={"threads": THREADS})
        self.expected = {}

    def load(self, entries):
        self.connection.execute(TABLE.format(entries=entries))
        numbers = [(key * 2654435761) & 0x7FFFFFFF for key in range(entries)]
        groups = {f"name-{name}": sum(numbers[name::NAMES]) for name in range(min(NAMES, entries))}
        self.expected = {
            "count": [(entries,)],
            "sum": [(sum(numbers),)],
            "filter": [(sum(number for number in numbers if number > MIDDLE),)],
            "group": sorted(groups.items()),
        }
        for name, statement in STATEMENTS.items():
            self.connection.execute(f"PREPARE scan_{name} AS {statement}")
        return {"calls": entries, "nanos": 0}

    def closed(self, query, calls_min, seconds):
        statement = f"EXECUTE scan_{query}" + (f"({MIDDLE})" if query == "filter" else "")
        latencies = []
        begun = time.perf_counter_ns()
        while len(latencies) < calls_min or time.perf_counter_ns() - begun < seconds * 1e9:
            before = time.perf_counter_ns()
            rows = self.connection.execute(statement).fetchall()
            latencies.append(time.perf_counter_ns() - before)
            if sorted(rows) != self.expected[query]:
                raise Wrong(f"{query} is {rows}, expected {self.expected[query]}")
        return {"calls": len(latencies), "nanos": sum(latencies), "latency": summary(latencies)}


def summary(latencies):
    latencies.sort()

    def at(quantile):
        return latencies[max(0, -int(-quantile * len(latencies) // 1) - 1)] / 1e3

    return {
        "mean_us": sum(latencies) / len(latencies) / 1e3,
        "p50_us": at(0.5),
        "p99_us": at(0.99),
        "p999_us": at(0.999),
        "max_us": latencies[-1] / 1e3,
    }


def run(scans, words):
    match words:
        case ["hello"]:
            return {}
        case ["load", entries]:
            return scans.load(int(entries))
        case ["closed", query, calls_min, seconds]:
            return scans.closed(query, int(calls_min), float(seconds))
        case _:
            raise ValueError(f"unknown command {' '.join(words)}")


def main():
    scans = Scans()
    for line in sys.stdin:
        try:
            answer = run(scans, line.split())
        except Exception as problem:  # the other side decides what an error means
            answer = {"error": str(problem), "wrong": isinstance(problem, Wrong)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
