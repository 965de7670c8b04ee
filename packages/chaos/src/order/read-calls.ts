/** Meaning of a call in steps of the reference model: Pipelines, Track v1 and Track v2, single or in a batch. */
import type { Body, Call } from './call.ts';
import type { Json, JsonObject, ModelEvent, Name } from './model-state.ts';

/** The people a step is about. Without an id or email, it is about a visitor. */
export interface Subject {
  /** The identifier that the call uses; then the identifiers that its attributes bring. */
  readonly names: readonly Name[];
  readonly anonymous?: Name | undefined;
}

export type Step =
  | {
      readonly kind: 'identify';
      readonly subject: Subject;
      readonly attributes: JsonObject;
      /** `_update`: changes a person, never makes one (§1.2). */
      readonly isUpdate?: boolean;
    }
  | {
      readonly kind: 'event';
      readonly subject: Subject;
      readonly event: ModelEvent;
      readonly id?: string | undefined;
    }
  | {
      readonly kind: 'add device';
      readonly subject: Subject;
      readonly token: string;
      readonly platform: string;
      readonly attributes: JsonObject;
    }
  | { readonly kind: 'delete device'; readonly subject: Subject; readonly token: string }
  | {
      readonly kind: 'relate';
      readonly subject: Subject;
      readonly object: string;
      readonly attributes: JsonObject;
    }
  | { readonly kind: 'unrelate'; readonly subject: Subject; readonly object: string }
  | { readonly kind: 'delete object'; readonly object: string }
  | { readonly kind: 'merge'; readonly primary: Name; readonly secondary: Name }
  | {
      readonly kind: 'alias';
      readonly previous: string;
      readonly previousName: Name;
      readonly name: Name;
    }
  | { readonly kind: 'delete' | 'suppress' | 'unsuppress'; readonly name: Name };

export function stepsOf(call: Call): readonly Step[] {
  if (call.api === 'v1') return trackV1(call);
  const read = call.api === 'v2' ? trackV2 : pipelines;
  if (call.path === 'batch') return listOf(call.body['batch']).flatMap(read);
  return read(call.api === 'v2' ? call.body : { ...call.body, type: call.path });
}

export const EVERYONE: Name = '*';

const namesOfCalls = new WeakMap<Call, readonly Name[]>();

/** All names that a call contains, and its event ids. A deleted object changes everyone related to it. */
export function namesOfCall(call: Call): readonly Name[] {
  const known = namesOfCalls.get(call);
  if (known) return known;
  const names = stepsOf(call).flatMap((step): readonly Name[] => {
    switch (step.kind) {
      case 'merge':
        return [step.primary, step.secondary];
      case 'alias':
        return [step.name, step.previousName, `anonymous:${step.previous}`];
      case 'delete':
      case 'suppress':
      case 'unsuppress':
        return [step.name];
      case 'delete object':
        return [EVERYONE];
      default: {
        const { names: own, anonymous } = step.subject;
        return namesOf(...own, anonymous, step.kind === 'event' ? step.id : undefined);
      }
    }
  });
  namesOfCalls.set(call, names);
  return names;
}

/** An id or an email, recognised by its shape; letter case of an email does not count (spec §2, §1.2). */
const nameOf = (text: string): Name =>
  text.includes('@') ? `email:${text.toLowerCase()}` : `id:${text}`;

/** A required text; numbers as their digits. */
const wordOf = (value: Json | undefined): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

const textOf = (value: Json | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
const recordOf = (value: Json | undefined): JsonObject => (value ?? {}) as JsonObject;
const listOf = (value: Json | undefined): readonly JsonObject[] => (value ?? []) as JsonObject[];
const anonymousOf = (value: Json | undefined): Name | undefined => {
  const text = textOf(value);
  return text === undefined ? undefined : `anonymous:${text}`;
};
const namesOf = (...names: (Name | undefined)[]): readonly Name[] =>
  names.filter((name) => name !== undefined);

/** Attributes that identify are not stored as attributes (§1.3). */
function splitAttributes({ id, email, anonymous_id, _update, ...attributes }: JsonObject) {
  const brought = namesOf(
    textOf(id) && `id:${textOf(id)}`,
    textOf(email) && `email:${textOf(email)?.toLowerCase()}`,
  );
  return { brought, anonymous: anonymousOf(anonymous_id), isUpdate: _update === true, attributes };
}

function identify(names: readonly Name[], anonymous: Name | undefined, sent: JsonObject): Step {
  const { brought, anonymous: ofAttributes, isUpdate, attributes } = splitAttributes(sent);
  const subject = {
    names: [...new Set([...names, ...brought])],
    anonymous: anonymous ?? ofAttributes,
  };
  return { kind: 'identify', subject, attributes, isUpdate };
}

const objectOf = ({ object_type_id, object_id }: JsonObject): string =>
  `${wordOf(object_type_id ?? 1)}/${wordOf(object_id)}`;

function pipelines(item: Body): readonly Step[] {
  const traits = recordOf(item['traits']);
  const userId = textOf(item['userId']);
  const subject: Subject = {
    names: namesOf(userId && nameOf(userId)),
    anonymous: anonymousOf(item['anonymousId']),
  };
  switch (item['type']) {
    case 'identify': {
      const { createdAt, ...others } = traits;
      const createdSeconds = typeof createdAt === 'string' && Date.parse(createdAt) / 1000;
      const sent = createdSeconds ? { ...others, created_at: createdSeconds } : others;
      return [identify(subject.names, subject.anonymous, sent)];
    }
    case 'group': {
      const object = `${wordOf(traits['object_type_id'] ?? 1)}/${wordOf(item['groupId'])}`;
      const attributes = recordOf(traits['relationship_traits']);
      return [{ kind: 'relate', subject, object, attributes }];
    }
    case 'alias': {
      const previous = wordOf(item['previousId']);
      const name = subject.names[0] ?? '';
      return [{ kind: 'alias', previous, previousName: nameOf(previous), name }];
    }
    case 'track':
      return track(item, subject);
    default:
      return [
        eventOf(subject, wordOf(item['type']), item['name'], item['properties'], item['messageId']),
      ];
  }
}

const eventOf = (
  subject: Subject,
  type: string,
  name: Json | undefined,
  data: Json | undefined,
  id: Json | undefined,
): Step => ({
  kind: 'event',
  subject,
  event: { type, name: wordOf(name).trim(), data: recordOf(data) },
  id: textOf(id),
});

/** Semantic events (§3.4). */
function track(item: Body, subject: Subject): readonly Step[] {
  const name = subject.names[0] ?? '';
  const properties = recordOf(item['properties']);
  const { token, type } = recordOf(recordOf(item['context'])['device']);
  const object = `${wordOf(properties['objectTypeId'] ?? 1)}/${wordOf(properties['objectId'])}`;
  switch (item['event']) {
    case 'User Deleted':
    case 'Delete Person':
      return [{ kind: 'delete', name }];
    case 'User Suppressed':
    case 'Suppress Person':
      return [{ kind: 'suppress', name }];
    case 'User Unsuppressed':
      return [{ kind: 'unsuppress', name }];
    case 'Device Created or Updated': {
      const device = { token: wordOf(token), platform: wordOf(type), attributes: properties };
      return [{ kind: 'add device', subject, ...device }];
    }
    case 'Device Deleted':
      return [{ kind: 'delete device', subject, token: wordOf(token) }];
    case 'Relationship Deleted':
      return [{ kind: 'unrelate', subject, object }];
    case 'Object Deleted':
      return [{ kind: 'delete object', object }];
    default:
      return [eventOf(subject, 'event', item['event'], item['properties'], item['messageId'])];
  }
}

function trackV1({ method, path, body = {} }: Extract<Call, { api: 'v1' }>): readonly Step[] {
  const [root, person = '', part, token = ''] = path;
  if (root === 'merge_customers') return [mergeOf(body)];
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
  return [
    identify([name], undefined, attributes),
    ...relationsOf(subject, action === 'delete_relationships', entries),
  ];
}

function relationsOf(
  subject: Subject,
  isGone: boolean,
  entries: Json | undefined,
): readonly Step[] {
  return listOf(entries).map((entry) => {
    const object = objectOf(recordOf(entry['identifiers']));
    if (isGone) return { kind: 'unrelate', subject, object };
    return {
      kind: 'relate',
      subject,
      object,
      attributes: recordOf(entry['relationship_attributes']),
    };
  });
}

const mergeOf = ({ primary, secondary }: Body): Step => ({
  kind: 'merge',
  primary: subjectOf(recordOf(primary)).names[0] ?? '',
  secondary: subjectOf(recordOf(secondary)).names[0] ?? '',
});

const subjectOf = ({ id, email, anonymous_id }: JsonObject): Subject => ({
  names: namesOf(
    textOf(id) && `id:${textOf(id)}`,
    textOf(email) && `email:${textOf(email)?.toLowerCase()}`,
  ),
  anonymous: anonymousOf(anonymous_id),
});

function trackV2(item: Body): readonly Step[] {
  const identifiers = recordOf(item['identifiers']);
  const action = wordOf(item['action']);
  const attributes = recordOf(item['attributes']);
  const entries = item['svc_relationships'];
  const isGone = action === 'delete_relationships';
  if (item['type'] === 'object') {
    const object = objectOf(identifiers);
    if (action === 'delete') return [{ kind: 'delete object', object }];
    return listOf(entries).map((entry) => {
      const subject = subjectOf(recordOf(entry['identifiers']));
      const related = recordOf(entry['relationship_attributes']);
      return isGone
        ? { kind: 'unrelate', subject, object }
        : { kind: 'relate', subject, object, attributes: related };
    });
  }
  const subject = subjectOf(identifiers);
  const name = subject.names[0] ?? '';
  const { token, platform, attributes: deviceAttributes } = recordOf(item['device']);
  const device = { token: wordOf(token), platform: wordOf(platform) };
  switch (action) {
    case 'identify':
      return [
        identify(subject.names, undefined, attributes),
        ...relationsOf(subject, false, entries),
      ];
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
      return relationsOf(subject, isGone, entries);
    default:
      return [eventOf(subject, action, item['name'], item['attributes'], item['id'])];
  }
}
