// Chance that can be repeated: every drill prints its seed, and PAYONCE_SEED brings the same draws back. Each stream
// is named, so that what one part draws does not depend on when another one does.
import { createHash, randomBytes } from 'node:crypto';

export const long = process.env.PAYONCE_DRILLS === 'long';
export const seed = process.env.PAYONCE_SEED ?? randomBytes(4).toString('hex');

// xoshiro128**, keyed by a hash of the seed and the stream's name.
export class Chance {
    #s;

    constructor(name) {
        this.name = name;
        const digest = createHash('sha256').update(`${seed} ${name}`).digest();
        this.#s = Uint32Array.from([0, 4, 8, 12], (at) => digest.readUInt32LE(at));
    }

    #next() {
        const s = this.#s;
        const turn = (x, k) => ((x << k) | (x >>> (32 - k))) >>> 0;
        const result = Math.imul(turn(Math.imul(s[1], 5) >>> 0, 7), 9) >>> 0;
        const t = (s[1] << 9) >>> 0;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = turn(s[3], 11);
        return result;
    }

    // 0 <= it < n
    below(n) {
        return Math.floor(this.#next() / 2 ** 32 * n);
    }

    between(low, high) {
        return low + this.below(high - low + 1);
    }

    happens(share) {
        return this.#next() / 2 ** 32 < share;
    }

    pick(list) {
        return list[this.below(list.length)];
    }

    // One of the keys of { key: share }, or null for what the shares leave over.
    draw(shares) {
        let x = this.#next() / 2 ** 32;
        for (const [key, share] of Object.entries(shares))
            if ((x -= share) < 0)
                return key;
        return null;
    }

    stream(name) {
        return new Chance(`${this.name}/${name}`);
    }
}
