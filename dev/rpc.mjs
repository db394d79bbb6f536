// A JSON-RPC client for tools and tests: one call, or many in one HTTP request.

export class RpcError extends Error {
    constructor(method, { code, message, data }) {
        super(`${method}: ${message}`);
        Object.assign(this, { method, code, data });
    }
}

export class Rpc {
    #id = 0;

    constructor(url) {
        this.url = url;
    }

    async #post(body) {
        const answer = await fetch(this.url, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
            signal: AbortSignal.timeout(30_000),
        });
        return answer.json();
    }

    async call(method, ...params) {
        const { result, error } = await this.#post({ jsonrpc: '2.0', id: ++this.#id, method, params });
        if (error)
            throw new RpcError(method, error);
        return result;
    }

    // calls: [[method, ...params]]; the results come in the same order.
    async batch(calls) {
        if (calls.length === 0)
            return [];
        const request = ([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params });
        const answers = await this.#post(calls.map(request));
        const byId = new Map(answers.map((a) => [a.id, a]));
        return calls.map(([method], id) => {
            const { result, error } = byId.get(id);
            if (error)
                throw new RpcError(method, error);
            return result;
        });
    }
}
