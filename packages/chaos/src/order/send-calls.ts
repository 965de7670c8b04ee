/**
 * Sends the calls of one sequence as its clients would: each client awaits its answers.
 *
 * A call without an answer, as of an intake that was killed, may or may not take effect; so may one that was answered 5xx.
 * Its client goes on with its next call.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkspaceKeys } from '@sluice/database/testing/test-tenants';
import type { Fleet } from '../loss/fleet-under-test.ts';
import { NEVER, type AnsweredCall, type PlannedCall, type SentCall } from './model/call.ts';

/** Addresses of calls, and their keys. */
export interface Client extends Pick<Fleet, 'intakeUrls'> {
  readonly apiUrl: string;
  readonly workspace: WorkspaceKeys;
}

/** How many effects of the call are acknowledged: lines of a stream, else one. `refused`: it has no effect. */
type Acknowledged = number | 'refused';

interface Sending {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | FormData;
}

const BASIC = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const pipelinesHeaders = ({ writeKey }: WorkspaceKeys) => ({
  Authorization: BASIC(`${writeKey}:`),
  'X-Strict-Mode': '1',
});
const trackHeaders = ({ siteId, apiKey }: WorkspaceKeys) => ({
  Authorization: BASIC(`${siteId}:${apiKey}`),
});
export const appHeaders = ({ appKey }: WorkspaceKeys) => ({ Authorization: `Bearer ${appKey}` });
const JSON_TYPE = { 'Content-Type': 'application/json' };
const RETRY_DELAY_MS = 50;
/** A killed intake is there again after 1 to 3 s. */
const CONNECT_ATTEMPTS_MAX = 600;
const IMPORT_LOOK_INTERVAL_MS = 50;
/** Far more than a call may take; a fleet without faults answers in milliseconds. */
const ANSWER_DEADLINE_MS = 60_000;

/** @throws Error if a call is refused: the sequence cannot be judged then. */
export async function sendSequence(
  client: Client,
  calls: readonly PlannedCall[],
): Promise<readonly AnsweredCall[]> {
  const history: AnsweredCall[] = [];
  // One process sends all calls, so a counter orders them better than a clock.
  let place = 0;
  const run = async (sender: number): Promise<void> => {
    for (const planned of calls) {
      if (planned.sender !== sender) continue;
      const sentAt = ++place;
      const acknowledged = await sendCall(client, planned);
      if (acknowledged === 'refused') continue;
      const answeredAt = ++place;
      let follows: AnsweredCall | undefined;
      for (const [index, call] of effectsOf(planned.call).entries()) {
        const isAnswered = index < acknowledged;
        const effect = { ...planned, call, sentAt, answeredAt: isAnswered ? answeredAt : NEVER };
        follows = follows ? { ...effect, follows } : effect;
        history.push(follows);
      }
    }
  };
  await Promise.all([...new Set(calls.map(({ sender }) => sender))].map(run));
  return history.toSorted((one, other) => one.sentAt - other.sentAt);
}

/** Each line of a stream takes effect by itself. */
function effectsOf(call: SentCall): readonly SentCall[] {
  if (call.api !== 'stream') return [call];
  return call.lines.map(({ type, ...body }) =>
    call.of === 'v2'
      ? { api: 'v2', path: 'entity', body: { type, ...body } }
      : { api: 'pipelines', path: type as string, body },
  );
}

function sendCall(
  { intakeUrls, apiUrl, workspace }: Client,
  { call, intake }: PlannedCall,
): Promise<Acknowledged> {
  const url = intakeUrls[intake];
  const json = (path: string, headers: object, body: unknown, method = 'POST') =>
    sendOne({
      url: `${url}${path}`,
      method,
      headers: { ...JSON_TYPE, ...headers },
      body: JSON.stringify(body),
    });
  switch (call.api) {
    case 'pipelines':
      return json(`/v1/${call.path}`, pipelinesHeaders(workspace), call.body);
    case 'v2':
      return json(`/api/v2/${call.path}`, trackHeaders(workspace), call.body);
    case 'v1': {
      const path = call.path.map(encodeURIComponent).join('/');
      const isLink = call.path[0] === 'unsubscribe';
      const to = isLink ? `/${path}` : `/api/v1/${path}`;
      return json(to, trackHeaders(workspace), call.body ?? {}, call.method);
    }
    case 'stream':
      return sendStream(url, workspace, call);
    case 'import':
      return sendImport(apiUrl, workspace, call);
  }
}

async function sendOne(sending: Sending): Promise<Acknowledged> {
  const text = await post(sending);
  return text === REFUSED ? 'refused' : text === undefined ? 0 : 1;
}

/** @returns the lines that were acknowledged, from the first on. */
async function sendStream(
  url: string,
  workspace: WorkspaceKeys,
  { of, lines }: Extract<SentCall, { api: 'stream' }>,
): Promise<Acknowledged> {
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  const headers = of === 'v2' ? trackHeaders(workspace) : pipelinesHeaders(workspace);
  const text = await post({ url: `${url}/v1/stream`, method: 'POST', headers, body });
  let acknowledged = 0;
  for (const line of (text ?? '').split('\n').filter((each) => each !== '')) {
    const { line: last = 0, issues = [] } = JSON.parse(line) as {
      line?: number;
      issues?: readonly { readonly severity?: string }[];
    };
    if (issues.some(({ severity }) => severity !== 'warning'))
      throw new Error(`a line of a stream was refused (${line}): ${body}`);
    acknowledged = Math.max(acknowledged, last);
  }
  return acknowledged;
}

/** Its rows take effect in one transaction between the upload and the end. */
async function sendImport(
  apiUrl: string,
  workspace: WorkspaceKeys,
  { identifier, rows }: Extract<SentCall, { api: 'import' }>,
): Promise<Acknowledged> {
  const headers = appHeaders(workspace);
  const file = ['_svc_name,_svc_customer_id', ...rows.map((row) => `${row.name},${row.person}`)];
  const body = new FormData();
  for (const [name, value] of Object.entries({ name: 'order', type: 'event', identifier }))
    body.append(name, value);
  body.append('file', new Blob([file.join('\n')]), 'events.csv');
  const text = await post({ url: `${apiUrl}/v1/imports`, method: 'POST', headers, body });
  if (text === undefined) return 0;
  const { id } = (JSON.parse(text) as { import: { id: number } }).import;
  for (;;) {
    const answer = await fetch(`${apiUrl}/v1/imports/${id}`, { headers }).catch(() => undefined);
    const found = answer?.ok
      ? ((await answer.json()) as { import: { state: string; error: string | null } }).import
      : undefined;
    if (found?.state === 'imported') return 1;
    if (found?.state === 'failed') throw new Error(`an import failed: ${found.error}`);
    await sleep(IMPORT_LOOK_INTERVAL_MS);
  }
}

/**
 * @returns the body of an answer of success; undefined without an answer, or for a server's fault.
 * @throws Error if the call was refused.
 */
async function post({ url, ...request }: Sending): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      const signal = AbortSignal.timeout(ANSWER_DEADLINE_MS);
      const answer = await fetch(url, { ...request, signal });
      const text = await answer.text();
      if (answer.ok) return text;
      if (answer.status >= 500) return undefined;
      // The link of a message of which no metric has come yet.
      if (answer.status === 400 && url.includes('/unsubscribe/')) return REFUSED;
      throw new Refused(`${request.method} ${url} was answered ${answer.status}: ${text}`);
    } catch (error) {
      if (error instanceof Refused) throw error;
      if (!isUnsent(error) || attempt === CONNECT_ATTEMPTS_MAX) return undefined;
      await sleep(RETRY_DELAY_MS);
    }
  }
}

const REFUSED = 'refused';

class Refused extends Error {}

/** No process listened, so the call was not taken. */
const isUnsent = (error: unknown): boolean =>
  error instanceof Error && (error.cause as { code?: string } | undefined)?.code === 'ECONNREFUSED';
