// Verified is not paid: what happens between the check and the block decides. Tokens that lie, payers that change their
// mind, strangers that submit what they saw, a token that pauses and a chain that stands still: only an authorization's
// own Transfer makes its order paid, and nothing but the chain's proof ends it otherwise.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import solc from 'solc';
import { encodeDeployData, encodeFunctionData } from 'viem';
import { NETWORK } from '../../dev/config.mjs';
import { USDC, tokenAbi } from '../../dev/usdc.mjs';
import { deploy, odd } from '../lib/contracts.mjs';
import { authorize, freshAccount, paymentId, paymentV2 } from '../lib/payment.mjs';
import { PATIENCE_MS, endWorld, startWorld } from '../lib/world.mjs';

const SOMEBODY = `0x${'5e'.repeat(20)}`;
const usdc = { address: USDC, name: 'USDC', version: '2', decimals: 6, symbol: 'USDC' };

// A payment for it lives for 20 s: long enough to be settled, short enough to see it die.
const brief = (name, token, amount = '1000') => ({
    name, method: 'GET', path: `/test/${name.replaceAll(' ', '-')}`, side_effect: 'read', timeout_ms: 2_000,
    max_timeout_s: 20, prices: [{ network: NETWORK, token, amount }],
});

// ---- what the database and the gateway say of a payer's order ----

const hex = (text) => text.replace('\\x', '');

async function orderOf(world, payer) {
    const [row] = await world.sql(`SELECT encode(id, 'hex') AS id, status, money, work, end_note, tx, dead_after
        FROM order_status WHERE payer = decode('${payer.address.slice(2)}', 'hex')`);
    return row && { ...row, tx: row.tx && `0x${hex(row.tx)}` };
}

async function publicOrder(world, payer) {
    const answer = await world.request(`/orders/ord_${(await orderOf(world, payer)).id}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
}

const untilMoney = (world, payer, states, deadlineMs = PATIENCE_MS) => world.waitFor(async () => {
    const order = await orderOf(world, payer);
    return states.includes(order?.money) && order;
}, `the money of ${payer.address} is ${states.join(' or ')}`, deadlineMs);

// The transactions of the relayer that carry the payer's authorizations, oldest first.
const relayed = (world, payer) => world.sql(`SELECT t.hash, t.state, t.gas,
        (SELECT count(*) FROM relay_calls x WHERE x.transaction_id = t.id) AS calls
   FROM authorizations a JOIN relay_calls c ON c.authorization_id = a.id JOIN relay_transactions t
     ON t.id = c.transaction_id WHERE a.payer = decode('${payer.address.slice(2)}', 'hex') ORDER BY t.id`);

// ---- what payers and strangers do on the chain ----

const callOf = ({ authorization: a, signature }) => encodeFunctionData({
    abi: tokenAbi, functionName: 'transferWithAuthorization',
    args: [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature],
});

async function stranger(world) {
    const { address } = freshAccount();
    await world.chain.giveGas(address);
    return address;
}

async function submit(world, payload, token = USDC) {
    const { transactionHash } = await world.chain.send(await stranger(world), token, callOf(payload));
    return transactionHash;
}

async function cancel(world, payer, nonce) {
    const signature = await payer.account.signTypedData({
        domain: { name: 'USDC', version: '2', chainId: 84532, verifyingContract: USDC },
        types: { CancelAuthorization: [{ name: 'authorizer', type: 'address' }, { name: 'nonce', type: 'bytes32' }] },
        primaryType: 'CancelAuthorization', message: { authorizer: payer.address, nonce },
    });
    await world.chain.write(await stranger(world), 'cancelAuthorization', [payer.address, nonce, signature]);
}

async function spendAll(world, payer) {
    await world.chain.giveGas(payer.address);
    await world.chain.write(payer.address, 'transfer', [SOMEBODY, await world.chain.balanceOf(payer.address)]);
}

// The payer's second authorization with the nonce of the first, to somebody else.
async function spendElsewhere(world, payer, { required, payload }) {
    const { nonce } = payload.authorization;
    await submit(world, await authorize(payer, required.accepts[0], { change: { nonce, to: SOMEBODY, value: '1' } }));
}

// ---- tokens ----

// Uses the nonce, and then: 0 says something else before its Transfer; 1 pays somebody else; 2 lets another contract
// say that it paid. It checks no signature.
const DECOY = `// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;
contract Voice {
    event Transfer(address indexed from, address indexed to, uint256 value);
    function say(address from, address to, uint256 value) external { emit Transfer(from, to, value); }
}
contract Decoy {
    uint256 immutable way;
    Voice immutable voice = new Voice();
    mapping(address => mapping(bytes32 => bool)) public authorizationState;
    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    constructor(uint256 way_) { way = way_; }
    function balanceOf(address) external pure returns (uint256) { return 1000000; }
    function transferWithAuthorization(address from, address to, uint256 value, uint256, uint256, bytes32 nonce,
        uint8, bytes32, bytes32) external {
        require(!authorizationState[from][nonce], "Decoy: used");
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        if (way == 0)
            emit Approval(from, to, value);
        if (way == 2)
            voice.say(from, to, value);
        else
            emit Transfer(from, way == 1 ? address(0xdead) : to, value);
    }
}`;

function compileDecoy() {
    const { contracts, errors = [] } = JSON.parse(solc.compile(JSON.stringify({
        language: 'Solidity', sources: { decoy: { content: DECOY } },
        settings: { outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } } },
    })));
    assert.deepEqual(errors.filter(({ severity }) => severity === 'error'), []);
    const { abi, evm } = contracts.decoy.Decoy;
    return { abi, bytecode: `0x${evm.bytecode.object}` };
}

const liars = {
    'says false': { odd: odd.saysFalse },
    'has no Transfer log': { odd: odd.noTransferLog },
    'takes a fee': { odd: odd.takesAFee },
    'says something else first': { decoy: 0n },
    'pays somebody else': { decoy: 1n },
    'lets another speak': { decoy: 2n },
};

describe('tokens that are not USDC', { concurrency: 8 }, () => {
    let world, abi;
    const tokens = {};

    async function place(chain, name, kind, symbol, decimals = 6) {
        const [admin] = await chain.rpc.call('eth_accounts');
        if (kind.decoy === undefined) {
            const token = await deploy(chain, 'OddToken', ['Odd', '1', decimals, kind.odd]);
            abi = token.abi;
            tokens[name] = token.address;
        } else {
            const { abi: its, bytecode } = compileDecoy();
            tokens[name] = await chain.create(admin, encodeDeployData({ abi: its, bytecode, args: [kind.decoy] }));
        }
        return { address: tokens[name], name: 'Odd', version: '1', decimals, symbol };
    }

    before(async () => {
        world = await startWorld({
            extra: { wait_ms: 12_000 },
            beforeConfig: async (w) => {
                const list = [usdc];
                for (const [i, [name, kind]] of Object.entries(liars).entries())
                    list.push(await place(w.chain, name, kind, `ODD${i}`));
                list.push(await place(w.chain, 'big', { odd: 0n }, 'BIG', 18));
                list.push(await place(w.chain, 'quiet', { odd: odd.usedIsQuiet }, 'QUIET'));
                w.options.network.tokens = list;
                w.options.tools = [...w.options.tools, brief('big', 'BIG', '1000000000000000000001'),
                    brief('quiet', 'QUIET'),
                    ...Object.keys(liars).map((name, i) => brief(name, `ODD${i}`))];
                w.tokens.push(tokens.big, tokens.quiet);
            },
        });
    });
    after(() => world && endWorld(world));

    async function rich(token, atoms) {
        const payer = freshAccount();
        await world.chain.send(await stranger(world), token,
            encodeFunctionData({ abi, functionName: 'mint', args: [payer.address, atoms] }));
        return payer;
    }

    test('18 decimals are exact', async () => {
        const price = 1_000_000_000_000_000_000_001n;
        const payer = await rich(tokens.big, price + 1n);
        const answer = await world.pay(payer, '/test/big');
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.signed.required.accepts[0].amount, String(price));
        assert.equal(await world.chain.balanceOf(payer.address, tokens.big), 1n);
        assert.equal(await world.chain.balanceOf(world.payTo, tokens.big), price);
        assert.equal((await publicOrder(world, payer)).amount, String(price));
    });

    test('18 decimals, one short', async () => {
        const payer = await rich(tokens.big, 1_000_000_000_000_000_000_000n);
        assert.equal((await world.pay(payer, '/test/big')).status, 402);
        assert.equal(await orderOf(world, payer), undefined);
    });

    for (const [name, kind] of Object.entries(liars))
        test(`a token that ${name} pays for nothing`, async () => {
            const path = `/test/${name.replaceAll(' ', '-')}`;
            const payer = kind.decoy === undefined ? await rich(tokens[name], 5_000n) : freshAccount();
            const answer = await world.pay(payer, path);
            assert.ok([402, 409].includes(answer.status), `${answer.status} ${answer.text}`);
            if (await orderOf(world, payer) === undefined)
                return;                                // refused before anything was stored is right as well

            // until its deadline is behind a final block, and a look has been taken
            const { dead_after: dead } = await orderOf(world, payer);
            await world.waitFor(async () => {
                const order = await publicOrder(world, payer);
                assert.notEqual(order.status, 'paid');
                if (!['expired', 'void'].includes(order.money))
                    assert.ok(order.final === false && order.known_by, JSON.stringify(order));
                return Date.now() / 1000 > dead + 6;
            }, 'the deadline passes');

            const order = await publicOrder(world, payer);
            const again = await world.send(path, answer.signed);
            assert.ok([402, 409].includes(again.status), `${again.status} ${again.text}`);
            const moved = await world.chain.authorizationState(payer.address, answer.signed.payload.authorization.nonce,
                tokens[name]);
            assert.ok((await relayed(world, payer)).length <= 2, 'it was sent again and again');
            if (name === 'pays somebody else') {
                assert.equal(order.status, 'unpaid');
                assert.match(order.note, /^spent elsewhere in 0x/);
            } else if (moved) {
                // The nonce is used and nothing says that the money went elsewhere: it is not known, and 402 is wrong.
                assert.notEqual(order.money, 'void', `${order.note}, which no log says`);
                assert.equal(again.status, 409);
            }
        });

    test('a used nonce that does not revert: a stranger\'s transaction pays, and no gas is burnt on it', async () => {
        const payer = await rich(tokens.quiet, 5_000n);
        await world.stop('settler');
        const signed = await world.sign(payer, '/test/quiet');
        const waiting = world.send('/test/quiet', signed);
        await untilMoney(world, payer, ['due']);
        const tx = await submit(world, signed.payload, tokens.quiet);
        await world.restart('settler');
        const { tx: proof } = await untilMoney(world, payer, ['settled']);
        assert.equal(proof, tx);
        const answer = await waiting;
        assert.ok(answer.status === 200 || answer.status === 409, answer.text);
        assert.equal((await world.send('/test/quiet', signed)).status, 200);
        assert.ok((await relayed(world, payer)).length <= 3, 'it was sent again and again');
    });
});

// ---- between the check and the block ----

const BATCH = 30;

describe('what happens between the check and the block', () => {
    let world;
    before(async () => {
        world = await startWorld({ beforeConfig: (w) => {
            w.options.tools = [...w.options.tools, brief('brief', 'USDC')];
        } });
        const wallets = () => world.sql('SELECT owner FROM relayers');
        await world.waitFor(async () => (await wallets()).length > 0, 'the settler is up');
    });
    beforeEach(() => world.stop('settler'));
    after(() => world && endWorld(world));

    // Pays with the settler stopped, until the authorizations wait to be sent.
    async function waitingCalls(paths) {
        const payers = await world.newPayers(paths.length);
        const calls = await Promise.all(payers.map(async (payer, i) =>
            ({ payer, path: paths[i], signed: await world.sign(payer, paths[i]) })));
        for (const call of calls)
            call.answer = world.send(call.path, call.signed);
        const due = () => world.sql("SELECT id FROM authorizations WHERE state = 'due'");
        await world.waitFor(async () => (await due()).length >= calls.length, 'they wait to be sent');
        return calls;
    }

    const waitingCall = async (path) => (await waitingCalls([path]))[0];

    async function isPaid(call) {
        const { status, text } = await call.answer;
        assert.equal(status, 200, text);
    }

    async function provenUnpaid({ payer, path, signed, answer }, money, note) {
        const { text, status } = await answer;
        assert.ok(status === 402 || status === 409, text);
        const order = await untilMoney(world, payer, [money]);
        assert.equal(order.status, 'unpaid');
        assert.match(order.end_note, note);
        assert.equal((await world.send(path, signed)).status, 402);
        const told = await publicOrder(world, payer);
        assert.equal(told.answer_ready, false);
        assert.equal(told.known_by, undefined, 'what is proven needs no date');
    }

    test(`${BATCH} in one transaction: each is judged by its own logs`, async () => {
        const calls = await waitingCalls(Array.from({ length: BATCH }, (_, n) => `/test/brief?n=${n}`));
        const [cancelled, elsewhere, poor, submitted, ...good] = calls;
        const [, , , tx] = await Promise.all([
            cancel(world, cancelled.payer, cancelled.signed.payload.authorization.nonce),
            spendElsewhere(world, elsewhere.payer, elsewhere.signed),
            spendAll(world, poor.payer),
            submit(world, submitted.signed.payload),
        ]);
        await world.restart('settler');
        await Promise.all(good.map(isPaid));
        await Promise.all([
            provenUnpaid(cancelled, 'void', /^cancelled by the payer in 0x/),
            provenUnpaid(elsewhere, 'void', /^spent elsewhere in 0x/),
            provenUnpaid(poor, 'expired', /^unused at a final block/),
            isPaid(submitted),
        ]);
        assert.equal((await orderOf(world, submitted.payer)).tx, tx, 'a stranger sent it first: that is its payment');
        for (const { payer } of [cancelled, elsewhere, poor, submitted]) {
            const [first, ...later] = await relayed(world, payer);
            assert.equal(Number(first.calls), BATCH, 'they did not go in one transaction');
            assert.ok(later.length <= 1 && later.every(({ calls: n }) => Number(n) === 1), JSON.stringify(later));
        }
        assert.equal((await world.calls()).length, BATCH, 'work was repeated');
    });

    // Of a payment that lives for two minutes, so that its deadline does not help to find out.
    const alone = {
        'a stranger submits it': [(call) => submit(world, call.signed.payload), 'settled'],
        'its payer cancels it': [(call) => cancel(world, call.payer, call.signed.payload.authorization.nonce), 'void'],
        'its nonce is spent elsewhere': [(call) => spendElsewhere(world, call.payer, call.signed), 'void'],
    };
    for (const [name, [act, money]] of Object.entries(alone))
        test(`${name} before the settler does: known within seconds`, async () => {
            const call = await waitingCall('/test/read');
            const tx = await act(call);
            await world.restart('settler');
            const order = await untilMoney(world, call.payer, [money], 60_000);
            const answer = await call.answer;
            assert.equal(answer.status, money === 'settled' ? 200 : 402, answer.text);
            if (money === 'settled')
                assert.equal(order.tx, tx);
        });

    test('a token that is paused: the payment waits for it, or dies of its deadline', async () => {
        const [long, short] = await waitingCalls(['/test/read?paused', '/test/brief?paused']);
        await world.chain.pause();
        try {
            await world.restart('settler');
            await provenUnpaid(short, 'expired', /^unused at a final block/);
            assert.equal((await orderOf(world, long.payer)).money, 'due');
            assert.ok((await relayed(world, long.payer)).length <= 1, 'gas is spent on what cannot succeed');
            const refused = await world.pay(await world.newPayer(), '/test/read');
            assert.ok(refused.status === 402 || refused.status === 503, refused.text);
        } finally {
            await world.chain.unpause();
        }
        await untilMoney(world, long.payer, ['settled']);
        const answer = await long.answer;
        assert.ok(answer.status === 200 || answer.status === 409, answer.text);
        assert.equal((await world.send(long.path, long.signed)).status, 200);
    });

    test('a chain that stands still past the deadline: unpaid, and a fresh payment buys the kept answer', async () => {
        const id = paymentId();
        const payer = await world.newPayer();
        const path = '/test/brief?still';
        const signed = await world.sign(payer, path, { id });
        await world.restart('settler');
        await world.chain.rpc.call('evm_setIntervalMining', 0);
        let dead;
        const answer = world.send(path, signed);
        try {
            ({ dead_after: dead } = await untilMoney(world, payer, ['sent']));
            await world.waitFor(() => Date.now() / 1000 > dead + 1, 'the deadline passes');
            assert.equal((await publicOrder(world, payer)).status, 'settling', 'the machine\'s clock proves nothing');
        } finally {
            await world.chain.rpc.call('evm_setIntervalMining', 1);
        }
        const { end_note: note } = await untilMoney(world, payer, ['expired']);
        assert.match(note, /^unused at a final block/);
        assert.ok([402, 409].includes((await answer).status), (await answer).text);
        assert.equal((await world.send(path, signed)).status, 402);

        const { v2 } = await world.challenge(path);
        const payment = paymentV2(v2, await authorize(payer, v2.accepts[0]), { id });
        const paid = await world.send(path, { headers: { 'payment-signature': payment } });
        assert.equal(paid.status, 200, paid.text);
        assert.equal(paid.headers['payonce-charged'], 'true');
        assert.equal((await world.calls()).filter(({ target }) => target === path).length, 1);
        assert.equal(await world.chain.balanceOf(payer.address), 1_000_000n - 1_000n);
    });
});
