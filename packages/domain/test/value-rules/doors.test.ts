/**
 * Every door to the service × every kind of value: all doors read a value the same. The expected value comes from the
 * table of rules, so a door with a rule of its own fails here.
 */
import { isError } from '@sluice/domain/operations/issue';
import { boundsOfEvents, boundsOfOrdering } from '@sluice/domain/value-rules/time-rule';
import { VALUE_RULES } from '@sluice/domain/value-rules/value-rules';
import {
  ABSENT,
  isAbsent,
  refused,
  trimmed,
  type Verdict,
} from '@sluice/domain/value-rules/verdict';
import { describe, expect, test } from 'vitest';
import { BOOLEANS, EMAILS, IDENTIFIERS, NAMES, NUMBERS, TIMES } from '../support/door-values.ts';
import type { Door } from '../support/doors.ts';
import { IDENTIFIER_DOORS } from '../support/identifier-doors.ts';
import { RECEIVED_AT_MS } from '../support/parsing.ts';
import {
  BOOLEAN_DOORS,
  EMAIL_DOORS,
  NAME_DOORS,
  NUMBER_DOORS,
  ORDERING_DOORS,
  TIME_DOORS,
} from '../support/value-doors.ts';

const judgeId = (value: unknown, { sizeBytesMax = 150 }: Door) =>
  VALUE_RULES.identifier(value, sizeBytesMax);
const judgeAddress = (value: unknown) => VALUE_RULES.email(value, 254);
const judgeEvent = (value: unknown) => VALUE_RULES.time(value, boundsOfEvents(RECEIVED_AT_MS));
const judgeOrder = (value: unknown) => VALUE_RULES.time(value, boundsOfOrdering(RECEIVED_AT_MS));
const judgeInteger = (value: unknown) => VALUE_RULES.positiveInteger(value);

const judgeName = (value: unknown): Verdict<string> => {
  if (isAbsent(value)) return ABSENT;
  return typeof value === 'string'
    ? { outcome: 'read', value: trimmed(value) }
    : refused('must be a string');
};

type Judge = (value: unknown, door: Door) => Verdict<unknown>;

describe.each<[string, readonly Door[], readonly unknown[], Judge]>([
  ['identifier', IDENTIFIER_DOORS, IDENTIFIERS, judgeId],
  ['name of an event', NAME_DOORS, NAMES, judgeName],
  ['email', EMAIL_DOORS, EMAILS, judgeAddress],
  ['time', TIME_DOORS, TIMES, judgeEvent],
  ['time that orders', ORDERING_DOORS, TIMES, judgeOrder],
  ['boolean', BOOLEAN_DOORS, BOOLEANS, (value) => VALUE_RULES.boolean(value)],
  ['positive integer', NUMBER_DOORS, NUMBERS, judgeInteger],
])('%s', (_rule, doors, values, judge) => {
  test.each(doors)('$name follows the rule for every value', (door) => {
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
