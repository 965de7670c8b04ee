/**
 * Random calls for a sequence in which one intake's calls are late.
 *
 * The guarantee leaves parts of the effect of a late call open (`docs/design/decisions/0012-order-after-outages.md`, Limits).
 * These calls stay within the other parts: a late call has the effect that it has in time. So
 *
 * - each person has one name, and a visitor turns out to be one person only;
 * - no two calls write the same attribute or device;
 * - only calls that are in time remove people, or identify a visitor.
 *
 * Used by `generate-calls.ts`.
 */
import fc from 'fast-check';
import { batchOf, type MakeBody, type MakeCall, single, streamOf } from './generate-items.ts';
import type { Body, SentCall } from './model/call.ts';

/** An id, or an email. */
const namesOf = (people: number): readonly string[] =>
  Array.from({ length: people }, (_, index) =>
    index % 2 === 0 ? `~p${index + 1}` : `~p${index + 1}@x.example`,
  );

const identifiersOf = (name: string): Body => (name.includes('@') ? { email: name } : { id: name });
const visitorOf = (name: string): string => name.replace(/~p(\d).*/, '~a$1');
const written = (number: number): Body => ({ [`v${number}`]: number });

/** Calls that have the same effect if they are late. */
export function calmCall(people: number): fc.Arbitrary<MakeCall> {
  const name = fc.constantFrom(...namesOf(people));
  const put = name.map((who): MakeCall => (number) => ({
    api: 'v1',
    method: 'PUT',
    path: ['customers', who],
    body: written(number),
  }));
  const device = name.map((who): MakeCall => (number) => ({
    api: 'v1',
    method: 'PUT',
    path: ['customers', who, 'devices'],
    body: { device: { id: `~d${number}`, platform: 'ios' } },
  }));
  const form = name.map((who): MakeCall => (number) => ({
    api: 'v1',
    method: 'POST',
    path: ['forms', '~f1', 'submit'],
    body: { data: { ...identifiersOf(who), [`v${number}`]: String(number) } as never },
  }));
  return fc.oneof(
    { weight: 6, arbitrary: single(pipelinesItem(name), 'pipelines') },
    { weight: 4, arbitrary: single(v2Item(name), 'v2') },
    { weight: 3, arbitrary: put },
    { weight: 2, arbitrary: device },
    { weight: 1, arbitrary: form },
    { weight: 2, arbitrary: batchOf(pipelinesItem(name), 'pipelines') },
    { weight: 2, arbitrary: batchOf(v2Item(name), 'v2') },
    { weight: 1, arbitrary: streamOf(pipelinesItem(name), 'pipelines') },
  );
}

/** True for a call that removes somebody, or identifies a visitor. */
export const mustBeInTime = (call: SentCall): boolean =>
  /"DELETE"|"action":"(?:delete|suppress|unsuppress)"|"userId":"[^"]*","anonymousId"/.test(
    JSON.stringify(call),
  );

/** Calls some of which must be in time. */
export function removingCall(people: number): fc.Arbitrary<MakeCall> {
  const name = fc.constantFrom(...namesOf(people));
  const login = name.map((who): MakeBody => (number) => ({
    type: 'identify',
    userId: who,
    anonymousId: visitorOf(who),
    traits: written(number) as never,
  }));
  const removal = fc
    .tuple(name, fc.constantFrom('delete', 'delete', 'delete', 'suppress', 'unsuppress'))
    .map(([who, action]): MakeBody => () => ({
      type: 'person',
      action,
      identifiers: identifiersOf(who) as never,
    }));
  const deletion = name.map((who): MakeCall => () => ({
    api: 'v1',
    method: 'DELETE',
    path: ['customers', who],
  }));
  return fc.oneof(
    { weight: 3, arbitrary: single(login, 'pipelines') },
    { weight: 3, arbitrary: single(removal, 'v2') },
    { weight: 2, arbitrary: deletion },
    { weight: 2, arbitrary: batchOf(fc.oneof(removal, v2Item(name)), 'v2') },
  );
}

function pipelinesItem(name: fc.Arbitrary<string>): fc.Arbitrary<MakeBody> {
  const identify = name.map((who): MakeBody => (number) => ({
    type: 'identify',
    userId: who,
    traits: written(number) as never,
  }));
  const event = fc
    .tuple(
      fc.oneof(
        name.map((userId): Body => ({ userId })),
        name.map((who): Body => ({ anonymousId: visitorOf(who) })),
      ),
      fc.constantFrom('track', 'track', 'page', 'screen'),
    )
    .map(([ids, type]): MakeBody => (number) => ({
      type,
      ...ids,
      [type === 'track' ? 'event' : 'name']: `e${number}`,
      properties: { n: number },
      messageId: `%${number}%`,
    }));
  return fc.oneof({ weight: 2, arbitrary: identify }, { weight: 3, arbitrary: event });
}

const v2Item = (name: fc.Arbitrary<string>): fc.Arbitrary<MakeBody> =>
  fc
    .tuple(name, fc.constantFrom('identify', 'event', 'event', 'add_device'))
    .map(([who, action]) => (number) => ({
      type: 'person',
      action,
      identifiers: identifiersOf(who) as never,
      ...(action === 'identify' && { attributes: written(number) as never }),
      ...(action === 'event' && {
        name: `e${number}`,
        id: `%${number}%`,
        attributes: { n: number },
      }),
      ...(action === 'add_device' && { device: { token: `~d${number}`, platform: 'android' } }),
    }));
