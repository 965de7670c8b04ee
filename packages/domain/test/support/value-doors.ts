/** Doors of names of events, emails, times, flags and whole numbers. */
import type { Operation } from '@sluice/domain/operations/operation';
import {
  parseAddDevice,
  parseIdentify,
  parseMergePeople,
  parsePersonEvent,
} from '@sluice/domain/track/track-v1';
import { parseFormSubmission } from '@sluice/domain/track/track-v1-forms';
import { parseMetric } from '@sluice/domain/track/track-v1-messages';
import { parseSegmentChange } from '@sluice/domain/track/track-v1-segments';
import { isTrue } from '@sluice/domain/value-rules/boolean-rule';
import { entity, event, field, object, person, pipelines, row, type Door } from './doors.ts';
import { CONTEXT, RECEIVED_AT_MS } from './parsing.ts';

export const EMAIL_DOORS: readonly Door[] = [
  {
    name: 'an email among traits',
    send: (email) => pipelines('identify', { userId: 'u', traits: { email } }),
    taken: field('attributes', 'email'),
    otherwise: null,
  },
  {
    name: 'an email that identifies',
    send: (email) => pipelines('identify', { traits: { email } }),
    taken: person,
  },
  {
    name: 'an email in the body of v1',
    send: (email) => parseIdentify('u', { email }, CONTEXT),
    taken: field('attributes', 'email'),
    otherwise: null,
  },
  {
    name: 'an email among the attributes of v2',
    send: (email) =>
      entity({ ...event, action: 'identify', identifiers: { id: 'u' }, attributes: { email } }),
    taken: field('attributes', 'email'),
    otherwise: null,
  },
  {
    name: 'identifiers of v2',
    send: (email) => entity({ ...event, identifiers: { email } }),
    taken: person,
  },
  {
    name: 'a member of a segment',
    send: (email) => parseSegmentChange('add', '1', 'email', { ids: [email] }, CONTEXT),
    taken: field('people', '0', 'value'),
  },
  {
    name: 'a form',
    send: (email) => parseFormSubmission('f', { data: { email } }, CONTEXT),
    taken: person,
  },
  {
    name: 'a merge',
    send: (email) => parseMergePeople({ primary: { email }, secondary: { id: 's' } }, CONTEXT),
    taken: field('primary', 'value'),
  },
  {
    name: 'a cell of a file',
    send: (email) => row({ person: email as string }, 'email'),
    taken: person,
    isText: true,
  },
];

export const NAME_DOORS: readonly Door[] = [
  {
    name: 'Pipelines event',
    send: (name) => pipelines('track', { userId: 'u', event: name }),
    taken: field('name'),
  },
  {
    name: 'Pipelines event in a batch',
    send: (name) => pipelines('batch', { batch: [{ type: 'track', userId: 'u', event: name }] }),
    taken: field('name'),
  },
  {
    name: 'a page',
    send: (name) => pipelines('page', { userId: 'u', name }),
    taken: field('name'),
    otherwise: 'page',
  },
  {
    name: 'an event of v1',
    send: (name) => parsePersonEvent('u', { name }, CONTEXT),
    taken: field('name'),
  },
  {
    name: 'an event of v2',
    send: (name) => entity({ ...event, name, identifiers: { id: 'u' } }),
    taken: field('name'),
  },
  {
    name: 'a cell of a file',
    send: (name) => row({ name: name as string }, 'email'),
    taken: field('name'),
    isText: true,
  },
];

export const TIME_DOORS: readonly Door[] = [
  {
    name: 'Pipelines timestamp',
    send: (timestamp) => pipelines('track', { userId: 'u', event: 'e', timestamp }),
    taken: field('occurredAtMs'),
    otherwise: RECEIVED_AT_MS,
  },
  {
    name: 'Pipelines timestamp in a batch',
    send: (timestamp) =>
      pipelines('batch', { batch: [{ type: 'screen', userId: 'u', timestamp }] }),
    taken: field('occurredAtMs'),
    otherwise: RECEIVED_AT_MS,
  },
  {
    name: 'timestamp of v1',
    send: (timestamp) => parsePersonEvent('u', { name: 'e', timestamp }, CONTEXT),
    taken: field('occurredAtMs'),
    otherwise: RECEIVED_AT_MS,
  },
  {
    name: 'timestamp of a metric',
    send: (timestamp) => parseMetric({ delivery_id: 'd', metric: 'opened', timestamp }, CONTEXT),
    taken: field('occurredAtMs'),
    otherwise: RECEIVED_AT_MS,
  },
  {
    name: 'timestamp of v2',
    send: (timestamp) => entity({ ...event, identifiers: { id: 'u' }, timestamp }),
    taken: field('occurredAtMs'),
    otherwise: RECEIVED_AT_MS,
  },
  {
    name: 'last use of a device of v1',
    send: (last_used) =>
      parseAddDevice('u', { device: { id: 't', platform: 'ios', last_used } }, CONTEXT),
    taken: field('lastUsedAtMs'),
  },
  {
    name: 'last use of a device of v2',
    send: (last_used) =>
      entity({
        ...event,
        action: 'add_device',
        identifiers: { id: 'u' },
        device: { token: 't', platform: 'ios', last_used },
      }),
    taken: field('lastUsedAtMs'),
  },
  {
    name: 'a cell of a file',
    send: (timestamp) => row({ timestamp: timestamp as string }, 'email'),
    taken: field('occurredAtMs'),
    isText: true,
    otherwise: RECEIVED_AT_MS,
  },
];

export const ORDERING_DOORS: readonly Door[] = [
  {
    name: '_timestamp of v1',
    send: (_timestamp) => parseIdentify('u', { _timestamp }, CONTEXT),
    taken: field('attributesAtMs'),
  },
  {
    name: '_timestamp among traits',
    send: (_timestamp) => pipelines('identify', { userId: 'u', traits: { _timestamp } }),
    taken: field('attributesAtMs'),
  },
  {
    name: 'timestamp of an identify of v2',
    send: (timestamp) =>
      entity({ ...event, action: 'identify', identifiers: { id: 'u' }, timestamp }),
    taken: field('attributesAtMs'),
  },
  {
    name: 'timestamp of an object of v2',
    send: (timestamp) =>
      entity({ ...object, identifiers: { object_type_id: 1, object_id: 'o' }, timestamp }),
    taken: field('attributesAtMs'),
  },
];

const mayNotCreate = (operation: Operation): unknown =>
  operation.type === 'person.identify' ? !operation.mayCreate : undefined;
const isUnsubscribed = (place: string) => (operation: Operation) =>
  isTrue(field(place, 'unsubscribed')(operation));
const topic = field('attributes', 'svc_subscription_preferences', 'topics', 'topic_1');
const preferences = (choice: unknown) => ({ topics: { topic_1: choice } });

export const BOOLEAN_DOORS: readonly Door[] = [
  {
    name: '_update of v1',
    send: (_update) => parseIdentify('u', { _update }, CONTEXT),
    taken: mayNotCreate,
    otherwise: false,
  },
  {
    name: '_update among traits',
    send: (_update) => pipelines('identify', { userId: 'u', traits: { _update } }),
    taken: mayNotCreate,
    otherwise: false,
  },
  {
    name: '_update of v2',
    send: (_update) =>
      entity({ ...event, action: 'identify', identifiers: { id: 'u' }, attributes: { _update } }),
    taken: mayNotCreate,
    otherwise: false,
  },
  {
    name: 'a topic of v1',
    send: (choice) =>
      parseIdentify('u', { cio_subscription_preferences: preferences(choice) }, CONTEXT),
    taken: topic,
  },
  {
    name: 'a topic in the JSON of a text',
    send: (choice) =>
      pipelines('identify', {
        userId: 'u',
        traits: { svc_subscription_preferences: JSON.stringify(preferences(choice)) },
      }),
    taken: topic,
  },
  {
    name: 'a topic by its path',
    send: (choice) =>
      parseIdentify('u', { 'cio_subscription_preferences.topics.topic_1': choice }, CONTEXT),
    taken: field('attributes', 'svc_subscription_preferences.topics.topic_1'),
  },
  {
    name: 'unsubscribed of v1',
    send: (unsubscribed) => parseIdentify('u', { unsubscribed }, CONTEXT),
    taken: isUnsubscribed('attributes'),
    otherwise: false,
  },
  {
    name: 'unsubscribed among traits',
    send: (unsubscribed) => pipelines('identify', { userId: 'u', traits: { unsubscribed } }),
    taken: isUnsubscribed('attributes'),
    otherwise: false,
  },
  {
    name: 'unsubscribed of a form',
    send: (unsubscribed) => parseFormSubmission('f', { data: { id: 'u', unsubscribed } }, CONTEXT),
    taken: isUnsubscribed('fields'),
    otherwise: false,
  },
];

export const NUMBER_DOORS: readonly Door[] = [
  {
    name: 'an object type of v2',
    send: (type) => entity({ ...object, identifiers: { object_type_id: type, object_id: 'o' } }),
    taken: field('object', 'objectTypeId'),
  },
  {
    name: 'an object type among traits',
    send: (type) =>
      pipelines('group', { userId: 'u', groupId: 'o', traits: { object_type_id: type } }),
    taken: field('object', 'objectTypeId'),
    otherwise: 1,
  },
  {
    name: 'an object type of an event',
    send: (type) =>
      pipelines('track', {
        event: 'Object Deleted',
        anonymousId: 'a',
        properties: { objectId: 'o', objectTypeId: type },
      }),
    taken: field('object', 'objectTypeId'),
    otherwise: 1,
  },
  {
    name: 'a segment',
    send: (id) => parseSegmentChange('add', id as string, 'id', { ids: ['u'] }, CONTEXT),
    taken: field('segmentId'),
    isText: true,
  },
];
