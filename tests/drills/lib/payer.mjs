// What payers and strangers do on the chain while nobody is looking.
import { encodeFunctionData } from 'viem';
import { USDC, tokenAbi } from '../../../dev/usdc.mjs';
import { authorize, freshAccount } from '../../lib/payment.mjs';

export const SOMEBODY = `0x${'5e'.repeat(20)}`;

async function stranger(world) {
    const { address } = freshAccount();
    await world.chain.giveGas(address);
    return address;
}

export async function submit(world, { authorization: a, signature }) {
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithAuthorization',
        args: [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature] });
    return (await world.chain.send(await stranger(world), USDC, data, { mayFail: true })).status === '0x1';
}

export async function cancel(world, payer, { authorization: { nonce } }) {
    const signature = await payer.account.signTypedData({
        domain: { name: 'USDC', version: '2', chainId: 84532, verifyingContract: USDC },
        types: { CancelAuthorization: [{ name: 'authorizer', type: 'address' }, { name: 'nonce', type: 'bytes32' }] },
        primaryType: 'CancelAuthorization', message: { authorizer: payer.address, nonce },
    });
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'cancelAuthorization',
        args: [payer.address, nonce, signature] });
    return (await world.chain.send(await stranger(world), USDC, data, { mayFail: true })).status === '0x1';
}

export async function spendAll(world, payer) {
    await world.chain.giveGas(payer.address);
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer',
        args: [SOMEBODY, await world.chain.balanceOf(payer.address)] });
    return (await world.chain.send(payer.address, USDC, data, { mayFail: true })).status === '0x1';
}

// The payer's second authorization with the nonce of the first, to somebody else.
export async function spendElsewhere(world, payer, offer, { authorization: { nonce } }) {
    return submit(world, await authorize(payer, offer, { change: { nonce, to: SOMEBODY, value: '1' } }));
}
