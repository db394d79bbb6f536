import express from 'express';
import { HTTPFacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { paymentMiddleware } from '@x402/express';

const { FACILITATOR_URL, PAY_TO, API_KEY, PORT = '4100' } = process.env;
const network = 'eip155:84532';
const key = { Authorization: `Bearer ${API_KEY}` };
const facilitator = new HTTPFacilitatorClient({
    url: FACILITATOR_URL,
    ...(API_KEY && { createAuthHeaders: async () => ({ verify: key, settle: key, supported: key }) }),
});
const server = new x402ResourceServer(facilitator).register(network, new ExactEvmScheme());
const accepts = { scheme: 'exact', price: '$0.001', network, payTo: PAY_TO };

const app = express();
app.use(paymentMiddleware({ 'GET /weather': { accepts, description: 'The weather', mimeType: 'application/json' } }, server));
app.get('/weather', (_, answer) => answer.json({ weather: 'fine' }));
app.listen(Number(PORT), '127.0.0.1', () => console.log(`http://127.0.0.1:${PORT}/weather`));
