// The first session in the README works as it stands there, but for the address.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { execFile } = require('node:child_process');
const { promisify } = require('node:util');
const { test } = require('node:test');
const { suite } = require('./member');

const shared = suite();

test('the first session of the README works', async () => {
    const readme = fs.readFileSync(path.join(__dirname, '..', '..', 'README.md'), 'utf8');
    const [, snippet] = /```js\n([\s\S]*?)```/.exec(readme);
    assert(snippet.includes('127.0.0.1:5701'));
    const program = snippet.replace('127.0.0.1:5701', shared.member.address);
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: __dirname });
    assert(stdout.split('\n').includes('Paris'), stdout);
});
