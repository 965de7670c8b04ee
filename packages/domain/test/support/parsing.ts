/** Parts that the parser tests share: a fixed context, and shorthands that show the expectation after a failure. */
import { isError, type Issue } from '@sluice/domain/operations/issue';
import type { Operation } from '@sluice/domain/operations/operation';
import type { ParseContext, Parsed } from '@sluice/domain/parsing/parse';
import { expect } from 'vitest';

/** 2024-05-01T12:00:00.500Z */
export const RECEIVED_AT_MS = 1_714_564_800_500;
export const MADE_ID = '01HWTESTMADE00000000000000';

export const CONTEXT: ParseContext = {
  environmentId: 7,
  receivedAtMs: RECEIVED_AT_MS,
  newId: () => MADE_ID,
  phoneIdentifies: false,
};

/** Members of every operation. */
export const BASE = { environmentId: 7, receivedAtMs: RECEIVED_AT_MS };

/** The one operation of a call that has no issue at all. */
export function onlyOperation(parsed: Parsed): Operation {
  expect(parsed.issues).toEqual([]);
  expect(parsed.operations).toHaveLength(1);
  return parsed.operations[0] as Operation;
}

/** The one operation of a given type, of a call that may have warnings and other operations. */
export function operationOf<Type extends Operation['type']>(
  parsed: Parsed,
  type: Type,
): Extract<Operation, { type: Type }> {
  expect(parsed.issues.filter(isError)).toEqual([]);
  const found = parsed.operations.filter((operation) => operation.type === type);
  expect(found).toHaveLength(1);
  return found[0] as Extract<Operation, { type: Type }>;
}

/** The one issue of a call. */
export function onlyIssue(parsed: Parsed): Issue {
  expect(parsed.issues).toHaveLength(1);
  return parsed.issues[0] as Issue;
}

/** The errors of a call that was refused, as `code field`. */
export function refusals(parsed: Parsed): string[] {
  expect(parsed.operations).toEqual([]);
  return parsed.issues.filter(isError).map((issue) => `${issue.code} ${issue.field ?? '-'}`);
}

/** The warnings of a call that was taken, as `code field`. */
export function warnings(parsed: Parsed): string[] {
  expect(parsed.issues.filter(isError)).toEqual([]);
  return parsed.issues.map((issue) => `${issue.code} ${issue.field ?? '-'}`);
}

/** Objects within objects, `levels` deep counting the innermost. */
export function nested(levels: number): unknown {
  return JSON.parse('{"a":'.repeat(levels - 1) + '{}' + '}'.repeat(levels - 1));
}
