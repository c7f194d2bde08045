"""What the server does not do yet, by the test that asks for it. A test of this list must fail: when it passes, its line goes."""

GAPS = {
    "test_postgres_asyncpg.py::test_values_of_every_type_come_back_as_they_went[integer[]]": "asyncpg's question about array types is ambiguous here",
}
