// Every map operation of the client that needs neither locks nor listeners.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Predicates } = require('hazelcast-client');
const { eventually, members, suite } = require('./member');

const shared = suite();
const numbersOf = (t) => shared.client.getMap(t.name);
const squares = (count) => Array.from({ length: count }, (_, i) => [i, i * i]);

test('put, set and get', async (t) => {
    const numbers = await numbersOf(t);
    assert.equal(await numbers.put('a', 1), null);
    assert.equal(await numbers.put('a', 2), 1);
    await numbers.set('a', 3);
    assert.equal(await numbers.get('a'), 3);
    assert.equal(await numbers.get('b'), null);
});

test('putIfAbsent keeps the first value', async (t) => {
    const numbers = await numbersOf(t);
    assert.equal(await numbers.putIfAbsent('a', 1), null);
    assert.equal(await numbers.putIfAbsent('a', 2), 1);
    assert.equal(await numbers.get('a'), 1);
});

test('replace and replaceIfSame need an entry', async (t) => {
    const numbers = await numbersOf(t);
    assert.equal(await numbers.replace('a', 1), null);
    await numbers.set('a', 1);
    assert.equal(await numbers.replace('a', 2), 1);
    assert.equal(await numbers.replaceIfSame('a', 7, 3), false);
    assert.equal(await numbers.replaceIfSame('a', 2, 3), true);
    assert.equal(await numbers.get('a'), 3);
});

test('remove, remove if same and delete', async (t) => {
    const numbers = await numbersOf(t);
    await numbers.set('a', 1);
    assert.equal(await numbers.remove('a', 2), false);
    assert.equal(await numbers.remove('a', 1), true);
    await numbers.set('a', 1);
    assert.equal(await numbers.remove('a'), 1);
    assert.equal(await numbers.remove('a'), null);
    await numbers.set('a', 1);
    await numbers.delete('a');
    assert.equal(await numbers.containsKey('a'), false);
});

test('tryPut and tryRemove work on a free key', async (t) => {
    const numbers = await numbersOf(t);
    assert.equal(await numbers.tryPut('a', 1, 1_000), true);
    assert.equal(await numbers.tryRemove('a', 1_000), true);
    assert.equal(await numbers.tryRemove('a', 1_000), false);
});

test('entries with time to live or max idle go', async (t) => {
    const numbers = await numbersOf(t);
    for (const write of ['put', 'set', 'putIfAbsent', 'putTransient']) {
        await numbers[write](`${write} ttl`, 1, 1_000);
        await numbers[write](`${write} idle`, 1, 0, 1_000);
        await numbers[write](`${write} both`, 1, 1_000, 1_000);
    }
    await numbers.set('setTtl', 1);
    assert.equal(await numbers.setTtl('setTtl', 1_000), true);
    assert.equal(await numbers.setTtl('nothing here', 1_000), false);
    await numbers.putTransient('stays', 1);
    await eventually(async () => (await numbers.size()) === 1);
    assert.equal(await numbers.get('stays'), 1);
});

test('putAll, setAll and getAll move many entries', async (t) => {
    const numbers = await numbersOf(t);
    await numbers.putAll(squares(1_000));
    await numbers.setAll(squares(2_000));
    const found = await numbers.getAll(squares(2_001).map(([key]) => key));
    assert.deepEqual(found.sort(([a], [b]) => a - b), squares(2_000));
    assert.deepEqual(await numbers.getAll([]), []);
});

test('keySet, values and entrySet return everything', async (t) => {
    const numbers = await numbersOf(t);
    await numbers.putAll(squares(500));
    assert.deepEqual((await numbers.keySet()).sort((a, b) => a - b), squares(500).map(([key]) => key));
    assert.equal((await numbers.values()).toArray().length, 500);
    assert.deepEqual((await numbers.entrySet()).sort(([a], [b]) => a - b), squares(500));
    assert.equal(await numbers.containsValue(499 * 499), true);
    assert.equal(await numbers.containsValue(-1), false);
});

test('size, isEmpty, clear, evict, evictAll and removeAll agree', async (t) => {
    const numbers = await numbersOf(t);
    assert.equal(await numbers.isEmpty(), true);
    await numbers.putAll(squares(100));
    assert.equal(await numbers.size(), 100);
    assert.equal(await numbers.evict(5), true);
    assert.equal(await numbers.evict(5), false);
    await numbers.evictAll();
    assert.equal(await numbers.size(), 0);
    await numbers.putAll(squares(100));
    await numbers.clear();
    assert.equal(await numbers.isEmpty(), true);
    await numbers.putAll(squares(100));
    await numbers.removeAll(Predicates.alwaysTrue());
    assert.equal(await numbers.size(), 0);
    await numbers.flush();
});

test('an entry view counts hits and versions', async (t) => {
    const numbers = await numbersOf(t);
    assert.equal(await numbers.getEntryView('a'), null);
    await numbers.put('a', 1);
    await numbers.get('a');
    await numbers.put('a', 2);
    const view = await numbers.getEntryView('a');
    assert.equal(view.value, 2);
    assert.equal(view.version.toNumber(), 1);
    assert(view.hits.toNumber() >= 1);
});

test('values of any size and kind come back unchanged', async (t) => {
    const values = await numbersOf(t);
    // In a cluster, a change has at most 8 MiB.
    for (const size of [0, 1, 100_000, members === 1 ? 20_000_000 : 7_000_000]) {
        const value = Buffer.alloc(size, 7);
        await values.set('k', value);
        assert.deepEqual(await values.get('k'), value);
    }
    const kinds = [true, -1.5, 'ümlaut, 漢字, 🌰', ['a', ''], [1, 2], { nested: { list: [1, null, 'x'] } }, 12n];
    for (const value of kinds) {
        await values.set('k', value);
        assert.deepEqual(await values.get('k'), value);
    }
});

test('many calls in flight are answered each with its own', async (t) => {
    const numbers = await numbersOf(t);
    await Promise.all(squares(2_000).map(([key, value]) => numbers.set(key, value)));
    const answers = await Promise.all(squares(2_000).map(([key]) => numbers.get(key)));
    assert.deepEqual(answers, squares(2_000).map(([, value]) => value));
});

test('a client without smart routing reaches every key', async (t) => {
    const client = await shared.connect({ network: { clusterMembers: [shared.member.address], smartRouting: false } });
    const numbers = await client.getMap(t.name);
    await numbers.putAll(squares(300));
    for (const [key, value] of squares(300)) assert.equal(await numbers.get(key), value);
});

test('destroy forgets the entries', async (t) => {
    const numbers = await numbersOf(t);
    await numbers.set('a', 1);
    await numbers.destroy();
    assert.equal(await (await numbersOf(t)).size(), 0);
});
