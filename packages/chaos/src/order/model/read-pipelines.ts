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
  const either = eitherOf(subject);
  switch (item['type']) {
    case 'identify': {
      const { createdAt, objectId, relationshipAttributes, ...others } = traits;
      const related = { object: `1/${wordOf(objectId)}`, isGone: false };
      const relations =
        objectId === undefined
          ? []
          : [{ ...related, attributes: recordOf(relationshipAttributes) }];
      const createdSeconds = typeof createdAt === 'string' && Date.parse(createdAt) / 1000;
      const sent = createdSeconds ? { ...others, created_at: createdSeconds } : others;
      return [identify(subject.names, subject.anonymous, sent, relations)];
    }
    case 'group': {
      const object = `${wordOf(traits['object_type_id'] ?? 1)}/${wordOf(item['groupId'])}`;
      const attributes = recordOf(traits['relationship_traits']);
      return [
        { kind: 'relate', subject: either, relations: [{ object, attributes, isGone: false }] },
      ];
    }
    case 'alias': {
      const { anonymousId } = item;
      const previous = wordOf(item['previousId'] ?? anonymousId).trim();
      const name = subject.names[0] ?? '';
      // Browsers send the visitor's anonymous id as the former id (§3.7).
      const previousName = previous === anonymousId ? undefined : nameOf(previous);
      return [{ kind: 'alias', previous, previousName, name }];
    }
    case 'track':
      return track(item, subject);
    default:
      return [
        eventOf(subject, wordOf(item['type']), item['name'], item['properties'], item['messageId']),
      ];
  }
}

/** Groups, devices and their ends are about the person, or else about the visitor: they are no identification (§3.4). */
const eitherOf = ({ names, anonymous }: Subject): Subject =>
  names.length > 0 ? { names } : { names, anonymous };

/** Semantic events (§3.4). */
function track(item: Body, subject: Subject): readonly Step[] {
  const name = subject.names[0] ?? '';
  const properties = recordOf(item['properties']);
  const { token, type } = recordOf(recordOf(item['context'])['device']);
  const object = `${wordOf(properties['objectTypeId'] ?? 1)}/${wordOf(properties['objectId'])}`;
  const either = eitherOf(subject);
  const device = { subject: either, token: wordOf(token) };
  const event = eventOf(subject, 'event', item['event'], item['properties'], item['messageId']);
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
    case 'Device Created or Updated':
      return [{ kind: 'add device', ...device, platform: wordOf(type), attributes: properties }];
    case 'Device Deleted':
      return [{ kind: 'delete device', ...device }];
    // The event is kept beside the device's change.
    case 'Application Opened':
      return [{ kind: 'add device', ...device, platform: wordOf(type), attributes: {} }, event];
    case 'Application Uninstalled':
      return [{ kind: 'delete device', ...device }, event];
    case 'Relationship Deleted': {
      const relations = [{ object, attributes: {}, isGone: true }];
      return [{ kind: 'relate', subject: either, relations }];
    }
    case 'Object Deleted':
      return [{ kind: 'delete object', object }];
    default:
      return [event];
  }
}
