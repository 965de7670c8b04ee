/** Random groups and relationships of people and visitors. Used by `generate-calls.ts`. */
import fc from 'fast-check';
import { OBJECTS, sometimes, type MakeBody, type Names } from './generate-items.ts';
import type { Body } from './model/call.ts';

/** A person, a visitor, or both at once, as browsers send them. */
export const personOrVisitor = ({ any, anonymous }: Names): fc.Arbitrary<Body> =>
  fc.oneof(
    { weight: 3, arbitrary: any.map((userId) => ({ userId })) },
    { weight: 3, arbitrary: anonymous.map((anonymousId) => ({ anonymousId })) },
    { weight: 1, arbitrary: fc.record({ userId: any, anonymousId: anonymous }) },
  );

export const group = (names: Names): fc.Arbitrary<MakeBody> =>
  fc.tuple(personOrVisitor(names), OBJECTS).map(([ids, groupId]) => (number) => ({
    type: 'group',
    ...ids,
    groupId,
    traits: { relationship_traits: { role: number } },
  }));

/** A relationship from the person's side, or from the object's side; there also of a visitor. */
export const relationItem = ({ identifiers: known, anonymous }: Names): fc.Arbitrary<MakeBody> =>
  fc
    .tuple(
      fc.constantFrom('person', 'person', 'object', 'visitor', 'anonymous'),
      fc.constantFrom('add_relationships', 'add_relationships', 'delete_relationships'),
      known,
      anonymous.map((each): Body => ({ anonymous_id: each })),
      OBJECTS.map(objectOf),
      // One call may name several.
      sometimes(fc.tuple(known, OBJECTS.map(objectOf)), 4),
    )
    .map(([side, action, own, visitor, object, further]) => (number) => {
      const related = action === 'add_relationships' && {
        relationship_attributes: { role: number },
      };
      if (side === 'visitor') {
        const entry = { identifiers: visitor, relationship_attributes: { role: number } };
        return {
          type: 'object',
          action: 'identify_anonymous',
          identifiers: object,
          svc_relationships: [entry],
        } as never;
      }
      const whom = side === 'anonymous' ? visitor : own;
      const isOfPerson = side === 'person';
      const [identifiers, other] = isOfPerson ? [own, object] : [object, whom];
      const others = further ? [other, isOfPerson ? further[1] : further[0]] : [other];
      const svc_relationships = others.map((each) => ({ identifiers: each, ...related }));
      return {
        type: isOfPerson ? 'person' : 'object',
        action,
        identifiers,
        svc_relationships,
      } as never;
    });

const objectOf = (object_id: string) => ({ object_type_id: '1', object_id });
