/** Code samples are programs. The tests run the samples of each installed language and read the requests that they send. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  SAMPLE_LANGUAGES,
  type SampleCall,
  type SampleLanguage,
  sampleOf,
} from '../../src/sentences/code-samples.ts';

const run = promisify(execFile);
/** A value that the quoting of every language must keep intact. */
const HOSTILE = {
  text: `it's "quoted" \\ \`grave\` #{1} \${x} $HOME """ \u00fc\u{1F600}\n\ttab`,
  none: null,
  yes: true,
  list: [1, 2.5, { deep: {} }, []],
};
/** With a colon: a site id and its key. */
const KEY = 'site:key';

interface Got {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let folder: string;
let origin: string;
const got: Got[] = [];
const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text: string) => (body += text));
  request.on('end', () => {
    got.push({ method: request.method, url: request.url, headers: request.headers, body });
    response.end('{"ok":true}');
  });
});
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-samples-'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

/** Command that runs a sample. Not every test machine has a runtime of the other languages. */
const RUNNERS: Partial<Record<SampleLanguage, (file: string) => [string, string[]]>> = {
  curl: (file) => ['bash', [file]],
  node: (file) => [process.execPath, [file]],
  python: (file) => ['python3', [file]],
};

async function runSample(language: SampleLanguage, call: SampleCall): Promise<Got | undefined> {
  const file = join(folder, `${language}-${got.length}.${language === 'node' ? 'mjs' : 'txt'}`);
  writeFileSync(file, sampleOf(language, call));
  const [command, words] = RUNNERS[language]?.(file) ?? ['false', []];
  const { stdout } = await run(command, words, {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], SLUICE_KEY: KEY },
  });
  expect(stdout).toContain('{"ok":true}');
  return got.at(-1);
}

describe.each(Object.keys(RUNNERS) as SampleLanguage[])('%s', (language) => {
  test('a write sends the body byte for byte as JSON means it, with the key of the environment', async () => {
    const sent = await runSample(language, {
      ...{ method: 'PUT', url: `${origin}/v1/a%20b?c=d&e=%27`, auth: 'bearer' },
      ...{ variable: 'SLUICE_KEY', body: HOSTILE },
    });
    expect(sent).toMatchObject({ method: 'PUT', url: '/v1/a%20b?c=d&e=%27' });
    expect(JSON.parse(sent?.body ?? '')).toEqual(HOSTILE);
    expect(sent?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
    });
  });

  test.each([
    ['basic', `${KEY}:`],
    ['pair', KEY],
  ] as const)('a read by %s authentication', async (auth, pair) => {
    const sent = await runSample(language, {
      ...{ method: 'GET', url: `${origin}/v1/read`, auth, variable: 'SLUICE_KEY' },
    });
    expect(sent).toMatchObject({ method: 'GET', url: '/v1/read', body: '' });
    const given = Buffer.from(String(sent?.headers.authorization).slice(6), 'base64').toString();
    expect(given).toBe(pair);
  });
});

test('no sample has a key, and each names the variable that has it', () => {
  for (const language of Object.keys(SAMPLE_LANGUAGES) as SampleLanguage[]) {
    const sample = sampleOf(language, {
      ...{ method: 'POST', url: 'https://api.example/v1/x', auth: 'bearer' },
      ...{ variable: 'SLUICE_KEY', body: {} },
    });
    expect(sample).toContain('SLUICE_KEY');
    expect(sample).toContain('https://api.example/v1/x');
  }
});

test('the samples in Java, Go, Ruby and PHP escape or quote the special characters of a body', () => {
  const call = {
    method: 'POST',
    url: 'https://a.example/?q=it%27s',
    auth: 'none',
    variable: '',
  } as const;
  const body = { text: '""" \\ `' };
  expect(sampleOf('java', { ...call, body })).toContain(
    String.raw`"text": "\\"\\"\\" \\\\ ${'`'}"`,
  );
  expect(sampleOf('go', { ...call, body })).toContain(String.raw`strings.NewReader("{\n`);
  expect(sampleOf('ruby', { ...call, body })).toContain("<<'JSON'\n{");
  expect(sampleOf('php', { ...call, body })).toContain("<<<'JSON'\n{");
});
