import { createHash } from 'node:crypto';
import type { Operation, RecordIssue } from '@sluice/domain/operations/operation';
import type { TailLine, TailPublisher } from '@sluice/domain/operations/tail';
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/calls/outcome.ts';
import { acceptCall, type Submission } from '../../src/calls/accept.ts';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { Batcher } from '../../src/commit/batcher.ts';
import { routes, type Call } from '../../src/calls/calls.ts';
import { readBody, type Body } from '../../src/calls/read-body.ts';
import { RefusalRecorder } from '../../src/calls/refusal-recorder.ts';
import { UnauthorizedRecorder } from '../../src/auth/unauthorized-recorder.ts';
import { operationsIn } from '../support/operations-in.ts';

const PIPELINES = `Basic ${Buffer.from('key:').toString('base64')}`;
const TRACK = `Basic ${Buffer.from('site:secret').toString('base64')}`;
const hashed = (secret: string) => createHash('sha256').update(secret).digest();

function callNamed(name: string): Call {
  const route = routes.find(({ call }) => call.name === name);
  if (!route) throw new Error(`no call ${name}`);
  return route.call;
}

/** A use case with a broker that confirms, or not. */
function createIntake(
  options: { isBrokerAway?: boolean; pendingSizeBytesMax?: number; tail?: TailPublisher } = {},
) {
  const committed: Operation[] = [];
  const keys = new KeyRing();
  const workspace = { accountId: '1', phoneIdentifies: false };
  keys.replace([
    {
      kind: 'pipelines',
      siteId: null,
      secretHash: hashed('key'),
      environmentId: 1,
      credentialId: '11',
      ...workspace,
    },
    {
      kind: 'track',
      siteId: 'site',
      secretHash: hashed('secret'),
      environmentId: 2,
      credentialId: '12',
      ...workspace,
    },
  ]);
  let id = 0;
  const batcher = new Batcher({
    shardCount: 1,
    commit: (commitBatches) => {
      if (options.isBrokerAway) return Promise.reject(new Error('away'));
      committed.push(...operationsIn(commitBatches));
      return Promise.resolve('broker');
    },
    newId: () => `envelope-${id++}`,
    pendingSizeBytesMax: options.pendingSizeBytesMax ?? 1_000_000,
    onCommitFailure: () => undefined,
  });
  const unauthorized = new UnauthorizedRecorder();
  const refusals = new RefusalRecorder();
  const submit = (
    name: string,
    body: unknown,
    overrides: Partial<Submission> = {},
  ): Promise<Outcome> => {
    const call = callNamed(name);
    const submission: Submission = {
      call,
      authorization: call.api === 'pipelines' ? PIPELINES : TRACK,
      isStrict: false,
      body: readBody(new Uint8Array(Buffer.from(JSON.stringify(body)))),
      parameters: ['person-1'],
      ...overrides,
    };
    return new Promise((resolve) => {
      acceptCall(
        {
          keys,
          batcher,
          ...(options.tail && { tail: options.tail }),
          rateLimiter: undefined,
          recordUnauthorized: (source, environmentId) => unauthorized.record(source, environmentId),
          recordRefusal: refusals.record.bind(refusals),
          retryAfterSeconds: () => 7,
          now: () => 1_000,
          newId: () => `event-${id++}`,
        },
        submission,
        resolve,
      );
    });
  };
  return { submit, committed, unauthorized, refusals };
}

const issuesOf = (operations: readonly Operation[]) =>
  operations.filter((operation): operation is RecordIssue => operation.type === 'issue.record');

describe('what is accepted', () => {
  test('is committed under the workspace of its credentials, with the time of intake', async () => {
    const { submit, committed } = createIntake();
    expect(await submit('pipelines.track', { userId: 'a', event: 'bought' })).toEqual({
      outcome: 'accepted',
    });
    expect(await submit('track.v1.event', { name: 'bought' })).toEqual({ outcome: 'accepted' });
    expect(committed).toMatchObject([
      { type: 'event.track', environmentId: 1, receivedAtMs: 1_000, name: 'bought' },
      { type: 'event.track', environmentId: 2, receivedAtMs: 1_000, name: 'bought' },
    ]);
  });

  test('a write key in the body is as good as the header', async () => {
    const { submit, committed } = createIntake();
    await submit(
      'pipelines.track',
      { userId: 'a', event: 'bought', writeKey: 'key' },
      { authorization: '' },
    );
    expect(committed).toHaveLength(1);
  });
});

describe('strict mode and the Track API', () => {
  test('what is wrong is told and nothing is taken', async () => {
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

  test('what strict mode and Track refused is recorded, counted by kind, with its source and credential', async () => {
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

  test('strict mode refuses what permissive mode would put right later', async () => {
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
      readBody(Buffer.from('{"userId":"a","event":"x"}'.padEnd(sizeBytes)));
    const outcomeOf = (sizeBytes: number) =>
      submit('pipelines.track', {}, { isStrict: true, body: padded(sizeBytes) });
    expect(await outcomeOf(32_768)).toEqual({ outcome: 'accepted' });
    expect(await outcomeOf(32_769)).toMatchObject({ outcome: 'rejected' });
  });

  test('a body over 64 KB is told the bound of strict mode there', async () => {
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

describe('permissive mode', () => {
  const broken: [string, Body][] = [
    ['too large', { outcome: 'too-large' }],
    ['badly compressed', { outcome: 'invalid-encoding', message: 'not gzip' }],
    ['no JSON', { outcome: 'invalid-json', message: 'not JSON' }],
  ];

  test.each(broken)('a body that is %s is answered as accepted and recorded', async (_, body) => {
    const { submit, committed } = createIntake();
    expect(await submit('pipelines.identify', {}, { body })).toEqual({ outcome: 'accepted' });
    expect(committed).toMatchObject([
      { type: 'issue.record', environmentId: 1, source: 'pipelines.identify' },
    ]);
  });

  test('a missing field is recorded, and nothing else is stored', async () => {
    const { submit, committed } = createIntake();
    expect(await submit('pipelines.group', { userId: 'a' })).toEqual({ outcome: 'accepted' });
    expect(committed).toMatchObject([
      { type: 'issue.record', issue: { code: 'required', field: 'groupId' } },
    ]);
  });

  test('the good items of a batch are taken and a thousand bad ones of a kind are one record with a count', async () => {
    const { submit, committed } = createIntake();
    const bad = Array.from({ length: 1_000 }, () => ({ type: 'track', userId: 'a' }));
    await submit('pipelines.batch', {
      batch: [{ type: 'track', userId: 'a', event: 'x' }, ...bad],
    });
    expect(committed).toHaveLength(2);
    expect(issuesOf(committed)).toMatchObject([{ count: 1_000, issue: { code: 'required' } }]);
  });

  test('wrong credentials are answered as accepted, store nothing, and are counted', async () => {
    const { submit, committed, unauthorized } = createIntake();
    const outcome = await submit(
      'pipelines.track',
      { userId: 'a', event: 'x' },
      { authorization: 'Basic eDo=' },
    );
    expect(outcome).toEqual({ outcome: 'accepted' });
    expect(committed).toEqual([]);
    expect(unauthorized.take(5)).toHaveLength(1);
  });
});

describe('a broker that is away, or too much at once', () => {
  test('is never answered as accepted, in no mode', async () => {
    const away = createIntake({ isBrokerAway: true });
    const full = createIntake({ pendingSizeBytesMax: 1 });
    for (const intake of [away, full]) {
      for (const isStrict of [true, false]) {
        expect(
          await intake.submit('pipelines.track', { userId: 'a', event: 'x' }, { isStrict }),
        ).toEqual({
          outcome: 'overloaded',
          retryAfterSeconds: 7,
        });
      }
    }
  });
});

describe('the live tail', () => {
  const tailed = () => {
    const published: TailLine[] = [];
    const asked: number[] = [];
    const tail: TailPublisher = {
      isTailed: (environmentId) => {
        asked.push(environmentId);
        return environmentId === 1;
      },
      publish: (environmentId, lines) => {
        expect(environmentId).toBe(1);
        published.push(...lines);
      },
    };
    return { tail, told: published, asked };
  };

  test('a watched call is told: what was taken of it and what was wrong', async () => {
    const { tail, told: published } = tailed();
    const { submit } = createIntake({ tail });
    const batch = {
      batch: [
        { type: 'track', userId: 'a', event: 'x' },
        { type: 'track', userId: 'b' },
      ],
    };
    await submit('pipelines.batch', batch);
    expect(published).toMatchObject([
      { kind: 'received', outcome: 'accepted', name: 'x', people: [{ id: 'a' }] },
      { kind: 'refused', outcome: 'refused', details: { source: 'pipelines.batch' } },
    ]);
  });

  test('what is not durable is never told as accepted', async () => {
    const { tail, told: published } = tailed();
    await createIntake({ tail, isBrokerAway: true }).submit('pipelines.track', {
      userId: 'a',
      event: 'x',
    });
    await createIntake({ tail }).submit('pipelines.track', { userId: 'a' }, { isStrict: true });
    expect(published.map(({ outcome }) => outcome)).toEqual(['overloaded', 'refused']);
  });

  test('of a workspace that nobody watches nothing is made or told', async () => {
    const { tail, told: published, asked } = tailed();
    await createIntake({ tail }).submit('track.v1.event', { name: 'x' });
    expect(asked).toEqual([2]);
    expect(published).toEqual([]);
  });
});
