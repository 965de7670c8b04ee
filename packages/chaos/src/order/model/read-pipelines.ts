/**
 * A Pipelines call's meaning in steps of the reference model.
 *
 * Also the meaning of an item of its batch. `§` is a section of ingestion-conventions.md.
 */
import type { Body } from './call.ts';
import {
  anonymousOf,
  emailOf,
  eventOf,
  identify,
  messageOf,
  nameOf,
  namesOf,
  recordOf,
  textOf,
  wordOf,
  type Step,
  type Subject,
} from './steps.ts';

export function readPipelines(item: Body): readonly Step[] {
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
      return [{ kind: 'relate', subject, relations: [{ object, attributes, isGone: false }] }];
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
    case 'Unsuppress Person':
      return [{ kind: 'unsuppress', name }];
    case 'Report Delivery Event': {
      const { deliveryId, recipient } = properties;
      return [{ kind: 'metric', message: messageOf(deliveryId), recipient: emailOf(recipient) }];
    }
    case 'Device Created or Updated': {
      const device = { token: wordOf(token), platform: wordOf(type), attributes: properties };
      return [{ kind: 'add device', subject, ...device }];
    }
    case 'Device Deleted':
      return [{ kind: 'delete device', subject, token: wordOf(token) }];
    case 'Relationship Deleted':
      return [{ kind: 'relate', subject, relations: [{ object, attributes: {}, isGone: true }] }];
    case 'Object Deleted':
      return [{ kind: 'delete object', object }];
    default:
      return [eventOf(subject, 'event', item['event'], item['properties'], item['messageId'])];
  }
}
