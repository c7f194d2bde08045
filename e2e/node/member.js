// Starts and ends the member under test: the real program in a process of its own, on an ephemeral loopback port.
'use strict';

const assert = require('node:assert/strict');
const net = require('node:net');
const path = require('node:path');
const readline = require('node:readline');
const { spawn } = require('node:child_process');
const { after, before } = require('node:test');
const { Client } = require('hazelcast-client');

const READY = /^ready: .*127\.0\.0\.1:(\d+)/;
const SERVES_POSTGRES = /^serves: PostgreSQL on 127\.0\.0\.1:(\d+)/;
/** Turns a wait that would never end into a failure. */
const LIMIT_MS = 60_000;

const realHazelcast = process.env.FILBERT_E2E_TARGET === 'hazelcast';
/** Members of the cluster that each file's tests use. */
const members = Number(process.env.FILBERT_E2E_MEMBERS ?? 1);

class Member {
    /** Runs the program and resolves when it serves. */
    static start({ port = 0, config = 'member.yaml', more = [] } = {}) {
        const command = JSON.parse(process.env.FILBERT_E2E_MEMBER || '[]');
        assert(command.length > 0, 'FILBERT_E2E_MEMBER is not set; run `cargo xtask e2e node`');
        const file = path.join(__dirname, '..', 'shared', config);
        const options = ['--listen', `127.0.0.1:${port}`, '--config', file, ...more];
        const child = spawn(command[0], [...command.slice(1), ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
        return new Promise((resolve, reject) => {
            let postgresPort;
            child.once('exit', (code) => reject(new Error(`the member ended with ${code} before it was ready`)));
            readline.createInterface({ input: child.stdout }).on('line', (line) => {
                const serves = SERVES_POSTGRES.exec(line);
                if (serves) postgresPort = Number(serves[1]);
                const found = READY.exec(line);
                if (found) resolve(new Member(child, Number(found[1]), postgresPort));
            });
        });
    }

    constructor(child, port, postgresPort) {
        this.child = child;
        this.port = port;
        this.postgresPort = postgresPort;
        this.address = `127.0.0.1:${port}`;
    }

    /** Ends the member as an operator does, or at once. */
    stop(signal = 'SIGTERM') {
        if (this.child.exitCode !== null || this.child.signalCode !== null) return Promise.resolve();
        const ended = new Promise((resolve) => this.child.once('exit', resolve));
        this.child.kill(signal);
        return ended;
    }
}

/** Whether nobody listens on a port. */
function isFree(port) {
    return new Promise((resolve) => {
        const trial = net.createServer();
        trial.once('error', () => resolve(false));
        trial.listen(port, '127.0.0.1', () => trial.close(() => resolve(true)));
    });
}

/**
 * Addresses that are free now. Their ports are below the ones that the operating system gives to connections: such a port
 * could be taken by any connection before its member listens.
 */
async function freeAddresses(count) {
    const addresses = new Set();
    while (addresses.size < count) {
        const port = 15_000 + Math.floor(Math.random() * 17_000);
        if (await isFree(port)) addresses.add(`127.0.0.1:${port}`);
    }
    return [...addresses];
}

/** Starts a member, or as many as FILBERT_E2E_MEMBERS says as one cluster. */
async function startMembers() {
    if (members === 1) return [await Member.start()];
    const addresses = await freeAddresses(members);
    const start = (address) => Member.start({ more: ['--join', addresses.join(','), '--member-listen', address] });
    return Promise.all(addresses.map(start));
}

const silent = { log() {}, error() {}, warn() {}, info() {}, debug() {}, trace() {} };

function clientConfig(address, more = {}) {
    return {
        network: { clusterMembers: [address] },
        connectionStrategy: { connectionRetry: { clusterConnectTimeoutMillis: 30_000 } },
        customLogger: silent,
        ...more,
    };
}

/**
 * What each file of tests shares: a member, which is the first of a cluster with FILBERT_E2E_MEMBERS=3, and clients, all of which end with
 * the file; `prepare` runs once before its tests.
 */
function suite(prepare = async () => {}) {
    const shared = { member: null, members: [], client: null, clients: [] };
    shared.connect = async (more) => {
        const client = await Client.newHazelcastClient(clientConfig(shared.member.address, more));
        shared.clients.push(client);
        return client;
    };
    before(async () => {
        shared.members = await startMembers();
        [shared.member] = shared.members;
        shared.client = await shared.connect();
        await prepare(shared);
    });
    after(async () => {
        await Promise.all(shared.clients.map((client) => client.shutdown()));
        // At once: the last two of three cannot leave in order before the first is taken for dead.
        await Promise.all(shared.members.map((member) => member.stop(members === 1 ? 'SIGTERM' : 'SIGKILL')));
    });
    return shared;
}

async function eventually(check) {
    const deadline = Date.now() + LIMIT_MS;
    for (;;) {
        if (await check()) return;
        if (Date.now() > deadline) assert.fail(`did not come true: ${check}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
}

module.exports = { Member, clientConfig, eventually, members, realHazelcast, suite };
