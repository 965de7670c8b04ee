/**
 * A Track call's meaning in steps of the reference model.
 *
 * It reads a call of Track v1, and an entity of Track v2.
 */
import type { Body, Call } from './call.ts';
import type { Json, JsonObject } from './model-state.ts';
import {
  anonymousOf,
  emailOf,
  eventOf,
  identify,
  listOf,
  messageOf,
  nameOf,
  namesOf,
  objectOf,
  recordOf,
  textOf,
  wordOf,
  type Relation,
  type Step,
  type Subject,
} from './steps.ts';

export function readTrackV1({
  method,
  path,
  body = {},
}: Extract<Call, { api: 'v1' }>): readonly Step[] {
  const [root, person = '', part, token = ''] = path;
  if (root === 'merge_customers') return [mergeOf(body)];
  if (root === 'metrics') {
    const { delivery_id: id, recipient } = body;
    return [{ kind: 'metric', message: messageOf(id), recipient: emailOf(recipient) }];
  }
  if (root === 'unsubscribe') return [{ kind: 'unsubscribe', message: messageOf(person) }];
  // The fields of a form are attributes of whom it names (decided).
  if (root === 'forms') {
    const { id, email, ...fields } = recordOf(body['data']);
    return [identify(subjectOf({ id, email } as JsonObject).names, undefined, fields)];
  }
  const anonymous = anonymousOf(body['anonymous_id']);
  if (root === 'events')
    return [eventOf({ names: [], anonymous }, 'event', body['name'], body['data'], body['id'])];
  const name = nameOf(person);
  const subject: Subject = { names: [name] };
  switch (part) {
    case 'events': {
      const type = textOf(body['type']) ?? 'event';
      return [eventOf({ ...subject, anonymous }, type, body['name'], body['data'], body['id'])];
    }
    case 'devices': {
      if (method === 'DELETE') return [{ kind: 'delete device', subject, token }];
      const { id, platform, attributes } = recordOf(body['device']);
      const device = { token: wordOf(id), platform: wordOf(platform) };
      return [{ kind: 'add device', subject, ...device, attributes: recordOf(attributes) }];
    }
    case 'suppress':
    case 'unsuppress':
      return [{ kind: part, name }];
    case undefined:
  }
  if (method === 'DELETE') return [{ kind: 'delete', name }];
  const { svc_relationships: relationships, ...attributes } = body as JsonObject;
  const { action, relationships: entries } = recordOf(relationships);
  const relations = relationsOf(entries, action === 'delete_relationships');
  return [identify([name], undefined, attributes, relations)];
}

const relationsOf = (entries: Json | undefined, isGone: boolean): readonly Relation[] =>
  listOf(entries).map((entry) => ({
    object: objectOf(recordOf(entry['identifiers'])),
    attributes: recordOf(entry['relationship_attributes']),
    isGone,
  }));

const mergeOf = ({ primary, secondary }: Body): Step => ({
  kind: 'merge',
  primary: subjectOf(recordOf(primary)).names[0] ?? '',
  secondary: subjectOf(recordOf(secondary)).names[0] ?? '',
});

const subjectOf = ({ id, email, phone, svc_id, cio_id, ...others }: JsonObject): Subject => ({
  names: namesOf(
    textOf(svc_id ?? cio_id) &&
      nameOf(`svc_${textOf(svc_id ?? cio_id)?.replace(/^(?:svc|cio)_/, '')}`),
    textOf(id) && `id:${textOf(id)}`,
    emailOf(email),
    textOf(phone) && `phone:${textOf(phone)}`,
  ),
  anonymous: anonymousOf(others['anonymous_id']),
});

export function readTrackV2(item: Body): readonly Step[] {
  const identifiers = recordOf(item['identifiers']);
  const action = wordOf(item['action']);
  const attributes = recordOf(item['attributes']);
  const entries = item['svc_relationships'];
  const isGone = action === 'delete_relationships';
  if (item['type'] === 'delivery')
    return [{ kind: 'metric', message: messageOf(identifiers['id']), recipient: undefined }];
  if (item['type'] === 'object') {
    const object = objectOf(identifiers);
    if (action === 'delete') return [{ kind: 'delete object', object }];
    return listOf(entries).map((entry) => ({
      kind: 'relate',
      subject: subjectOf(recordOf(entry['identifiers'])),
      relations: [{ object, attributes: recordOf(entry['relationship_attributes']), isGone }],
    }));
  }
  const subject = subjectOf(identifiers);
  const name = subject.names[0] ?? '';
  const { token, platform, attributes: deviceAttributes } = recordOf(item['device']);
  const device = { token: wordOf(token), platform: wordOf(platform) };
  switch (action) {
    case 'identify':
      return [identify(subject.names, subject.anonymous, attributes, relationsOf(entries, false))];
    case 'merge':
      return [mergeOf(item)];
    case 'delete':
    case 'suppress':
    case 'unsuppress':
      return [{ kind: action, name }];
    case 'add_device':
      return [{ kind: 'add device', subject, ...device, attributes: recordOf(deviceAttributes) }];
    case 'delete_device':
      return [{ kind: 'delete device', subject, token: device.token }];
    case 'add_relationships':
    case 'delete_relationships':
      return [{ kind: 'relate', subject, relations: relationsOf(entries, isGone) }];
    default:
      return [eventOf(subject, action, item['name'], item['attributes'], item['id'])];
  }
}
