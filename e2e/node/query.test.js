// Predicates, pages, aggregators, indexes and listeners with predicates, over every format whose fields a member can read.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Aggregators, Predicates: P } = require('hazelcast-client');
const { eventually, suite } = require('./member');
const { FORMATS, PEOPLE, fill, settings } = require('./people');

const people = {};
let client;

suite(async (shared) => {
    client = await shared.connect(settings());
    for (const format of Object.keys(FORMATS)) {
        people[format] = await client.getMap(`query-people-${format}`);
        await fill(people[format], format);
    }
});

const SELECTED = {
    'equal text': [P.equal('name', 'Ada'), [1]],
    'equal int': [P.equal('age', 41), [3]],
    'equal boolean': [P.equal('active', false), [3, 4]],
    'equal null': [P.equal('nickname', null), [1, 4]],
    'equal nested': [P.equal('address.city', 'London'), [1, 3]],
    'equal key': [P.equal('__key', 4), [4]],
    'equal any item': [P.equal('tags[any]', 'blue'), [1, 2]],
    'equal item': [P.equal('tags[0]', 'blue'), [2]],
    'not equal': [P.notEqual('age', 36), [2, 3, 4, 5]],
    greater: [P.greaterThan('age', 41), [2, 4]],
    'greater or equal': [P.greaterEqual('age', 41), [2, 3, 4]],
    less: [P.lessThan('age', 41), [1, 5]],
    'less or equal': [P.lessEqual('age', 41), [1, 3, 5]],
    between: [P.between('age', 36, 47), [1, 3, 4]],
    in: [P.inPredicate('name', 'Ada', 'Alan', 'Nobody'), [1, 3]],
    like: [P.like('name', 'A%'), [1, 3]],
    ilike: [P.ilike('name', 'ada%'), [1, 5]],
    regex: [P.regex('name', 'A.*a.*'), [1, 3]],
    and: [P.and(P.equal('active', true), P.greaterThan('age', 30)), [1, 2]],
    or: [P.or(P.equal('name', 'Ada'), P.equal('age', 41)), [1, 3]],
    not: [P.not(P.equal('active', true)), [3, 4]],
    true: [P.alwaysTrue(), [1, 2, 3, 4, 5]],
    false: [P.alwaysFalse(), []],
    words: [P.sql("age > 40 AND name LIKE 'A%'"), [3]],
};

for (const format of Object.keys(FORMATS)) {
    for (const [what, [predicate, keys]] of Object.entries(SELECTED)) {
        test(`${format}: ${what}`, async () => {
            const names = (values) => [...values].map((value) => value.name).sort();
            const expected = names(keys.map((key) => PEOPLE.get(key)));
            assert.deepEqual((await people[format].keySetWithPredicate(predicate)).sort(), keys);
            assert.deepEqual(names(await people[format].valuesWithPredicate(predicate)), expected);
            const entries = await people[format].entrySetWithPredicate(predicate);
            assert.deepEqual(names(entries.map(([, value]) => value)), expected);
        });
    }

    test(`${format}: aggregators`, async () => {
        const map = people[format];
        const london = P.equal('address.city', 'London');
        assert.equal((await map.aggregate(Aggregators.count())).toNumber(), 5);
        assert.equal((await map.aggregateWithPredicate(Aggregators.count('name'), london)).toNumber(), 2);
        assert.equal((await map.aggregate(Aggregators.fixedPointSum('age'))).toNumber(), 229);
        assert.equal((await map.aggregate(Aggregators.longSum('balance'))).toNumber(), 1099511627883);
        assert.equal(await map.aggregateWithPredicate(Aggregators.longAvg('balance'), london), 549755813888);
        assert.ok(Math.abs(await map.aggregate(Aggregators.numberAvg('age')) - 45.8) < 1e-9);
        assert.ok(Math.abs(await map.aggregate(Aggregators.doubleSum('height')) - 8.25) < 1e-9);
        assert.ok(Math.abs(await map.aggregate(Aggregators.doubleAvg('height')) - 1.65) < 1e-9);
        assert.ok(Math.abs(await map.aggregate(Aggregators.floatingPointSum('height')) - 8.25) < 1e-9);
        assert.equal(Number(await map.aggregate(Aggregators.max('age'))), 85);
        assert.equal(Number(await map.aggregate(Aggregators.min('age'))), 20);
        assert.equal(await map.aggregate(Aggregators.max('name')), 'Édith');
        assert.equal(await map.aggregateWithPredicate(Aggregators.max('age'), P.alwaysFalse()), null);
        // This client forgets the attribute's name.
        const cities = [...await map.aggregateWithPredicate(Aggregators.distinct('address.city'), london)];
        assert.deepEqual(cities.map((it) => it.name ?? it).sort(), ['Ada', 'Alan']);
        if (format !== 'json') {
            assert.equal((await map.aggregate(Aggregators.integerSum('age'))).toNumber(), 229);
            assert.ok(Math.abs(await map.aggregate(Aggregators.integerAvg('age')) - 45.8) < 1e-9);
        }
    });

    test(`${format}: an index changes no answer`, async (t) => {
        const map = await client.getMap(t.name);
        await map.put(1, FORMATS[format](PEOPLE.get(2)));
        await map.addIndex({ type: 'HASH', attributes: ['name'] });
        await map.addIndex({ type: 'SORTED', attributes: ['age'] });
        await map.addIndex({ type: 'SORTED', attributes: ['active', 'age'] });
        const bitmapIndexOptions = { uniqueKey: '__key', uniqueKeyTransformation: 'OBJECT' };
        await map.addIndex({ type: 'BITMAP', attributes: ['address.city'], bitmapIndexOptions });
        await fill(map, format);
        for (const [what, [predicate, keys]] of Object.entries(SELECTED)) {
            assert.deepEqual((await map.keySetWithPredicate(predicate)).sort(), keys, what);
        }
    });

    test(`${format}: a listener hears of what the predicate selects`, async (t) => {
        const map = await client.getMap(t.name);
        const heard = [];
        const listener = {
            added: (event) => heard.push(['added', event.key, event.value.name]),
            updated: (event) => heard.push(['updated', event.key, event.value.name]),
            removed: (event) => heard.push(['removed', event.key, event.oldValue.name]),
        };
        await map.addEntryListenerWithPredicate(listener, P.greaterThan('age', 40), undefined, true);
        for (const [key, it] of PEOPLE) await map.put(key, FORMATS[format](it));
        await map.put(3, FORMATS[format](PEOPLE.get(1)));
        await map.put(4, FORMATS[format](PEOPLE.get(2)));
        await map.put(1, FORMATS[format](PEOPLE.get(4)));
        await map.remove(2);
        const expected = [
            ['added', 2, 'Grace'], ['added', 3, 'Alan'], ['added', 4, 'Édith'], ['removed', 3, 'Alan'],
            ['updated', 4, 'Grace'], ['added', 1, 'Édith'], ['removed', 2, 'Grace'],
        ];
        await eventually(() => heard.length >= expected.length);
        const order = (events) => [...events].sort((a, b) => a[1] - b[1] || 0);
        assert.deepEqual(order(heard), order(expected));
    });
}

test('pages come in order', async (t) => {
    const map = await client.getMap(t.name);
    await map.putAll(Array.from({ length: 100 }, (_, i) => [i, i]));
    const page = P.paging(P.greaterEqual('this', 40), 25);
    const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
    assert.deepEqual((await map.valuesWithPredicate(page)).toArray(), range(40, 65));
    page.nextPage();
    assert.deepEqual((await map.valuesWithPredicate(page)).toArray(), range(65, 90));
    page.nextPage();
    assert.deepEqual(await map.keySetWithPredicate(page), range(90, 100));
    page.previousPage();
    assert.deepEqual((await map.entrySetWithPredicate(page)).map(([, value]) => value), range(65, 90));
});

test('removeAll removes what is selected', async (t) => {
    const map = await client.getMap(t.name);
    await map.putAll(Array.from({ length: 100 }, (_, i) => [i, i]));
    await map.removeAll(P.greaterEqual('this', 10));
    assert.equal(await map.size(), 10);
});
