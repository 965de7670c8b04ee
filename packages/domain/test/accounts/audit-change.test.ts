import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  auditAction,
  auditHashText,
  diffAttributes,
  REDACTED,
  type AttributeChange,
  type HashedAuditEntry,
} from '../../src/accounts/audit-change.ts';
import { AUDIT_OBJECTS, type AuditState } from '../../src/accounts/audit-registry.ts';
import { canonicalJson, type Json } from '../../src/values/json.ts';

type Account = AuditState<'account'>;

const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as Json);
const account: fc.Arbitrary<Account> = fc.record(
  { name: fc.string(), address: json, products: fc.array(json), owner_user_id: fc.nat() },
  { requiredKeys: [] },
);

/** The state of an object after its changes, from an empty one. */
function replay(history: readonly (readonly AttributeChange[])[]): Record<string, Json> {
  const state: Record<string, Json> = {};
  for (const { attribute, from, to } of history.flat()) {
    expect(state[attribute] ?? null).toEqual(from);
    if (to === null) delete state[attribute];
    else state[attribute] = to;
  }
  return state;
}

describe('changes', () => {
  test('replayed in order from an empty object give the present state', () => {
    fc.assert(
      fc.property(fc.array(fc.option(account), { minLength: 1 }), (states) => {
        const all = [null, ...states];
        const history = states.map((after, index) =>
          diffAttributes('account', all[index] ?? null, after),
        );
        const present = Object.entries(all.at(-1) ?? {}).filter(([, value]) => value !== null);
        expect(replay(history)).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(present))));
      }),
    );
  });

  test('of a secret show that it changed, and hide both values', () => {
    const changes = diffAttributes(
      'environment',
      { webhook_signing_key: 'old secret' },
      { webhook_signing_key: 'new secret' },
    );
    expect(changes).toEqual([
      { attribute: 'webhook_signing_key', from: REDACTED, to: REDACTED, redacted: true },
    ]);
  });

  test('of a field that the registry does not have are a bug', () => {
    const unknown = { name: 'A', colour: 'red' } as Account;
    expect(() => diffAttributes('account', null, unknown)).toThrow('account.colour');
  });

  test('do not depend on the order of keys, nor on how a time is given', () => {
    const before = { address: { city: 'Oslo', line1: 'A' } };
    expect(diffAttributes('account', before, { address: { line1: 'A', city: 'Oslo' } })).toEqual(
      [],
    );
    expect(
      diffAttributes(
        'api_credential',
        { expires_at: new Date(0) },
        { expires_at: '1970-01-01T00:00:00.000Z' },
      ),
    ).toEqual([]);
  });

  test('hold no text that Postgres refuses', () => {
    const [change] = diffAttributes('account', null, { name: 'a\0b\ud800' });
    expect(change?.to).toBe('a\ufffdb\ufffd');
  });

  test('are a creation, an update or a deletion by which states there are', () => {
    expect([auditAction(null, {}), auditAction({}, {}), auditAction({}, null)]).toEqual([
      'created',
      'updated',
      'deleted',
    ]);
  });
});

describe('the text that is hashed', () => {
  const entry: HashedAuditEntry = {
    accountId: 1,
    auditLogId: 2,
    occurredAtMs: 3,
    action: 'updated',
    objectType: 'account',
    objectId: '1',
    objectName: 'Name',
    environmentId: 4,
    actorType: 'user',
    userId: 5,
    serviceAccountId: 6,
    credentialId: 7,
    ipAddr: '192.0.2.1',
    userAgent: 'agent',
    requestId: 'request',
    runId: 'run',
    changes: [{ attribute: 'name', from: 'A', to: 'B', redacted: false }],
  };

  test('differs when any one part differs', () => {
    const texts = [
      auditHashText(entry, '00'),
      auditHashText(entry, '01'),
      ...Object.keys(entry).map((key) => auditHashText({ ...entry, [key]: 'other' }, '00')),
    ];
    expect(new Set(texts).size).toBe(texts.length);
  });

  test('is the same for equal values with their keys in any order', () => {
    const reversed = Object.fromEntries(Object.entries(entry).toReversed());
    expect(auditHashText(reversed as unknown as HashedAuditEntry, '00')).toBe(
      auditHashText(entry, '00'),
    );
  });
});

test('canonical JSON is JSON of the same value', () => {
  fc.assert(
    fc.property(json, (value) => {
      expect(JSON.parse(canonicalJson(value))).toEqual(value);
    }),
  );
});

test('every object of the registry has a label and a field', () => {
  for (const { label, fields } of Object.values(AUDIT_OBJECTS)) {
    expect(label).not.toBe('');
    expect(Object.keys(fields).length).toBeGreaterThan(0);
  }
});
