"""What the tests of PostgreSQL's drivers and tools share: values of every type, psql as a process, tables of a test's own."""

import datetime
import decimal
import os
import subprocess
import uuid

UTC = datetime.timezone.utc
MOMENT = datetime.datetime(2024, 2, 29, 13, 14, 15, 678901)

# Each type of PostgreSQL with values that a driver writes and reads.
TYPES = {
    "boolean": [True, False],
    "smallint": [0, -(2**15), 2**15 - 1],
    "integer": [-(2**31), 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
    "real": [0.5, -1.0e10],
    "double precision": [0.1, -1.5e300, 1e-5],
    "numeric(20, 4)": [decimal.Decimal("12345.6789"), decimal.Decimal("-0.0001"), decimal.Decimal("0.0000")],
    "text": ["", "ü 'quoted' \\ \"double\"", "a\nb\tc", "x" * 10_000],
    "varchar(20)": ["hazel"],
    "bytea": [b"", b"\x00\xff\\x", bytes(range(256))],
    # asyncpg takes the first and the last day of Python as infinite.
    "date": [datetime.date(2024, 2, 29), datetime.date(1, 1, 2), datetime.date(9999, 12, 30)],
    "time": [datetime.time(0, 0), datetime.time(23, 59, 59, 999999)],
    "timestamp": [MOMENT, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)],
    "timestamptz": [MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=5)))],
    "interval": [datetime.timedelta(days=3, hours=4, microseconds=5), datetime.timedelta(seconds=-1)],
    "uuid": [uuid.UUID("67e55044-10b1-426f-9247-bb680e5fe0c8")],
    "integer[]": [[], [1, None, 3]],
    "text[]": [["a", "b c", None, 'd"e', "{f,g}", "NULL", ""]],
}


def dsn(member, **settings):
    """Where the member listens, as libpq wants to be told."""
    settings = {"host": "127.0.0.1", "port": member.postgres_port, "user": "ann", "dbname": "filbert", **settings}
    return " ".join(f"{name}={value}" for name, value in settings.items())


def psql(member, *commands, stdin=None, arguments=(), check=True, **environment):
    """What psql prints for commands, each run as `-c`."""
    words = ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(member.postgres_port), "-U", "ann"]
    words += ["-d", "filbert", *arguments]
    for command in commands:
        words += ["-c", command]
    environment = {**os.environ, "PGCONNECT_TIMEOUT": "30", **environment}
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=120, env=environment, check=False)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def rows(member, command):
    """The rows that psql shows for a command, with `|` between values."""
    return psql(member, command, arguments=["-A", "-t"]).stdout.splitlines()
