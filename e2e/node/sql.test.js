// SQL: statements, parameters, types, cursors and errors, over every format that this client writes.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const Long = require('long');
const {
    BigDecimal, HazelcastJsonValue, HazelcastSqlException, LocalDate, LocalDateTime, LocalTime, OffsetDateTime, SqlColumnType,
} = require('hazelcast-client');
const { realHazelcast, suite } = require('./member');
const { FORMATS, fill, settings } = require('./people');

let client;
let sql;

suite(async (shared) => {
    client = await shared.connect(settings());
    sql = client.getSql();
});

/** All rows, each as a list. */
async function rows(text, params, options) {
    const result = await sql.execute(text, params, { ...options, returnRawResult: true });
    const all = [];
    for await (const row of result) {
        all.push(result.rowMetadata.getColumns().map((_, i) => row.getObject(i)));
    }
    return all;
}

const update = (text, params) => sql.execute(text, params);
const plain = (value) => (Long.isLong(value) ? value.toNumber() : value);

let made = 0;

/** A map of the numbers 0 to 9 under themselves, with its mapping. */
async function ten() {
    const name = `node_sql_${made++}`;
    const map = await client.getMap(name);
    await map.putAll(Array.from({ length: 10 }, (_, i) => [i, i]));
    await update(`CREATE OR REPLACE MAPPING ${name} TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')`);
    return { name, map };
}

test('rows come with names and types', async () => {
    const { name } = await ten();
    const result = await sql.execute(`SELECT __key AS k, CAST(this AS VARCHAR) AS t FROM ${name} WHERE this = 4`);
    assert.equal(result.isRowSet(), true);
    assert.deepEqual(result.rowMetadata.getColumns().map((column) => [column.name, SqlColumnType[column.type]]),
        [['k', 'INTEGER'], ['t', 'VARCHAR']]);
    const all = [];
    for await (const row of result) all.push(row);
    assert.deepEqual(all, [{ k: 4, t: '4' }]);
});

test('conditions, groups, order and limits', async () => {
    const { name } = await ten();
    assert.deepEqual(await rows(`SELECT this FROM ${name} WHERE this > ? ORDER BY this`, [7]), [[8], [9]]);
    assert.deepEqual(await rows(`SELECT this FROM ${name} ORDER BY this DESC LIMIT 2`), [[9], [8]]);
    const groups = await rows(`SELECT this % 2 AS m, COUNT(*), SUM(this) FROM ${name} GROUP BY this % 2 ORDER BY m`);
    assert.deepEqual(groups.map((row) => row.map(plain)), [[0, 5, 20], [1, 5, 25]]);
    const joined = await rows(`SELECT a.this FROM ${name} a JOIN ${name} b ON a.this = b.this + 8 ORDER BY 1`);
    assert.deepEqual(joined, [[8], [9]]);
});

test('changes by statement', async () => {
    const { name, map } = await ten();
    const inserted = await update(`INSERT INTO ${name} VALUES (?, ?)`, [20, 1]);
    assert.equal(inserted.isRowSet(), false);
    assert.equal(inserted.updateCount.toNumber(), realHazelcast ? 0 : 1); // Hazelcast does not count
    await assert.rejects(update(`INSERT INTO ${name} VALUES (20, 2)`), HazelcastSqlException);
    await update(`SINK INTO ${name} VALUES (20, 2)`);
    assert.equal(await map.get(20), 2);
    await update(`UPDATE ${name} SET this = this * 100 WHERE __key = 20`);
    assert.equal(await map.get(20), 200);
    await update(`DELETE FROM ${name} WHERE this > 5`);
    assert.equal(await map.size(), 6);
});

test('cursors come in pages and can be closed', async () => {
    const { name } = await ten();
    assert.equal((await rows(`SELECT * FROM ${name}`, [], { cursorBufferSize: 1 })).length, 10);
    const result = await sql.execute('SELECT v FROM TABLE(generate_stream(1000))', [], { cursorBufferSize: 1 });
    assert.equal((await result.next()).value.v.toNumber(), 0);
    await result.close();
    await assert.rejects(async () => {
        for (;;) if ((await result.next()).done) return;
    }, HazelcastSqlException);
});

test('the expected kind of result is checked', async () => {
    const { name, map } = await ten();
    await assert.rejects(async () => {
        for await (const _ of await sql.execute(`SELECT * FROM ${name}`, [], { expectedResultType: 'UPDATE_COUNT' })) void _;
    }, HazelcastSqlException);
    await assert.rejects(sql.execute(`INSERT INTO ${name} VALUES (77, 7)`, [], { expectedResultType: 'ROWS' }));
    assert.equal(await map.containsKey(77), false);
});

for (const text of ['SELEC 1', 'SELECT missing FROM $', 'SELECT this / 0 FROM $', 'SELECT * FROM $ WHERE this = ?',
    'SELECT * FROM nothing_of_the_kind']) {
    test(`an error: ${text}`, async () => {
        const { name } = await ten();
        await assert.rejects(rows(text.replace('$', name)), (error) => {
            assert.ok(error instanceof HazelcastSqlException, `${error}`);
            assert.ok(error.message.length > 0);
            return true;
        });
        assert.equal((await rows(`SELECT * FROM ${name}`)).length, 10);
    });
}

const TYPES = {
    VARCHAR: 'täxt 😀',
    BOOLEAN: true,
    INTEGER: -70000,
    BIGINT: Long.fromString('-1099511627776'),
    DECIMAL: BigDecimal.fromString('12345678901234567890.125'),
    DATE: LocalDate.fromString('2024-02-29'),
    TIME: LocalTime.fromString('12:34:56'),
    TIMESTAMP: LocalDateTime.fromString('2024-02-29T12:34:56.123456'),
    'TIMESTAMP WITH TIME ZONE': OffsetDateTime.fromString('2024-02-29T12:34:56Z'),
};

for (const [type, value] of Object.entries(TYPES)) {
    test(`${type} as parameter, in every format`, async () => {
        assert.deepEqual(await rows(`SELECT CAST(? AS ${type})`, [value]), [[value]]);
        assert.deepEqual(await rows(`SELECT CAST(? AS ${type})`, [null]), [[null]]);
        const formats = {
            json: "'valueFormat'='json-flat'",
            portable: `'valueFormat'='portable', 'valuePortableFactoryId'='61', 'valuePortableClassId'='${made + 1}'`,
            compact: `'valueFormat'='compact', 'valueCompactTypeName'='node-types-${made}'`,
        };
        for (const [format, options] of Object.entries(formats)) {
            const name = `node_types_${format}_${made++}`;
            await update(`CREATE OR REPLACE MAPPING ${name} (__key INT, v ${type}, w INT) TYPE IMap`
                + ` OPTIONS ('keyFormat'='int', ${options})`);
            await update(`INSERT INTO ${name} VALUES (1, ?, 7)`, [value]);
            assert.deepEqual(await rows(`SELECT v FROM ${name}`), [[value]], format);
            assert.deepEqual(await rows(`SELECT __key FROM ${name} WHERE v = ?`, [value]), [[1]], format);
        }
    });
}

const MAPPED = {
    json: "'valueFormat'='json-flat'",
    portable: "'valueFormat'='portable', 'valuePortableFactoryId'='60', 'valuePortableClassId'='1'",
    compact: "'valueFormat'='compact', 'valueCompactTypeName'='node-person'",
};

for (const format of Object.keys(FORMATS)) {
    test(`${format}: fields of what this client wrote are columns`, async () => {
        const name = `node_people_${format}`;
        await fill(await client.getMap(name), format);
        await update(`CREATE OR REPLACE MAPPING ${name} (__key INT, name VARCHAR, nickname VARCHAR, age INT,`
            + ` balance BIGINT, height DOUBLE, active BOOLEAN) TYPE IMap OPTIONS ('keyFormat'='int', ${MAPPED[format]})`);
        assert.deepEqual((await rows(`SELECT * FROM ${name} WHERE name = 'Ada'`)).map((row) => row.map(plain)),
            [[1, 'Ada', null, 36, 1099511627776, 1.65, true]]);
        assert.deepEqual(await rows(`SELECT name FROM ${name} WHERE age > 40 ORDER BY age`), [['Alan'], ['Édith'], ['Grace']]);
        const groups = await rows(`SELECT active, COUNT(*), MAX(height) FROM ${name} GROUP BY active ORDER BY active`);
        assert.deepEqual(groups.map((row) => row.map(plain)), [[false, 2, 1.78], [true, 3, 1.9]]);
    });
}

test('JSON is asked with functions', async () => {
    const name = `node_json_${made++}`;
    const map = await client.getMap(name);
    await map.put(1, { a: { b: [1, 2] }, c: 'x' });
    await update(`CREATE OR REPLACE MAPPING ${name} (__key INT, this JSON) TYPE IMap`
        + " OPTIONS ('keyFormat'='int', 'valueFormat'='json')");
    assert.deepEqual(await rows(`SELECT JSON_VALUE(this, '$.c'), JSON_VALUE(this, '$.a.b[1]' RETURNING INT) FROM ${name}`),
        [['x', 2]]);
    await update(`INSERT INTO ${name} VALUES (2, ?)`, [new HazelcastJsonValue('{"c": "y"}')]);
    assert.deepEqual(await map.get(2), { c: 'y' });
});

test('subqueries and windows', { skip: realHazelcast && 'Hazelcast has none' }, async () => {
    const { name } = await ten();
    assert.deepEqual(await rows(`SELECT this FROM ${name} WHERE this IN (SELECT __key + 8 FROM ${name}) ORDER BY 1`), [[8], [9]]);
    const ranked = await rows(`SELECT this, ROW_NUMBER() OVER (ORDER BY this DESC) AS n FROM ${name} ORDER BY n LIMIT 2`);
    assert.deepEqual(ranked.map((row) => row.map(plain)), [[9, 1], [8, 2]]);
});
