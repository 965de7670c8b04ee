/** The samples for receivers, run on genuine and on wrong requests. */
import { execFile, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { VERIFY_SAMPLES, type VerifyLanguage } from '../../src/deliveries/verify-samples.ts';

// Go compiles its libraries first.
vi.setConfig({ testTimeout: 300_000 });

const SECRET = 'Schlüssel 🔑';
const BODY = '{"name":"Ünï"}';

function headersOf(
  names: readonly string[] = ['x-svc-signature'],
  { secret = SECRET, body = BODY, at = 0 } = {},
): Record<string, string> {
  const signature = createHmac('sha256', secret).update(`v0:${at}:${body}`).digest('hex');
  return {
    'x-svc-timestamp': String(at),
    'x-svc-signature': 'f'.repeat(64),
    ...Object.fromEntries(names.map((name) => [name, signature])),
  };
}

/** Genuine requests of a time, and wrong ones. */
function casesAt(nowSeconds: number) {
  const signed = (names?: readonly string[], more: { body?: string; at?: number } = {}) =>
    headersOf(names, { at: nowSeconds, ...more });
  return [
    { headers: signed(), secret: SECRET, isGenuine: true },
    { headers: signed(['x-svc-signature-next']), secret: SECRET, isGenuine: true },
    { headers: signed([]), secret: SECRET, isGenuine: false },
    { headers: signed(undefined, { body: '{}' }), secret: SECRET, isGenuine: false },
    { headers: signed(undefined, { at: nowSeconds - 900 }), secret: SECRET, isGenuine: false },
    { headers: signed(undefined, { at: nowSeconds + 900 }), secret: SECRET, isGenuine: false },
    { headers: signed(), secret: 'another', isGenuine: false },
    { headers: {}, secret: SECRET, isGenuine: false },
    {
      headers: { ...signed(), 'x-svc-signature': 'no hexadecimal' },
      secret: SECRET,
      isGenuine: false,
    },
  ];
}

/** The file of each language, the code around the sample, and the command that runs it. */
const PROGRAMS: Readonly<
  Record<
    VerifyLanguage,
    { file: string; before?: string; after: string; compile?: string[]; command: string[] }
  >
> = {
  node: {
    file: 'run.mjs',
    after: `
const { body, cases } = (await import('./cases.json', { with: { type: 'json' } })).default;
console.log(JSON.stringify(cases.map((each) => verify(Buffer.from(body), each.headers, each.secret))));`,
    command: [process.execPath, 'run.mjs'],
  },
  python: {
    file: 'run.py',
    after: `
import json
given = json.load(open("cases.json", encoding="utf-8"))
print(json.dumps([verify(given["body"].encode(), each["headers"], each["secret"]) for each in given["cases"]]))`,
    command: ['python3', '-B', 'run.py'],
  },
  go: {
    file: 'run.go',
    before: `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"time"
)

`,
    after: `
func main() {
	var given struct {
		Body  string
		Cases []struct {
			Headers map[string]string
			Secret  string
		}
	}
	text, _ := os.ReadFile("cases.json")
	if err := json.Unmarshal(text, &given); err != nil {
		panic(err)
	}
	judged := []bool{}
	for _, each := range given.Cases {
		header := http.Header{}
		for name, value := range each.Headers {
			header.Set(name, value)
		}
		judged = append(judged, verify([]byte(given.Body), header, each.Secret))
	}
	json.NewEncoder(os.Stdout).Encode(judged)
}`,
    compile: ['go', 'build', '-o', 'run', 'run.go'],
    command: ['./run'],
  },
  ruby: {
    file: 'run.rb',
    after: `
require "json"
given = JSON.parse(File.read("cases.json", encoding: "UTF-8"))
puts JSON.generate(given["cases"].map { |each| verify(given["body"].b, each["headers"], each["secret"]) })`,
    command: ['ruby', 'run.rb'],
  },
};

const isThere = (program: string): boolean =>
  [['--version'], ['version']].some((words) => spawnSync(program, words).status === 0);

test.each(
  Object.entries(PROGRAMS).filter(([, { compile, command }]) =>
    isThere((compile ?? command)[0] ?? ''),
  ) as [VerifyLanguage, (typeof PROGRAMS)[VerifyLanguage]][],
)('the sample in %s takes genuine requests alone', async (language, program) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-sample-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const { file, before = '', after, compile, command } = program;
  await writeFile(join(folder, file), `${before}${VERIFY_SAMPLES[language]}\n${after}\n`);
  const env = { ...process.env, GOPROXY: 'off', GOTOOLCHAIN: 'local' };
  const run = ([name = '', ...words]: readonly string[]) =>
    promisify(execFile)(name, words, { cwd: folder, env });
  if (compile) await run(compile);
  // A signature is in force for five minutes, and the compiler may take as long.
  const cases = casesAt(Math.floor(Date.now() / 1000));
  await writeFile(join(folder, 'cases.json'), JSON.stringify({ body: BODY, cases }));
  const { stdout } = await run(command);
  expect(JSON.parse(stdout)).toEqual(cases.map(({ isGenuine }) => isGenuine));
});
