/**
 * Begin of a stream: its workspace, its name, and the line at which it goes on. Read before its first byte; its credentials are
 * checked again for each group that is taken.
 *
 * Before: `stream-exchange.ts`. After: `take-stream.ts`.
 */
import { DEMO_ELSEWHERE_MESSAGE } from '@sluice/domain/accounts/demo-calls';
import { BASIC_CHALLENGE, problem } from '../http/answer.ts';
import { hintOf, type KeyRing } from '../auth/authenticate.ts';
import { refusalOf, type ShownCredentials } from '../auth/shown-credentials.ts';
import { streamCalls } from '../calls/calls.ts';
import type { StreamDependencies, StreamRequest } from './take-stream.ts';

/** Dependencies of the check of credentials. */
export interface StreamGate extends Pick<
  StreamDependencies,
  'recordUnauthorized' | 'recordRefusal'
> {
  readonly keys: KeyRing;
}

/** `?id=` names the stream, `?line=` the number of the first line that comes. */
export interface StreamQuery {
  readonly id: string | undefined;
  readonly line: string | undefined;
}

export interface StreamHead extends Pick<StreamRequest, 'isStrict' | 'mayRepeatKey' | 'trace'> {
  readonly authorization: string;
  readonly mayUseDemo: boolean;
  readonly query: StreamQuery;
}

/** An answer that is no stream. */
export interface Refusal {
  readonly status: string;
  readonly body: string;
  /** Its name and its value. */
  readonly header?: readonly [string, string];
}

export type ReadStreamRequest =
  | { readonly outcome: 'read'; readonly request: StreamRequest }
  | ({ readonly outcome: 'refused' } & Refusal);

const unauthorized = (message: string): ReadStreamRequest => ({
  outcome: 'refused',
  status: '401 Unauthorized',
  body: problem(401, 'unauthorized', message),
  header: ['WWW-Authenticate', BASIC_CHALLENGE],
});

/** A stream has no write key in its body. */
const shownBy = (api: ShownCredentials['api'], authorization: string): ShownCredentials => ({
  api,
  authorization,
  body: undefined,
});

const STREAM_ID = /^[\w.:-]{1,100}$/;

export function readStreamRequest(
  { keys, recordUnauthorized, recordRefusal }: StreamGate,
  { authorization, mayUseDemo, query: { id, line }, isStrict, mayRepeatKey, trace }: StreamHead,
): ReadStreamRequest {
  const pipelines = keys.authenticatePipelines(authorization);
  const track = keys.authenticateTrack(authorization);
  const api = pipelines.outcome === 'known' ? 'pipelines' : 'track';
  const found = api === 'pipelines' ? pipelines : track;
  const call = streamCalls[api];
  if (found.outcome === 'unknown' || found.workspace.testKey !== undefined) {
    const environmentId =
      found.outcome === 'known' ? found.workspace.environmentId : found.siteEnvironmentId;
    recordUnauthorized(call.name, environmentId, refusalOf(keys, shownBy(api, authorization)));
    return unauthorized('Unauthorized request: the credentials are missing or not in force');
  }
  const { workspace } = found;
  if (workspace.isDemo && !mayUseDemo) {
    const refusal = { reason: 'demo_elsewhere', hint: hintOf(authorization) } as const;
    recordUnauthorized(call.name, workspace.environmentId, refusal);
    return unauthorized(DEMO_ELSEWHERE_MESSAGE);
  }
  const invalid = (field: string, message: string): ReadStreamRequest => {
    recordRefusal?.(workspace, call.name, [{ code: 'invalid', field, message }]);
    return {
      outcome: 'refused',
      status: '400 Bad Request',
      body: problem(400, 'invalid', message),
    };
  };
  const firstLine = line === undefined || line === '' ? 1 : Number(line);
  const hasId = id !== undefined && id !== '';
  if (!Number.isSafeInteger(firstLine) || firstLine < 1)
    return invalid('line', 'line must be a positive integer');
  if (hasId && !STREAM_ID.test(id))
    return invalid('id', 'id may have up to 100 letters, digits and . _ : -');
  return {
    outcome: 'read',
    request: {
      call,
      workspace,
      isStrict,
      mayRepeatKey,
      id: hasId ? id : undefined,
      firstLine,
      trace,
    },
  };
}

/** One look into memory: the ring remembers the headers of known credentials. */
export function isStillAuthorized(
  { keys, recordUnauthorized }: StreamGate,
  authorization: string,
  { call, workspace }: StreamRequest,
): boolean {
  const found =
    call.api === 'pipelines'
      ? keys.authenticatePipelines(authorization)
      : keys.authenticateTrack(authorization);
  const isKnown =
    found.outcome === 'known' &&
    found.workspace.environmentId === workspace.environmentId &&
    found.workspace.testKey === undefined;
  if (!isKnown)
    recordUnauthorized(
      call.name,
      workspace.environmentId,
      refusalOf(keys, shownBy(call.api, authorization)),
    );
  return isKnown;
}
