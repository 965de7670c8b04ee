import { connectionWarnings } from '@sluice/platform/redis/connection-warnings';
import { expect, test } from 'vitest';

function startWarnings() {
  const lines: object[] = [];
  const clock = { nowMs: 1_000 };
  const warn = connectionWarnings(
    { warn: (line: object) => void lines.push(line) } as never,
    () => clock.nowMs,
  );
  return { lines, clock, warn };
}

test('the same error of forty connections is logged once, and later with its count', () => {
  const { lines, clock, warn } = startWarnings();
  const error = new Error('connect ECONNREFUSED 127.0.0.1:6379');
  for (let n = 0; n < 40; n++) warn(error, `shard-${n}`);
  expect(lines).toEqual([{ error, queue: 'shard-0' }]);
  clock.nowMs += 4_999;
  warn(error);
  expect(lines).toHaveLength(1);
  clock.nowMs += 1;
  warn(error);
  expect(lines[1]).toEqual({ error, unsaidCount: 40 });
});

test('a connection that cannot be made is logged without a stack', () => {
  const { lines, warn } = startWarnings();
  const message = 'connect ECONNREFUSED 127.0.0.1:6379';
  warn(Object.assign(new Error(message), { code: 'ECONNREFUSED' }));
  expect(lines).toEqual([{ reason: message }]);
});

test('another message is logged at once', () => {
  const { lines, warn } = startWarnings();
  warn(new Error('read ECONNRESET'));
  warn(new Error('connect ECONNREFUSED 127.0.0.1:6379'));
  expect(lines).toHaveLength(2);
});

test('messages that differ each time are not kept for ever', () => {
  const { lines, warn } = startWarnings();
  for (let n = 0; n < 101; n++) warn(new Error(`Missing lock for job ${n}`));
  warn(new Error('Missing lock for job 0'));
  expect(lines).toHaveLength(102);
});
