/** The rule in other languages: each port judges the same requests as the package does, with the same reasons. */
import { execFile, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { whyRefused } from '@sluice/verify';
import { expect, onTestFinished, test } from 'vitest';

const run = promisify(execFile);
const PORTS = fileURLToPath(new URL('../ports/', import.meta.url));
const SENT_AT_SECONDS = 1_692_633_432;

interface Request {
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Base64. */
  readonly body: string;
  readonly secrets: readonly string[];
  readonly nowMs: number;
}

const signed = (secret: string, body: Buffer, timestamp: string): string =>
  createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex');

function request(
  changes: {
    body?: Buffer;
    secret?: string;
    secrets?: readonly string[];
    timestamp?: string;
    ageSeconds?: number;
    headers?: (signature: string, timestamp: string) => Request['headers'];
  } = {},
): Request {
  const { body = Buffer.from('{"key": "value"}'), secret = 'secret', ageSeconds = 0 } = changes;
  const timestamp = changes.timestamp ?? String(SENT_AT_SECONDS);
  const signature = signed(secret, body, timestamp);
  const headers = changes.headers?.(signature, timestamp) ?? [
    ['x-svc-timestamp', timestamp],
    ['x-svc-signature', signature],
  ];
  return {
    headers,
    body: body.toString('base64'),
    secrets: changes.secrets ?? [secret],
    nowMs: (SENT_AT_SECONDS + ageSeconds) * 1_000,
  };
}

const REQUESTS: Readonly<Record<string, Request>> = {
  'a genuine one': request(),
  'upper-case names': request({
    headers: (signature, timestamp) => [
      ['X-SVC-TIMESTAMP', timestamp],
      ['X-Svc-Signature', signature],
    ],
  }),
  'the names of Customer.io': request({
    headers: (signature, timestamp) => [
      ['X-CIO-Timestamp', timestamp],
      ['X-CIO-Signature', signature],
    ],
  }),
  'both names, ours wrong': request({
    headers: (signature, timestamp) => [
      ['x-cio-timestamp', timestamp],
      ['x-cio-signature', signature],
      ['x-svc-signature', 'f'.repeat(64)],
    ],
  }),
  'both names, ours twice': request({
    headers: (signature, timestamp) => [
      ['x-cio-timestamp', timestamp],
      ['x-cio-signature', signature],
      ['x-svc-signature', signature],
      ['X-Svc-Signature', signature],
    ],
  }),
  'an empty body': request({ body: Buffer.alloc(0) }),
  'a body that is no text': request({ body: Buffer.from([0, 255, 254, 10, 13]) }),
  'a secret beyond ASCII': request({ secret: 'Schlüssel 🔑' }),
  'the secret of a rotation that is new': request({
    secret: 'new',
    secrets: ['new'],
    headers: (signature, timestamp) => [
      ['x-svc-timestamp', timestamp],
      ['x-svc-signature', 'f'.repeat(64)],
      ['x-svc-signature-next', signature],
    ],
  }),
  'a second secret': request({ secret: 'new', secrets: ['old', 'new'] }),
  'another secret': request({ secrets: ['another'] }),
  'another body': { ...request(), body: Buffer.from('{}').toString('base64') },
  'no headers': request({ headers: () => [] }),
  'no time': request({ headers: (signature) => [['x-svc-signature', signature]] }),
  'no signature': request({ headers: (_, timestamp) => [['x-svc-timestamp', timestamp]] }),
  'two signatures': request({
    headers: (signature, timestamp) => [
      ['x-svc-timestamp', timestamp],
      ['x-svc-signature', signature],
      ['X-Svc-Signature', signature],
    ],
  }),
  'an upper-case signature': request({
    headers: (signature, timestamp) => [
      ['x-svc-timestamp', timestamp],
      ['x-svc-signature', signature.toUpperCase()],
    ],
  }),
  'a signature with a line break': request({
    headers: (signature, timestamp) => [
      ['x-svc-timestamp', timestamp],
      ['x-svc-signature', `${signature}\n`],
    ],
  }),
  'a time with a line break': request({ timestamp: `${SENT_AT_SECONDS}\n` }),
  'a time with a sign': request({ timestamp: `+${SENT_AT_SECONDS}` }),
  'a time in digits of another script': request({ timestamp: '١٦٩٢٦٣٣٤٣٢' }),
  'a time of 13 digits': request({ timestamp: '1692633432000' }),
  'a time of 12 digits, far ahead': request({ timestamp: '999999999999' }),
  'the zero time': request({ timestamp: '0' }),
  '300 s old': request({ ageSeconds: 300 }),
  '301 s old': request({ ageSeconds: 301 }),
  '300 s ahead': request({ ageSeconds: -300 }),
  '301 s ahead': request({ ageSeconds: -301 }),
};

/** By the package; `null` of one that it takes. */
const judged = Object.fromEntries(
  Object.entries(REQUESTS).map(([name, { headers, body, secrets, nowMs }]) => {
    const given: Record<string, string> = Object.fromEntries(headers);
    const refusal = whyRefused(given, Buffer.from(body, 'base64'), secrets, { nowMs });
    return [name, refusal ?? null];
  }),
);

test('the requests have every outcome', () => {
  expect(new Set(Object.values(judged))).toEqual(
    new Set([null, 'malformed_headers', 'too_old', 'too_new', 'wrong_signature']),
  );
});

const isThere = (program: string, ...words: string[]): boolean =>
  spawnSync(program, words).status === 0;

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-port-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'requests.json'), JSON.stringify(REQUESTS));
  return folder;
}

const PYTHON_DRIVER = `
import base64, json, sys
sys.path.insert(0, sys.argv[1])
import verify_delivery
def judge(r):
    return verify_delivery.why_refused(
        [tuple(pair) for pair in r["headers"]], base64.b64decode(r["body"]), r["secrets"], now=r["nowMs"] / 1000)
with open("requests.json", encoding="utf-8") as file:
    requests = json.load(file)
try:
    verify_delivery.verify({}, b"", [""])
    sys.exit("an empty secret was taken")
except ValueError:
    pass
for options in ({"tolerance_seconds": float("nan")}, {"now": float("inf")}, {"tolerance_seconds": None}):
    try:
        verify_delivery.verify({}, b"", ["a"], **options)
        sys.exit("taken: %r" % options)
    except ValueError:
        pass
print(json.dumps({name: judge(r) for name, r in requests.items()}))
`;

test.runIf(isThere('python3', '--version'))('Python judges them as the package does', async () => {
  const folder = await makeFolder();
  const { stdout } = await run('python3', ['-B', '-c', PYTHON_DRIVER, PORTS], { cwd: folder });
  expect(JSON.parse(stdout)).toEqual(judged);
});

const GO_DRIVER = `package sluice

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

type request struct {
	Headers [][2]string
	Body    []byte
	Secrets []string
	NowMs   int64
}

func TestRequests(t *testing.T) {
	text, err := os.ReadFile("requests.json")
	if err != nil {
		t.Fatal(err)
	}
	var requests map[string]request
	if err := json.Unmarshal(text, &requests); err != nil {
		t.Fatal(err)
	}
	judged := map[string]*string{}
	for name, r := range requests {
		header := map[string][]string{}
		for _, pair := range r.Headers {
			header[pair[0]] = append(header[pair[0]], pair[1])
		}
		judged[name] = nil
		if refusal := Verify(header, r.Body, r.Secrets, time.UnixMilli(r.NowMs), Tolerance); refusal != nil {
			reason := refusal.Error()
			judged[name] = &reason
		}
	}
	if Verify(nil, nil, []string{""}, time.Now(), Tolerance) != ErrNoSecret {
		t.Fatal("an empty secret was taken")
	}
	text, err = json.Marshal(judged)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("judged.json", text, 0o600); err != nil {
		t.Fatal(err)
	}
}
`;

test.runIf(isThere('go', 'version'))(
  'Go judges them as the package does',
  { timeout: 300_000 },
  async () => {
    const folder = await makeFolder();
    await copyFile(join(PORTS, 'verify_delivery.go'), join(folder, 'verify_delivery.go'));
    await writeFile(join(folder, 'verify_delivery_test.go'), GO_DRIVER);
    await writeFile(join(folder, 'go.mod'), 'module sluice\n\ngo 1.18\n');
    // It works without the network.
    const env = { ...process.env, GOPROXY: 'off', GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' };
    await run('go', ['test', './...'], { cwd: folder, env });
    const { default: found } = (await import(join(folder, 'judged.json'), {
      with: { type: 'json' },
    })) as { default: unknown };
    expect(found).toEqual(judged);
  },
);
