// Asking a database, by psql itself: Debian's wrapper of it takes five times as long to start as psql takes to answer.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

function inBindir(name) {
    try {
        const path = join(execFileSync('pg_config', ['--bindir'], { encoding: 'utf8' }).trim(), name);
        return existsSync(path) ? path : name;
    } catch {
        return name;
    }
}

let found;
const program = () => (found ??= inBindir('psql'));
const plainly = (conninfo) => ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', conninfo];
const env = { ...process.env, PGOPTIONS: '-c search_path=payonce' };
const asRows = (query) => `SELECT coalesce(json_agg(t), '[]') FROM (${query.replace(/;\s*$/, '')}) t`;

// The owner of the cluster and of the tables, who may do what no role of the program may.
export const ownerOf = (conninfo) => conninfo.replace(/user=\S+/, 'user=payonce_owner');

// Resolves to what it prints, a row a line; rejects when it fails.
export function psql(conninfo, text) {
    const options = { env, maxBuffer: 1 << 28 };
    return new Promise((done, failed) => execFile(program(), [...plainly(conninfo), '-c', text], options,
        (error, stdout, stderr) => error ? failed(new Error(`psql: ${stderr || error.message}\n${text}`)) : done(stdout)));
}

// Rows of a query, as objects.
export const rowsOf = async (conninfo, query) => JSON.parse(await psql(conninfo, asRows(query)));

// The same by one psql that stays: what is asked again and again, until it is as awaited, costs a hundredth of that.
// Without a query under way it holds nothing in the database, and one whose server went away is followed by another.
export class Session {
    #psql = null;

    constructor(conninfo) {
        this.conninfo = conninfo;
    }

    async rows(query) {
        const stale = this.#psql;
        try {
            return JSON.parse(await this.#ask(asRows(query)));
        } catch (error) {
            if (!error.gone || !stale)
                throw error;
            if (this.#psql === stale)
                this.close();
            return JSON.parse(await this.#ask(asRows(query)));
        }
    }

    close() {
        this.#psql?.child.stdin.end();
        this.#psql = null;
    }

    #ask(text) {
        const { child, pending } = this.#psql ??= this.#start();
        return new Promise((done, failed) => {
            pending.push({ text, done, failed });
            child.stdin.write(`${text}\n;\n\\echo '${MARK}' :ERROR :LAST_ERROR_MESSAGE\n`);
        });
    }

    #start() {
        const args = [...plainly(this.conninfo), '-v', 'ON_ERROR_STOP=0'];
        const child = spawn(program(), args, { env, stdio: ['pipe', 'pipe', 'ignore'] });
        const mine = { child, pending: [], text: '' };
        child.stdout.setEncoding('utf8').on('data', (text) => read(mine, text));
        child.stdin.on('error', () => {}); // it has ended, and says so
        child.once('error', () => this.#ended(mine)).once('close', () => this.#ended(mine));
        return mine;
    }

    #ended(mine) {
        if (this.#psql === mine)
            this.#psql = null;
        for (const { text, failed } of mine.pending.splice(0))
            failed(gone(text));
    }
}

const gone = (text) => Object.assign(new Error(`psql: the database is gone\n${text}`), { gone: true });

const MARK = 'the end of an answer:';
const END = new RegExp(`^${MARK} (true|false) (.*)\n`, 'm');

function read(mine, text) {
    mine.text += text;
    for (let end; (end = mine.text.match(END)); mine.text = mine.text.slice(end.index + end[0].length)) {
        const { text: query, done, failed } = mine.pending.shift();
        if (end[1] === 'false')
            done(mine.text.slice(0, end.index));
        else // a server that has come back since says nothing to what was its first query
            failed(end[2] === '' ? gone(query) : new Error(`psql: ${end[2]}\n${query}`));
    }
}
