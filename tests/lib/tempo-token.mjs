// A TIP-20 token of the tests' own, which its owner can pause, or close to a payer by its transfer policy.
import { encodeFunctionData, keccak256, parseAbi, toHex } from 'viem';
import { sendTransactionSync } from 'viem/actions';
import { PATH_USD } from '../../dev/tempo.mjs';
import { tempoClient } from './mpp.mjs';
import { freshAccount } from './payment.mjs';

const FACTORY = '0x20fc000000000000000000000000000000000000';
const POLICIES = '0x403c000000000000000000000000000000000000';
const BLACKLIST = 1;
const abi = parseAbi([
    'function createToken(string, string, string, address, address, bytes32)', 'function grantRole(bytes32, address)',
    'function mint(address, uint256)', 'function pause()', 'function unpause()', 'function changeTransferPolicyId(uint64)',
    'function createPolicy(address, uint8)', 'function modifyPolicyBlacklist(uint64, address, bool)',
]);

export class OwnToken {
    static async create(world) {
        const token = new OwnToken();
        const owner = freshAccount();
        Object.assign(token, { world, owner, symbol: 'TestUSD' });
        await world.tempo.fund(owner.address, 100_000_000n);
        const { logs } = await token.#send(FACTORY, 'createToken',
            ['Test', token.symbol, 'USD', PATH_USD, owner.address, keccak256(toHex('salt'))]);
        token.address = `0x${logs.find(({ address }) => address === FACTORY).topics[1].slice(26)}`;
        for (const role of ['ISSUER_ROLE', 'PAUSE_ROLE', 'UNPAUSE_ROLE'])
            await token.#send(token.address, 'grantRole', [keccak256(toHex(role)), owner.address]);
        return token;
    }

    async #send(to, functionName, args) {
        const receipt = await sendTransactionSync(tempoClient(this.world, this.owner.account), {
            calls: [{ to, data: encodeFunctionData({ abi, functionName, args }) }], nonceKey: 'expiring',
            validBefore: Math.floor(Date.now() / 1000) + 25, feeToken: PATH_USD, gas: 5_000_000n,
        });
        if (receipt.status !== 'success')
            throw new Error(`${functionName} failed`);
        return receipt;
    }

    mint = (to, atoms) => this.#send(this.address, 'mint', [to, atoms]);
    pause = () => this.#send(this.address, 'pause', []);
    unpause = () => this.#send(this.address, 'unpause', []);

    // Nobody may send it to `address` from now on.
    async forbid(address) {
        const { logs } = await this.#send(POLICIES, 'createPolicy', [this.owner.address, BLACKLIST]);
        const policy = BigInt(logs.find((log) => log.address === POLICIES).topics[1]);
        await this.#send(POLICIES, 'modifyPolicyBlacklist', [policy, address, true]);
        await this.#send(this.address, 'changeTransferPolicyId', [policy]);
        this.policy = policy;
    }

    allow = (address) => this.#send(POLICIES, 'modifyPolicyBlacklist', [this.policy, address, false]);
}
