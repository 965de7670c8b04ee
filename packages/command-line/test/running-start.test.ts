/** Commands find the `npm start` of their checkout, and no other. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findRunningStart } from '../src/connection/running-start.ts';

const HOLDER = {
  pid: 7,
  urls: { intake: 'http://127.0.0.1:1', api: 'http://127.0.0.1:2', worker: 'http://127.0.0.1:3' },
  settings: { SHARD_COUNT: '4' },
  kept: ['DATABASE_URL', 'SEALING_KEYS'],
};

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sluice-test-running-'));
  await writeFile(join(directory, 'postgres-password'), 'secret\n');
  await writeFile(join(directory, 'postgres-port'), '5555');
  await writeFile(join(directory, 'sealing-keys'), '1:key\n');
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const find = async (holder: object | string, probe: (pid: number) => void = () => {}) => {
  const text = typeof holder === 'string' ? holder : JSON.stringify(holder);
  await writeFile(join(directory, 'held-by.json'), text);
  return findRunningStart('/nowhere', { SLUICE_DIRECTORY: directory }, probe);
};
const throwing = (code: string) => () => {
  throw Object.assign(new Error(code), { code });
};

test('its addresses, and the settings of its database', async () => {
  expect(await find(HOLDER)).toEqual({
    intakeUrl: 'http://127.0.0.1:1',
    apiUrl: 'http://127.0.0.1:2',
    workerUrl: 'http://127.0.0.1:3',
    settings: {
      SHARD_COUNT: '4',
      DATABASE_URL: 'postgres://sluice:secret@127.0.0.1:5555/sluice',
      SEALING_KEYS: '1:key',
    },
  });
});

test('the start of another user counts, and an ended start or an incomplete file does not', async () => {
  expect(await find(HOLDER, throwing('EPERM'))).toBeDefined();
  expect(await find(HOLDER, throwing('ESRCH'))).toBeUndefined();
  for (const text of ['', '{', '{"pid":7}', 'null']) expect(await find(text)).toBeUndefined();
  expect(findRunningStart('/nowhere', {}, () => {})).toBeUndefined();
});

// The files may be of a start before, when the embedded Postgres was in use.
test('settings that `npm start` got from outside are not read from files', async () => {
  expect((await find({ ...HOLDER, kept: [] }))?.settings).toEqual({ SHARD_COUNT: '4' });
});
