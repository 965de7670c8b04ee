/**
 * The body of a failure of intake. It is like the API's (`domain/src/values/problem.ts`), but with other codes and
 * without an id of the request: intake gives requests no ids.
 */
import { type JsonSchema, object, reference } from './json-schema.ts';

const TEXT: JsonSchema = { type: 'string' };

const DETAIL = object(
  {
    batch_index: { type: 'integer', minimum: 0, description: 'Of a batch: which item, from 0.' },
    field: { type: ['string', 'null'], description: 'Dots between levels: `batch.3.event`.' },
    reason: TEXT,
    message: TEXT,
    detail: TEXT,
    status: TEXT,
    source: object({ pointer: TEXT, parameter: TEXT }),
  },
  ['field', 'reason', 'message', 'detail', 'status'],
);

const FAILURE = object(
  {
    type: { type: 'string', description: '`urn:sluice:error:` and the code.' },
    title: TEXT,
    status: { type: 'integer' },
    detail: TEXT,
    code: {
      type: 'string',
      description:
        'The code of the first issue of a refused call; or `unauthorized`, `rate_limited`, `overloaded`, `partly_accepted`.',
    },
    message: TEXT,
    errors: {
      type: 'array',
      items: DETAIL,
      minItems: 1,
      description: 'The first 1,000 problems; beyond them the first one of each item.',
    },
    meta: object({ error: TEXT, errors: { type: 'array', items: TEXT } }, ['error', 'errors']),
  },
  ['type', 'title', 'status', 'detail', 'code', 'message', 'errors', 'meta'],
);

export const INTAKE_FAILURE_SCHEMAS = { IntakeProblem: FAILURE };
export const INTAKE_FAILURE = reference('IntakeProblem');
