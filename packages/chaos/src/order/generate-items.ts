/**
 * Random calls and items of batches, about names that several calls share.
 *
 * Used by `generate-calls.ts`.
 */
import fc from 'fast-check';
import type { Body, SentCall } from './model/call.ts';

/** Makes a call from its number in the sequence; the number makes its values unique. */
export type MakeCall = (number: number) => SentCall;
/** An item of a batch, for either API. */
export type MakeBody = (number: number) => Body;

/** Items begin at 1,000 times the number of their call. A sequence has at most 200 calls, so no item has the number of a call. */
const ITEMS_PER_CALL = 1_000;
const BATCH_ITEMS_MAX = 5;
/** A stream is several calls: each line in flight allows more states. */
const STREAM_LINES_MAX = 3;
const IMPORT_ROWS_MAX = 3;

/** The names that calls choose from. */
export interface Names {
  readonly id: fc.Arbitrary<string>;
  readonly email: fc.Arbitrary<string>;
  /** An id, an email, or a svc_id. */
  readonly any: fc.Arbitrary<string>;
  readonly anonymous: fc.Arbitrary<string>;
  /** `identifiers` of Track: an id, an email, or a svc_id. */
  readonly identifiers: fc.Arbitrary<Body>;
  /** `identifiers` of Track v2: also a phone number. */
  readonly withPhone: fc.Arbitrary<Body>;
  /** An id or an email, as a form has it. */
  readonly inForm: fc.Arbitrary<Body>;
}

/** The person whose id is a number. */
const NUMERIC = '~p3';
const emailOf = (id: string): string => `${id}@x.example`;

/** @param learned - so many of the people are there before the first call, and calls name them by svc_id too. */
export function namesOf(ids: readonly string[], learned = 0): Names {
  const svcIds = ids.slice(0, learned).map((each) => each.replace(/~p(\d)/, '^$1^'));
  const orSvcId = <Value>(other: fc.Arbitrary<Value>, own: (text: string) => Value) =>
    learned === 0
      ? other
      : fc.oneof(
          { weight: 3, arbitrary: other },
          { weight: 1, arbitrary: fc.constantFrom(...svcIds).map(own) },
        );
  const person = fc.constantFrom(...ids);
  const idOfPerson = person.map((each) => (each === NUMERIC ? '=3=' : each));
  // Blanks at the end of an id do not count.
  const id = fc.oneof(
    { weight: 14, arbitrary: idOfPerson },
    { weight: 1, arbitrary: idOfPerson.map((each) => `${each} `) },
  );
  // Letter case of an email does not count.
  const email = fc.oneof(
    { weight: 9, arbitrary: person.map(emailOf) },
    { weight: 1, arbitrary: person.map((each) => emailOf(each).replace('x.example', 'X.Example')) },
  );
  const anonymous = person.map((each) => each.replace('~p', '~a'));
  const inForm: fc.Arbitrary<Body> = fc.oneof(
    id.map((each) => ({ id: each })),
    email.map((each) => ({ email: each })),
  );
  const identifiers = orSvcId(inForm, (text) => ({ svc_id: text }));
  return {
    id,
    email,
    inForm,
    identifiers,
    withPhone: fc.oneof(
      { weight: 5, arbitrary: identifiers },
      { weight: 1, arbitrary: person.map((each) => ({ phone: each.replace(/~p(\d)/, '#$1#') })) },
    ),
    any: orSvcId(
      fc.oneof({ weight: 3, arbitrary: id }, { weight: 2, arbitrary: email }),
      (text) => text,
    ),
    // Letter case of an anonymous id counts, also if it looks like an email.
    anonymous: fc.oneof(
      { weight: 8, arbitrary: anonymous },
      { weight: 1, arbitrary: anonymous.map((each) => each.toUpperCase()) },
      { weight: 1, arbitrary: anonymous.map((each) => `${each.toUpperCase()}@X.example`) },
    ),
  };
}

export const PLAIN: Names = {
  id: fc.constant('~p1'),
  email: fc.constant(''),
  any: fc.constant('~p1'),
  anonymous: fc.constant('~a1'),
  identifiers: fc.constant({ id: '~p1' }),
  withPhone: fc.constant({ id: '~p1' }),
  inForm: fc.constant({ id: '~p1' }),
};

export const single = (
  item: fc.Arbitrary<MakeBody>,
  api: 'pipelines' | 'v2',
): fc.Arbitrary<MakeCall> =>
  item.map((make) => (number) => {
    if (api === 'v2') return { api, path: 'entity', body: make(number) };
    const { type, ...body } = make(number);
    return { api, path: type as string, body };
  });

export const batchOf = (
  item: fc.Arbitrary<MakeBody>,
  api: 'pipelines' | 'v2',
): fc.Arbitrary<MakeCall> =>
  fc
    .array(item, { minLength: 2, maxLength: BATCH_ITEMS_MAX, size: 'max' })
    .map((makes) => (number) => ({
      api,
      path: 'batch' as const,
      body: { batch: makes.map((make, index) => make(number * ITEMS_PER_CALL + index) as never) },
    }));

export const streamOf = (
  item: fc.Arbitrary<MakeBody>,
  of: 'pipelines' | 'v2',
): fc.Arbitrary<MakeCall> =>
  fc
    .array(item, { minLength: 1, maxLength: STREAM_LINES_MAX, size: 'max' })
    .map((makes) => (number) => ({
      api: 'stream',
      of,
      lines: makes.map((make, index) => make(number * ITEMS_PER_CALL + index)),
    }));

export const importOf = ({ id, email }: Names): fc.Arbitrary<MakeCall> =>
  fc
    .constantFrom('id' as const, 'email' as const)
    .chain((identifier) =>
      fc.tuple(
        fc.constant(identifier),
        fc.array(identifier === 'id' ? id : email, {
          minLength: 1,
          maxLength: IMPORT_ROWS_MAX,
          size: 'max',
        }),
      ),
    )
    .map(([identifier, people]) => (number) => ({
      api: 'import',
      identifier,
      rows: people.map((person, index) => ({
        name: `e${number * ITEMS_PER_CALL + index}`,
        person,
      })),
    }));

const PREFERENCE = 'svc_subscription_preferences.topics.topic_1';
/** A call changes the preferences that it names. */
const WHOLE_PREFERENCES = [
  { topics: { topic_1: true, topic_2: false } },
  { channels: { email: false, sms: true } },
];
const CREATED_AT_FIRST = 1_600_000_000;

/** One in `oneIn` calls has the value. With `fc.option` and that `freq`, one in so many would lack it. */
export const sometimes = <Value>(
  arbitrary: fc.Arbitrary<Value>,
  oneIn = 2,
): fc.Arbitrary<Value | undefined> =>
  fc.oneof({ weight: 1, arbitrary }, { weight: oneIn - 1, arbitrary: fc.constant(undefined) });

const GONE = fc.constantFrom(null, '');
/** A call by svc_id may take the id and the email away; without both, the svc_id is the person's only name. */
const REMOVED_IDENTIFIERS = sometimes(
  fc.record({ id: GONE, email: GONE }, { requiredKeys: [] }),
  4,
);

/** A few attributes with this call's number, a removed one, or `unsubscribed`. */
export const attributes = fc
  .record({
    written: fc.subarray(['plan', 'city', 'step'], { minLength: 0, maxLength: 2 }),
    hasCreatedAt: sometimes(fc.constant(true), 10),
    preference: sometimes(
      fc.oneof(
        fc.boolean().map((value) => ({ [PREFERENCE]: value })),
        fc.constantFrom(...WHOLE_PREFERENCES).map((svc_subscription_preferences) => ({
          svc_subscription_preferences,
        })),
      ),
      10,
    ),
    isUpdate: sometimes(fc.constant(true), 12),
    stamp: sometimes(fc.integer({ min: 1, max: 5 }), 8),
    removed: sometimes(fc.constantFrom<Body>({ plan: null }, { city: null }, { city: '' }), 8),
    unsubscribed: sometimes(fc.constantFrom(true, 'TRUE', 1, false, 'no'), 6),
  })
  .map((given) => (number: number): Body => {
    const { written, removed, unsubscribed, hasCreatedAt, preference, isUpdate, stamp } = given;
    return {
      ...Object.fromEntries(written.map((name) => [name, number])),
      ...removed,
      ...(unsubscribed !== undefined && { unsubscribed }),
      ...(hasCreatedAt && { created_at: CREATED_AT_FIRST + number }),
      ...preference,
      ...(isUpdate && { _update: true }),
      ...(stamp !== undefined && { _timestamp: CREATED_AT_FIRST + stamp }),
    };
  });

/** Browsers send no user id, or null. */
const NO_USER = fc.constantFrom(undefined, null);

export function pipelinesIdentify({ any, email, anonymous }: Names): fc.Arbitrary<MakeBody> {
  const known = fc.record({
    userId: any,
    email: sometimes(email),
    anonymousId: sometimes(anonymous),
  });
  const visitor = fc.record({
    userId: NO_USER,
    anonymousId: anonymous,
    email: sometimes(email, 4),
  });
  return fc
    .tuple(
      fc.oneof(
        { weight: 9, arbitrary: known },
        { weight: 3, arbitrary: visitor },
        // The email identifies, as a server without ids sends it.
        { weight: 1, arbitrary: fc.record({ email }) },
      ),
      attributes,
      sometimes(OBJECTS, 10),
    )
    .map(([{ email: ownEmail, ...ids }, make, objectId]) => (number) => ({
      type: 'identify',
      ...ids,
      traits: {
        ...make(number),
        ...(ownEmail && { email: ownEmail }),
        ...(objectId && { objectId, relationshipAttributes: { role: number } }),
      } as never,
    }));
}

/**
 * An event id; the same one again for an event of the same id. Two events with one id whose names differ have no order
 * (docs/design/decisions/0011-order-among-shards.md, Limits).
 */
const eventIdOf = (name: string | undefined, number: number, isRepeated: boolean): string =>
  isRepeated && /^~p\d$/.test(name ?? '') ? `%90000000${name?.slice(2)}%` : `%${number}%`;

const ID_USE = fc.constantFrom('none', 'none', 'own', 'own', 'own', 'repeated');

/** A track, page or screen of a person, a visitor, or both at once. */
export function pipelinesEvent({ any, anonymous }: Names): fc.Arbitrary<MakeBody> {
  const subject = fc.oneof(
    { weight: 4, arbitrary: fc.record({ userId: any }) },
    { weight: 2, arbitrary: fc.record({ userId: NO_USER, anonymousId: anonymous }) },
    { weight: 1, arbitrary: fc.record({ userId: any, anonymousId: anonymous }) },
  );
  return fc
    .tuple(subject, fc.constantFrom('track', 'track', 'track', 'page', 'screen'), ID_USE)
    .map(([ids, type, use]) => (number) => ({
      type,
      ...ids,
      [type === 'track' ? 'event' : 'name']: `e${number}`,
      properties: { n: number },
      ...(use !== 'none' && { messageId: eventIdOf(nameIn(ids), number, use === 'repeated') }),
    }));
}

/** The name of an event's person, if the event has no other name. */
const nameIn = (ids: Body): string | undefined =>
  ids['anonymousId'] === undefined ? (ids['userId'] as string) : undefined;

export const DELIVERIES = fc.constantFrom('~m1', '~m2');
export const OBJECTS = fc.constantFrom('~g1', '~g2', '~g3');

/** Of a person, or of a visitor, as a browser sends it too. */
export const alias = ({ any, anonymous }: Names): fc.Arbitrary<MakeBody> => {
  const visitor = anonymous.map((anonymousId): Body => ({ previousId: anonymousId, anonymousId }));
  const previous = fc.oneof(
    { weight: 6, arbitrary: any.map((previousId): Body => ({ previousId })) },
    { weight: 1, arbitrary: anonymous.map((previousId): Body => ({ previousId })) },
    { weight: 1, arbitrary: visitor },
  );
  return fc.tuple(previous, any).map(([ids, userId]) => () => ({ type: 'alias', ...ids, userId }));
};

/** A visitor's traits by Track v2. */
export const visitorItem = ({ anonymous }: Names): fc.Arbitrary<MakeBody> =>
  fc.tuple(anonymous, attributes).map(([anonymous_id, make]) => (number) => ({
    type: 'person',
    action: 'identify',
    identifiers: { anonymous_id },
    attributes: make(number) as never,
  }));

export const personItem = ({ id, email, withPhone, anonymous }: Names): fc.Arbitrary<MakeBody> =>
  fc
    .tuple(
      withPhone,
      sometimes(email),
      sometimes(id, 3),
      attributes,
      REMOVED_IDENTIFIERS,
      fc.record({ anonymousId: sometimes(anonymous, 6), related: sometimes(OBJECTS, 10) }),
    )
    .map(([own, otherEmail, otherId, make, removed, { anonymousId, related }]) => (number) => ({
      type: 'person',
      action: 'identify',
      identifiers: own as never,
      ...(related && {
        svc_relationships: [
          {
            identifiers: { object_type_id: '1', object_id: related },
            relationship_attributes: { role: number },
          },
        ],
      }),
      attributes: {
        ...(anonymousId && { anonymous_id: anonymousId }),
        ...make(number),
        ...(!('email' in own) && otherEmail?.includes('@') && { email: otherEmail }),
        ...(!('id' in own) && otherId && { id: otherId }),
        ...('svc_id' in own && removed),
      } as never,
    }));

export const eventItem = ({ withPhone, anonymous }: Names): fc.Arbitrary<MakeBody> =>
  fc
    .tuple(
      fc.oneof(
        { weight: 4, arbitrary: withPhone },
        { weight: 1, arbitrary: anonymous.map((each) => ({ anonymous_id: each })) },
      ),
      fc.constantFrom('event', 'event', 'page', 'screen'),
      sometimes(fc.constant(true), 6),
    )
    .map(([own, action, isRepeated = false]) => (number) => ({
      type: 'person',
      action,
      identifiers: own as never,
      name: `e${number}`,
      id: eventIdOf((own as Body)['id'] as string | undefined, number, isRepeated),
      attributes: { n: number },
    }));

export const mergeItem = ({ identifiers }: Names): fc.Arbitrary<MakeBody> =>
  fc.tuple(identifiers, identifiers).map(([primary, secondary]) => () => {
    return { type: 'person', action: 'merge', primary, secondary } as never;
  });
