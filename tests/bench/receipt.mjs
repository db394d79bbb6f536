// What a receipt's page costs whoever opens it: its bytes, and how long one asker waits.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export async function receiptPage(stage, { seconds }) {
    const { world } = stage;
    const [{ receipt }] = await world.sql(`SELECT 'rcp_' || encode(receipt, 'hex') AS receipt FROM order_status
        WHERE status = 'paid' LIMIT 1`);
    const path = `/receipts/${receipt}`, accept = { accept: 'text/html' };
    const page = await world.request(path, { headers: accept });
    if (page.status !== 200 || !/^text\/html/.test(page.headers['content-type']) || !/Signed by/.test(page.text))
        throw new Error(`${path}: ${page.status} ${page.text.slice(0, 200)}`);
    const script = join(world.dir, 'receipt.lua');
    writeFileSync(script, `wrk.path = "${path}"\nwrk.headers["Accept"] = "${accept.accept}"\n`);
    const { rate, p50_ms, p99_ms } = await stage.wrkScript(stage.ours(), 1, seconds, script);
    return { bytes: Buffer.byteLength(page.text), rate, p50_ms, p99_ms };
}
