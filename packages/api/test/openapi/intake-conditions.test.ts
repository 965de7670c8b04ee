/** Bounds that a value alone does not show: conditions among fields, counts, and bytes that are not stored. */
import { describe, expect, test } from 'vitest';
import { fitsOf, isTaken, takeOf } from './intake-takes.ts';

const many = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`field_${index}`, 'a']));
const long = (length: number): string => 'x'.repeat(length);

const ADA = { type: 'person', identifiers: { id: 'ada' } };
const REMOVAL = { type: 'object', action: 'delete' };
const CONTROLS = {
  ...{ _update: false, _timestamp: 1_769_860_000, anonymous_id: 'visitor' },
  ...{
    svc_relationships: { action: 'add_relationships' },
    cio_relationships: null,
    svc_id: 'a3000001',
    cio_id: 'a3000001',
  },
};

describe('intake and its description both refuse', () => {
  test.each<readonly [why: string, schema: string, body: object]>([
    ['an id of 151 bytes', 'PipelinesTrack', { userId: long(151), event: 'seen' }],
    ['an id with U+0000', 'PipelinesTrack', { userId: 'a\0b', event: 'seen' }],
    ['a number that is rounded', 'PipelinesTrack', { userId: 2 ** 53, event: 'seen' }],
    ['no person', 'PipelinesTrack', { userId: null, anonymousId: ' ', event: 'seen' }],
    ['a blank name', 'PipelinesTrack', { userId: 'ada', event: ' ' }],
    [
      'a person to delete without a userId',
      'PipelinesTrack',
      { anonymousId: 'v', event: 'User Deleted' },
    ],
    [
      'a device without a platform',
      'PipelinesTrack',
      { userId: 'ada', event: 'Device Created or Updated', context: { device: { token: 't' } } },
    ],
    [
      'a relationship without an object',
      'PipelinesTrack',
      { userId: 'ada', event: 'Relationship Deleted', properties: {} },
    ],
    [
      'a metric that no message has',
      'PipelinesTrack',
      {
        userId: 'ada',
        event: 'Report Delivery Event',
        properties: { deliveryId: 'd', metric: 'x' },
      },
    ],
    ['an object of type 0', 'PipelinesGroup', { groupId: 'a', traits: { object_type_id: 0 } }],
    [
      'a related object of type 0',
      'PipelinesIdentify',
      { userId: 'ada', traits: { objectId: 'acme', object_type_id: 0 } },
    ],
    ['an alias of nobody', 'PipelinesAlias', { userId: 'ada' }],
    ['an event with a name for a page', 'TrackEvent', { name: long(101) }],
    [
      'an event with a name for a page',
      'TrackPersonEvent',
      { ...ADA, action: 'event', name: long(101) },
    ],
    ['an invitation of nobody', 'TrackAnonymousEvent', { name: 'invited', data: {} }],
    [
      'a phone number of six digits',
      'TrackPersonRemoval',
      { type: 'person', action: 'delete', identifiers: { phone: '+491511' } },
    ],
    [
      'a visitor to delete',
      'TrackPersonRemoval',
      { type: 'person', action: 'delete', identifiers: { anonymous_id: 'visitor' } },
    ],
    [
      'two names of one person',
      'TrackPersonRemoval',
      { type: 'person', action: 'delete', identifiers: { id: 'a', email: 'a@example.com' } },
    ],
    [
      'a text that is no email',
      'TrackPersonRemoval',
      { type: 'person', action: 'delete', identifiers: { email: 'nobody' } },
    ],
    [
      'an object of type 0',
      'TrackObjectRemoval',
      { ...REMOVAL, identifiers: { object_type_id: 0, object_id: 'a' } },
    ],
    [
      'two names of one object',
      'TrackObjectRemoval',
      { ...REMOVAL, identifiers: { object_id: 'a', svc_object_id: 'b' } },
    ],
    [
      'two names of the sender of a form',
      'TrackForm',
      { data: { id: 'a', email: 'a@example.com' } },
    ],
    ['an attribute with a name of 151 bytes', 'TrackAttributes', { [long(151)]: 1 }],
    ['an attribute with a value of 1,001 bytes', 'TrackAttributes', { some: long(1_001) }],
    ['301 attributes and all control names', 'TrackAttributes', { ...many(301), ...CONTROLS }],
    [
      'a channel that no message has',
      'TrackMetric',
      { delivery_id: 'd', metric: 'opened', channel: 'pigeon' },
    ],
    [
      'an action of 2,001 bytes',
      'TrackMetric',
      { delivery_id: 'd', metric: 'clicked', metadata: { action_name: long(2_001) } },
    ],
    [
      'a message without a payload',
      'PublishedMessage',
      { event_type: 'invoice.paid', payload: null },
    ],
  ])('%s: %s', (_, schema, body) => {
    expect({ isDescribed: fitsOf(schema)(body), isTaken: isTaken(takeOf(schema)(body)) }).toEqual({
      isDescribed: false,
      isTaken: false,
    });
  });
});

describe('intake and its description both take', () => {
  test.each<readonly [why: string, schema: string, body: object]>([
    [
      'an email of 254 bytes',
      'PipelinesTrack',
      { userId: `${long(242)}@example.com`, event: 'seen' },
    ],
    [
      'a person by an email in the traits',
      'PipelinesIdentify',
      { traits: { email: 'ada@example.com' } },
    ],
    ['a visitor who was another one', 'PipelinesAlias', { anonymousId: 'new', previousId: 'old' }],
    ['a person who was the visitor', 'PipelinesAlias', { userId: 'ada', anonymousId: 'visitor' }],
    ['a long id that nothing reads', 'PipelinesGroup', { groupId: 'acme', messageId: long(200) }],
    [
      'the device of an event, whatever its token',
      'PipelinesTrack',
      { userId: 'ada', event: 'seen', context: { device: { token: long(1_001) } } },
    ],
    ['a page with a long name', 'TrackEvent', { name: long(2_000), type: 'page' }],
    [
      'an invitation',
      'TrackAnonymousEvent',
      { name: 'invited', data: { recipient: 'ada@example.com' } },
    ],
    ['content that was seen', 'TrackPersonContent', { ...ADA, action: 'viewed_content' }],
    [
      'an object by its svc_id',
      'TrackObjectRemoval',
      { ...REMOVAL, identifiers: { svc_object_id: 'ob1' } },
    ],
    ['300 attributes and all control names', 'TrackAttributes', { ...many(300), ...CONTROLS }],
    [
      'a form of 300 fields, and its own names',
      'TrackForm',
      { data: { ...many(300), id: 'ada', form_name: 'Newsletter', empty: '' } },
    ],
    [
      'a number for an id',
      'TrackPersonRemoval',
      { type: 'person', action: 'delete', identifiers: { id: 7 } },
    ],
  ])('%s: %s', (_, schema, body) => {
    expect({ isDescribed: fitsOf(schema)(body), isTaken: isTaken(takeOf(schema)(body)) }).toEqual({
      isDescribed: true,
      isTaken: true,
    });
  });
});
