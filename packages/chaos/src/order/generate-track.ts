/** Random calls of Track v1, about names that several calls share. Used by `generate-calls.ts`. */
import fc from 'fast-check';
import {
  attributes,
  DELIVERIES,
  OBJECTS,
  sometimes,
  type MakeBody,
  type MakeCall,
  type Names,
} from './generate-items.ts';

/** `svc_relationships` of an identify. */
const relations: fc.Arbitrary<MakeBody> = fc
  .tuple(fc.constantFrom('add_relationships', 'add_relationships', 'delete_relationships'), OBJECTS)
  .map(([action, object_id]) => (number) => ({
    action,
    relationships: [
      {
        identifiers: { object_type_id: '1', object_id },
        ...(action === 'add_relationships' && { relationship_attributes: { role: number } }),
      },
    ],
  }));

export const mergeCustomers = ({ identifiers }: Names): fc.Arbitrary<MakeCall> =>
  fc.tuple(identifiers, identifiers).map(([primary, secondary]) => () => {
    return {
      api: 'v1',
      method: 'POST',
      path: ['merge_customers'],
      body: { primary, secondary } as never,
    };
  });

export const putCustomer = ({ any, id, email, anonymous }: Names): fc.Arbitrary<MakeCall> =>
  fc
    .tuple(
      any,
      sometimes(email),
      sometimes(id, 6),
      sometimes(anonymous, 4),
      sometimes(relations, 6),
      attributes,
    )
    .map(([name, ownEmail, ownId, anonymousId, relate, make]) => (number) => ({
      api: 'v1',
      method: 'PUT',
      path: ['customers', name],
      body: {
        ...make(number),
        ...(ownId && name.includes('@') && { id: ownId }),
        ...(ownEmail && !name.includes('@') && { email: ownEmail }),
        ...(anonymousId && { anonymous_id: anonymousId }),
        ...(relate && { svc_relationships: relate(number) as never }),
      },
    }));

/** One token for each name, so that two people rarely share a device. */
export const device = ({ any }: Names): fc.Arbitrary<MakeCall> =>
  fc.tuple(any, fc.boolean()).map(([name, isGone]) => (number) => {
    const token = `${name.toLowerCase()}-t`.replace('~p', '~d');
    const path = ['customers', name, 'devices'];
    if (isGone && number % 2 === 0) return { api: 'v1', method: 'DELETE', path: [...path, token] };
    const sent = { id: token, platform: 'ios', attributes: { v: String(number) } };
    return { api: 'v1', method: 'PUT', path, body: { device: sent } };
  });

/** Deletion, suppression, and its end. */
export const removal = ({ any }: Names): fc.Arbitrary<MakeCall> =>
  fc
    .tuple(
      any,
      fc.constantFrom('delete', 'delete', 'User Deleted', 'suppress', 'unsuppress', 'unsuppress'),
    )
    .map(([name, how]) => () => {
      if (how === 'delete') return { api: 'v1', method: 'DELETE', path: ['customers', name] };
      if (how === 'User Deleted')
        return { api: 'pipelines', path: 'track', body: { userId: name, event: how } };
      return { api: 'v1', method: 'POST', path: ['customers', name, how], body: {} };
    });

/** Of a person, of a visitor, or of both at once. */
export const v1Event = ({ any, anonymous }: Names): fc.Arbitrary<MakeCall> =>
  fc
    .tuple(
      fc.option(any, { freq: 4, nil: undefined }),
      anonymous,
      fc.constantFrom('event', 'event', 'page', 'screen'),
      fc.boolean(),
      fc.boolean(),
    )
    .map(([name, visitor, type, isBoth, hasId]) => (number) => ({
      api: 'v1',
      method: 'POST',
      path: name === undefined ? ['events'] : ['customers', name, 'events'],
      body: {
        name: `e${number}`,
        data: { n: number },
        ...(name !== undefined && { type }),
        ...((name === undefined || isBoth) && { anonymous_id: visitor }),
        ...(hasId && { id: `%${number}%` }),
      },
    }));

/** Fields of a form are texts. */
export const form = ({ inForm, anonymous }: Names): fc.Arbitrary<MakeCall> =>
  fc
    .tuple(
      inForm,
      sometimes(anonymous, 4),
      fc.subarray(['plan', 'city', 'step'], { minLength: 1 }),
      sometimes(fc.constantFrom('true', 'false'), 4),
    )
    .map(([own, anonymousId, fields, unsubscribed]) => (number) => ({
      api: 'v1',
      method: 'POST',
      path: ['forms', '~f1', 'submit'],
      body: {
        data: {
          ...own,
          ...(anonymousId && { anonymous_id: anonymousId }),
          ...Object.fromEntries(fields.map((field) => [field, String(number)])),
          ...(unsubscribed !== undefined && { unsubscribed }),
        } as never,
      },
    }));

/** A message is delivered to an address, or its reader follows the link that unsubscribes them. */
export const message = ({ email }: Names): fc.Arbitrary<MakeCall> =>
  fc.tuple(DELIVERIES, email, fc.boolean()).map(([delivery, recipient, isLink]) => () => {
    if (isLink)
      return {
        api: 'v1',
        method: 'POST',
        path: ['unsubscribe', delivery],
        body: { unsubscribe: true },
      };
    const body = { delivery_id: delivery, metric: 'delivered', recipient };
    return { api: 'v1', method: 'POST', path: ['metrics'], body };
  });
