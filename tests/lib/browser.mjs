// Pages in a real browser: as people have them set, and what is wrong with one.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

export const looks = [['light', 1200], ['dark', 1200], ['light', 360]];

export async function openBrowser() {
    const { chromium } = await import('playwright-core');
    return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
}

// Nothing from elsewhere, nothing that the page's own policy refuses, nothing wider than the window, no violation; then
// `look(page)`. PAYONCE_SCREENSHOTS names a folder for pictures.
export async function isSound(browser, url, name, [colorScheme, width], look = async () => {}) {
    const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 }, bypassCSP: false });
    try {
        const page = await context.newPage();
        const asked = [], said = [];
        page.on('request', (request) => asked.push(request.url()));
        page.on('console', (message) => said.push(message.text()));
        await page.goto(url);
        assert.deepEqual(asked.filter((one) => !one.startsWith(new URL(url).origin)), []);
        assert.deepEqual(said.filter((text) => /policy|refused/i.test(text)), []);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it is wider than the window');
        await look(page);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => axe.run());
        assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), []);
        if (process.env.PAYONCE_SCREENSHOTS) {
            mkdirSync(process.env.PAYONCE_SCREENSHOTS, { recursive: true });
            const path = join(process.env.PAYONCE_SCREENSHOTS, `${name}-${colorScheme}-${width}.png`);
            await page.screenshot({ path, fullPage: true });
        }
    } finally {
        await context.close();
    }
}
