/** Code samples are programs. The tests run the samples of each installed language and read the requests that they send. */
import { execFile, spawnSync } from 'node:child_process';
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

interface Runner {
  /** Ends the name of the file. */
  readonly end: string;
  readonly command: (file: string) => readonly [string, ...string[]];
  /** Prints the version. */
  readonly version: string;
}

const RUNNERS: Readonly<Record<SampleLanguage, Runner>> = {
  curl: { end: 'sh', command: (file) => ['bash', file], version: '--version' },
  node: { end: 'mjs', command: (file) => [process.execPath, file], version: '--version' },
  python: { end: 'py', command: (file) => ['python3', file], version: '--version' },
  go: { end: 'go', command: (file) => ['go', 'run', file], version: 'version' },
  ruby: { end: 'rb', command: (file) => ['ruby', file], version: '--version' },
  php: { end: 'php', command: (file) => ['php', file], version: '--version' },
  // Java before 18 reads source files in the encoding of the machine.
  java: {
    end: 'java',
    command: (file) => ['java', '-Dfile.encoding=UTF-8', file],
    version: '-version',
  },
};

const isInstalled = ({ command, version }: Runner): boolean =>
  spawnSync(command('')[0], [version]).status === 0;

async function runSample(language: SampleLanguage, call: SampleCall): Promise<Got | undefined> {
  const { end, command } = RUNNERS[language];
  const file = join(folder, `${language}-${got.length}.${end}`);
  writeFileSync(file, sampleOf(language, call));
  const [program, ...words] = command(file);
  const { PATH, HOME } = process.env;
  const { stdout } = await run(program, words, {
    env: { PATH, HOME, GOTOOLCHAIN: 'local', SLUICE_KEY: KEY },
  });
  expect(stdout).toContain('{"ok":true}');
  return got.at(-1);
}

/** Raw text whose line ends, backslashes and quotes a sample must keep. */
const LINES = `{"text":"it's \\"quoted\\" \\\\ \`grave\` $HOME \u00fc"}\n@{"a":1}  \n`;

const isRunBy = (language: SampleLanguage): boolean => {
  const isRun = isInstalled(RUNNERS[language]);
  if (!isRun)
    process.stderr.write(
      `the samples of ${SAMPLE_LANGUAGES[language]} are not run: this machine has no ${RUNNERS[language].command('')[0]}\n`,
    );
  return isRun;
};

const RUN = (Object.keys(RUNNERS) as SampleLanguage[]).filter(isRunBy);

describe.each(RUN)('%s', (language) => {
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

  test('lines of JSON are sent byte for byte, with their type', async () => {
    const sent = await runSample(language, {
      ...{ method: 'POST', url: `${origin}/v1/stream`, auth: 'none', variable: '' },
      raw: { type: 'application/x-ndjson', text: LINES },
    });
    expect(sent).toMatchObject({ method: 'POST', body: LINES });
    expect(sent?.headers['content-type']).toBe('application/x-ndjson');
  });

  // The API refuses other types with 415, of an empty body too.
  test.each(['POST', 'PUT'])('a %s without a body has no type but JSON', async (method) => {
    const sent = await runSample(language, {
      ...{ method, url: `${origin}/v1/act`, auth: 'bearer', variable: 'SLUICE_KEY' },
    });
    expect(sent).toMatchObject({ method, body: '' });
    expect([undefined, 'application/json']).toContain(sent?.headers['content-type']);
  });
});

// Ruby calls an empty body a form.
test.each(['POST', 'PUT'])('a %s without a body in Ruby names JSON as its type', (method) => {
  const call = { method, url: 'https://a.example/', auth: 'none', variable: '' } as const;
  expect(sampleOf('ruby', call)).toContain("request['Content-Type'] = 'application/json'");
  expect(sampleOf('ruby', { ...call, method: 'GET' })).not.toContain('Content-Type');
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
