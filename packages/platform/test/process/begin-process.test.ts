/** Ends of services, as real processes: their last log line and their exit code. */
import { fileURLToPath } from 'node:url';
import { runProgramUnderTest } from '@sluice/platform/testing/service-under-test';
import { expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../support/service-that-ends.ts', import.meta.url));
const TWO = fileURLToPath(new URL('../support/two-services.ts', import.meta.url));

async function run(settings: Record<string, string>, program = PROGRAM) {
  const { code, output } = await runProgramUnderTest(program, {
    DATABASE_URL: 'postgres://localhost/unused',
    ...settings,
  });
  const lines = output.trimEnd().split('\n');
  return { code, lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

const foreseen = (code: string, msg: unknown, others = {}) => ({
  code: 1,
  lines: [{ level: 60, time: expect.any(String), service: 'small', code, msg, ...others }],
});

test('settings that cannot be used are one line, though the log level be among them', async () => {
  const msg = expect.stringMatching(/^settings that cannot be used: LOG_LEVEL: .+; ENDING: .+$/);
  expect(await run({ LOG_LEVEL: 'loud' })).toEqual(foreseen('CONFIG_INVALID', msg));
});

test('a known error is printed as its code and advice, without a stack, at any log level', async () => {
  expect(await run({ ENDING: 'foreseen', LOG_LEVEL: 'silent' })).toEqual(
    foreseen('PORT_TAKEN', 'choose another port', { cause: 'EADDRINUSE' }),
  );
});

test('the error is the last line, after all that was logged before', async () => {
  const { code, lines } = await run({ ENDING: 'after lines' });
  expect(lines.map(({ msg }) => msg)).toEqual([
    ...Array.from({ length: 100 }, (_, count) => `line ${count}`),
    'choose another port',
  ]);
  expect(code).toBe(1);
});

test('for a cause of several errors without its own message, each error is printed', async () => {
  expect(await run({ ENDING: 'several' })).toEqual(
    foreseen('DATABASE_UNAVAILABLE', 'start it', {
      cause: 'refused by ::1; refused by 127.0.0.1',
    }),
  );
});

test('an error that was caught ends the process in the same way', async () => {
  expect(await run({ ENDING: 'told' })).toEqual(
    foreseen('MIGRATION_MISMATCH', 'start a newer version'),
  );
});

test.each(['top level', 'rejection', 'callback'])(
  'an unexpected error is one line with its stack: %s',
  async (ENDING) => {
    expect(await run({ ENDING })).toEqual({
      code: 1,
      lines: [
        {
          level: 60,
          time: expect.any(String),
          service: 'small',
          msg: expect.stringMatching(/unexpected error.*: nobody thought of it$/),
          error: {
            type: 'TypeError',
            message: 'nobody thought of it',
            stack: expect.stringContaining('service-that-ends.ts:'),
          },
        },
      ],
    });
  },
);

test('a start that fails because of a stop finishes its work, and is not a fatal ending', async () => {
  const { code, lines } = await run({ ENDING: 'stopped' });
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    [30, expect.stringMatching(/^stopping/)],
    [50, 'an error while stopping'],
    [30, 'finished'],
  ]);
  expect(code).toBe(1);
});

test('a stop that takes too long is cut, and the log reports it', async () => {
  const { code, lines } = await run({ ENDING: 'stuck', DRAIN_TIMEOUT_MS: '100' });
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    [30, expect.stringMatching(/^stopping/)],
    [50, expect.stringMatching(/^draining took longer than/)],
  ]);
  expect(code).toBe(1);
});

test('a stop does not wait for work that cannot end, and the advice is the last line', async () => {
  const { code, lines } = await run({ ENDING: 'abandoned', DRAIN_TIMEOUT_MS: '600000' });
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    [30, expect.stringMatching(/^stopping/)],
    [50, 'it cannot end'],
    [60, 'start it again'],
  ]);
  expect(code).toBe(1);
});

const INTAKE_STOPS = ['intake', expect.stringMatching(/^stopping/)];
const WORKER_STOPS = ['worker', expect.stringMatching(/^stopping/)];

test.each([
  [
    'stop in their order, each once the one before has',
    'stop',
    0,
    [INTAKE_STOPS, ['intake', 'finished'], WORKER_STOPS, ['worker', 'finished']],
  ],
  [
    'do not begin once another stops, and would be cut',
    'late',
    0,
    [INTAKE_STOPS, ['intake', 'finished'], WORKER_STOPS, ['worker', 'finished']],
  ],
  [
    'stop though one of them takes too long',
    'stuck',
    1,
    [
      INTAKE_STOPS,
      ['intake', expect.stringMatching(/^draining took longer than/)],
      WORKER_STOPS,
      ['worker', 'finished'],
    ],
  ],
  ['end with the error of one, under its name', 'told', 1, [['worker', 'start a newer version']]],
  [
    'end with an error that nobody caught',
    'callback',
    1,
    [['both', expect.stringMatching(/unexpected error.*: nobody thought of it$/)]],
  ],
])('services of one process %s', async (_, ENDING, code, lines) => {
  const ended = await run({ ENDING, DRAIN_TIMEOUT_MS: ENDING === 'stuck' ? '8000' : '20000' }, TWO);
  const byTime = ended.lines.toSorted((a, b) => String(a['time']).localeCompare(String(b['time'])));
  expect(byTime.map(({ service, msg }) => [service, msg])).toEqual(lines);
  expect(ended.code).toBe(code);
});
