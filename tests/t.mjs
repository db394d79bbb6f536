import { test } from 'node:test';
import { inWorld } from './lib/world.mjs';
test('abort', inWorld({}, async (w) => { process.kill(w.pid('gateway'),'SIGABRT'); await w.pause(300); }));
test('fine', inWorld({}, async (w) => { await w.restart('gateway'); await w.kill9('settler'); await w.restart('settler');  }));
