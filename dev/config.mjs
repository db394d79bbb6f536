// The demo's configuration file, and what its tools are.
import { payTo } from './accounts.mjs';

export const NETWORK = 'eip155:84532';
export const TEMPO = 'eip155:42431';
const price = (amount) => [{ network: NETWORK, token: 'USDC', amount }];
const read = { method: 'GET', side_effect: 'read', cacheable: true, mime_type: 'application/json' };

// `example` is what to try; it is not part of the configuration.
export const demoTools = [
    {
        name: 'countries', description: 'Countries by ISO 3166-1 code, or all of them',
        path: '/iso/countries', ...read, prices: price('1000'), example: { query: '?code=FR' },
    },
    {
        name: 'currencies', description: 'Currencies by ISO 4217 code, or all of them',
        path: '/iso/currencies', ...read, prices: price('1000'), example: { query: '?code=EUR' },
    },
    {
        name: 'languages', description: 'Languages by ISO 639 code, or all of them',
        path: '/iso/languages', ...read, prices: price('2000'), example: { query: '?code=fr' },
    },
    {
        name: 'order', description: 'Places an order with the demo shop', method: 'POST', path: '/shop/orders',
        side_effect: 'write', cacheable: false, mime_type: 'application/json', prices: price('50000'),
        example: { query: '', body: { item: 'tea', quantity: 1 } },
    },
];

// tempo: settings of the second network, on which every tool has the same price in pathUSD; none: one network.
export function makeConfig(
    { ports, stateDir, tools = demoTools, depth = 1, rpc, database, extra = {}, network = {}, tempo },
) {
    return {
        public_url: `http://127.0.0.1:${ports.gateway}`,
        listen: `127.0.0.1:${ports.gateway}`,
        admin_listen: `127.0.0.1:${ports.admin}`,
        state_dir: stateDir,
        ...(database && { database }),
        networks: [{
            id: NETWORK, rpc: rpc ?? [`http://127.0.0.1:${ports.node}`], pay_to: payTo, depth, ...network,
        }, ...(tempo ? [{ id: TEMPO, rpc: [`http://127.0.0.1:${ports.tempo}`], pay_to: payTo, ...tempo }] : [])],
        tools: tools.map(({ example, ...tool }) => ({
            upstream: `http://127.0.0.1:${ports.upstream}`, ...tool,
            ...(tempo && tool.prices && { prices: onBothRails(tool.prices) }),
        })),
        ...extra,
    };
}

// A tool that names its prices there has them already.
function onBothRails(prices) {
    return prices.some(({ network }) => network === TEMPO) ? prices : [...prices, { network: TEMPO, token: 'pathUSD', amount: prices[0].amount }];
}

// The tools as var/dev.json lists them.
export function toolList(gateway, tools = demoTools) {
    return tools.map((tool) => ({
        name: tool.name, method: tool.method, url: `${gateway}${tool.path}${tool.example?.query ?? ''}`,
        price: tool.prices[0].amount, side_effect: tool.side_effect, cacheable: tool.cacheable,
        ...(tool.example?.body && { body: tool.example.body }),
    }));
}
