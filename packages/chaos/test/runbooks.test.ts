import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { RUNBOOKS } from '../src/runbooks/execute-runbook.ts';
import { readRunbook, unseen } from '../src/runbooks/read-runbook.ts';

const FOLDER = new URL('../../../docs/operations/runbooks/', import.meta.url);

test('every page of docs/operations/runbooks is executed, and has steps with expected output', async () => {
  const pages = (await readdir(FOLDER)).filter((file) => file !== 'README.md');
  expect(pages.map((file) => file.replace('.md', '')).toSorted()).toEqual(RUNBOOKS.toSorted());
  for (const page of pages) {
    const steps = readRunbook(await readFile(new URL(page, FOLDER), 'utf8'));
    expect(steps.length, page).toBeGreaterThan(1);
    expect(steps.filter(({ expected }) => expected.length > 0).length, page).toBeGreaterThan(0);
  }
});

test('blocks are steps in order, with the event before them and the expected output after them', () => {
  const page = [
    '1. Look:',
    '',
    '   ```sh look',
    '   # of one',
    '   curl a',
    '   ```',
    '   ```text',
    '   "ready":true',
    '   ```',
    '   <!-- meanwhile: it ends -->',
    '   ```sh',
    '   curl b',
    '   ```',
  ].join('\n');
  expect(readRunbook(page)).toEqual([
    {
      number: 1,
      title: 'curl a',
      commands: '# of one\ncurl a',
      isLook: true,
      expected: ['"ready":true'],
      meanwhile: [],
    },
    {
      number: 2,
      title: 'curl b',
      commands: 'curl b',
      isLook: false,
      expected: [],
      meanwhile: ['it ends'],
    },
  ]);
  expect(() => readRunbook('```text\nalone\n```')).toThrow('has no command before it');
});

test('the output must contain every expected line, and … stands for any text', () => {
  const output = '{"ready":true,"durable":true}\nevents_2020_01 12 MB\n';
  expect(unseen(['"durable":true', 'events_2…_01 …MB'], output)).toEqual([]);
  expect(unseen(['{"ready":…,"durable":false}', 'events_….MB'], output)).toEqual([
    '{"ready":…,"durable":false}',
    'events_….MB',
  ]);
});

test('a rotation revokes only the one other valid key of its workspace, and stops if the choice is not clear', async () => {
  const page = await readFile(new URL('rotate-every-key.md', FOLDER), 'utf8');
  const steps = readRunbook(page).map(({ commands }) => commands);
  const chooser = steps.find((commands) => commands.startsWith('only_other()'));
  const revoking = steps.filter((commands) => commands.includes('keys revoke'));
  expect(revoking).toHaveLength(3);
  for (const commands of revoking) expect(commands).toContain('OLD_ID=$(only_other "$MADE")');

  const key = (id: number, changes: object = {}) => ({
    ...{ id, name: `key ${id}`, type: 'pipelines', environment_id: 1, revoked_at: null },
    ...changes,
  });
  const others = [
    key(1, { revoked_at: '2026-01-01T00:00:00Z' }),
    key(2, { environment_id: 2 }),
    key(3, { type: 'app' }),
  ];
  const choose = async (keys: readonly object[]) => {
    const typed = `sluice() { printf %s "$KEYS"; }\n${chooser}\nonly_other '{"api_credential":{"id":9}}'`;
    const env = { PATH: process.env['PATH'], KEYS: JSON.stringify(keys) };
    return (await promisify(execFile)('bash', ['-c', typed], { env })).stdout;
  };
  expect(await choose([...others, key(5), key(9)])).toBe('5\n');
  await expect(choose([...others, key(5), key(6), key(9)])).rejects.toThrow(
    /which one goes\?.*key 6/,
  );
  await expect(choose([...others, key(9)])).rejects.toThrow(/which one goes\? \[\]/);
});
