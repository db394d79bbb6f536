// The demo's keys. They are hashes of labels, the same on every machine, and worth nothing anywhere but on the
// local chain: never send anything of value to them.
import { keccak256, stringToBytes } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';

export function labelled(label) {
    const key = keccak256(stringToBytes(`payonce local demo: ${label}`));
    return { address: privateKeyToAddress(key), key };
}

export const buyers = [1, 2, 3, 4, 5].map((n) => labelled(`buyer ${n}`));
export const relayer = labelled('relayer');
// Pays debts back, and does nothing else; and what receipts are signed with, which moves no money.
export const refundWallet = labelled('refund wallet');
export const receiptSigner = labelled('receipts');
// Where the money goes. The demo's server has this address and not its key, as it should be in production.
export const payTo = labelled('pay to').address;
// A seller with a server of his own, who settles through the demo.
export const sellerPayTo = labelled('seller pay to').address;
