// Buyers that retry until they know, each in a way of its own:
//
//     same     the same payment again
//     same-id  the same payment id, with a fresh signature each time
//     fresh    everything anew: a new 402 and a new signature, no id
//
// They believe nothing but a complete answer, and note what they were told of each nonce.
import assert from 'node:assert/strict';
import { authorize, decode, paymentV1, paymentV2 } from '../../lib/payment.mjs';
import { grouped } from './grouped.mjs';

// How often a buyer must hear that a person decides before it stops asking.
const STUBBORN = 3;

export const MODES = ['same', 'same-id', 'fresh'];

export class Buyer {
    retries = 0;
    reviews = 0;
    signatures = 0;
    told = [];          // { nonce, status, code }: every answer to a payment
    end = null;         // 'paid', 'in_review', or what nobody should have been told

    // call: { path, method, body }; base() is where to ask now.
    constructor(world, payer, call, { mode, version = 2, chance, base, pauseMs = 300 }) {
        Object.assign(this, { world, payer, call, mode, version, chance, base, pauseMs });
        const hex = () => chance.below(2 ** 32).toString(16).padStart(8, '0');
        this.id = mode === 'same-id' ? `pay_${hex()}${hex()}${hex()}${hex()}` : undefined;
    }

    #send(headers = {}) {
        const { path, method, body } = this.call;
        const signal = AbortSignal.timeout(45_000);
        return this.world.request(path, { base: this.base(), method, body, headers, signal })
            .catch(() => null);
    }

    // Null: no challenge could be had now.
    async #sign() {
        const answer = await this.#send();
        if (answer?.status !== 402)
            return null;
        const required = this.version === 2 ? decode(answer.headers['payment-required']) : answer.json;
        const payload = await authorize(this.payer, required.accepts[0]);
        this.signatures += 1;
        const headers = this.version === 2
            ? { 'payment-signature': paymentV2(required, payload, { id: this.id }) }
            : { 'x-payment': paymentV1(required, payload), ...(this.id && { 'idempotency-key': this.id }) };
        return { headers, nonce: payload.authorization.nonce };
    }

    // true: that was the last word.
    async #heard(answer, signed) {
        if (!answer)
            return false;
        const code = /problem\+json/.test(answer.headers['content-type'] ?? '') || answer.status >= 400
            ? codeOf(answer) : null;
        this.told.push({ nonce: signed.nonce, status: answer.status, code });
        if (answer.status >= 200 && answer.status < 300) {
            this.end = 'paid';
            this.answer = answer;
            return true;
        }
        if (code === 'in_review' && (this.reviews += 1) === STUBBORN)
            this.end = 'in_review';
        // v1 without an id has nothing secret to show: it is told that it paid, and the sign-in brings the answer
        if (code === 'answer_not_proven' && this.version === 1 && !this.id)
            this.end = 'paid';
        if (code === 'similar_order')
            return this.#followed(answer);
        if (this.end === null && ![402, 409, 500, 502, 503, 504].includes(answer.status))
            this.end = `${answer.status} ${code}`;     // nothing that a buyer should hear: judge() says so
        return this.end !== null;
    }

    // Asked whether the earlier order is meant: it is.
    async #followed(answer) {
        const path = `/orders/${answer.json.order_id}`;
        const order = await this.world.request(path).then((told) => told.json).catch(() => null);
        if (order?.status === 'paid' || order?.status === 'in_review')
            this.end = order.status;
        return this.end !== null;
    }

    async buy(deadlineMs = 240_000) {
        let signed = null;
        for (const limit = Date.now() + deadlineMs; this.end === null; ) {
            assert.ok(Date.now() < limit,
                `${this.mode} ${this.call.path} has no end: ${JSON.stringify(this.told.slice(-3))}`);
            signed = (this.mode === 'same' && signed) || await this.#sign();
            const answer = signed && await this.#send(signed.headers);
            if (signed && await this.#heard(answer, signed))
                break;
            if (answer?.status === 402)
                signed = null;      // paying anew is right, it was told
            this.retries += 1;
            await this.world.pause(this.chance.between(this.pauseMs / 3, this.pauseMs));
        }
        return this;
    }
}

function codeOf(answer) {
    try {
        return answer.json.code ?? null;
    } catch {
        return null;
    }
}

// A write runs once an order, whose id is its key at the upstream; and once a payment id. (Who has no id and is told that
// his payment is dead makes another order.)
export function writesRanOnce(calls, buyers) {
    const writes = calls.filter(({ method }) => method === 'POST');
    const twice = (keyOf) => [...grouped(writes, keyOf)].filter(([, list]) => list.length > 1).map(([key]) => key);
    const named = new Set(buyers.filter(({ id }) => id).map(({ call }) => call.path));
    assert.deepEqual(twice(({ key }) => key), [], 'an order ran twice');
    assert.deepEqual(twice(({ target }) => target).filter((target) => named.has(target)), [], 'a payment id ran twice');
}

const hexOf = (text) => text.slice(2).toLowerCase();

// What was told, against what the chain and the books have. Returns the figures; asserts that all three are zero.
export async function judge(world, buyers) {
    const proofs = new Map((await world.sql(`SELECT encode(a.nonce, 'hex') AS nonce, o.id, o.target, o.created_at,
            o.delivered_at, o.payer, EXISTS (SELECT 1 FROM debts d WHERE d.authorization_id = a.id) AS owed
        FROM proofs p JOIN authorizations a ON a.id = p.authorization_id JOIN orders o ON o.id = a.order_id`))
        .map((row) => [row.nonce, row]));
    const sales = grouped([...proofs.values()].filter(({ owed }) => !owed), (row) => row.target);
    const twice = [], lost = [], falsely = [];
    for (const buyer of buyers) {
        const paid = (sales.get(buyer.call.path) ?? []).sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
        const allowed = (later, i) => i === 0 || (buyer.mode === 'fresh' && paid[i - 1].delivered_at !== null
                                                  && paid[i - 1].delivered_at <= later.created_at);
        if (!paid.every(allowed))
            twice.push([buyer.mode, buyer.call.path, paid]);
        if (buyer.end === 'paid' && paid.length === 0)
            lost.push([buyer.mode, buyer.call.path, buyer.told.slice(-2)]);
        const last = new Map(buyer.told.map((told) => [told.nonce, told]));
        for (const { nonce, status, code } of last.values())
            if (status === 402 && proofs.has(hexOf(nonce)))
                falsely.push([buyer.mode, buyer.call.path, code, nonce]);
    }
    const odd = buyers.filter(({ end }) => end !== 'paid' && end !== 'in_review')
        .map(({ mode, version, call, end, told }) => [mode, `v${version}`, call.path, end, told.slice(-4)]);
    assert.deepEqual({ twice, lost, falsely, odd }, { twice: [], lost: [], falsely: [], odd: [] });
    const sum = (key) => buyers.reduce((n, buyer) => n + buyer[key], 0);
    return { payments: buyers.length, retries: sum('retries'), signatures: sum('signatures'),
        double_charges: twice.length, lost_payments: lost.length, false_failures: falsely.length };
}

// Runs `count` jobs, `width` at a time.
export async function inTurn(count, width, job) {
    let next = 0;
    const lane = async () => {
        while (next < count)
            await job(next++);
    };
    await Promise.all(Array.from({ length: width }, lane));
}
