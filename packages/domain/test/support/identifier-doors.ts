/** Doors of identifiers. */
import { parsePipelinesLine } from '@sluice/domain/pipelines/pipelines';
import {
  parseAddDevice,
  parseAnonymousEvent,
  parseDeleteDevice,
  parseDeletePerson,
  parseIdentify,
  parseMergePeople,
  parsePersonEvent,
} from '@sluice/domain/track/track-v1';
import { parseFormSubmission } from '@sluice/domain/track/track-v1-forms';
import {
  parseMetric,
  parsePushEvent,
  parseUnsubscribe,
} from '@sluice/domain/track/track-v1-messages';
import { parseSegmentChange } from '@sluice/domain/track/track-v1-segments';
import { parseTrackBatch } from '@sluice/domain/track/track-v2';
import { entity, event, field, object, person, pipelines, row, type Door } from './doors.ts';
import { CONTEXT } from './parsing.ts';

export const IDENTIFIER_DOORS: readonly Door[] = [
  {
    name: 'Pipelines userId',
    send: (userId) => pipelines('track', { userId, event: 'e' }),
    taken: person,
  },
  {
    name: 'Pipelines userId in a batch',
    send: (userId) => pipelines('batch', { batch: [{ type: 'track', userId, event: 'e' }] }),
    taken: person,
  },
  {
    name: 'a line of a stream',
    send: (userId) => parsePipelinesLine({ type: 'track', userId, event: 'e' }, CONTEXT),
    taken: person,
  },
  {
    name: 'Pipelines anonymousId',
    send: (anonymousId) => pipelines('page', { anonymousId }),
    taken: person,
  },
  {
    name: 'Pipelines groupId',
    send: (groupId) => pipelines('group', { userId: 'u', groupId }),
    taken: field('object', 'objectId'),
  },
  {
    name: 'Pipelines previousId',
    send: (previousId) => pipelines('alias', { userId: 'u', previousId }),
    taken: field('secondary', 'value'),
  },
  {
    name: 'an id among traits',
    send: (id) => pipelines('identify', { userId: 'u', traits: { id } }),
    taken: field('attributes', 'id'),
    otherwise: null,
  },
  {
    name: 'Pipelines messageId',
    send: (messageId) => pipelines('track', { userId: 'u', event: 'e', messageId }),
    taken: field('eventId'),
    otherwise: CONTEXT.newId(),
  },
  {
    name: 'the path of v1',
    send: (identifier) => parseDeletePerson(identifier as string, CONTEXT),
    taken: person,
    isText: true,
  },
  {
    name: 'an id in the body of v1',
    send: (id) => parseIdentify('u', { id }, CONTEXT),
    taken: field('attributes', 'id'),
    otherwise: null,
  },
  {
    name: 'the id of an event of v1',
    send: (id) => parsePersonEvent('u', { name: 'e', id }, CONTEXT),
    taken: field('eventId'),
    otherwise: CONTEXT.newId(),
  },
  {
    name: 'an anonymous id of v1',
    send: (id) => parseAnonymousEvent({ name: 'e', anonymous_id: id }, CONTEXT),
    taken: person,
  },
  {
    name: 'a device of v1',
    send: (id) => parseAddDevice('u', { device: { id, platform: 'ios' } }, CONTEXT),
    taken: field('token'),
    sizeBytesMax: 1_000,
  },
  {
    name: 'a delivery of v1',
    send: (id) => parseMetric({ delivery_id: id, metric: 'opened' }, CONTEXT),
    taken: field('deliveryId'),
  },
  {
    name: 'a member of a segment',
    send: (id) => parseSegmentChange('add', '1', 'id', { ids: [id] }, CONTEXT),
    taken: field('people', '0', 'value'),
  },
  {
    name: 'a form',
    send: (id) => parseFormSubmission('f', { data: { id } }, CONTEXT),
    taken: person,
  },
  {
    name: 'identifiers of v2',
    send: (id) => entity({ ...event, identifiers: { id } }),
    taken: person,
  },
  {
    name: 'identifiers of a batch of v2',
    send: (id) => parseTrackBatch({ batch: [{ ...event, identifiers: { id } }] }, CONTEXT),
    taken: person,
  },
  {
    name: 'an object of v2',
    send: (id) => entity({ ...object, identifiers: { object_type_id: 1, object_id: id } }),
    taken: field('object', 'objectId'),
  },
  {
    name: 'a person of an object of v2',
    send: (id) =>
      entity({
        ...object,
        identifiers: { object_type_id: 1, object_id: 'o' },
        cio_relationships: [{ identifiers: { id } }],
      }),
    taken: field('relationships', '0', 'person', 'value'),
  },
  {
    name: 'a merge',
    send: (id) => parseMergePeople({ primary: { id }, secondary: { id: 's' } }, CONTEXT),
    taken: field('primary', 'value'),
  },
  {
    name: 'a cell of a file',
    send: (id) => row({ person: id as string }, 'id'),
    taken: person,
    isText: true,
  },
  {
    name: 'Pipelines userId of an alias',
    send: (userId) => pipelines('alias', { userId, previousId: 'p' }),
    taken: field('primary', 'value'),
  },
  {
    name: 'Pipelines userId of a group',
    send: (userId) => pipelines('group', { userId, groupId: 'g' }),
    taken: field('relationships', '0', 'person', 'value'),
  },
  {
    name: 'an object among traits',
    send: (objectId) => pipelines('identify', { userId: 'u', traits: { objectId } }),
    taken: field('relationships', 'entries', '0', 'object', 'objectId'),
  },
  {
    name: 'an object of an event',
    send: (objectId) =>
      pipelines('track', { anonymousId: 'a', event: 'Object Deleted', properties: { objectId } }),
    taken: field('object', 'objectId'),
  },
  {
    name: 'a delivery of an event',
    send: (deliveryId) =>
      pipelines('track', {
        anonymousId: 'a',
        event: 'Report Delivery Event',
        properties: { deliveryId, metric: 'opened' },
      }),
    taken: field('deliveryId'),
  },
  {
    name: 'a device of an event',
    send: (token) =>
      pipelines('track', {
        userId: 'u',
        event: 'Device Created or Updated',
        context: { device: { token, type: 'ios' } },
      }),
    taken: field('token'),
    sizeBytesMax: 1_000,
  },
  {
    name: 'an anonymous id among traits',
    send: (id) => pipelines('identify', { userId: 'u', traits: { anonymous_id: id } }),
    taken: field('anonymousId'),
  },
  {
    name: 'a device of the path of v1',
    send: (token) => parseDeleteDevice('u', token as string, CONTEXT),
    taken: field('token'),
    isText: true,
    sizeBytesMax: 1_000,
  },
  {
    name: 'a delivery of a push event',
    send: (id) => parsePushEvent({ delivery_id: id, event: 'opened' }, CONTEXT),
    taken: field('deliveryId'),
  },
  {
    name: 'a delivery of the path of v1',
    send: (id) => parseUnsubscribe(id as string, { unsubscribe: true }, CONTEXT),
    taken: field('deliveryId'),
    isText: true,
  },
  {
    name: 'the name of a form',
    send: (id) => parseFormSubmission(id as string, { data: { id: 'u' } }, CONTEXT),
    taken: field('formId'),
    isText: true,
  },
  {
    name: 'an anonymous id of a form',
    send: (id) => parseFormSubmission('f', { data: { id: 'u', anonymous_id: id } }, CONTEXT),
    taken: field('fields', 'anonymous_id'),
  },
  {
    name: 'an anonymous id of v2',
    send: (id) => entity({ ...event, identifiers: { anonymous_id: id } }),
    taken: person,
  },
  {
    name: 'the id of an event of v2',
    send: (id) => entity({ ...event, identifiers: { id: 'u' }, id }),
    taken: field('eventId'),
    otherwise: CONTEXT.newId(),
  },
  {
    name: 'a delivery of v2',
    send: (id) =>
      entity({ type: 'delivery', action: 'event', name: 'opened', identifiers: { id } }),
    taken: field('deliveryId'),
  },
  {
    name: 'the second of a merge',
    send: (id) => entity({ ...event, action: 'merge', primary: { id: 'p' }, secondary: { id } }),
    taken: field('secondary', 'value'),
  },
];
