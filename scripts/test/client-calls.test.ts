/** Calls with the bodies of the reference, compiled with the client's types. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { exampleBody, exampleOf } from '../../packages/console/src/reference/call-example.ts';
import {
  callsOf,
  type DescribedCall,
  type Document,
  isOfIntake,
  parametersOf,
  resolverOf,
} from '../../packages/console/src/reference/described-call.ts';
import { describeServices } from '../described-api.ts';

const run = promisify(execFile);
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));
/** The compiler takes seconds, and on a busy machine a minute. */
const BUSY_MS = 120_000;

let document: Document;
beforeAll(async () => void (document = JSON.parse(await describeServices()) as Document));

/** A form has no example; `packages/client/test/packed.test.ts` has its call. */
const isForm = (call: DescribedCall): boolean =>
  'multipart/form-data' in (call.operation.requestBody?.content ?? {}) &&
  exampleBody(call, document).raw !== undefined;

/** One line, with the values as literals, so that the compiler sees members that the types lack. */
function lineOf(call: DescribedCall): string {
  const params: Record<string, Record<string, unknown>> = {};
  for (const parameter of parametersOf(call, document)) {
    const { name, in: place, required, schema = {}, example } = parameter;
    if (place !== 'path' && required !== true) continue;
    (params[place] ??= {})[name] = example ?? exampleOf(schema, resolverOf(document));
  }
  const { body, raw } = exampleBody(call, document);
  const sent = raw ? raw.text : body;
  const given = { params, ...(sent !== undefined && { body: sent }) };
  const client = isOfIntake(call) ? 'intake' : 'api';
  return `  await resultOf(${client}.${call.method}('${call.path}', ${JSON.stringify(given)}));`;
}

test(
  'each documented call compiles with its example',
  async () => {
    const calls = callsOf(document).filter((call) => !call.isDelivery && !isForm(call));
    expect(calls.length).toBeGreaterThan(160);
    // Below the packages, whose links it finds.
    const folder = await mkdtemp(join(MODULES, '.cache/sluice-client-calls-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const program = [
      `import { createApiClient, createIntakeClient, resultOf } from '@sluice/client';`,
      `const api = createApiClient({ url: 'http://a', token: 't' });`,
      `const intake = createIntakeClient({ url: 'http://i', writeKey: 'w' });`,
      'export async function calls() {',
      ...calls.map(lineOf),
      '  // @ts-expect-error no event: the compiler has the types',
      `  await resultOf(intake.POST('/v1/track', { body: { userId: 'a' } }));`,
      '}',
    ].join('\n');
    await writeFile(join(folder, 'calls.ts'), program);
    const flags = [
      '--ignoreConfig',
      '--strict',
      '--noEmit',
      '--module',
      'nodenext',
      '--target',
      'es2022',
    ];
    const compiled = run(
      join(MODULES, '.bin/tsc'),
      [...flags, '--lib', 'es2022,dom', '--skipLibCheck', '--types', '', 'calls.ts'],
      { cwd: folder },
    );
    const found = await compiled.then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => stdout,
    );
    // The line of the program has the call.
    const wrong = [...found.matchAll(/^calls\.ts\((\d+),.*$/gm)].map(
      ([message, line]) => `${message}\n${program.split('\n')[Number(line) - 1]}`,
    );
    expect({ wrong, found }).toEqual({ wrong: [], found: '' });
  },
  BUSY_MS,
);
