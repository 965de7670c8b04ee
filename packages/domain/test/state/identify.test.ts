/** The rules of ingestion-conventions.md §1.2 and §1.3. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/values/json.ts';
import type { StateChanges } from '../../src/state/loaded-state.ts';
import {
  identify,
  remove,
  suppress,
  track,
  unsuppress,
  NOW_MS,
} from '../../src/testing/sample-operations.ts';
import { svcId } from '../../src/values/svc-id.ts';
import { MemoryStore } from '../support/memory-store.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const codes = (changes: StateChanges): string[] => changes.issues.map((row) => row.issue.code);
const kinds = (changes: StateChanges): string[] => changes.events.map((row) => row.kind);
const whoIs = (): object[] => store.people.map(({ id, email }) => ({ id, email }));

describe('whom a call means', () => {
  it('creates on first sight and finds again, an email in any letter case', () => {
    store.apply(identify('email:Ann@X.com', { name: 'Ann' }));
    store.apply(identify('email:aNN@x.COM', { age: 3 }));
    expect(store.people).toMatchObject([
      { id: null, email: 'Ann@X.com', attributes: { name: 'Ann', age: 3 } },
    ]);
  });

  it('takes ids exactly: another letter case is another person', () => {
    store.apply(identify('id:a'), identify('id:A'));
    expect(whoIs()).toEqual([
      { id: 'a', email: null },
      { id: 'A', email: null },
    ]);
  });

  it('gives an unknown id of the call to the person with the email of the body', () => {
    store.apply(identify('email:a@x'));
    const changes = store.apply(identify('id:5', { email: 'A@x', plan: 'pro' }));
    expect(store.people).toMatchObject([{ id: '5', email: 'a@x', attributes: { plan: 'pro' } }]);
    expect(codes(changes)).toEqual([]);
    expect(store.apply(track('id:5', 'seen')).events[0]?.personId).toBe(store.people[0]?.personId);
  });

  it('gives an unknown email of the call to the person with the id of the body', () => {
    store.apply(identify('id:5'));
    store.apply(identify('email:a@x', { id: 5 }));
    expect(whoIs()).toEqual([{ id: '5', email: 'a@x' }]);
  });

  it('refuses the email of somebody else, keeps the rest, and names both', () => {
    store.apply(identify('id:1'), identify('email:b@x'));
    const changes = store.apply(identify('id:1', { email: 'b@x', plan: 'pro' }));
    expect(store.people).toMatchObject([
      { id: '1', email: null, attributes: { plan: 'pro' } },
      { id: null, email: 'b@x', attributes: {} },
    ]);
    expect(changes.issues).toHaveLength(1);
    expect(changes.issues[0]?.issue).toMatchObject({
      code: 'identifier_conflict',
      field: 'email',
      sample: 'b@x',
    });
    expect(changes.issues[0]?.issue.message).toContain('a3000001');
    expect(changes.issues[0]?.issue.message).toContain('a3000002');
    expect(kinds(changes)).toEqual(['failed_attribute_change', 'attribute_change']);
  });

  it('never writes over somebody who has another id: an unknown id with a taken email is a new person', () => {
    store.apply(identify('id:1', { email: 'a@x', plan: 'pro' }));
    const changes = store.apply(identify('id:2', { email: 'a@x', plan: 'free' }));
    expect(store.people).toMatchObject([
      { id: '1', email: 'a@x', attributes: { plan: 'pro' } },
      { id: '2', email: null, attributes: { plan: 'free' } },
    ]);
    expect(codes(changes)).toEqual(['identifier_conflict']);
  });

  it('replaces an identifier that is set only under the svc_id', () => {
    store.apply(identify('id:1', { email: 'a@x' }));
    expect(codes(store.apply(identify('id:1', { email: 'b@x' })))).toEqual(['identifier_conflict']);
    expect(codes(store.apply(identify('id:1', { email: '' })))).toEqual(['identifier_conflict']);
    expect(whoIs()).toEqual([{ id: '1', email: 'a@x' }]);
    expect(codes(store.apply(identify('svc_id:a3000001', { email: 'b@x', id: '2' })))).toEqual([]);
    expect(whoIs()).toEqual([{ id: '2', email: 'b@x' }]);
    expect(store.apply(identify('email:a@x')).people.inserted).toHaveLength(1);
  });

  it('removes an identifier under the svc_id', () => {
    store.apply(identify('id:1', { email: 'a@x' }));
    store.apply(identify('svc_id:a3000001', { email: null }));
    expect(whoIs()).toEqual([{ id: '1', email: null }]);
    expect(store.identifiers).toHaveLength(1);
  });

  it('changes no person for an unknown svc_id, or for one of another workspace', () => {
    store.apply(identify('id:1'));
    expect(codes(store.apply(identify('svc_id:a3000009', { plan: 'pro' })))).toEqual([
      'person_not_found',
    ]);
    expect(
      codes(store.apply({ ...identify('svc_id:a3000001', { plan: 'pro' }), environmentId: 2 })),
    ).toEqual(['person_not_found']);
    expect(codes(store.apply(identify('svc_id:x', { plan: 'pro' })))).toEqual(['person_not_found']);
    expect(store.people).toMatchObject([{ attributes: {} }]);
  });

  it('keeps workspaces apart: one id in two is two people', () => {
    store.apply(identify('id:1', { plan: 'pro' }), {
      ...identify('id:1', { plan: 'free' }),
      environmentId: 2,
    });
    expect(store.people).toMatchObject([
      { environmentId: 1, attributes: { plan: 'pro' } },
      { environmentId: 2, attributes: { plan: 'free' } },
    ]);
  });

  it('with _update changes existing people and creates no person', () => {
    expect(codes(store.apply(identify('id:1', { plan: 'pro' }, { mayCreate: false })))).toEqual([
      'person_not_found',
    ]);
    expect(store.people).toEqual([]);
    store.apply(identify('id:1'), identify('id:1', { plan: 'pro' }, { mayCreate: false }));
    expect(store.people).toMatchObject([{ attributes: { plan: 'pro' } }]);
  });

  it('makes a person for a deleted one, and ignores a suppressed one until it is unsuppressed', () => {
    store.apply(identify('id:1', { email: 'a@x', plan: 'pro' }), remove('id:1'));
    store.apply(identify('id:1', { email: 'a@x' }));
    expect(store.people).toMatchObject([{ id: '1', email: 'a@x', attributes: {} }]);
    store.apply(suppress('id:1'));
    expect(store.people).toEqual([]);
    for (const operation of [
      identify('email:a@x'),
      identify('id:2', { email: 'A@x' }),
      track('id:1', 'seen'),
    ]) {
      expect(codes(store.apply(operation))).toEqual(['suppressed']);
    }
    expect(store.people).toEqual([]);
    store.apply(unsuppress('email:a@x'));
    store.apply(identify('id:1'));
    expect(whoIs()).toEqual([{ id: '1', email: null }]);
  });

  it('suppresses an identifier that has no owner', () => {
    store.apply(suppress('email:a@x'));
    expect(codes(store.apply(identify('id:1', { email: 'A@X' })))).toEqual(['suppressed']);
    expect(store.people).toEqual([]);
  });

  it('identifies by phone only who came in under it', () => {
    store.apply(identify('id:1', { phone: '+1' }), identify('phone:+1', { plan: 'pro' }));
    expect(store.people).toMatchObject([
      { id: '1', phone: null, attributes: { phone: '+1' } },
      { id: null, phone: '+1', attributes: { phone: '+1', plan: 'pro' } },
    ]);
    expect(codes(store.apply(identify('phone:+1', { phone: '+2' })))).toEqual([
      'identifier_conflict',
    ]);
    expect(codes(store.apply(identify('id:1', { phone: '+3' })))).toEqual([]);
  });

  it('under the svc_id takes no phone that is suppressed, or that cannot identify a person', () => {
    store.apply(identify('phone:+4915112345678'), suppress('phone:+4915112345678'));
    store.apply(identify('phone:+4915100000000'));
    const who = `svc_id:${svcId(store.people[0]?.personId ?? 0)}`;
    expect(codes(store.apply(identify(who, { phone: '+4915112345678' })))).toEqual(['suppressed']);
    // Too long for an index: it would keep the whole call from being stored.
    for (const phone of ['0151 12345678', '9'.repeat(10_000)])
      expect(codes(store.apply(identify(who, { phone, plan: 'pro' })))).toEqual(['invalid']);
    expect(store.people).toMatchObject([{ phone: '+4915100000000', attributes: { plan: 'pro' } }]);
    expect(codes(store.apply(identify('phone:+4915112345678')))).toEqual(['suppressed']);
  });

  it('forgets a phone that a call by svc_id removes or replaces', () => {
    store.apply(identify('phone:+4915100000000', { id: '1' }));
    const who = `svc_id:${svcId(store.people[0]?.personId ?? 0)}`;
    store.apply(identify(who, { phone: '+4915100000001' }));
    expect(store.people).toMatchObject([{ attributes: { phone: '+4915100000001' } }]);
    store.apply(identify(who, { phone: null }));
    expect(store.people).toMatchObject([{ id: '1', phone: null, attributes: {} }]);
    expect(store.people[0]?.attributes).toEqual({});
  });
});

describe('the changes of a call', () => {
  const attributesAfter = (...patches: JsonObject[]): JsonObject | undefined => {
    for (const patch of patches) store.apply(identify('id:1', patch));
    return store.people[0]?.attributes;
  };

  it('merges one level deep; null and the empty string remove', () => {
    expect(
      attributesAfter(
        { a: 1, b: { c: 1 }, d: 'x', e: 0 },
        { a: null, b: { f: 2 }, d: '', e: false },
      ),
    ).toEqual({
      b: { f: 2 },
      e: false,
    });
  });

  it('keeps a key named __proto__ an ordinary key', () => {
    const attributes = attributesAfter(
      JSON.parse('{"__proto__": {"isAdmin": true}, "a": 1}') as JsonObject,
      { b: 2 },
    );
    expect(JSON.parse(JSON.stringify(attributes))).toEqual(
      JSON.parse('{"__proto__": {"isAdmin": true}, "a": 1, "b": 2}'),
    );
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it('notes what changed, from and to, and nothing where nothing did', () => {
    expect(store.apply(identify('id:1', { a: 1 })).events).toMatchObject([
      { kind: 'profile_create', data: { id: { from: null, to: '1' }, a: { from: null, to: 1 } } },
    ]);
    expect(store.apply(identify('id:1', { a: [1, { x: 1, y: 2 }] })).events).toMatchObject([
      { kind: 'attribute_change', data: { a: { from: 1, to: [1, { x: 1, y: 2 }] } } },
    ]);
    const repeated = store.apply(identify('id:1', { a: [1, { y: 2, x: 1 }], b: null }));
    expect(repeated.events).toEqual([]);
    expect(repeated.people).toEqual({ inserted: [], updated: [], deleted: [] });
  });

  it('skips attributes that are older than the stored ones', () => {
    store.apply(identify('id:1', { plan: 'pro' }, { attributesAtMs: 2000 }));
    const older = store.apply(identify('id:1', { plan: 'free' }, { attributesAtMs: 1999 }));
    expect(codes(older)).toEqual(['skipped_update']);
    expect(kinds(older)).toEqual(['skipped_update']);
    expect(store.people[0]).toMatchObject({ attributes: { plan: 'pro' }, attributesAtMs: 2000 });
    store.apply(identify('id:1', { plan: 'same second' }, { attributesAtMs: 2000 }));
    expect(store.people[0]?.attributes).toEqual({ plan: 'same second' });
    // A write without a time is not part of the order.
    store.apply(
      identify('id:1', { plan: 'no time' }),
      identify('id:1', { a: 1 }, { attributesAtMs: 2001 }),
    );
    expect(store.people[0]).toMatchObject({
      attributes: { plan: 'no time', a: 1 },
      attributesAtMs: 2001,
    });
  });

  it('a stored time that is far ahead, from before there was a bound, does not block later writes', () => {
    const year9999Ms = Date.UTC(9999, 11, 31);
    store.apply(identify('id:1', { plan: 'pro' }, { attributesAtMs: year9999Ms }));
    store.apply(identify('id:1', { plan: 'free' }, { attributesAtMs: NOW_MS - 1_000 }));
    expect(store.people[0]).toMatchObject({
      attributes: { plan: 'free' },
      attributesAtMs: NOW_MS - 1_000,
    });
    // A day ahead is a clock that is wrong, or a zone that was left out.
    store.apply(identify('id:1', { plan: 'ahead' }, { attributesAtMs: NOW_MS + 86_400_000 }));
    store.apply(identify('id:1', { plan: 'older' }, { attributesAtMs: NOW_MS }));
    expect(store.people[0]?.attributes).toEqual({ plan: 'ahead' });
  });

  it('holds 300 attributes a person: more are refused by name, those there can change', () => {
    const many: JsonObject = {};
    for (let index = 0; index < 299; index++) many[`a${index}`] = index;
    store.apply(identify('id:1', many));
    const changes = store.apply(
      identify('id:1', { a0: 'changed', fits: 1, over: 1, alsoOver: 1, a1: null }),
    );
    expect(changes.issues[0]?.issue).toMatchObject({ code: 'too_large', sample: 'over' });
    const attributes = store.people[0]?.attributes ?? {};
    expect(Object.keys(attributes)).toHaveLength(299);
    expect(attributes).toMatchObject({ a0: 'changed', fits: 1 });
  });

  it('ignores svc_id among attributes, and reports identifiers that are not a text or a number', () => {
    const changes = store.apply(identify('id:1', { svc_id: 'a3000099', email: { a: 1 } }));
    expect(codes(changes)).toEqual(['invalid']);
    expect(store.people).toMatchObject([{ personId: 1, email: null, attributes: {} }]);
  });
});
