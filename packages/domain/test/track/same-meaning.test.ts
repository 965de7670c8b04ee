/** The same meaning is the same operation, through any interface. */
import type { PersonIdentifier } from '@sluice/domain/operations/operation';
import { parsePipelines } from '@sluice/domain/pipelines/pipelines';
import {
  parseAddDevice,
  parseAnonymousEvent,
  parseDeletePerson,
  parseIdentify,
  parseMergePeople,
  parsePersonEvent,
} from '@sluice/domain/track/track-v1';
import { parseMetric } from '@sluice/domain/track/track-v1-messages';
import { parseEntity } from '@sluice/domain/track/track-v2';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  anonymous,
  attributes,
  id,
  identifiersOf,
  name,
  object,
  objectIdentifiersOf,
  person,
  seconds,
  someId,
} from '../support/call-parts.ts';
import { CONTEXT, onlyOperation } from '../support/parsing.ts';

const context = { ...CONTEXT, phoneIdentifies: true };
const pipelines = (call: Parameters<typeof parsePipelines>[0], body: unknown) =>
  onlyOperation(parsePipelines(call, body, context));
const entity = (body: unknown) => onlyOperation(parseEntity(body, context));

/** As a v1 path or a userId writes it. */
const textOf = ({ kind, value }: PersonIdentifier) => (kind === 'svc_id' ? `cio_${value}` : value);
const iso = (unixSeconds: number) => new Date(unixSeconds * 1_000).toISOString();

describe('one meaning', () => {
  test('an event of a person is the same in Pipelines, v1 and v2', () => {
    fc.assert(
      fc.property(
        person,
        name,
        attributes,
        seconds,
        someId,
        fc.constantFrom('event' as const, 'page' as const, 'screen' as const),
        (who, called, data, at, eventId, kind) => {
          const call = kind === 'event' ? 'track' : kind;
          const fromPipelines = pipelines(call, {
            userId: textOf(who),
            [kind === 'event' ? 'event' : 'name']: called,
            properties: data,
            timestamp: iso(at),
            messageId: eventId,
          });
          const v1 = parsePersonEvent(
            textOf(who),
            { name: called, type: kind, data, timestamp: at, id: eventId },
            context,
          );
          expect(onlyOperation(v1)).toStrictEqual(fromPipelines);
          expect(
            entity({
              type: 'person',
              action: kind,
              identifiers: identifiersOf(who),
              name: called,
              attributes: data,
              timestamp: at,
              id: eventId,
            }),
          ).toStrictEqual(fromPipelines);
        },
      ),
    );
  });

  test('an anonymous event is the same in Pipelines, v1 and v2', () => {
    fc.assert(
      fc.property(anonymous, name, attributes, someId, (who, called, data, eventId) => {
        const fromPipelines = pipelines('track', {
          anonymousId: who.value,
          event: called,
          properties: data,
          messageId: eventId,
        });
        const v1 = parseAnonymousEvent(
          { anonymous_id: who.value, name: called, data, id: eventId },
          context,
        );
        expect(onlyOperation(v1)).toStrictEqual(fromPipelines);
        expect(
          entity({
            type: 'person',
            action: 'event',
            identifiers: identifiersOf(who),
            name: called,
            attributes: data,
            id: eventId,
          }),
        ).toStrictEqual(fromPipelines);
      }),
    );
  });

  test('an identify is the same in Pipelines, v1 and v2, with anonymous id, creation time and a relationship', () => {
    fc.assert(
      fc.property(
        person,
        attributes,
        id,
        seconds,
        object,
        attributes,
        (who, sent, anonymousId, at, related, role) => {
          const fromPipelines = pipelines('identify', {
            userId: textOf(who),
            anonymousId,
            traits: {
              ...sent,
              createdAt: iso(at),
              objectId: related.objectId,
              objectTypeId: related.objectTypeId,
              relationshipAttributes: role,
            },
          });
          const relationships = [
            { identifiers: objectIdentifiersOf(related), relationship_attributes: role },
          ];
          const common = { ...sent, created_at: at, anonymous_id: anonymousId };
          const v1 = {
            ...common,
            cio_relationships: { action: 'add_relationships', relationships },
          };
          expect(onlyOperation(parseIdentify(textOf(who), v1, context))).toStrictEqual(
            fromPipelines,
          );
          const v2 = {
            type: 'person',
            action: 'identify',
            identifiers: identifiersOf(who),
            attributes: common,
            cio_relationships: relationships,
          };
          expect(entity(v2)).toStrictEqual(fromPipelines);
        },
      ),
    );
  });

  test('a group is the same as a v2 object', () => {
    fc.assert(
      fc.property(person, object, attributes, attributes, (who, related, sent, role) => {
        const group = pipelines('group', {
          userId: textOf(who),
          groupId: related.objectId,
          traits: { ...sent, object_type_id: related.objectTypeId, relationship_traits: role },
        });
        const v2 = {
          type: 'object',
          action: 'identify',
          identifiers: objectIdentifiersOf(related),
          attributes: sent,
          cio_relationships: [{ identifiers: identifiersOf(who), relationship_attributes: role }],
        };
        expect(entity(v2)).toStrictEqual(group);
      }),
    );
  });

  test('deleting, suppressing, merging, devices and reports are the same everywhere', () => {
    fc.assert(
      fc.property(person, person, someId, (who, other, token) => {
        const identifiers = identifiersOf(who);
        const deleted = onlyOperation(parseDeletePerson(textOf(who), context));
        expect(pipelines('track', { userId: textOf(who), event: 'User Deleted' })).toStrictEqual(
          deleted,
        );
        expect(entity({ type: 'person', action: 'delete', identifiers })).toStrictEqual(deleted);

        const sides = { primary: identifiers, secondary: identifiersOf(other) };
        const merged = onlyOperation(parseMergePeople(sides, context));
        expect(
          pipelines('alias', { userId: textOf(who), previousId: textOf(other) }),
        ).toStrictEqual({ ...merged, isAlias: true });
        expect(entity({ type: 'person', action: 'merge', ...sides })).toStrictEqual(merged);

        const device = { platform: 'ios', last_used: 1_714_564_800, attributes: { model: 'X' } };
        const added = onlyOperation(
          parseAddDevice(textOf(who), { device: { id: token, ...device } }, context),
        );
        expect(
          entity({
            type: 'person',
            action: 'add_device',
            identifiers,
            device: { token, ...device },
          }),
        ).toStrictEqual(added);
        const track = {
          userId: textOf(who),
          event: 'Device Created or Updated',
          timestamp: 1_714_564_800,
          context: { device: { token, type: 'ios', model: 'X' } },
        };
        expect(pipelines('track', track)).toStrictEqual(added);

        const metric = { metric: 'clicked', href: 'https://x.example' };
        const reported = onlyOperation(
          parseMetric({ delivery_id: token, ...metric }, { ...context, newId: () => 'm1' }),
        );
        const report = {
          userId: 'u1',
          event: 'Report Delivery Event',
          messageId: 'm1',
          properties: { deliveryId: token, ...metric },
        };
        expect(pipelines('track', report)).toStrictEqual(reported);
      }),
    );
  });
});
