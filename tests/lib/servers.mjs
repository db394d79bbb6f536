// The official x402 servers as their READMEs wire them, on a facilitator of one's choice. Each sells GET /paid for $0.001.
import { serve } from '@hono/node-server';
import { HTTPFacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { paymentMiddleware as expressMiddleware } from '@x402/express';
import { paymentMiddleware as honoMiddleware } from '@x402/hono';
import express from 'express';
import { Hono } from 'hono';
import { paymentMiddleware as expressV1 } from 'x402-express';
import { freePort } from './world.mjs';

const network = 'eip155:84532';
const routes = (payTo) => ({
    'GET /paid': { accepts: { scheme: 'exact', price: '$0.001', network, payTo, maxTimeoutSeconds: 120 }, description: '', mimeType: '' },
});
// Key: an API key, sent as the seller's own servers would.
const resourceServer = (facilitator, key) => {
    const headers = { Authorization: `Bearer ${key}` };
    const auth = key && { createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }) };
    return new x402ResourceServer(new HTTPFacilitatorClient({ url: facilitator, ...auth })).register(network, new ExactEvmScheme());
};

const listen = async (start) => {
    const port = await freePort();
    const server = await start(port);
    return { url: `http://127.0.0.1:${port}/paid`, close: () => new Promise((done) => server.close(done)) };
};
const listening = (app) => listen((port) => new Promise((done) => {
    const server = app.listen(port, '127.0.0.1', () => done(server));
}));

// `handler` runs the work; it may count, fail, or take its time.
export const servers = {
    '@x402/express': {
        version: 2,
        start: ({ facilitator, payTo, key, handler }) => {
            const app = express();
            app.use(expressMiddleware(routes(payTo), resourceServer(facilitator, key)));
            app.get('/paid', async (_, rs) => rs.status((await handler()) ?? 200).json({ paid: true }));
            return listening(app);
        },
    },
    '@x402/hono': {
        version: 2,
        start: ({ facilitator, payTo, key, handler }) => {
            const app = new Hono();
            app.use(honoMiddleware(routes(payTo), resourceServer(facilitator, key)));
            app.get('/paid', async (c) => c.json({ paid: true }, (await handler()) ?? 200));
            return listen((port) => new Promise((done) => {
                const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, () => done(server));
            }));
        },
    },
    'x402-express': {
        version: 1,
        start: ({ facilitator, payTo, handler }) => {
            const app = express();
            app.use(expressV1(payTo, { 'GET /paid': { price: '$0.001', network: 'base-sepolia' } }, { url: facilitator }));
            app.get('/paid', async (_, rs) => rs.status((await handler()) ?? 200).json({ paid: true }));
            return listening(app);
        },
    },
};
