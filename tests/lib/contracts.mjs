// Compiles tests/contracts, once per state of their sources.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { encodeDeployData } from 'viem';
import { root } from './paths.mjs';

const folder = join(root, 'tests/contracts');
let compiled;

async function compile() {
    const sources = Object.fromEntries(readdirSync(folder).filter((f) => f.endsWith('.sol')).sort()
        .map((f) => [f, { content: readFileSync(join(folder, f), 'utf8') }]));
    const hash = createHash('sha256').update(JSON.stringify(sources)).digest('hex').slice(0, 16);
    const cache = join(root, `var/cache/contracts-${hash}.json`);
    try {
        return JSON.parse(readFileSync(cache, 'utf8'));
    } catch {
        // not compiled yet
    }
    const { default: solc } = await import('solc');
    const output = JSON.parse(solc.compile(JSON.stringify({
        language: 'Solidity', sources,
        settings: {
            optimizer: { enabled: true, runs: 10_000 },
            outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
        },
    })));
    const bad = (output.errors ?? []).filter((e) => e.severity === 'error');
    if (bad.length > 0)
        throw new Error(bad.map((e) => e.formattedMessage).join('\n'));
    const result = Object.fromEntries(Object.values(output.contracts).flatMap((file) => Object.entries(file))
        .map(([name, { abi, evm }]) => [name, { abi, bytecode: `0x${evm.bytecode.object}` }]));
    mkdirSync(join(root, 'var/cache'), { recursive: true });
    writeFileSync(cache, JSON.stringify(result));
    return result;
}

// Deploys contract `name` of tests/contracts; returns { address, abi }.
export async function deploy(chain, name, args = []) {
    compiled ??= compile();
    const { abi, bytecode } = (await compiled)[name];
    const [from] = await chain.rpc.call('eth_accounts');
    return { address: await chain.create(from, encodeDeployData({ abi, bytecode, args })), abi };
}

// Faults of OddToken; add them up.
export const odd = { usedIsQuiet: 1n, saysFalse: 2n, noTransferLog: 4n, takesAFee: 8n };
