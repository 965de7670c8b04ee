/**
 * Every call that intake takes: its path, who may make it, its size limits and its parser
 * (`ingestion-webhooks.md` §4, `ingestion-conventions.md` §1.1, §2, §3.1).
 *
 * A new call is a row here and a parser in `domain`.
 *
 * Step 3 of the walk. Before: `rate-limit.ts`. After: the call's parser (step 4), of `domain/src/pipelines/pipelines.ts`,
 * `domain/src/track/track-v1.ts` or `domain/src/track/track-v2.ts`.
 */
import {
  PIPELINES_BATCH_SIZE_BYTES_MAX,
  PIPELINES_REQUEST_SIZE_BYTES_MAX,
  PIPELINES_STRICT_BATCH_SIZE_BYTES_MAX,
  PIPELINES_STRICT_REQUEST_SIZE_BYTES_MAX,
  PUBLISH_SIZE_BYTES_MAX,
  PUBLISH_VALUE_COUNT_MAX,
  TRACK_BATCH_SIZE_BYTES_MAX,
  TRACK_REQUEST_SIZE_BYTES_MAX,
} from '@sluice/domain/operations/limits';
import type { BatchItems, BatchSteps } from '@sluice/domain/parsing/batch';
import type { ItemsKey } from '@sluice/domain/parsing/lenient-json';
import type { ParseContext, Parsed } from '@sluice/domain/parsing/parse';
import {
  parsePipelines,
  parsePipelinesBatchInSteps,
  parsePipelinesLine,
  type PipelinesCall,
} from '@sluice/domain/pipelines/pipelines';
import {
  parseAddDevice,
  parseAnonymousEvent,
  parseDeleteDevice,
  parseDeletePerson,
  parseIdentify,
  parseMergePeople,
  parsePersonEvent,
  parseSuppressPerson,
  parseUnsuppressPerson,
} from '@sluice/domain/track/track-v1';
import { parsePublish } from '@sluice/domain/publish/parse-publish';
import { parseFormSubmission } from '@sluice/domain/track/track-v1-forms';
import {
  parseMetric,
  parsePushEvent,
  parseUnsubscribe,
} from '@sluice/domain/track/track-v1-messages';
import { parseSegmentChange } from '@sluice/domain/track/track-v1-segments';
import {
  parseEntity,
  parseTrackBatch,
  parseTrackBatchInSteps,
} from '@sluice/domain/track/track-v2';

type ParseInSteps = (body: unknown, items: BatchItems, context: ParseContext) => BatchSteps;
type Parse = (body: unknown, context: ParseContext, parameters: readonly string[]) => Parsed;

export interface Call {
  /** In the issues log: `pipelines.track`, `track.v2.batch`, … */
  readonly name: string;
  readonly api: 'pipelines' | 'track';
  /**
   * `delivery`: the call needs no credentials, and the delivery in the path identifies the workspace
   * (`accept-unsubscribe.ts`).
   */
  readonly workspaceFrom: 'credentials' | 'delivery';
  /** Of the inflated body. */
  readonly sizeBytesMax: number;
  /** In strict mode. */
  readonly strictSizeBytesMax: number;
  /** True if the body has a list of items, `batch`, of which a large one is read in turns. */
  readonly isBatch: boolean;
  /** The key of the items in its body; absent for a body without items. */
  readonly itemsKey?: ItemsKey;
  /** Of a large body that is not read in turns; 10,000 if absent. */
  readonly valueCountMax?: number;
  /** True if items are refused one by one: 207 with the refused ones, the others taken. */
  readonly hasItems: boolean;
  /** `results`: the result of each item. */
  readonly success: 'object' | 'no-content' | 'results';
  /** Set if its bodies may take the fast path (`fast-path.ts`): the form in which they are read. */
  readonly fastPathForm?: 'track' | 'batch';
  readonly parse: Parse;
  /** Of a batch whose items are read one by one; set with `isBatch`. */
  readonly parseInSteps?: ParseInSteps;
}

export interface Route {
  readonly method: 'post' | 'put' | 'del';
  readonly pattern: string;
  /** Query parameters that the parser gets after the parameters of the path; an absent one is empty. */
  readonly query?: readonly string[];
  readonly call: Call;
}

/** Takes calls line by line (`stream-exchange.ts`). */
export const STREAM_PATTERN = '/v1/stream';

/** As HTTP has it. */
export const methodOf = ({ method }: Pick<Route, 'method'>): string =>
  method === 'del' ? 'DELETE' : method.toUpperCase();

function pipelines(name: PipelinesCall, batchSizeBytesMax = PIPELINES_BATCH_SIZE_BYTES_MAX): Call {
  const isBatch = name === 'batch';
  return {
    name: `pipelines.${name}`,
    api: 'pipelines',
    workspaceFrom: 'credentials',
    sizeBytesMax: isBatch ? batchSizeBytesMax : PIPELINES_REQUEST_SIZE_BYTES_MAX,
    strictSizeBytesMax: isBatch
      ? PIPELINES_STRICT_BATCH_SIZE_BYTES_MAX
      : PIPELINES_STRICT_REQUEST_SIZE_BYTES_MAX,
    isBatch,
    hasItems: false,
    success: 'object',
    ...((name === 'track' || isBatch) && { fastPathForm: name }),
    ...(isBatch && { itemsKey: 'batch', parseInSteps: parsePipelinesBatchInSteps }),
    parse: (body, context) => parsePipelines(name, body, context),
  };
}

function track(name: string, parse: Parse, overrides: Partial<Call> = {}): Call {
  return {
    name: `track.${name}`,
    api: 'track',
    workspaceFrom: 'credentials',
    sizeBytesMax: TRACK_REQUEST_SIZE_BYTES_MAX,
    strictSizeBytesMax: TRACK_REQUEST_SIZE_BYTES_MAX,
    isBatch: false,
    hasItems: false,
    success: 'object',
    parse,
    ...overrides,
  };
}

const identify = track('v1.identify', (body, context, [identifier = '']) =>
  parseIdentify(identifier, body, context),
);
const remove = track('v1.delete', (_, context, [identifier = '']) =>
  parseDeletePerson(identifier, context),
);
const suppress = track('v1.suppress', (_, context, [identifier = '']) =>
  parseSuppressPerson(identifier, context),
);
const unsuppress = track('v1.unsuppress', (_, context, [identifier = '']) =>
  parseUnsuppressPerson(identifier, context),
);
const addDevice = track('v1.add_device', (body, context, [identifier = '']) =>
  parseAddDevice(identifier, body, context),
);
const deleteDevice = track('v1.delete_device', (_, context, [identifier = '', deviceId = '']) =>
  parseDeleteDevice(identifier, deviceId, context),
);
const personEvent = track('v1.event', (body, context, [identifier = '']) =>
  parsePersonEvent(identifier, body, context),
);
const anonymousEvent = track('v1.anonymous_event', (body, context) =>
  parseAnonymousEvent(body, context),
);
const merge = track('v1.merge', (body, context) => parseMergePeople(body, context));
const metric = track('v1.metric', (body, context) => parseMetric(body, context));
const pushEvent = track('v1.push_event', (body, context) => parsePushEvent(body, context));
const submitForm = track(
  'v1.form',
  (body, context, [formId = '']) => parseFormSubmission(formId, body, context),
  {
    success: 'no-content',
  },
);
const changeSegment = (action: 'add' | 'remove') =>
  track(
    `v1.segment_${action}`,
    (body, context, [segmentId = '', idType]) =>
      parseSegmentChange(action, segmentId, idType, body, context),
    // The thousand identifiers that a call may hold do not fit in 32 KB.
    {
      sizeBytesMax: TRACK_BATCH_SIZE_BYTES_MAX,
      strictSizeBytesMax: TRACK_BATCH_SIZE_BYTES_MAX,
    },
  );
const addToSegment = changeSegment('add');
const removeFromSegment = changeSegment('remove');
const unsubscribe = track(
  'v1.unsubscribe',
  (body, context, [deliveryId = '']) => parseUnsubscribe(deliveryId, body, context),
  { workspaceFrom: 'delivery' },
);
const entity = track('v2.entity', (body, context) => parseEntity(body, context));
const batch = track('v2.batch', (body, context) => parseTrackBatch(body, context), {
  sizeBytesMax: TRACK_BATCH_SIZE_BYTES_MAX,
  strictSizeBytesMax: TRACK_BATCH_SIZE_BYTES_MAX,
  isBatch: true,
  itemsKey: 'batch',
  hasItems: true,
  parseInSteps: parseTrackBatchInSteps,
});

/**
 * With the Track API's credentials: a write key of the Pipelines API stands in pages that anybody can read. Its owner
 * may report events of a browser, but not send to the workspace's customers.
 */
const publish: Call = {
  ...track('publish', (body, context) => parsePublish(body, context), {
    sizeBytesMax: PUBLISH_SIZE_BYTES_MAX,
    strictSizeBytesMax: PUBLISH_SIZE_BYTES_MAX,
    itemsKey: 'messages',
    valueCountMax: PUBLISH_VALUE_COUNT_MAX,
    hasItems: true,
    success: 'results',
  }),
  name: 'publish',
};

/** The published browser client posts to the first letter of the call; Java, and older clients of Ruby and .NET, their batches to `import`. */
const pipelinesRoutes = (batchSizeBytesMax: number): Route[] =>
  (['identify', 'track', 'page', 'screen', 'group', 'alias', 'batch'] as const).flatMap((name) => {
    const call = pipelines(name, batchSizeBytesMax);
    const paths = name === 'batch' ? ['batch', 'b', 'import'] : [name, name.charAt(0)];
    return paths.map((path): Route => ({ method: 'post', pattern: `/v1/${path}`, call }));
  });

const trackRoutes: readonly Route[] = [
  { method: 'put', pattern: '/api/v1/customers/:identifier', call: identify },
  { method: 'del', pattern: '/api/v1/customers/:identifier', call: remove },
  { method: 'post', pattern: '/api/v1/customers/:identifier/suppress', call: suppress },
  { method: 'post', pattern: '/api/v1/customers/:identifier/unsuppress', call: unsuppress },
  { method: 'put', pattern: '/api/v1/customers/:identifier/devices', call: addDevice },
  { method: 'del', pattern: '/api/v1/customers/:identifier/devices/:device', call: deleteDevice },
  { method: 'put', pattern: '/api/v1/customers/:identifier/events', call: personEvent },
  { method: 'post', pattern: '/api/v1/customers/:identifier/events', call: personEvent },
  { method: 'post', pattern: '/api/v1/events', call: anonymousEvent },
  { method: 'post', pattern: '/api/v1/merge_customers', call: merge },
  { method: 'post', pattern: '/api/v1/metrics', call: metric },
  { method: 'post', pattern: '/api/v1/push/events', call: pushEvent },
  { method: 'post', pattern: '/push/events', call: pushEvent },
  { method: 'post', pattern: '/api/v1/forms/:form/submit', call: submitForm },
  {
    method: 'post',
    pattern: '/api/v1/segments/:segment/add_customers',
    query: ['id_type'],
    call: addToSegment,
  },
  {
    method: 'post',
    pattern: '/api/v1/segments/:segment/remove_customers',
    query: ['id_type'],
    call: removeFromSegment,
  },
  { method: 'post', pattern: '/unsubscribe/:delivery', call: unsubscribe },
  ...['/v2', '/api/v2'].flatMap((prefix): Route[] => [
    { method: 'post', pattern: `${prefix}/entity`, call: entity },
    { method: 'post', pattern: `${prefix}/batch`, call: batch },
  ]),
];

/**
 * Every call. Each path is served with a slash at its end too (`server.ts`).
 *
 * @param batchSizeBytesMax - of an inflated Pipelines batch without strict mode (`INTAKE_BATCH_SIZE_BYTES_MAX`).
 */
export const createRoutes = (batchSizeBytesMax: number): readonly Route[] => [
  ...pipelinesRoutes(batchSizeBytesMax),
  ...trackRoutes,
  { method: 'post', pattern: '/v1/publish', call: publish },
];

/** With the setting's default. */
export const routes = createRoutes(PIPELINES_BATCH_SIZE_BYTES_MAX);

/** One line of `POST /v1/stream`: the credentials decide in which of the two APIs its lines are written. */
export const streamCalls: Readonly<Record<Call['api'], Call>> = {
  pipelines: {
    ...pipelines('track'),
    name: 'pipelines.stream',
    parse: (line, context) => parsePipelinesLine(line, context),
  },
  track: track('v2.stream', (line, context) => parseEntity(line, context)),
};
