// The official stack, as its README wires it, with what makes it fastest: a nonce manager and 50 ms polling.
//
//     node peer.mjs facilitator --port P --rpc URL        (its key in PEER_KEY)
//     node peer.mjs resource --port P --facilitator URL --pay-to ADDRESS
//     node peer.mjs mpp --port P --rpc URL --pay-to ADDRESS                (its secret in PEER_KEY)
import express from 'express';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { HTTPFacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { x402Facilitator } from '@x402/core/facilitator';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { paymentMiddleware } from '@x402/express';
import { Mppx, tempo } from 'mppx/server';
import { createClient, createWalletClient, http, nonceManager, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { baseSepolia, tempoModerato } from 'viem/chains';
import { PATH_USD } from '../../dev/tempo.mjs';

const network = 'eip155:84532';
const sold = { alpha_2: 'FR', alpha_3: 'FRA', name: 'France', numeric: '250' };
const { values: options, positionals: [role] } = parseArgs({
    allowPositionals: true,
    options: {
        port: { type: 'string' }, rpc: { type: 'string' }, facilitator: { type: 'string' },
        'pay-to': { type: 'string' },
    },
});

function facilitator(app) {
    const account = privateKeyToAccount(process.env.PEER_KEY, { nonceManager });
    const client = createWalletClient({
        account, chain: baseSepolia, transport: http(options.rpc), pollingInterval: 50,
    }).extend(publicActions);
    const signer = toFacilitatorEvmSigner({
        address: account.address,
        getCode: (a) => client.getCode(a),
        readContract: (a) => client.readContract({ ...a, args: a.args ?? [] }),
        verifyTypedData: (a) => client.verifyTypedData(a),
        writeContract: (a) => client.writeContract({ ...a, args: a.args ?? [] }),
        sendTransaction: (a) => client.sendTransaction(a),
        waitForTransactionReceipt: (a) => client.waitForTransactionReceipt(a),
    });
    const core = new x402Facilitator();
    registerExactEvmScheme(core, { signer, networks: network });
    const answer = (work) => async (rq, rs) => {
        try {
            rs.json(await work(rq.body));
        } catch (error) {
            rs.status(500).json({ error: error.message });
        }
    };
    app.use(express.json());
    app.post('/verify', answer((b) => core.verify(b.paymentPayload, b.paymentRequirements)));
    app.post('/settle', answer((b) => core.settle(b.paymentPayload, b.paymentRequirements)));
    app.get('/supported', answer(() => core.getSupported()));
}

function resource(app) {
    const server = new x402ResourceServer(new HTTPFacilitatorClient({ url: options.facilitator }))
        .register(network, new ExactEvmScheme());
    const price = { scheme: 'exact', price: '$0.001', network, payTo: options['pay-to'], maxTimeoutSeconds: 120 };
    app.use(paymentMiddleware({
        'GET /paid': { accepts: price, description: 'Countries by ISO 3166-1 code', mimeType: 'application/json' },
    }, server));
    app.get('/paid', (_, rs) => rs.json(sold));
}

// Without express, which costs more than mppx's own listener.
function mpp() {
    const chain = { ...tempoModerato, rpcUrls: { default: { http: [options.rpc] } } };
    const client = createClient({ chain, transport: http(options.rpc), pollingInterval: 50 });
    const charge = tempo.charge({ currency: PATH_USD, recipient: options['pay-to'], getClient: () => client });
    const server = Mppx.create({ methods: [charge], secretKey: process.env.PEER_KEY, realm: `127.0.0.1:${options.port}` });
    const priced = Mppx.toNodeListener(server.charge({ amount: '0.001' }));
    return async (rq, rs) => {
        if ((await priced(rq, rs)).status === 402)
            return;
        rs.setHeader('Content-Type', 'application/json');
        rs.end(JSON.stringify(sold));
    };
}

function x402() {
    const app = express();
    (role === 'facilitator' ? facilitator : resource)(app);
    return app;
}

createServer(role === 'mpp' ? mpp() : x402()).listen(Number(options.port), '127.0.0.1');
