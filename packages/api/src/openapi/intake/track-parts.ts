/** Named parts of the bodies of the Track API. */
import {
  DEVICE_TOKEN_SIZE_BYTES_MAX,
  ID_SIZE_BYTES_MAX,
  METRIC_TEXT_SIZE_BYTES_MAX,
} from '@sluice/domain/operations/limits';
import { PERSON_CONTROL_KEYS } from '@sluice/domain/parsing/take-identify-person';
import { where } from '../../http/conditions.ts';
import { has, hasExactlyOne } from './conditions.ts';
import {
  anonymousId,
  ATTRIBUTE_BOUNDS,
  attributes,
  email,
  emailAttribute,
  exactText,
  identifier,
  type JsonSchema,
  notBlank,
  object,
  objectTypeId,
  reference,
  text,
  UNIX_SECONDS,
} from './json-schema.ts';

const IDENTIFIERS = {
  id: identifier('The id.'),
  email: email(),
  phone: {
    type: 'string',
    pattern: '^(?:\\s*|\\+[1-9]\\d{6,14})$',
    description: 'E.164, if the workspace allows phone numbers to identify.',
  },
  svc_id: exactText(ID_SIZE_BYTES_MAX, 'The id that Sluice gave.'),
  anonymous_id: anonymousId,
};

const personBy = (...names: readonly (keyof typeof IDENTIFIERS)[]): JsonSchema =>
  object(Object.fromEntries(names.map((name) => [name, IDENTIFIERS[name]])), [], {
    description: 'Exactly one of them.',
    ...where(
      hasExactlyOne(names.map((name) => (name === 'svc_id' ? ['svc_id', 'cio_id'] : [name]))),
    ),
  });

const relationship = (identifiers: string): JsonSchema =>
  object(
    {
      identifiers: reference(identifiers),
      relationship_attributes: attributes('Of the relationship.'),
    },
    ['identifiers'],
  );

export const TRACK_PARTS = {
  TrackPerson: personBy('id', 'email', 'phone', 'svc_id', 'anonymous_id'),
  TrackKnownPerson: personBy('id', 'email', 'phone', 'svc_id'),
  TrackMergedPerson: personBy('id', 'email', 'svc_id'),
  TrackObject: {
    anyOf: [
      object(
        { object_type_id: notBlank(objectTypeId), object_id: notBlank(identifier('The object.')) },
        ['object_type_id', 'object_id'],
      ),
      object(
        { svc_object_id: notBlank(exactText(ID_SIZE_BYTES_MAX, 'The id that Sluice gave.')) },
        ['svc_object_id'],
      ),
    ],
    ...where(
      { not: { allOf: [has('object_id'), has('svc_object_id')] } },
      { properties: { svc_object_id: { type: ['string', 'number', 'null'] } } },
    ),
  },
  TrackPersonRelationship: relationship('TrackPerson'),
  TrackObjectRelationship: relationship('TrackObject'),
} satisfies Record<string, JsonSchema>;

type PartName = keyof typeof TRACK_PARTS;

export const part = (name: PartName): JsonSchema => reference(name);

export const relationships = (
  to: 'TrackPersonRelationship' | 'TrackObjectRelationship',
  countMin: number,
): JsonSchema => ({ type: 'array', minItems: countMin, items: part(to) });

export const deviceToken = notBlank(exactText(DEVICE_TOKEN_SIZE_BYTES_MAX, 'The push token.'));

export const device = (id: 'id' | 'token'): JsonSchema =>
  object(
    {
      [id]: deviceToken,
      platform: { enum: ['ios', 'android'], description: 'Letter case does not count.' },
      last_used: UNIX_SECONDS,
      // `_last_status` is the service's own and no attribute.
      attributes: attributes('Of the device.', 1),
    },
    [id, 'platform'],
    ATTRIBUTE_BOUNDS,
  );

const CONTROL_COUNT = PERSON_CONTROL_KEYS.size;

/** Attributes of a person that are bound like identifiers. */
export const NAMING_ATTRIBUTES = {
  id: { ...identifier('An attribute.'), type: ['string', 'number', 'null'] },
  email: emailAttribute,
};

export const personAttributes = (description: string): JsonSchema => ({
  ...attributes(description, CONTROL_COUNT),
  properties: NAMING_ATTRIBUTES,
});

export const metricText = (description: string): JsonSchema =>
  text(METRIC_TEXT_SIZE_BYTES_MAX, description);

export const deliveryId = notBlank(exactText(ID_SIZE_BYTES_MAX));
