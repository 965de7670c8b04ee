/**
 * Conditions among the members of a body, as JSON Schema.
 *
 * They check and have no types: a generator of types passes over `not`, and would make every union with a condition an
 * `unknown`. So a condition stands in `not` twice.
 */
type JsonSchema = Readonly<Record<string, unknown>>;

/** @param conditions - all of them must hold. */
export const where = (...conditions: readonly JsonSchema[]): JsonSchema => ({
  not: { not: conditions.length === 1 ? conditions[0] : { allOf: conditions } },
});

/** The member is given; a null counts as given. */
export const hasMember = (member: string): JsonSchema => hasMemberAs(member, {});

/** The member is given and holds a value for which the schema holds. */
export const hasMemberAs = (member: string, schema: JsonSchema): JsonSchema => ({
  required: [member],
  properties: { [member]: schema },
});

/** `then` holds if the condition does, and `otherwise` if it does not. */
export const choose = (
  condition: JsonSchema,
  then: JsonSchema,
  otherwise?: JsonSchema,
): JsonSchema => {
  const first = { anyOf: [{ not: condition }, then] };
  return otherwise ? { allOf: [first, { anyOf: [condition, otherwise] }] } : first;
};

/** The members may not be given. */
export const without = (...members: readonly string[]): JsonSchema => ({
  properties: Object.fromEntries(members.map((member) => [member, false])),
});
