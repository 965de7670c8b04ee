/** Refusals of strict mode and Track, with their answers and records. */
import { describe, expect, test } from 'vitest';
import { readBody } from '../../src/calls/read-body.ts';
import { createIntake, issuesOf, PIPELINES, TRACK } from '../support/intake-use-case.ts';

describe('strict mode and the Track API', () => {
  test('report the issues of a refused call and commit no operation of it', async () => {
    const { submit, committed } = createIntake();
    const outcome = await submit('pipelines.track', { userId: 'a' }, { isStrict: true });
    expect(outcome).toMatchObject({
      outcome: 'rejected',
      issues: [{ code: 'required', field: 'event' }],
    });
    expect(await submit('track.v1.event', {})).toMatchObject({
      outcome: 'rejected',
      issues: [{ field: 'name' }],
    });
    expect(committed).toEqual([]);
  });

  test('record refused calls and count them by kind, with source and credential', async () => {
    const { submit, refusals } = createIntake();
    await submit('pipelines.track', { userId: 'a' }, { isStrict: true });
    await submit('pipelines.track', { userId: 'b' }, { isStrict: true });
    await submit('track.v1.event', {});
    const batch = [
      { type: 'person', action: 'identify', identifiers: { id: 'a' }, attributes: {} },
      { type: 'person', action: 'fly', identifiers: { id: 'a' } },
    ];
    await submit('track.v2.batch', { batch });
    await submit(
      'pipelines.track',
      {},
      {
        isStrict: true,
        body: { outcome: 'invalid-json', message: 'no JSON' },
      },
    );
    const recorded = refusals
      .take(5)
      .map(({ environmentId, source, count, issue }) => [
        environmentId,
        source,
        count,
        issue.code,
        issue.field,
        issue.credentialId,
      ]);
    expect(recorded).toEqual([
      [1, 'pipelines.track', 2, 'required', 'event', 11],
      [2, 'track.v1.event', 1, 'required', 'name', 12],
      [2, 'track.v2.batch', 1, 'unsupported', 'action', 12],
      [1, 'pipelines.track', 1, 'invalid_json', null, 11],
    ]);
    expect(refusals.take(6)).toEqual([]);
  });

  test('refusals of ever new kinds take no more than their share', () => {
    const { refusals } = createIntake();
    const workspace = { environmentId: 1, phoneIdentifies: false };
    for (let n = 0; n < 5_000; n++)
      refusals.record(workspace, 'track.v1.identify', [
        { code: 'too_long', field: `attributes.a${n}`, message: 'too long' },
      ]);
    const recorded = refusals.take(5);
    expect(recorded.length).toBeLessThan(1_010);
    expect(recorded.reduce((sum, { count }) => sum + count, 0)).toBe(5_000);
  });

  test.each([
    ['another call', 1, 'pipelines.track'],
    ['another workspace', 2, 'track.v1.identify'],
  ])(
    'refusals of ever new fields leave the fields of %s in the record',
    (_, environmentId, source) => {
      const { refusals } = createIntake();
      const refuse = (id: number, call: string, field: string): void =>
        refusals.record({ environmentId: id, phoneIdentifies: false }, call, [
          { code: 'too_long', field, message: 'too long' },
        ]);
      for (const call of Array.from({ length: 100 }, (__, n) => `call.${n}`).concat(
        'track.v1.identify',
      ))
        for (let n = 0; n < 100; n++) refuse(1, call, `attributes.a${n}`);
      for (let n = 0; n < 3; n++) refuse(environmentId, source, 'event');
      expect(
        refusals
          .take(5)
          .filter(({ issue }) => issue.field === 'event')
          .map((record) => [record.environmentId, record.source, record.count]),
      ).toEqual([[environmentId, source, 3]]);
    },
  );

  test('strict mode refuses values that permissive mode takes with an issue', async () => {
    const { submit, committed } = createIntake();
    const traits = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`t${n}`, n]));
    for (const [name, body] of [
      ['pipelines.identify', { userId: 'a', traits }],
      ['pipelines.identify', { userId: 'a', traits: { email: 'N/A' } }],
      ['pipelines.track', { userId: 'a', event: 'x', timestamp: 'yesterday' }],
    ] as const) {
      expect(await submit(name, body, { isStrict: true })).toMatchObject({ outcome: 'rejected' });
      expect(committed).toEqual([]);
      expect(await submit(name, body)).toEqual({ outcome: 'accepted' });
      expect(issuesOf(committed.splice(0))).toHaveLength(1);
    }
  });

  test('a batch with one bad item is refused whole in strict mode', async () => {
    const { submit, committed } = createIntake();
    const batch = [
      { type: 'track', userId: 'a', event: 'x' },
      { type: 'track', userId: 'a' },
    ];
    const outcome = await submit('pipelines.batch', { batch }, { isStrict: true });
    expect(outcome).toMatchObject({
      outcome: 'rejected',
      issues: [{ batchIndex: 1, field: 'event' }],
    });
    expect(committed).toEqual([]);
  });

  test('a Track v2 batch takes the good items and names the others', async () => {
    const { submit, committed } = createIntake();
    const good = { type: 'person', action: 'identify', identifiers: { id: 'a' }, attributes: {} };
    const bad = { type: 'person', action: 'identify' };
    expect(await submit('track.v2.batch', { batch: [good, bad] })).toMatchObject({
      outcome: 'partly-accepted',
      issues: [{ batchIndex: 1, field: 'identifiers' }],
    });
    expect(committed).toMatchObject([{ type: 'person.identify' }]);
    expect(await submit('track.v2.batch', { batch: [bad] })).toMatchObject({ outcome: 'rejected' });
  });

  test('a body over 32 KB is refused in strict mode and taken without it', async () => {
    const { submit, committed } = createIntake();
    const body = { userId: 'a', event: 'x', properties: { text: 'y'.repeat(33 * 1_024) } };
    expect(await submit('pipelines.track', body, { isStrict: true })).toMatchObject({
      outcome: 'rejected',
      issues: [{ code: 'too_large', message: expect.stringContaining('32 KB') }],
    });
    expect(await submit('pipelines.track', body)).toEqual({ outcome: 'accepted' });
    expect(committed).toHaveLength(1);
  });

  test('a body of 32 KB is taken in strict mode, and one of a byte more is not', async () => {
    const { submit } = createIntake();
    const padded = (sizeBytes: number) =>
      readBody(Buffer.from('{"userId":"a","event":"x"}'.padEnd(sizeBytes)), undefined);
    const outcomeOf = (sizeBytes: number) =>
      submit('pipelines.track', {}, { isStrict: true, body: padded(sizeBytes) });
    expect(await outcomeOf(32_768)).toEqual({ outcome: 'accepted' });
    expect(await outcomeOf(32_769)).toMatchObject({ outcome: 'rejected' });
  });

  test('in strict mode, the answer to a body over 64 KB names the limit of 32 KB', async () => {
    const { submit } = createIntake();
    const tooLarge = { isStrict: true, body: { outcome: 'too-large' } } as const;
    expect(await submit('pipelines.track', {}, tooLarge)).toMatchObject({
      outcome: 'rejected',
      issues: [{ code: 'too_large', message: expect.stringContaining(' 32 KB') }],
    });
  });

  test('wrong credentials are refused, and counted', async () => {
    const { submit, unauthorized } = createIntake();
    const call = { userId: 'a', event: 'x' };
    expect(await submit('pipelines.track', call, { isStrict: true, authorization: TRACK })).toEqual(
      {
        outcome: 'unauthorized',
      },
    );
    for (let n = 0; n < 3; n++) {
      expect(await submit('track.v1.event', { name: 'x' }, { authorization: PIPELINES })).toEqual({
        outcome: 'unauthorized',
      });
    }
    expect(unauthorized.take(5)).toMatchObject([
      { environmentId: 0, source: 'pipelines.track', count: 1 },
      {
        environmentId: 0,
        source: 'track.v1.event',
        count: 3,
        issue: { code: 'authentication_failed' },
      },
    ]);
    expect(unauthorized.take(6)).toEqual([]);
  });

  test('a wrong API key is recorded in the workspace whose site id it came with', async () => {
    const { submit, unauthorized } = createIntake();
    const authorization = `Basic ${Buffer.from('site:wrong').toString('base64')}`;
    await submit('track.v1.event', { name: 'x' }, { authorization });
    expect(unauthorized.take(5)).toMatchObject([{ environmentId: 2 }]);
  });
});
