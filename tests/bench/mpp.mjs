// MPP on Tempo: what the second rail costs a 402, and paid calls beside mppx's own server, on one chain.
import { join } from 'node:path';
import { encodeFunctionData } from 'viem';
import { sendTransactionSync } from 'viem/actions';
import { privateKeyToAccount } from 'viem/accounts';
import { buyers } from '../../dev/accounts.mjs';
import { demoTools, TEMPO } from '../../dev/config.mjs';
import { PATH_USD, startTempo, tokenAbi } from '../../dev/tempo.mjs';
import { tempoClient } from '../lib/mpp.mjs';
import { freePort, World } from '../lib/world.mjs';
import { challengesInTurns, paidInTurns } from './measures.mjs';
import { path, peerPayTo, seconds, signsOffers, Stage } from './stage.mjs';

const PAYERS = 128;                              // as many as callers
const ATOMS = 5_000_000n, AT_ONCE = 32, FUNDING_GAS = 15_000_000n;

const soldOn = (world, both) => [{
    ...demoTools[0], cacheable: false, upstream: world.upstream, example: undefined,
    prices: [...demoTools[0].prices, ...(both ? [{ network: TEMPO, token: 'pathUSD', amount: demoTools[0].prices[0].amount }] : [])],
}];

// Blocks that take whatever comes in a second.
class TempoWorld extends World {
    startTempo() {
        return startTempo({ dir: join(this.dir, 'tempo'), port: this.ports.tempo, gasLimit: 1_000_000_000 });
    }
}

export class TempoStage extends Stage {
    payers = PAYERS;

    constructor(load) {
        super(load, new TempoWorld({
            blockTime: 2, tempo: {}, extra: { wait_ms: 120_000 },
            beforeConfig: (world) => {
                signsOffers(world);
                world.options.extra.tools = soldOn(world, true);
            },
        }));
    }

    async start() {
        await this.world.start();
        await this.#fund([...await this.payerAddresses(), peerPayTo]);
        this.peerPort = await freePort();
        this.launchPeer(['mpp', '--port', this.peerPort, '--rpc', this.world.tempo.rpc.url, '--pay-to', peerPayTo]);
        await this.answers(`http://127.0.0.1:${this.peerPort}/paid`, 402);
        return this;
    }

    async #fund(addresses) {
        const client = tempoClient(this.world, privateKeyToAccount(buyers[0].key));
        const data = (to) => encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [to, ATOMS] });
        for (let i = 0; i < addresses.length; i += AT_ONCE)
            await sendTransactionSync(client, {
                calls: addresses.slice(i, i + AT_ONCE).map((to) => ({ to: PATH_USD, data: data(to) })), gas: FUNDING_GAS,
                feeToken: PATH_USD,
            });
    }

    ours() {
        return { ...super.ours(), options: ['--mpp'] };
    }

    peer() {
        return { ...super.peer(), options: ['--mpp'] };
    }

    // The same tool behind two gateways: at both prices, and at x402's alone.
    async challengers() {
        const extra = { ...this.world.options.extra, tools: soldOn(this.world, false) };
        const alone = new URL(await this.world.addGateway('gateway2', { extra }));
        const side = (name, port, role) => ({ name, port, path, cpu: () => ({ own: seconds([this.world.pid(role)]), postgres: 0 }) });
        return [side('one', alone.port, 'gateway2'), side('both', this.world.ports.gateway, 'gateway')];
    }
}

async function bothRails(stage, plan) {
    const { one, both } = await challengesInTurns(stage, await stage.challengers(), plan);
    await stage.world.stop('gateway2');
    return { one, both, share: both.rate / one.rate };
}

export async function mppOnTempo(load, plan) {
    const stage = new TempoStage(load);
    try {
        await stage.start();
        return { challenges: await bothRails(stage, plan.challenges), paid: await paidInTurns(stage, plan.paid) };
    } catch (error) {
        stage.world.dumpLogs();
        throw error;
    } finally {
        await stage.close();
    }
}

// ---- in the report ----

const percent = (share) => `${(share * 100).toFixed(1)} %`;
const times = (ratio) => `${ratio.toFixed(1)}x`;

export function mppRows(add, { challenges: c, paid: p }) {
    const both = (name, show, ratio = '') => add(name, show(p.payonce), show(p.official), ratio);
    add('402/s at both rails\' prices', c.both.rate.toFixed(0), '', `${percent(c.share)} of x402 alone`);
    add('  CPU for one', `${c.both.cpu_us.toFixed(1)} us`, '', `alone ${c.one.cpu_us.toFixed(1)} us`);
    both('MPP: paid calls per CPU second', ({ per_cpu_second }) => per_cpu_second.toFixed(1), times(p.ratio));
    both('  CPU for one', ({ cpu_ms }) => `${cpu_ms.toFixed(2)} ms`);
    both('  of it PostgreSQL', ({ postgres_share }) => percent(postgres_share));
    both('  a second, all callers', ({ rate }) => rate.toFixed(0));
}

export const mppBars = ({ challenges, paid }, { atLeast }) => [
    atLeast('402/s at both rails\' prices, of x402 alone', challenges.share, 0.85, percent),
    atLeast('MPP: paid calls per CPU second, of mppx', paid.ratio, 3, times),
];
