/**
 * Every door to the service × every kind of value: whatever a value is, all doors take it for the same. What is expected
 * is what the table of rules says, so a door with a rule of its own fails here.
 */
import { readColumns, readImportRow } from '@sluice/domain/imports/import-file';
import { isError } from '@sluice/domain/operations/issue';
import type { Operation } from '@sluice/domain/operations/operation';
import type { Parsed } from '@sluice/domain/parsing/parse';
import {
  parsePipelines,
  parsePipelinesLine,
  type PipelinesCall,
} from '@sluice/domain/pipelines/pipelines';
import {
  parseAddDevice,
  parseAnonymousEvent,
  parseDeletePerson,
  parseIdentify,
  parseMergePeople,
  parsePersonEvent,
} from '@sluice/domain/track/track-v1';
import { parseFormSubmission } from '@sluice/domain/track/track-v1-forms';
import { parseMetric } from '@sluice/domain/track/track-v1-messages';
import { parseSegmentChange } from '@sluice/domain/track/track-v1-segments';
import { parseEntity, parseTrackBatch } from '@sluice/domain/track/track-v2';
import { boundsOfEvents, boundsOfOrdering } from '@sluice/domain/value-rules/time-rule';
import { VALUE_RULES } from '@sluice/domain/value-rules/value-rules';
import type { Verdict } from '@sluice/domain/value-rules/verdict';
import { describe, expect, test } from 'vitest';
import { CONTEXT, RECEIVED_AT_MS } from '../support/parsing.ts';

interface Door {
  readonly name: string;
  readonly send: (value: unknown) => Parsed;
  /** What the service took the value for. */
  readonly taken: (operation: Operation) => unknown;
  /** It comes as text here: in a path, a form or a cell. */
  readonly isText?: boolean;
  /** Absent and refused are what the door says here, where that is not `undefined`. */
  readonly otherwise?: unknown;
  readonly sizeBytesMax?: number;
}

const pipelines = (call: PipelinesCall, body: object): Parsed =>
  parsePipelines(call, body, CONTEXT);
const entity = (body: object): Parsed => parseEntity(body, CONTEXT);
const row = (cells: Record<string, string>, identifier: 'id' | 'email'): Parsed => {
  const names = ['_svc_name', '_svc_customer_id', '_svc_timestamp'];
  const columns = readColumns(names);
  if (columns.outcome !== 'read') throw new Error(columns.message);
  const record = ['e', cells.person ?? 'a@example.com', cells.timestamp ?? ''];
  const context = { environmentId: 7, importId: 1, rowNumber: 1, receivedAtMs: RECEIVED_AT_MS };
  const { event, issues } = readImportRow(columns.columns, record, { ...context, identifier });
  return { operations: event ? [event] : [], issues };
};

const field =
  (...path: string[]) =>
  (operation: Operation): unknown =>
    path.reduce<unknown>(
      (value, key) => (value as Record<string, unknown> | undefined)?.[key],
      operation,
    );
const person = field('person', 'value');
const event = { type: 'person', action: 'event', name: 'e' };
const object = { type: 'object', action: 'identify' };

const IDENTIFIER_DOORS: readonly Door[] = [
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
];

const EMAIL_DOORS: readonly Door[] = [
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

const TIME_DOORS: readonly Door[] = [
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

const ORDERING_DOORS: readonly Door[] = [
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
const topic = field('attributes', 'svc_subscription_preferences', 'topics', 'topic_1');
const preferences = (choice: unknown) => ({ topics: { topic_1: choice } });

const BOOLEAN_DOORS: readonly Door[] = [
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
];

const NUMBER_DOORS: readonly Door[] = [
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

const BLANKS = ['', ' ', '\n', '\t \r\n', '\u00a0', '\ufeff'];
const aroundEach = (...texts: string[]) =>
  texts.flatMap((text) => [text, ` ${text}`, `${text}\n`, `\r\n\t${text} `, `\u00a0${text}\u2028`]);

const ANY = [undefined, null, true, false, {}, { a: 1 }, [], ['x']];
const IDENTIFIERS = [
  ...BLANKS,
  ...aroundEach('x1', 'N/A', 'a b', 'x\ny', 'ü', '0'),
  ...['a\0', '\ud800', 'x'.repeat(151), ` ${'x'.repeat(150)} `],
  ...[0, 7, -1, 1.5, 2 ** 60, Number.NaN],
  ...ANY,
];
const EMAILS = [
  ...BLANKS,
  ...aroundEach('ada@example.com', 'Ada@Example.COM', 'ada\u212a@example.com'),
  ...['N/A', 'none', '-', 'ada@', '@example.com', 'ada @example.com', 'a@b', 'null', '0'],
  ...[`${'a'.repeat(300)}@example.com`, 'a\0@example.com', 7, ...ANY],
];
const TIMES = [
  ...BLANKS,
  ...aroundEach('2024-05-01T10:20:30Z', '1714558830', '1714558830123', '2024-05-01 10:20:30'),
  ...['2024-05-01t10:20:30z', '2016-12-31T23:59:60Z', '2024-04-30T24:00:00Z', '20240501T102030Z'],
  ...['2024-05-01', '2024-02-30', 'yesterday', '0x10', '1e9', '-1', 'NaN'],
  ...[1_714_558_830, 1_714_558_830.25, 1_714_558_830_123, 1_714_558_830_123_456, Number.NaN],
  ...[0, -1, 2026, 45_981.5, 20_261_120, '20261120', '45981.5', '2026', 99_999_999, 100_000_000],
  ...['1970-01-01T00:00:00Z', '1973-03-03T09:46:40Z', '2024-05-02T11:59:59Z', '2024-05-02T13:00Z'],
  ...['2025-05-01', '2025-05-04', '2074-05-01', '9999-12-31T23:59:59Z', 253_402_300_799],
  ...ANY,
];
const BOOLEANS = [
  ...BLANKS.filter((blank) => blank !== ''),
  ...aroundEach('true', 'TRUE', 'True', '1', 'false', 'FALSE', '0'),
  ...[1, 0, 2, -1, 'yes', 'no', 'on', 'null', '1.0', undefined, true, false],
];
const NUMBERS = [
  ...BLANKS,
  ...aroundEach('1', '2147483647', '007'),
  ...['0', '-1', '1.5', '1e3', '2147483648', 'x', 1, 1.5, 0, -1, 2 ** 31, 2 ** 31 - 1],
  ...ANY,
];

const judgeId = (value: unknown, { sizeBytesMax = 150 }: Door) =>
  VALUE_RULES.identifier(value, sizeBytesMax);
const judgeAddress = (value: unknown) => VALUE_RULES.email(value, 254);
const judgeEvent = (value: unknown) => VALUE_RULES.time(value, boundsOfEvents(RECEIVED_AT_MS));
const judgeOrder = (value: unknown) => VALUE_RULES.time(value, boundsOfOrdering(RECEIVED_AT_MS));
const judgeInteger = (value: unknown) => VALUE_RULES.positiveInteger(value);

type Judge = (value: unknown, door: Door) => Verdict<unknown>;

describe.each<[string, readonly Door[], readonly unknown[], Judge]>([
  ['identifier', IDENTIFIER_DOORS, IDENTIFIERS, judgeId],
  ['email', EMAIL_DOORS, EMAILS, judgeAddress],
  ['time', TIME_DOORS, TIMES, judgeEvent],
  ['time that orders', ORDERING_DOORS, TIMES, judgeOrder],
  ['boolean', BOOLEAN_DOORS, BOOLEANS, (value) => VALUE_RULES.boolean(value)],
  ['positive integer', NUMBER_DOORS, NUMBERS, judgeInteger],
])('%s', (_rule, doors, values, judge) => {
  test.each(doors)('$name takes every value as the rule says', (door) => {
    for (const value of values) {
      if (door.isText && typeof value !== 'string') continue;
      expectAsRuled(door, value, judge(value, door));
    }
  });
});

function expectAsRuled(door: Door, value: unknown, verdict: Verdict<unknown>): void {
  const { operations, issues } = door.send(value);
  const [operation] = operations;
  const taken = operation === undefined ? undefined : door.taken(operation);
  const told = { door: door.name, value, issues: issues.map(({ code }) => code) };
  switch (verdict.outcome) {
    case 'read':
      expect({ ...told, taken }).toEqual({ ...told, taken: verdict.value });
      expect({ ...told, isTold: issues.length > 0 }).toEqual({
        ...told,
        isTold: verdict.change !== undefined,
      });
      break;
    case 'absent':
      // Either it may be absent, or that is the error.
      if (operation === undefined) expect(issues.map(({ code }) => code)).toContain('required');
      else {
        expect({ ...told, taken: taken ?? undefined }).toEqual({
          ...told,
          taken: door.otherwise ?? undefined,
        });
        expect(issues).toEqual([]);
      }
      break;
    case 'refused':
      expect(issues, JSON.stringify(told)).not.toEqual([]);
      if (operation === undefined) expect(issues.some(isError)).toBe(true);
      else expect([undefined, null, false, door.otherwise]).toContain(taken);
  }
}
