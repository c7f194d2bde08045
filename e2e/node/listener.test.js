// Entry listeners, and the near cache that lives by invalidations.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { eventually, suite } = require('./member');

const shared = suite();

/** A listener that writes down what it hears. */
function recorder() {
    const heard = [];
    const entry = (kind) => (event) => heard.push([kind, event.key, event.oldValue, event.value]);
    const map = (kind) => (event) => heard.push([kind, event.numberOfAffectedEntries]);
    const listener = {
        added: entry('added'), updated: entry('updated'), removed: entry('removed'), evicted: entry('evicted'),
        expired: entry('expired'), mapCleared: map('cleared'), mapEvicted: map('all evicted'),
    };
    const expect = async (...events) => {
        await eventually(() => heard.length >= events.length);
        assert.deepEqual(heard, events);
    };
    return { listener, heard, expect };
}

test('changes arrive in order with values', async (t) => {
    const numbers = await shared.client.getMap(t.name);
    const { listener, expect } = recorder();
    await numbers.addEntryListener(listener, undefined, true);
    await numbers.put('a', 1);
    await numbers.put('a', 2);
    await numbers.remove('a');
    await numbers.put('a', 3);
    await numbers.evict('a');
    await expect(['added', 'a', null, 1], ['updated', 'a', 1, 2], ['removed', 'a', 2, null], ['added', 'a', null, 3],
        ['evicted', 'a', 3, null]);
});

test('values stay away when not asked for', async (t) => {
    const numbers = await shared.client.getMap(t.name);
    const { listener, expect } = recorder();
    await numbers.addEntryListener(listener, undefined, false);
    await numbers.put('a', 1);
    await numbers.put('a', 2);
    await expect(['added', 'a', null, null], ['updated', 'a', null, null]);
});

test('a listener of one key hears of that key alone', async (t) => {
    const numbers = await shared.client.getMap(t.name);
    const { listener, expect } = recorder();
    await numbers.addEntryListener(listener, 'mine', true);
    await numbers.put('other', 1);
    await numbers.put('mine', 2);
    await expect(['added', 'mine', null, 2]);
});

test('clear and evictAll are one event with a count', async (t) => {
    const numbers = await shared.client.getMap(t.name);
    const { listener, expect } = recorder();
    await numbers.addEntryListener({ mapCleared: listener.mapCleared, mapEvicted: listener.mapEvicted });
    await numbers.putAll([[1, 1], [2, 2], [3, 3]]);
    await numbers.clear();
    await numbers.putAll([[1, 1], [2, 2]]);
    await numbers.evictAll();
    await expect(['cleared', 3], ['all evicted', 2]);
});

test('expiry is told without anyone reading', async (t) => {
    const numbers = await shared.client.getMap(t.name);
    const { listener, expect } = recorder();
    await numbers.addEntryListener({ expired: listener.expired }, undefined, true);
    await numbers.set('a', 1, 1_000);
    await expect(['expired', 'a', 1, null]);
});

test('a removed listener hears nothing', async (t) => {
    const numbers = await shared.client.getMap(t.name);
    const silent = recorder();
    const loud = recorder();
    const id = await numbers.addEntryListener(silent.listener, undefined, true);
    await numbers.addEntryListener(loud.listener, undefined, true);
    assert.equal(await numbers.removeEntryListener(id), true);
    await numbers.set('a', 1);
    await loud.expect(['added', 'a', null, 1]);
    assert.deepEqual(silent.heard, []);
});

test('a near cache follows the changes of others', async (t) => {
    const client = await shared.connect({ nearCaches: { [t.name]: { invalidateOnChange: true } } });
    const near = await client.getMap(t.name);
    const writer = await shared.client.getMap(t.name);
    await writer.putAll(Array.from({ length: 100 }, (_, i) => [i, i]));
    for (let round = 0; round < 2; round++) {
        for (let i = 0; i < 100; i++) assert.equal(await near.get(i), i);
    }
    await writer.set(7, -7);
    await eventually(async () => (await near.get(7)) === -7);
    await writer.delete(8);
    await eventually(async () => (await near.get(8)) === null);
    await writer.clear();
    await eventually(async () => (await near.get(9)) === null);
});
