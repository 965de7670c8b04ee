/**
 * Checks every part of a request against its zod schema. Its messages are plain sentences.
 *
 * Two rules decide the status. A path that fails its schema leads to no object, so it is 404. Anything else is 400 with
 * one entry for each refused value. Zod's own texts are not shown: they speak of types, not of the field.
 */
import type { ProblemDetail } from '@sluice/domain/values/problem';
import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { invalidRequest, notFound, type Problem, validationFailed } from './problem.ts';

/** Carries a problem through Fastify, which takes only errors from a validator or a body parser. */
export class RequestRefused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.name = 'RequestRefused';
    this.problem = problem;
  }
}

type Issue = z.core.$ZodIssue;

/** The words of Track v2 (ingestion-conventions.md §2.3). */
type Reason = 'required' | 'invalid' | 'too_long' | 'too_large' | 'unsupported';

/** More would not help, and the body could hold thousands. */
const DETAIL_COUNT_MAX = 20;

export const validatorCompiler = compilerThat(() => false);

/**
 * For account routes (`account-conventions.md` §3.2, I27). 422 stands for a body whose values cannot be taken, for a
 * query value of the right type and for one that is missing; 400 stays for a request that cannot even be read.
 */
export const accountValidatorCompiler = compilerThat(
  (issues, httpPart, value) =>
    httpPart === 'body' ||
    !issues.some((issue) => isOfWrongType(issue) && valueAt(value, issue.path) !== undefined),
);

const isOfWrongType = ({ code }: Issue): boolean =>
  code === 'invalid_type' || code === 'invalid_format' || code === 'invalid_union';

function compilerThat(
  isUnprocessable: (
    issues: readonly Issue[],
    httpPart: string | undefined,
    value: unknown,
  ) => boolean,
): FastifySchemaCompiler<z.ZodType> {
  return ({ schema, httpPart }) =>
    (value: unknown) => {
      const parsed = schema.safeParse(value);
      if (parsed.success) return { value: parsed.data };
      if (httpPart === 'params')
        return { error: new RequestRefused(notFound('the object of the path was')) };
      const refuse = isUnprocessable(parsed.error.issues, httpPart, value)
        ? validationFailed
        : invalidRequest;
      return { error: new RequestRefused(refuse(toDetails(parsed.error, value, httpPart))) };
    };
}

/**
 * Values of a body that Fastify does not check, such as the fields of a form.
 *
 * @throws RequestRefused 400, with one entry a refused value.
 */
export function readFields<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.infer<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new RequestRefused(invalidRequest(toDetails(parsed.error, value, 'body')));
}

function toDetails(
  { issues }: z.ZodError,
  value: unknown,
  httpPart: string | undefined,
): ProblemDetail[] {
  return withTightestBounds(issues.flatMap(oneForEachKey))
    .slice(0, DETAIL_COUNT_MAX)
    .map((issue) => toDetail(issue, value, httpPart));
}

/** Zod names all unknown keys of an object in one issue; each is a field of its own. */
function oneForEachKey(issue: Issue): Issue[] {
  if (issue.code !== 'unrecognized_keys') return [issue];
  return issue.keys.map((key) => ({ ...issue, path: [...issue.path, key] }));
}

/**
 * An integer beyond 2^53 is also beyond the bound of its field. Only the field's bound is reported. One pass: a body of
 * 64 KB may have 20,000 refused entries.
 */
function withTightestBounds(issues: readonly Issue[]): Issue[] {
  const tightest = new Map<string, number | bigint>();
  const keyOf = ({ code, path }: Issue): string => `${code} ${path.join()}`;
  for (const issue of issues) {
    const bound = boundOf(issue);
    if (bound === undefined) continue;
    const known = tightest.get(keyOf(issue));
    if (known === undefined || bound < known) tightest.set(keyOf(issue), bound);
  }
  return issues.filter((issue) => {
    const bound = boundOf(issue);
    return bound === undefined || bound === tightest.get(keyOf(issue));
  });
}

/** The smaller, the tighter; undefined for an issue about no bound. */
function boundOf(issue: Issue): number | bigint | undefined {
  if (issue.code === 'too_big') return issue.maximum;
  return issue.code === 'too_small' ? -issue.minimum : undefined;
}

function toDetail(issue: Issue, value: unknown, httpPart: string | undefined): ProblemDetail {
  const isBody = httpPart === 'body';
  const field = issue.path.map(String).join('.');
  const { reason, message } = describe(issue, valueAt(value, issue.path), isBody);
  return {
    field: field === '' ? null : field,
    reason,
    message: `${field === '' ? 'the body' : field} ${message}`,
    source: isBody
      ? {
          pointer: issue.path
            .map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`)
            .join(''),
        }
      : { parameter: String(issue.path[0] ?? '') },
  };
}

/** The message follows the name of the field in a sentence. */
function describe(
  issue: Issue,
  given: unknown,
  isBody: boolean,
): { reason: Reason; message: string } {
  if (given === undefined) return { reason: 'required', message: 'is required' };
  switch (issue.code) {
    case 'invalid_type':
      // A query key that is repeated becomes a list.
      if (!isBody && Array.isArray(given))
        return { reason: 'invalid', message: 'must be given once' };
      return { reason: 'invalid', message: `must be ${withArticle(issue.expected)}` };
    case 'too_big':
      if (issue.origin === 'string')
        return { reason: 'too_long', message: `must be at most ${issue.maximum} characters long` };
      if (issue.origin === 'array')
        return { reason: 'too_large', message: `must hold at most ${issue.maximum} entries` };
      return { reason: 'invalid', message: `must be at most ${issue.maximum}` };
    case 'too_small':
      if (issue.origin === 'string')
        return {
          reason: 'invalid',
          message:
            Number(issue.minimum) > 1
              ? `must be at least ${issue.minimum} characters long`
              : 'must not be empty',
        };
      if (issue.origin === 'array')
        return {
          reason: 'invalid',
          message: `must hold at least ${issue.minimum} ${Number(issue.minimum) === 1 ? 'entry' : 'entries'}`,
        };
      return { reason: 'invalid', message: `must be at least ${issue.minimum}` };
    case 'invalid_value':
      return {
        reason: 'unsupported',
        message: `must be one of ${issue.values.map(String).join(', ')}`,
      };
    case 'unrecognized_keys':
      return { reason: 'unsupported', message: 'is not a field of this request' };
    case 'custom':
      // The schemas of this package word their own checks to follow the field's name.
      return { reason: reasonOf(issue.params?.['reason']), message: issue.message };
    case 'invalid_format':
      return { reason: 'invalid', message: issue.message };
    case 'invalid_union':
      return describeUnion(issue.errors, given, isBody);
    default:
      return { reason: 'invalid', message: 'is not valid' };
  }
}

/** The fault of the alternative whose type it has, or else the list of types. */
function describeUnion(
  alternatives: readonly (readonly Issue[])[],
  given: unknown,
  isBody: boolean,
): { reason: Reason; message: string } {
  const types: string[] = [];
  for (const [first] of alternatives) {
    if (first === undefined || first.path.length > 0) continue;
    if (first.code !== 'invalid_type') return describe(first, given, isBody);
    types.push(withArticle(first.expected));
  }
  if (types.length === 0) return { reason: 'invalid', message: 'is not valid' };
  const [last, ...others] = types.toReversed();
  const list = others.length === 0 ? last : `${others.toReversed().join(', ')} or ${last}`;
  return { reason: 'invalid', message: `must be ${list}` };
}

const reasonOf = (given: unknown): Reason => (given === 'unsupported' ? 'unsupported' : 'invalid');

const withArticle = (type: string): string => {
  if (type === 'int') return 'an integer';
  if (type === 'object') return 'a JSON object';
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
};

/** The given value at the path; of a text that a schema takes apart (`coupons=A,B`) the whole. */
function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== 'object' || at === null) return at;
    if (!Object.hasOwn(at, key)) return undefined;
    at = (at as Record<PropertyKey, unknown>)[key];
  }
  return at;
}
