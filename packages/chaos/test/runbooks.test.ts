import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { RUNBOOKS } from '../src/runbooks/execute-runbook.ts';
import { readRunbook, unseen } from '../src/runbooks/read-runbook.ts';

const FOLDER = new URL('../../../infra/runbooks/', import.meta.url);

test('every page of infra/runbooks is executed, and says what is seen', async () => {
  const pages = (await readdir(FOLDER)).filter((file) => file !== 'README.md');
  expect(pages.map((file) => file.replace('.md', '')).toSorted()).toEqual(RUNBOOKS.toSorted());
  for (const page of pages) {
    const steps = readRunbook(await readFile(new URL(page, FOLDER), 'utf8'));
    expect(steps.length, page).toBeGreaterThan(1);
    expect(steps.filter(({ expected }) => expected.length > 0).length, page).toBeGreaterThan(0);
  }
});

test('blocks are steps in order, with what happens before and is seen after them', () => {
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
  expect(() => readRunbook('```text\nalone\n```')).toThrow('nothing is done before');
});

test('what is expected must be seen, whatever stands for …', () => {
  const output = '{"ready":true,"durable":true}\nevents_2020_01 12 MB\n';
  expect(unseen(['"durable":true', 'events_2…_01 …MB'], output)).toEqual([]);
  expect(unseen(['{"ready":…,"durable":false}', 'events_….MB'], output)).toEqual([
    '{"ready":…,"durable":false}',
    'events_….MB',
  ]);
});
