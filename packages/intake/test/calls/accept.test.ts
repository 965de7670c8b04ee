import type { TailLine, TailPublisher } from '@sluice/domain/operations/tail';
import { describe, expect, test } from 'vitest';
import type { Body } from '../../src/calls/read-body.ts';
import { createIntake, issuesOf } from '../support/intake-use-case.ts';

describe('an accepted call', () => {
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

  test('a call that lacks a required field stores the issue alone', async () => {
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

  test('a call with wrong credentials is answered as accepted and counted, and stores no operation', async () => {
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

  test('intake publishes the accepted and the refused items of a tailed call', async () => {
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

  test('a call that intake did not commit is published as overloaded or refused', async () => {
    const { tail, told: published } = tailed();
    await createIntake({ tail, isBrokerAway: true }).submit('pipelines.track', {
      userId: 'a',
      event: 'x',
    });
    await createIntake({ tail }).submit('pipelines.track', { userId: 'a' }, { isStrict: true });
    expect(published.map(({ outcome }) => outcome)).toEqual(['overloaded', 'refused']);
  });

  test('intake asks whether a workspace has a tail, and publishes no call of a workspace without one', async () => {
    const { tail, told: published, asked } = tailed();
    await createIntake({ tail }).submit('track.v1.event', { name: 'x' });
    expect(asked).toEqual([2]);
    expect(published).toEqual([]);
  });
});
