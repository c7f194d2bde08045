// node-postgres: statements, parameters, prepared statements, cursors, errors, transactions, cancelling by leaving.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');
const { suite } = require('./member');

const shared = suite();

function settings() {
    return { host: '127.0.0.1', port: shared.member.postgresPort, user: 'ann', database: 'filbert' };
}

/** Runs `work` with a connection of its own. */
async function connected(work) {
    const client = new Client(settings());
    await client.connect();
    try {
        return await work(client);
    } finally {
        await client.end();
    }
}

/** Runs `work` with a table of its own. */
function withTable(name, columns, work) {
    return connected(async (client) => {
        await client.query(`CREATE TABLE ${name} (${columns})`);
        try {
            return await work(client);
        } finally {
            await client.query(`DROP TABLE ${name}`);
        }
    });
}

test('statements have rows, fields and a command', () =>
    connected(async (client) => {
        const result = await client.query("SELECT 1 AS one, 'x' AS text, NULL AS nothing, true AS yes");
        assert.deepEqual(result.rows, [{ one: 1, text: 'x', nothing: null, yes: true }]);
        assert.deepEqual(result.fields.map((field) => field.name), ['one', 'text', 'nothing', 'yes']);
        assert.equal(result.command, 'SELECT');
        const several = await client.query('SELECT 1 AS a; SELECT 2 AS a, 3 AS b');
        assert.deepEqual(several.map((each) => each.rows), [[{ a: 1 }], [{ a: 2, b: 3 }]]);
    }));

test('a list of keys is one parameter', () =>
    withTable('node_lists', 'id int PRIMARY KEY, name text', async (client) => {
        await client.query("INSERT INTO node_lists VALUES (1, 'a'), (2, 'b'), (3, 'c')");
        const some = await client.query('SELECT name FROM node_lists WHERE id = ANY($1) ORDER BY id', [[3, 1, 9]]);
        assert.deepEqual(some.rows, [{ name: 'a' }, { name: 'c' }]);
        const others = await client.query('SELECT id FROM node_lists WHERE name <> ALL($1)', [['a', 'c']]);
        assert.deepEqual(others.rows, [{ id: 2 }]);
    }));

test('parameters come in the types of the statement', () =>
    connected(async (client) => {
        const text = 'SELECT $1::int AS a, $2::text AS b, $3::boolean AS c, $4::double precision AS d';
        const { rows } = await client.query(text, [7, 'ü', false, 0.1]);
        assert.deepEqual(rows, [{ a: 7, b: 'ü', c: false, d: 0.1 }]);
        for (let number = 0; number < 5; number++) {
            const prepared = await client.query({ name: 'twice', text: 'SELECT $1::int * 2 AS n', values: [number] });
            assert.equal(prepared.rows[0].n, number * 2);
        }
    }));

test('values of a table come back as they went', () =>
    withTable('node_values', 'id int PRIMARY KEY, text text, big bigint, bytes bytea, moment timestamptz, tags text[], doc json', async (client) => {
        const moment = new Date('2024-02-29T13:14:15.678Z');
        const values = [1, "it's", '9223372036854775807', Buffer.from([0, 255]), moment, ['a', null, 'b,c'], { a: [1] }];
        const inserted = await client.query('INSERT INTO node_values VALUES ($1, $2, $3, $4, $5, $6, $7)', values);
        assert.equal(inserted.rowCount, 1);
        const { rows } = await client.query('SELECT * FROM node_values');
        const [id, text, big, bytes, , tags, doc] = values;
        assert.deepEqual(rows, [{ id, text, big, bytes, moment, tags, doc }]);
    }));

test('a cursor reads in parts', () =>
    withTable('node_numbers', 'id int PRIMARY KEY', async (client) => {
        const rows = Array.from({ length: 1000 }, (_, number) => `(${number})`).join(',');
        await client.query(`INSERT INTO node_numbers VALUES ${rows}`);
        const cursor = client.query(new Cursor('SELECT id FROM node_numbers WHERE id < $1 ORDER BY id', [500]));
        const found = [];
        for (let part = await cursor.read(77); part.length > 0; part = await cursor.read(77)) found.push(...part);
        assert.deepEqual(found.map((row) => row.id), Array.from({ length: 500 }, (_, number) => number));
        await cursor.close();
    }));

test('errors have their SQLSTATE, and the connection lives on', () =>
    connected(async (client) => {
        await assert.rejects(client.query('SELECT * FROM nothing_of_this_name'), { code: '42P01', severity: 'ERROR' });
        await assert.rejects(client.query('SELEC 1'), { code: '42601' });
        await assert.rejects(client.query('SELECT $1::int', ['x']), { code: '22P02' });
        assert.equal((await client.query('SELECT 1 AS a')).rows[0].a, 1);
    }));

test('a transaction that failed has to be ended', () =>
    connected(async (client) => {
        await client.query('BEGIN');
        await assert.rejects(client.query('nonsense'), { code: '42601' });
        await assert.rejects(client.query('SELECT 1'), { code: '25P02' });
        assert.equal((await client.query('COMMIT')).command, 'ROLLBACK');
        assert.equal((await client.query('SELECT 1 AS a')).rows[0].a, 1);
    }));

test('a pool serves many at once', async () => {
    const pool = new Pool({ ...settings(), max: 20 });
    const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => pool.query('SELECT $1::int AS n', [n])));
    assert.deepEqual(answers.map((answer) => answer.rows[0].n), Array.from({ length: 200 }, (_, n) => n));
    await pool.end();
});
