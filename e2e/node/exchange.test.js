// Values of every type, written by one language's client and read by another's: as values, and as keys, whose bytes must
// be equal for the entry to be found.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const Long = require('long');
const {
    BigDecimal, Client, HazelcastJsonValue, LocalDate, LocalDateTime, LocalTime, OffsetDateTime, UUID,
} = require('hazelcast-client');
const { clientConfig, suite } = require('./member');

const { values } = JSON.parse(fs.readFileSync(path.join(__dirname, '..', 'shared', 'types.json'), 'utf8'));
const PHASE = process.env.FILBERT_E2E_PHASE;
const OWN = 'node';

/** As what this client writes a number depends on its configuration. */
const NUMBERS = { byte: 'byte', short: 'short', int: 'integer', float: 'float', double: 'double' };

const uuid = (text) => {
    const hex = text.replaceAll('-', '');
    return new UUID(Long.fromString(hex.slice(0, 16), true, 16).toSigned(), Long.fromString(hex.slice(16), true, 16).toSigned());
};
const SCALARS = {
    boolean: (value) => value,
    byte: Number, short: Number, int: Number, float: Number, double: Number,
    long: (text) => Long.fromString(text),
    char: (text) => text,
    string: (text) => text,
    uuid,
    json: (text) => new HazelcastJsonValue(text),
    big_integer: BigInt,
    decimal: (text) => BigDecimal.fromString(text),
    date: (text) => LocalDate.fromString(text),
    time: (text) => LocalTime.fromString(text),
    date_time: (text) => LocalDateTime.fromString(text),
    offset_date_time: (text) => OffsetDateTime.fromString(text),
};

function native({ type, value }) {
    if (!Array.isArray(value)) return SCALARS[type](value);
    if (type === 'byte[]') return Buffer.from(value.map((item) => Number(item) & 0xff));
    return value.map(SCALARS[type.replace('[]', '')] ?? ((item) => item));
}

const shared = suite();

/** A client that writes numbers as the type asks. */
async function clientFor(type) {
    const address = process.env.FILBERT_E2E_EXCHANGE ?? shared.member.address;
    const number = NUMBERS[type.replace('[]', '')];
    // JSON comes as it was sent, not as the object that it describes.
    const serialization = { jsonStringDeserializationPolicy: 'no_deserialization' };
    if (number) serialization.defaultNumberType = number;
    return Client.newHazelcastClient(clientConfig(address, { serialization }));
}

/** Runs for each type with a client for it and that type's rows. */
async function forEachType(action) {
    for (const type of new Set(values.map((row) => row.type))) {
        const client = await clientFor(type);
        try {
            await action(client, values.filter((row) => row.type === type));
        } finally {
            await client.shutdown();
        }
    }
}

test('values of every type are written', { skip: PHASE === 'read' && 'written in the phase before' }, async () => {
    await forEachType(async (client, rows) => {
        const byName = await client.getMap(`exchange-values-${OWN}`);
        const byValue = await client.getMap(`exchange-keys-${OWN}`);
        for (const row of rows.filter(({ writers }) => writers.includes(OWN))) {
            await byName.put(row.name, native(row));
            await byValue.put(native(row), row.name);
        }
    });
});

test('values of every type are read', { skip: PHASE === 'write' && 'read in the phase after' }, async () => {
    const wrong = [];
    await forEachType(async (client, rows) => {
        for (const writer of (process.env.FILBERT_E2E_WRITERS ?? OWN).split(',')) {
            const byName = await client.getMap(`exchange-values-${writer}`);
            const byValue = await client.getMap(`exchange-keys-${writer}`);
            for (const row of rows.filter(({ writers }) => writers.includes(writer))) {
                const found = await byName.get(row.name);
                if (!same(row.type === 'byte' ? signed(found) : found, native(row))) wrong.push(`${writer}, ${row.name}: ${found}`);
                if (row.writers.includes(OWN) && (await byValue.get(native(row))) !== row.name) {
                    wrong.push(`${writer}, ${row.name}: not found by key`);
                }
            }
        }
    });
    assert.deepEqual(wrong, []);
});

/** This client reads a byte as a number from 0 to 255. */
const signed = (byte) => (byte << 24) >> 24;

function same(found, expected) {
    try {
        // Lists of other languages arrive as arrays of their items.
        assert.deepEqual(Array.isArray(expected) ? Array.from(found) : found, expected);
        return true;
    } catch {
        return false;
    }
}
