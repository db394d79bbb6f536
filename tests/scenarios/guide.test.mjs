// The guide is true: its table is the registry, and its examples run.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { codesTable, withTable } from '../../dev/guide.mjs';
import { secretFile } from '../../dev/place.mjs';
import { run } from '../../dev/process.mjs';
import { root } from '../lib/paths.mjs';
import { inWorldOf, rival, rivalKey, shop, transfers } from '../lib/facilitator.mjs';
import { freePort, inWorld, program } from '../lib/world.mjs';

const example = join(root, 'tests/examples/express-seller.mjs');
const guide = readFileSync(join(root, 'GUIDE.md'), 'utf8');
const examples = (language) => [...guide.matchAll(/^```(\w+) run\n([^]*?)^```$/gm)]
    .filter(([, name]) => name === language).map(([, , code]) => code);

test('the table of codes is the registry of errors', () => {
    assert.equal(withTable(guide), guide, 'run: node dev/guide.mjs');
    const entries = readFileSync(join(root, 'base/err.def'), 'utf8').match(/^ERR\(/gm).length;
    assert.equal(codesTable().match(/^\| `/gm).length, entries, 'an entry of the registry was not understood');
});

test('the sellers\' page shows the example server, which runs on Payonce', inWorld(inWorldOf(), async (world) => {
    const page = (await world.request('/guide/sellers')).text;
    assert.equal(page, readFileSync(join(root, 'SELLERS.md'), 'utf8'));
    assert.ok(page.includes(`\`\`\`js\n${readFileSync(example, 'utf8')}\`\`\``), 'the page shows another server than the tests run');
    const port = await freePort();
    for (const [payTo, key] of [[shop, ''], [rival, rivalKey]]) {
        const env = { ...process.env, FACILITATOR_URL: world.gateway, PAY_TO: payTo, API_KEY: key, PORT: port };
        const server = spawn(process.execPath, [example], { env, stdio: ['ignore', 'pipe', 'inherit'] });
        try {
            const url = String((await once(server.stdout, 'data'))[0]).trim();
            const payer = await world.newPayer();
            const args = ['pay', url, '--key-file', secretFile(join(world.dir, `buyer-${payTo}`), payer.key), '--store',
                join(world.dir, 'store'), '--rpc', world.rpcUrl];
            const { code, stdout, stderr } = await run(program, args, { env: world.env, cwd: world.dir });
            assert.equal(code, 0, stdout + stderr);
            assert.equal((await transfers(world, payer, payTo)).length, 1);
        } finally {
            server.kill();
            await once(server, 'exit');
        }
    }
}));

test('the examples run, and pay once for each purchase', { timeout: 300_000 }, inWorld({}, async (world) => {
    const bin = join(world.dir, 'bin');
    mkdirSync(bin);
    symlinkSync(program, join(bin, 'payonce'));
    symlinkSync(join(root, 'tests/node_modules'), join(world.dir, 'node_modules'));
    const payer = await world.newPayer();
    const env = {
        ...world.env, PATH: `${bin}:${process.env.PATH}`, SHOP: world.gateway,
        KEY: secretFile(join(world.dir, 'agent'), payer.key), STORE: join(world.dir, 'store'),
        INTENT: join(world.dir, 'coffee'),
    };
    const runs = async (command, args) => {
        const { code, stdout, stderr } = await run(command, args, { env, cwd: world.dir });
        assert.equal(code, 0, `${args.at(-1)}\n${stdout}${stderr}`);
        return stdout;
    };
    const shell = examples('sh');
    assert.equal(shell.length, 5);
    for (const code of shell)
        await runs('bash', ['-euo', 'pipefail', '-c', code]);
    assert.equal(readdirSync(env.STORE).filter((name) => name.endsWith('.json')).length, 3);

    const [code, ...more] = examples('js');
    assert.equal(more.length, 0);
    writeFileSync(join(world.dir, 'buy.mjs'), code);
    const first = await runs(process.execPath, ['buy.mjs']);
    assert.match(first, /^201 .*coffee/s);
    assert.ok(existsSync(env.INTENT));
    assert.equal(await runs(process.execPath, ['buy.mjs']), first, 'the second run gets another answer');

    assert.deepEqual(Object.values(await world.orderCounts()), [1, 1], 'a call of the guide was carried out twice');
    assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n - 2n * 50_000n - 2_000n);
}));
