/**
 * Random parts of calls that every interface can express.
 *
 * Also the identifiers as Track v2 writes them.
 */
import type { JsonObject } from '@sluice/domain/values/json';
import type { ObjectIdentifier, PersonIdentifier } from '@sluice/domain/operations/operation';
import fc from 'fast-check';

export const id = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/);
const email = id.map((local) => `${local}@example.com`);
const svcId = fc.stringMatching(/^a3[0-9a-f]{6}$/);
export const person: fc.Arbitrary<PersonIdentifier> = fc.oneof(
  fc.record({ kind: fc.constant('id' as const), value: id }),
  fc.record({ kind: fc.constant('email' as const), value: email }),
  fc.record({ kind: fc.constant('svc_id' as const), value: svcId }),
);
export const phone: fc.Arbitrary<PersonIdentifier> = fc.record({
  kind: fc.constant('phone' as const),
  value: fc.stringMatching(/^\+49\d{8}$/),
});
export const anonymous: fc.Arbitrary<PersonIdentifier> = fc.record({
  kind: fc.constant('anonymous_id' as const),
  value: id,
});
export const someId = fc.stringMatching(/^[A-Za-z0-9_-]{1,40}$/);
export const name = fc.stringMatching(/^[A-Za-z]([A-Za-z ]{0,30}[a-z])?$/);
export const seconds = fc.integer({ min: 100_000_000, max: 1_714_564_800 });
/** Keys that no interface has a use for. */
export const attributes = fc.dictionary(
  fc.stringMatching(/^x_[a-z]{1,8}$/),
  fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(fc.string({ maxLength: 5 }), { maxLength: 3 }),
    fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.integer(), { maxKeys: 3 }),
  ),
  { maxKeys: 6, noNullPrototype: true },
) as fc.Arbitrary<JsonObject>;
export const object = fc.record({ objectTypeId: fc.integer({ min: 1, max: 9 }), objectId: id });
export const anyObject: fc.Arbitrary<ObjectIdentifier> = fc.oneof(
  object,
  fc.record({ svcObjectId: someId }),
);

export const identifiersOf = ({ kind, value }: PersonIdentifier) => ({
  [kind === 'svc_id' ? 'cio_id' : kind]: value,
});
export const objectIdentifiersOf = (named: ObjectIdentifier) =>
  'svcObjectId' in named
    ? { cio_object_id: named.svcObjectId }
    : { object_type_id: String(named.objectTypeId), object_id: named.objectId };
