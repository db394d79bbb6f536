// By when is it known? Whatever was told of an order as undecided named a time; that time was to come when it was told,
// and the chain's answer was booked by then. Where the chain stood still or could not be read, the time moves on with
// each telling, so it is the last one that counts.
import assert from 'node:assert/strict';

const EVERY_MS = 2_000;
const LIMIT = 25;               // asked for in one turn
const plain = (id) => id.replace('ord_', '');

export class Unknowns {
    #told = new Map();          // order: { at, by, note }, the last that was said of it
    #past = [];
    #missed = [];               // told that an earlier time was not kept
    #over = false;
    moved = 0;                  // tellings that said why the time moves

    constructor(world) {
        this.world = world;
        const request = world.request.bind(world);
        world.request = async (...args) => {
            const answer = await request(...args);
            this.#hear(answer);
            return answer;
        };
        this.asking = this.#ask();
    }

    #hear({ text }) {
        if (!text?.startsWith('{') || !text.includes('"known_by"'))
            return;
        const { order_id: order, known_by: by, known_by_note: note } = JSON.parse(text);
        if (!order || !by)
            return;
        const at = Date.now();
        if (Date.parse(by) < at - 1_000)
            this.#past.push({ order, by, at });
        this.#told.set(plain(order), { at, by: Date.parse(by), note });
        this.moved += note ? 1 : 0;
        if (note?.includes('has passed'))
            this.#missed.push({ order, by, at });
    }

    async #ask() {
        while (!this.#over) {
            const open = await this.world.sql(`SELECT encode(id, 'hex') AS id FROM order_status
                WHERE ended_at IS NULL ORDER BY random() LIMIT ${LIMIT}`).catch(() => []);
            for (const { id } of open)
                await this.world.request(`/orders/ord_${id}`, { signal: AbortSignal.timeout(5_000) }).catch(() => {});
            await this.world.pause(EVERY_MS);
        }
    }

    // Nobody asks any more.
    async stop() {
        this.#over = true;
        await this.asking;
    }

    // The end. Resolves to the figures.
    async judge() {
        await this.stop();
        assert.deepEqual(this.#past, [], 'told to be known by a time that is over');
        assert.deepEqual(this.#missed, [], 'not known by the time that was told before');
        const rows = await this.world.sql(`SELECT encode(s.id, 'hex') AS id, s.money, extract(epoch FROM s.ended_at) * 1000 AS ended,
                extract(epoch FROM a.created_at) * 1000 AS created
            FROM order_status s JOIN authorizations a ON a.id = s.authorization_id`);
        const late = [];
        let spare = Infinity, dead = 0;
        for (const { id, money, ended, created } of rows) {
            const told = this.#told.get(id);
            if (!told || created > told.at)         // of the one that pays now nothing was said
                continue;
            const left = told.by - (ended ?? Date.now());
            if (left < -1_000)
                late.push({ id, money, late_s: -left / 1000, told });
            if (ended !== null) {
                spare = Math.min(spare, left);
                dead += money === 'settled' ? 0 : 1;
            }
        }
        assert.deepEqual(late, [], 'known later than was told');
        return { unknowns: this.#told.size, proven_dead: dead, moved: this.moved,
            ...(Number.isFinite(spare) && { least_spare_s: Math.round(spare / 1000) }) };
    }
}
