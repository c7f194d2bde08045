"""asyncpg, which speaks nothing but the extended protocol and binary values."""

import asyncio
import datetime

import asyncpg
import pytest

from postgres_tools import TYPES


def run(member, work):
    """Runs a coroutine over a connection of its own."""

    async def main():
        connection = await asyncpg.connect(host="127.0.0.1", port=member.postgres_port, user="ann", database="filbert")
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(main())


def test_a_connection_knows_its_server(member):
    async def work(connection):
        assert connection.get_server_version()[:2] == (14, 0)
        assert connection.get_settings().server_encoding == "UTF8"
        assert await connection.fetchval("SELECT 1") == 1

    run(member, work)


@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type_come_back_as_they_went(member, name, kind):
    async def work(connection):
        await connection.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY, value {kind})')
        values = [*TYPES[kind], None]
        await connection.executemany(f'INSERT INTO "{name}" VALUES ($1, $2)', list(enumerate(values)))
        found = await connection.fetch(f'SELECT value FROM "{name}" ORDER BY id')
        assert [record["value"] for record in found] == values
        await connection.execute(f'DROP TABLE "{name}"')

    run(member, work)


def test_parameters_get_their_types_from_the_statement(member):
    async def work(connection):
        assert await connection.fetchval("SELECT $1::int + $2::int", 1, 2) == 3
        assert await connection.fetchval("SELECT CAST($1 AS date)", datetime.date(2024, 2, 29)) == datetime.date(2024, 2, 29)
        statement = await connection.prepare("SELECT $1::bigint AS a, $2::text AS b")
        assert [parameter.name for parameter in statement.get_parameters()] == ["int8", "text"]
        assert [attribute.name for attribute in statement.get_attributes()] == ["a", "b"]
        with pytest.raises(asyncpg.DataError):
            await connection.fetchval("SELECT $1::int", "x")

    run(member, work)


def test_a_list_of_keys_is_one_parameter(member, name):
    async def work(connection):
        await connection.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY, word text)')
        await connection.executemany(f'INSERT INTO "{name}" VALUES ($1, $2)', [(1, "a"), (2, "b"), (3, "c")])
        found = await connection.fetch(f'SELECT word FROM "{name}" WHERE id = ANY($1) ORDER BY id', [3, 1, 9])
        assert [record["word"] for record in found] == ["a", "c"]
        assert await connection.fetchval(f'SELECT id FROM "{name}" WHERE word <> ALL($1)', ["a", "c"]) == 2
        await connection.execute(f'DROP TABLE "{name}"')

    run(member, work)


def test_cursors_transactions_and_errors(member, name):
    async def work(connection):
        await connection.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY)')
        await connection.copy_records_to_table(name, records=[(n,) for n in range(3000)])
        async with connection.transaction():
            found = [record["id"] async for record in connection.cursor(f'SELECT id FROM "{name}" ORDER BY id', prefetch=100)]
            assert found == list(range(3000))
            cursor = await connection.cursor(f'SELECT id FROM "{name}" ORDER BY id')
            await cursor.forward(10)
            assert [record["id"] for record in await cursor.fetch(2)] == [10, 11]
        with pytest.raises(asyncpg.PostgresSyntaxError):
            await connection.fetch("SELECT FROM WHERE")
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(f'INSERT INTO "{name}" VALUES (1)')
        await connection.execute(f'DROP TABLE "{name}"')

    run(member, work)


def test_rows_are_copied_in_and_out(member, name, tmp_path):
    async def work(connection):
        await connection.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY, text text)')
        rows = [(1, "a\tb"), (2, None)]
        assert await connection.copy_records_to_table(name, records=rows) == "COPY 2"
        path = tmp_path / "rows.csv"
        assert await connection.copy_from_table(name, output=path, format="csv") == "COPY 2"
        await connection.execute(f'DELETE FROM "{name}"')
        assert await connection.copy_to_table(name, source=path, format="csv") == "COPY 2"
        assert [tuple(row) for row in await connection.fetch(f'SELECT * FROM "{name}" ORDER BY id')] == rows
        await connection.execute(f'DROP TABLE "{name}"')

    run(member, work)


def test_a_statement_that_takes_too_long_is_cancelled(member, name):
    async def work(connection):
        await connection.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY)')
        await connection.copy_records_to_table(name, records=[(n,) for n in range(3000)])
        endless = f'SELECT count(*) FROM "{name}" a, "{name}" b, "{name}" c WHERE a.id + b.id + c.id < 0'
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetchval(endless, timeout=0.5)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.execute(f'DROP TABLE "{name}"')

    run(member, work)


def test_a_pool_gives_connections_back_as_they_were(member):
    async def main():
        settings = {"host": "127.0.0.1", "port": member.postgres_port, "user": "ann", "database": "filbert"}
        async with asyncpg.create_pool(min_size=2, max_size=5, **settings) as pool:
            found = await asyncio.gather(*(pool.fetchval("SELECT $1::int", n) for n in range(50)))
            assert found == list(range(50))
            async with pool.acquire() as connection:
                await connection.execute("SET application_name = 'changed'")
            async with pool.acquire() as connection:
                assert await connection.fetchval("SHOW application_name") != "changed"

    asyncio.run(main())
