import { expect, test } from 'vitest';
import { UnauthorizedRecorder } from '../../src/auth/unauthorized-recorder.ts';

test('a flood of wrong keys is one issue, one summary and exact counts', () => {
  const recorder = new UnauthorizedRecorder();
  for (let n = 0; n < 1_000; n++)
    recorder.record('pipelines.track', undefined, { reason: 'not_in_force', hint: 'wkey' });
  recorder.record('pipelines.track', undefined, { reason: 'missing', hint: undefined });
  expect(Object.fromEntries(recorder.reasonCounts)).toEqual({
    missing: 1,
    not_in_force: 1_000,
    untested_key: 0,
    demo_elsewhere: 0,
  });
  // The sender of the last call cannot be found, so the line describes the one before it.
  expect(recorder.takeSummary()).toEqual({
    count: 1_001,
    countsByReason: { not_in_force: 1_000, missing: 1 },
    last: { source: 'pipelines.track', reason: 'not_in_force', hint: 'wkey' },
  });
  expect(recorder.takeSummary()).toBeUndefined();
  // The last call has no key, so the sample is of the call before it.
  expect(recorder.take(1)).toMatchObject([
    { count: 1_001, environmentId: 0, issue: { sample: 'wkey' } },
  ]);
});

test('an issue of a call without a key has no sample', () => {
  const recorder = new UnauthorizedRecorder();
  recorder.record('pipelines.track', undefined, { reason: 'missing', hint: undefined });
  const [issue] = recorder.take(1);
  expect(issue).toMatchObject({ count: 1, environmentId: 0 });
  expect(JSON.stringify(issue)).not.toContain('sample');
});

test('a key that is not tested yet is an issue of its workspace that names this reason', () => {
  const recorder = new UnauthorizedRecorder();
  recorder.record('pipelines.track', 7, { reason: 'untested_key', hint: 'newk' });
  recorder.record('pipelines.track', 7, { reason: 'not_in_force', hint: 'rong' });
  const issues = recorder.take(1);
  expect(issues).toMatchObject([{ environmentId: 7 }, { environmentId: 7 }]);
  expect(JSON.stringify(issues[0])).toContain('the key is new');
  expect(JSON.stringify(issues[1])).toContain('not in force');
  // The workspace reads them, and both hints may be of its own credentials.
  expect(JSON.stringify(issues)).not.toContain('sample');
});
