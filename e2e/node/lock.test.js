// Locks on keys: reentrant, contended between clients, leased, and released when their client goes.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { IllegalMonitorStateError } = require('hazelcast-client');
const { eventually, suite } = require('./member');

const shared = suite();
const mapsOf = async (t) => [await shared.client.getMap(t.name), await (await shared.connect()).getMap(t.name)];

test('a lock is reentrant for its client', async (t) => {
    const [numbers] = await mapsOf(t);
    await numbers.lock('k');
    assert.equal(await numbers.tryLock('k'), true);
    await numbers.unlock('k');
    assert.equal(await numbers.isLocked('k'), true);
    await numbers.unlock('k');
    assert.equal(await numbers.isLocked('k'), false);
});

test('a lock keeps writers out and lets readers in', async (t) => {
    const [numbers, other] = await mapsOf(t);
    await numbers.set('k', 1);
    await numbers.lock('k');
    assert.equal(await other.get('k'), 1);
    assert.equal(await other.tryPut('k', 2, 50), false);
    assert.equal(await other.tryRemove('k', 50), false);
    assert.equal(await other.tryLock('k', 50), false);
    const waiting = other.put('k', 2);
    await numbers.set('k', 3);
    await numbers.unlock('k');
    assert.equal(await waiting, 3);
    assert.equal(await numbers.get('k'), 2);
});

test('only the owner unlocks, and forceUnlock frees for anyone', async (t) => {
    const [numbers, other] = await mapsOf(t);
    await numbers.lock('k');
    await assert.rejects(other.unlock('k'), IllegalMonitorStateError);
    await other.forceUnlock('k');
    assert.equal(await numbers.isLocked('k'), false);
});

test('a leased lock ends by itself', async (t) => {
    const [numbers, other] = await mapsOf(t);
    await numbers.lock('k', 500);
    assert.equal(await other.tryLock('k', 60_000), true);
    await other.unlock('k');
});

test("a client's locks go with the client", async (t) => {
    const [numbers] = await mapsOf(t);
    const leaving = await shared.connect();
    await (await leaving.getMap(t.name)).lock('k');
    assert.equal(await numbers.isLocked('k'), true);
    await leaving.shutdown();
    await eventually(async () => !(await numbers.isLocked('k')));
});
