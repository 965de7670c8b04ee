/** The subscription and its preferences: `ingestion-conventions.md` §1.3. */
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/values/json.ts';
import type { StateChanges } from '../../src/state/loaded-state.ts';
import { identify, NOW_MS, remove } from '../../src/testing/sample-operations.ts';
import { MemoryStore } from '../support/memory-store.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

describe('the subscription', () => {
  const preferenceCount = (): number =>
    Object.values(store.people[0]?.attributes['svc_subscription_preferences'] ?? {}).reduce(
      (count: number, group: object) => count + Object.keys(group).length,
      0,
    );

  const reported = (changes: StateChanges): string[] =>
    changes.reports.map((report) => report.eventType);

  it.each([
    [true, true],
    ['TRUE', true],
    [1, true],
    ['1', true],
    [false, false],
    ['yes', false],
    [0, false],
    [2, false],
  ])('takes unsubscribed %j as %j', (given, taken) => {
    store.apply(identify('id:1', { unsubscribed: given }));
    expect(store.people[0]).toMatchObject({ unsubscribed: taken, attributes: {} });
  });

  it('reports each change once and no repetition', () => {
    expect(reported(store.apply(identify('id:1', { plan: 'pro' })))).toEqual([]);
    expect(reported(store.apply(identify('id:1', { unsubscribed: false })))).toEqual([
      'customer_subscribed',
    ]);
    expect(reported(store.apply(identify('id:1', { unsubscribed: 0 })))).toEqual([]);
    expect(reported(store.apply(identify('id:1', { unsubscribed: true })))).toEqual([
      'customer_unsubscribed',
    ]);
    expect(reported(store.apply(identify('id:1', { unsubscribed: 'true' })))).toEqual([]);
    expect(reported(store.apply(identify('id:1', { unsubscribed: null })))).toEqual([
      'customer_subscribed',
    ]);
    expect(reported(store.apply(identify('id:2', { unsubscribed: true })))).toEqual([
      'customer_unsubscribed',
    ]);
  });

  it('reports who, with the identifiers after the change', () => {
    const [report] = store.apply(identify('id:1', { unsubscribed: true, email: 'A@x' })).reports;
    expect(report).toMatchObject({
      environmentId: 1,
      objectType: 'customer',
      metric: 'unsubscribed',
      occurredAtMs: NOW_MS,
      personId: 1,
      data: {
        customer_id: '1',
        email_address: 'A@x',
        identifiers: { id: '1', email: 'A@x', svc_id: 'a3000001' },
      },
    });
  });

  it('holds 300 preferences a person: more are refused by name, those there can change', () => {
    const topics = (from: number, to: number, value: boolean): JsonObject =>
      Object.fromEntries(
        Array.from({ length: to - from }, (_, index) => [
          `svc_subscription_preferences.topics.t${from + index}`,
          value,
        ]),
      );
    store.apply(identify('id:1', topics(0, 299, true)));
    const changes = store.apply(identify('id:1', topics(298, 310, false)));
    expect(changes.issues).toMatchObject([
      {
        issue: {
          code: 'too_large',
          message: expect.stringMatching(
            /300 subscription preferences.* 10 new ones.*topics\.t300/,
          ),
        },
      },
    ]);
    expect(preferenceCount()).toBe(300);
    expect(store.people[0]?.attributes).toMatchObject({
      svc_subscription_preferences: { topics: { t0: true, t298: false, t299: false } },
    });
    store.apply(identify('id:1', { 'svc_subscription_preferences.topics.t0': null }));
    expect(store.apply(identify('id:1', topics(300, 301, true))).issues).toEqual([]);
    store.apply(
      identify('id:1', {
        svc_subscription_preferences: null,
        'svc_subscription_preferences.channels.sms': false,
      }),
    );
    expect(store.people[0]?.attributes).toEqual({
      svc_subscription_preferences: { channels: { sms: false } },
    });
  });

  it('merges preferences of one call like the same preferences of several calls', () => {
    const name = fc.constantFrom(
      '',
      '.topics',
      '.topics.a',
      '.topics.b',
      '.topics.a.b',
      '.x',
      '.x.__proto__',
    );
    const yesOrNo = fc.constantFrom(true, 'false', null, '');
    const group = fc.oneof(yesOrNo, fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), yesOrNo));
    const value = fc.oneof(
      group,
      fc.dictionary(fc.constantFrom('topics', 'x', '__proto__'), group),
    );
    const change = fc
      .tuple(name, value)
      .map(([end, given]) => [`svc_subscription_preferences${end}`, given] as const);
    fc.assert(
      fc.property(fc.uniqueArray(change, { selector: ([attribute]) => attribute }), (changes) => {
        for (const who of ['id:1', 'id:2']) store.apply(remove(who), identify(who));
        store.apply(identify('id:1', Object.fromEntries(changes)));
        for (const one of changes) store.apply(identify('id:2', Object.fromEntries([one])));
        const [together, apart] = ['1', '2'].map(
          (id) => store.people.find((person) => person.id === id)?.attributes,
        );
        expect(together).toEqual(apart);
      }),
    );
  });

  it('merges preferences, whole or one at a time, and reports real changes only', () => {
    const first = store.apply(
      identify('id:1', {
        svc_subscription_preferences: { topics: { topic_1: true, topic_2: 'false' } },
      }),
    );
    expect(first.reports).toMatchObject([
      {
        eventType: 'customer_subscription_preferences_changed',
        metric: 'svc_subscription_preferences_changed',
        content: { content: '{"topic_1":true,"topic_2":false}' },
      },
    ]);
    expect(
      reported(
        store.apply(identify('id:1', { 'svc_subscription_preferences.topics.topic_1': 'true' })),
      ),
    ).toEqual([]);
    expect(
      reported(
        store.apply(
          identify('id:1', {
            'svc_subscription_preferences.topics.topic_2': true,
            'svc_subscription_preferences.channels.email': 0,
          }),
        ),
      ),
    ).toEqual(['customer_subscription_preferences_changed']);
    expect(store.people[0]?.attributes).toEqual({
      svc_subscription_preferences: {
        topics: { topic_1: true, topic_2: true },
        channels: { email: false },
      },
    });
    expect(
      reported(
        store.apply(
          identify('id:1', { svc_subscription_preferences: { topics: { topic_3: null } } }),
        ),
      ),
    ).toEqual([]);
    store.apply(identify('id:1', { 'svc_subscription_preferences.topics': null }));
    expect(store.people[0]?.attributes).toEqual({
      svc_subscription_preferences: { channels: { email: false } },
    });
    expect(reported(store.apply(identify('id:1', { svc_subscription_preferences: null })))).toEqual(
      ['customer_subscription_preferences_changed'],
    );
    expect(store.people[0]?.attributes).toEqual({});
  });
});
