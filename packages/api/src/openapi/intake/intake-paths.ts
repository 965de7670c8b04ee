/**
 * The calls of intake: the Pipelines API and the Track API, for the one description of both services (`openapi.ts`).
 * Intake reads bodies by hand (for the reason in `domain/src/parsing/parse.ts`), so its calls are described here. Tests
 * send every example to an intake and hold the paths to the routes that it serves.
 */
import {
  PIPELINES_REQUEST_SIZE_BYTES_MAX,
  PIPELINES_STRICT_REQUEST_SIZE_BYTES_MAX,
  TRACK_REQUEST_SIZE_BYTES_MAX,
} from '@sluice/domain/operations/limits';
import { type IntakeCall, kilobytes } from './intake-call.ts';
import { INTAKE_FAILURE, INTAKE_FAILURE_SCHEMAS } from './intake-failure.ts';
import { object, reference } from './json-schema.ts';
import { PIPELINES_CALLS } from './pipelines-calls.ts';
import { PIPELINES_SCHEMAS } from './pipelines-schemas.ts';
import { PUBLISH_CALL, PUBLISH_SCHEMAS } from './publish-call.ts';
import { PATH_PARAMETERS, TRACK_CALLS } from './track-calls.ts';
import { TRACK_SCHEMAS } from './track-schemas.ts';

export const INTAKE_SCHEMAS: Readonly<Record<string, object>> = {
  ...PIPELINES_SCHEMAS,
  ...TRACK_SCHEMAS,
  ...PUBLISH_SCHEMAS,
  ...INTAKE_FAILURE_SCHEMAS,
};

/** Each operation names it, for the API serves `/v1/stream` as well. */
const SERVERS = [
  {
    url: '{intake_url}',
    description: 'Intake',
    variables: {
      intake_url: { default: 'http://localhost:8080', description: 'The address of intake.' },
    },
  },
];

const STRICT = {
  name: 'X-Strict-Mode',
  in: 'header',
  required: false,
  description:
    '`1` or `true` refuses a wrong call with 400. Otherwise the answer is 200, and the mistakes are in the issues log.',
  schema: { type: 'string' },
};

/** The Track API refuses a wrong call in any case. */
const STRICT_ON_TRACK = {
  ...STRICT,
  description: '`1` or `true` refuses a value that intake otherwise corrects.',
};

const EMPTY = {
  description: 'Taken: it is on disk.',
  content: { 'application/json': { schema: object({}) } },
};
const problem = (description: string) => ({
  description,
  content: { 'application/json': { schema: INTAKE_FAILURE } },
});
const FRAMING = problem(
  'The `Content-Length`, `Host` or `Authorization` header is given twice or is no such value.',
);
const COMMON = {
  429: problem('Too many calls of the workspace. Send it again after `Retry-After` seconds.'),
  431: { description: 'The headers are larger than intake reads. It closes the connection.' },
  503: problem('Not stored. Send it again after `Retry-After` seconds.'),
};
const UNAUTHORIZED = problem('The credentials are missing or not in force.');

const PIPELINES_ANSWERS = {
  200: EMPTY,
  400: problem('In strict mode: the mistakes, by field. The whole call is refused.'),
  401: problem('In strict mode: the write key is missing or not in force.'),
  ...COMMON,
};

const results = (description: string) => ({
  description,
  content: { 'application/json': { schema: reference('PublishResults') } },
});

const trackAnswers = ({ answer, isOpen }: IntakeCall) => ({
  ...(answer === 204 && { 204: { description: 'Taken: it is on disk.' } }),
  ...((answer === undefined || answer === 207) && { 200: EMPTY }),
  ...(answer === 'results' && {
    200: results('All are on disk.'),
    207: results('Some are wrong; the others are on disk.'),
  }),
  ...(answer === 207 && {
    207: problem('Some items are wrong: `batch_index` names them. The others are taken.'),
  }),
  400: problem('The mistakes, by field. The whole call is refused.'),
  ...(!isOpen && { 401: UNAUTHORIZED }),
  ...COMMON,
});

const parametersOf = (path: string): object[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => PATH_PARAMETERS[name] as object);

function operationOf(call: IntakeCall, api: 'pipelines' | 'track'): object {
  const { path, operationId, summary, description, body, example, isOpen, query = [] } = call;
  const parameters = [
    ...parametersOf(path),
    ...query,
    api === 'pipelines' ? STRICT : STRICT_ON_TRACK,
  ];
  return {
    operationId,
    tags: [api],
    summary,
    description,
    servers: SERVERS,
    security: isOpen ? [] : [{ [api === 'pipelines' ? 'write_key' : 'site_key']: [] }],
    parameters,
    ...(body !== undefined && {
      requestBody: {
        required: true,
        description: 'Also with `Content-Encoding: gzip` or `deflate`; others are refused.',
        content: { 'application/json': { schema: reference(body), example } },
      },
    }),
    responses: api === 'pipelines' ? PIPELINES_ANSWERS : trackAnswers(call),
  };
}

/** Any number of calls on one request. */
const STREAM = {
  operationId: 'sendStream',
  tags: ['pipelines'],
  summary: 'Any number of calls in one request',
  description: `Newline-delimited calls, also with \`Content-Encoding: gzip\` or \`deflate\`. With a write key each line is a Pipelines call with its \`type\`, of at most ${kilobytes(PIPELINES_REQUEST_SIZE_BYTES_MAX)}, in strict mode ${kilobytes(PIPELINES_STRICT_REQUEST_SIZE_BYTES_MAX)}. With a site key it is an operation of Track v2, of at most ${kilobytes(TRACK_REQUEST_SIZE_BYTES_MAX)}. In strict mode the first wrong line ends the stream. The answer begins while the lines are read. After \`{"line":N,"issues":[…]}\` every line up to N is on disk or among the issues. The last line has an \`end\`.`,
  servers: SERVERS,
  security: [{ write_key: [] }, { site_key: [] }],
  parameters: [
    {
      name: 'id',
      in: 'query',
      required: false,
      description: 'Names the stream: lines that are sent again count once.',
      schema: { type: 'string', pattern: '^[\\w.:-]{1,100}$' },
    },
    {
      name: 'line',
      in: 'query',
      required: false,
      description: 'The number of the first line that comes; 1 by default.',
      schema: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    },
    STRICT,
  ],
  requestBody: {
    // A stream may have no line.
    required: false,
    content: {
      'application/x-ndjson': {
        schema: { type: 'string' },
        example: '{"type":"track","userId":"ada","event":"Order Completed"}\n',
      },
      // The type of a stream is not looked at, and many tools cannot send the first one.
      'text/plain': { schema: { type: 'string' } },
    },
  },
  responses: {
    200: {
      description: 'A line of JSON for each group of lines that is on disk.',
      content: { 'application/x-ndjson': { schema: { type: 'string' } } },
    },
    400: problem('`id`, `line` or the content encoding is wrong.'),
    401: UNAUTHORIZED,
    ...COMMON,
  },
};

const page = (operationId: string, summary: string, description: string, schema: object) => ({
  operationId,
  tags: ['track'],
  summary,
  description,
  servers: SERVERS,
  security: [{ site_key: [] }],
  responses: {
    200: {
      description: 'The credentials are in force.',
      content: { 'application/json': { schema } },
    },
    400: FRAMING,
    401: UNAUTHORIZED,
    429: { description: 'Of a proxy in front. Intake does not limit this call.' },
    431: COMMON[431],
  },
});

/** Of every call, by path and method. */
export const INTAKE_PATHS = pathsOf([
  ...PIPELINES_CALLS.map(
    (call) => [call.path, call.method, operationOf(call, 'pipelines')] as const,
  ),
  ['/v1/stream', 'post', STREAM],
  ...[...TRACK_CALLS, PUBLISH_CALL].map(
    (call) => [call.path, call.method, operationOf(call, 'track')] as const,
  ),
  [
    '/auth',
    'get',
    page(
      'checkTrackCredentials',
      'Are the credentials in force?',
      'Does not check the broker; `/readyz` does.',
      object({}),
    ),
  ],
  [
    '/api/v1/accounts/region',
    'get',
    page(
      'getTrackRegion',
      'Region of an account',
      'There is one: `url` is the host that was asked.',
      object(
        {
          url: { type: 'string' },
          region: { enum: ['us', 'eu'] },
          environment_id: { type: 'integer' },
        },
        ['url', 'region', 'environment_id'],
      ),
    ),
  ],
]);

function pathsOf(
  operations: readonly (readonly [path: string, method: string, operation: object])[],
) {
  const paths: Record<string, Record<string, object>> = {};
  for (const [path, method, operation] of operations) (paths[path] ??= {})[method] = operation;
  return paths;
}
