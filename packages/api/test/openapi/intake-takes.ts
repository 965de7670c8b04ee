/** Samples and parsers of intake's calls, by their schemas. */
import { isError } from '@sluice/domain/operations/issue';
import type { ParseContext, Parsed } from '@sluice/domain/parsing/parse';
import { parsePipelines, type PipelinesCall } from '@sluice/domain/pipelines/pipelines';
import { parsePublish } from '@sluice/domain/publish/parse-publish';
import {
  parseAddDevice,
  parseAnonymousEvent,
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
import { parseEntity, parseTrackBatch } from '@sluice/domain/track/track-v2';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { INTAKE_SCHEMAS } from '../../src/openapi/intake/intake-paths.ts';

export const CONTEXT: ParseContext = {
  environmentId: 1,
  receivedAtMs: Date.parse('2026-03-01T12:00:00Z'),
  newId: () => '01J9Z6C0N4V8Y2QW3R5T7B1KXA',
  phoneIdentifies: true,
};
/** Without strict mode: it leaves no error. */
export const isTaken = ({ issues }: Parsed): boolean => !issues.some(isError);

export type Take = (body: unknown) => Parsed;
/** A schema, a body that fits it, and the parser. */
export type Case = readonly [schema: string, sample: unknown, take: Take];

const pipelines =
  (call: PipelinesCall): Take =>
  (body) =>
    parsePipelines(call, body, CONTEXT);
const entity: Take = (body) => parseEntity(body, CONTEXT);

const WHO = { userId: 'ada' };
const PERSON = { type: 'person', identifiers: { id: 'ada' } };
const OBJECT = { type: 'object', identifiers: { object_type_id: 1, object_id: 'acme' } };
const TO_OBJECT = [{ identifiers: OBJECT.identifiers }];
const TO_PERSON = [{ identifiers: PERSON.identifiers }];
const DEVICE = { token: 't', platform: 'ios' };

export const CASES: readonly Case[] = [
  ['PipelinesIdentify', WHO, pipelines('identify')],
  ['PipelinesTrack', { ...WHO, event: 'seen' }, pipelines('track')],
  ['PipelinesPage', WHO, pipelines('page')],
  ['PipelinesScreen', { anonymousId: 'visitor' }, pipelines('screen')],
  ['PipelinesGroup', { ...WHO, groupId: 'acme' }, pipelines('group')],
  ['PipelinesAlias', { ...WHO, previousId: 'visitor' }, pipelines('alias')],
  ['PipelinesBatch', { batch: [{ type: 'page', ...WHO }] }, pipelines('batch')],
  ['TrackAttributes', {}, (body) => parseIdentify('ada', body, CONTEXT)],
  ['TrackEvent', { name: 'seen' }, (body) => parsePersonEvent('ada', body, CONTEXT)],
  ['TrackEvent', { name: '/', type: 'page' }, (body) => parsePersonEvent('ada', body, CONTEXT)],
  [
    'TrackAnonymousEvent',
    { name: 'seen', anonymous_id: 'visitor' },
    (body) => parseAnonymousEvent(body, CONTEXT),
  ],
  [
    'TrackDevice',
    { device: { id: 't', platform: 'ios' } },
    (body) => parseAddDevice('ada', body, CONTEXT),
  ],
  [
    'TrackMerge',
    { primary: { id: 'ada' }, secondary: { email: 'countess@example.com' } },
    (body) => parseMergePeople(body, CONTEXT),
  ],
  ['TrackMetric', { delivery_id: 'd', metric: 'opened' }, (body) => parseMetric(body, CONTEXT)],
  [
    'TrackPushEvent',
    { delivery_id: 'd', event: 'opened' },
    (body) => parsePushEvent(body, CONTEXT),
  ],
  ['TrackForm', { data: { id: 'ada' } }, (body) => parseFormSubmission('f', body, CONTEXT)],
  [
    'TrackSegmentMembers',
    { ids: ['ada'] },
    (body) => parseSegmentChange('add', '7', undefined, body, CONTEXT),
  ],
  ['TrackUnsubscribe', { unsubscribe: true }, (body) => parseUnsubscribe('d', body, CONTEXT)],
  ...[
    { id: 'ada' },
    { email: 'ada@example.com' },
    { phone: '+4915112345678' },
    { svc_id: 'a3000001' },
    { anonymous_id: 'visitor' },
  ].map((identifiers): Case => [
    'TrackPersonIdentify',
    { ...PERSON, action: 'identify', identifiers },
    entity,
  ]),
  ['TrackPersonEvent', { ...PERSON, action: 'event', name: 'seen' }, entity],
  ['TrackPersonEvent', { ...PERSON, action: 'screen', name: 'Cart' }, entity],
  ['TrackPersonContent', { ...PERSON, action: 'viewed_content' }, entity],
  ['TrackPersonRemoval', { ...PERSON, action: 'delete' }, entity],
  [
    'TrackPersonMerge',
    { type: 'person', action: 'merge', primary: { id: 'a' }, secondary: { svc_id: 'b' } },
    entity,
  ],
  ['TrackPersonDevice', { ...PERSON, action: 'add_device', device: DEVICE }, entity],
  ['TrackPersonDeviceRemoval', { ...PERSON, action: 'delete_device', device: DEVICE }, entity],
  [
    'TrackPersonRelationships',
    { ...PERSON, action: 'add_relationships', svc_relationships: TO_OBJECT },
    entity,
  ],
  ['TrackObjectIdentify', { ...OBJECT, action: 'identify', svc_relationships: TO_PERSON }, entity],
  [
    'TrackObjectRelationships',
    { ...OBJECT, action: 'add_relationships', svc_relationships: TO_PERSON },
    entity,
  ],
  ['TrackObjectRemoval', { ...OBJECT, action: 'delete' }, entity],
  [
    'TrackDelivery',
    { type: 'delivery', action: 'event', identifiers: { id: 'd' }, name: 'opened' },
    entity,
  ],
  [
    'TrackBatch',
    { batch: [{ ...PERSON, action: 'delete' }] },
    (body) => parseTrackBatch(body, CONTEXT),
  ],
  [
    'PublishedMessage',
    { event_type: 'invoice.paid', payload: {} },
    (body) => parsePublish(body, CONTEXT),
  ],
  [
    'PublishedMessages',
    { messages: [{ event_type: 'invoice.paid', payload: {} }] },
    (body) => parsePublish(body, CONTEXT),
  ],
];

/** The parser of a schema's bodies. */
export function takeOf(schema: string): Take {
  const found = CASES.find(([name]) => name === schema);
  if (!found) throw new Error(`no case has the schema ${schema}`);
  return found[2];
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema({ components: { schemas: INTAKE_SCHEMAS } }, 'openapi');

/** A format describes, and does not check: intake reads other times as well. */
export const fitsOf = (schema: string) =>
  ajv.compile({ $ref: `openapi#/components/schemas/${schema}` });
