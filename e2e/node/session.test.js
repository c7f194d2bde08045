// Sessions: who is let in, what a client learns, what is refused, and that a client comes back after a restart.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Client, UnsupportedOperationError } = require('hazelcast-client');
const { Member, clientConfig, eventually, realHazelcast, suite } = require('./member');

const shared = suite();
const impatient = { connectionStrategy: { connectionRetry: { clusterConnectTimeoutMillis: 200 } } };

test('a client sees one member and all partitions', async () => {
    assert.equal(shared.client.getPartitionService().getPartitionCount(), 271);
});

test('a wrong cluster name is refused', async () => {
    const config = clientConfig(shared.member.address, { ...impatient, clusterName: 'somewhere else' });
    await assert.rejects(Client.newHazelcastClient(config));
});

test('passwords are checked', { skip: realHazelcast && 'passwords need a licence in Hazelcast' }, async () => {
    const guarded = await Member.start({ config: 'member-with-password.yaml' });
    try {
        const credentials = (password) => ({ security: { usernamePassword: { username: 'ada', password } } });
        const client = await Client.newHazelcastClient(clientConfig(guarded.address, credentials('correct horse')));
        await client.shutdown();
        const wrong = clientConfig(guarded.address, { ...impatient, ...credentials('wrong') });
        await assert.rejects(Client.newHazelcastClient(wrong));
        await assert.rejects(Client.newHazelcastClient(clientConfig(guarded.address, impatient)));
    } finally {
        await guarded.stop();
    }
});

test('what is not served is refused by name and the connection lives on',
    { skip: realHazelcast && 'Hazelcast serves these' }, async (t) => {
        const numbers = await shared.client.getMap(t.name);
        await assert.rejects(numbers.executeOnKey('k', 'some processor'), (error) => {
            assert(error instanceof UnsupportedOperationError);
            assert.match(error.message, /Map\.executeOnKey/);
            return true;
        });
        await numbers.set('k', 1);
        assert.equal(await numbers.get('k'), 1);
    });

test('distributed objects are listed, announced and destroyed', async (t) => {
    const heard = [];
    const id = await shared.client.addDistributedObjectListener((event) => {
        if (event.objectName === t.name) heard.push(event.eventType);
    });
    const other = await shared.connect();
    const numbers = await other.getMap(t.name);
    await numbers.set('k', 1);
    const names = (await shared.client.getDistributedObjects()).map((object) => object.getName());
    assert(names.includes(t.name));
    await numbers.destroy();
    await eventually(() => heard.length === 2);
    assert.deepEqual(heard, ['created', 'destroyed']);
    assert.equal(await shared.client.removeDistributedObjectListener(id), true);
});

class Employee {
    constructor(name, age) {
        this.name = name;
        this.age = age;
    }
}

const employees = {
    getClass: () => Employee,
    getTypeName: () => 'employee',
    read: (reader) => new Employee(reader.readString('name'), reader.readInt32('age')),
    write: (writer, employee) => {
        writer.writeString('name', employee.name);
        writer.writeInt32('age', employee.age);
    },
};

test('Compact values reach a client that has not seen their schema', async (t) => {
    const more = { serialization: { compact: { serializers: [employees] } } };
    const writer = await (await shared.connect(more)).getMap(t.name);
    await writer.set('k', new Employee('Ada', 36));
    const reader = await (await shared.connect(more)).getMap(t.name);
    assert.deepEqual(await reader.get('k'), new Employee('Ada', 36));
});

test('a client reconnects after the member restarts on its port', async (t) => {
    const first = await Member.start();
    const config = clientConfig(first.address, {
        connectionStrategy: { connectionRetry: { initialBackoffMillis: 50, maxBackoffMillis: 200 } },
    });
    const client = await Client.newHazelcastClient(config);
    let second;
    try {
        const numbers = await client.getMap(t.name);
        const heard = [];
        await numbers.addEntryListener({ added: (event) => heard.push(event.key) });
        await numbers.set('before', 1);
        await eventually(() => heard.includes('before'));
        await first.stop();
        second = await Member.start({ port: first.port });
        let attempt = 0;
        await eventually(async () => {
            await numbers.set(`after ${attempt++}`, 1).catch(() => {});
            return heard.length > 1;
        });
    } finally {
        await client.shutdown();
        await first.stop();
        if (second) await second.stop();
    }
});
