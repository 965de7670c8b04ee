import { expect, test } from 'vitest';
import { renderLogLine } from '../src/log-lines.ts';

const ENTRY = JSON.stringify({
  level: 40,
  time: '2026-11-20T20:04:13.087Z',
  service: 'intake',
  port: 8080,
  msg: 'a warning',
});

test('a log entry is one line with the time, the service, the level where it matters, and its fields', () => {
  const shown = '20:04:13 intake  warning: a warning port=8080';
  expect(renderLogLine('pretty', 'intake', ENTRY)).toBe(shown);
  // Of a process with several services.
  expect(renderLogLine('pretty', 'sluice', ENTRY)).toBe(shown);
});

test('for machines an entry stays as it was written, and any other line becomes an entry', () => {
  expect(renderLogLine('json', 'intake', ENTRY)).toBe(ENTRY);
  expect(JSON.parse(renderLogLine('json', 'intake', 'Segmentation fault'))).toEqual({
    level: 50,
    service: 'intake',
    msg: 'Segmentation fault',
  });
});

test('a line of a service that is no log entry is shown as it is, with the name of the service', () => {
  expect(renderLogLine('pretty', 'worker', '{not json')).toBe('         worker  {not json');
});

test("an error's stack is shown below its line", () => {
  const entry = JSON.stringify({
    level: 50,
    msg: 'failed',
    error: { message: 'x', stack: 'Error: x\n    at y' },
  });
  expect(renderLogLine('pretty', 'api', entry)).toBe(
    '         api     ERROR failed\n    Error: x\n        at y',
  );
});

test('the log for people escapes control characters of callers, so they do not drive the terminal', () => {
  const hostile = 'x\u001B[2J\u009B31m\ny';
  const shown = String.raw`x\u001b[2J\u009b31m\u000ay`;
  const entry = JSON.stringify({ msg: hostile, path: hostile, error: hostile });
  expect(renderLogLine('pretty', 'api', entry)).toBe(
    `         api     ${shown} path=${shown} error=${shown}`,
  );
  expect(renderLogLine('pretty', 'api', hostile)).toBe(`         api     ${shown}`);
});
