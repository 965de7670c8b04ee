import { createLogger } from '@sluice/platform/process/logger';
import { beforeEach, expect, test } from 'vitest';
import { FailingTries } from '../../src/process/failing-tries.ts';

let nowMs: number;
let tries: FailingTries;
beforeEach(() => {
  nowMs = 1_000;
  tries = new FailingTries(() => nowMs, 60_000, createLogger('test', 'silent'));
});

/** A try each five seconds. */
function failFor(seconds: number, error: unknown): void {
  for (let second = 0; second <= seconds; second += 5) {
    if (second > 0) nowMs += 5_000;
    tries.failed(error);
  }
}
const refused = (code: string, message: string) => Object.assign(new Error(message), { code });

test('if each try fails for half a minute, the report has the last reason', () => {
  failFor(25, new Error('another reason, earlier'));
  expect(tries.report()).toBeUndefined();
  failFor(5, refused('0A000', 'could not read a stable value'));
  expect(tries.report()).toEqual({ seconds: 30, reason: '0A000: could not read a stable value' });
});

test('a batch that gets through in between shows that only some fail', () => {
  for (let round = 0; round < 5; round++) {
    failFor(20, new Error('one that fails alone'));
    tries.succeeded();
  }
  expect(tries.report()).toBeUndefined();
});

test('it is over with the first batch that gets through', () => {
  failFor(60, new Error('refused'));
  expect(tries.report()).toBeDefined();
  tries.succeeded();
  expect(tries.report()).toBeUndefined();
});

test('failures stop counting if a try and the pause before it are over without another failure', () => {
  failFor(40, new Error('refused'));
  nowMs += 70_000;
  expect(tries.report()).toBeDefined();
  nowMs += 1;
  expect(tries.report()).toBeUndefined();
});

test.each([1_000, 300_000, 3_600_000])(
  'if a try may take %i ms, failures are reported within a minute and until one succeeds',
  (hungAfterMs) => {
    tries = new FailingTries(() => nowMs, hungAfterMs, createLogger('test', 'silent'));
    failFor(30, new Error('refused'));
    // Between two tries, too.
    nowMs += 4_999;
    expect(tries.report()).toMatchObject({ reason: 'refused' });
    tries.succeeded();
    expect(tries.report()).toBeUndefined();
  },
);
