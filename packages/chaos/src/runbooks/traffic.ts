/**
 * Clients that call all the time, with the result of each call; an endpoint that receives deliveries, with their
 * signatures.
 */
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';

const CLIENTS = 3;
/** Few calls: the worker of a machine that others use must keep up with them. */
const PAUSE_MS = 300;
/** One call in so many changes a person, which is reported. */
const CHANGE_EVERY = 4;
const STANDSTILL_MS_MAX = 60_000;
const POLL_INTERVAL_MS = 200;
/** Of calls of the API, which each cost a statement. */
const READ_INTERVAL_MS = 25;
/** Codes of `fetch` for a connection that ended before any answer. */
const CLOSED_BEFORE_ANSWER = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

function codeOfFailedFetch(error: unknown): string {
  return (error as { cause?: { code?: string } }).cause?.code ?? String(error);
}

export class Traffic {
  readonly url: string;
  readonly #database: Database;
  readonly acknowledged: string[] = [];
  /** Calls that were neither answered 200 nor cut before any answer, with their status. */
  readonly refused: string[] = [];
  writeKey: string = DEMO.writeKey;
  #isStopping = false;
  #running: Promise<unknown> | undefined;
  #round = 0;

  constructor(url: string, database: Database) {
    this.url = url;
    this.#database = database;
  }

  start(): void {
    this.#isStopping = false;
    const round = this.#round++;
    this.#running = Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        for (let n = 0; !this.#isStopping; n++) {
          await this.#send(`person-${client}`, `call-${round}-${client}-${n}`, n);
          await sleep(PAUSE_MS);
        }
      }),
    );
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
  }

  /** Until so many more calls were acknowledged. */
  async more(count: number): Promise<void> {
    const wanted = this.acknowledged.length + count;
    const deadlineMs = performance.now() + STANDSTILL_MS_MAX;
    while (this.acknowledged.length < wanted) {
      if (performance.now() > deadlineMs) throw new Error('calls are not acknowledged any more');
      await sleep(POLL_INTERVAL_MS);
    }
  }

  /** Waits until every acknowledged event is stored, as long as they become more. @throws Error if one is missing or there twice. */
  async expectStored(): Promise<void> {
    let stored = -1;
    for (let movedAtMs = performance.now(); ;) {
      const { rows } = await sql<{ eventId: string; count: number }>`
        select event_id as "eventId", count(*)::int as count from events
         where environment_id = ${DEMO.environmentId} and kind = 'event' group by 1`.execute(
        this.#database,
      );
      const twice = rows.filter(({ count }) => count > 1);
      if (twice.length > 0) throw new Error(`${twice.length} events are stored twice`);
      const found = new Set(rows.map(({ eventId }) => eventId));
      const missing = this.acknowledged.filter((id) => !found.has(id));
      if (missing.length === 0) return;
      if (found.size > stored) movedAtMs = performance.now();
      stored = found.size;
      if (performance.now() - movedAtMs > STANDSTILL_MS_MAX)
        throw new Error(
          `${missing.length} acknowledged events are lost: ${missing.slice(0, 3).join()}`,
        );
      await sleep(POLL_INTERVAL_MS);
    }
  }

  /** A new key takes an identify call before others, and is known within a second. */
  async proveKey(writeKey: string): Promise<void> {
    const deadlineMs = performance.now() + STANDSTILL_MS_MAX;
    while (!(await this.isKeyGood(writeKey, 'identify')) || !(await this.isKeyGood(writeKey))) {
      if (performance.now() > deadlineMs) throw new Error('intake still refuses the new write key');
      await sleep(POLL_INTERVAL_MS);
    }
  }

  async isKeyGood(writeKey: string, call = 'track'): Promise<boolean> {
    const answer = await fetch(`${this.url}/v1/${call}`, {
      method: 'POST',
      headers: headersWith(writeKey),
      body: JSON.stringify({ userId: 'key-tester', event: 'tested' }),
    });
    await answer.text();
    return answer.status === 200;
  }

  async #send(userId: string, messageId: string, n: number): Promise<void> {
    const isChange = n % CHANGE_EVERY === 0;
    if (isChange)
      await this.#post('identify', messageId, {
        userId,
        traits: { unsubscribed: n % (2 * CHANGE_EVERY) === 0 },
      });
    if (await this.#post('track', messageId, { userId, event: 'called', messageId }))
      this.acknowledged.push(messageId);
  }

  /** Sends a call again that was cut before any answer, as HTTP allows. */
  async #post(call: string, messageId: string, body: unknown): Promise<boolean> {
    for (;;) {
      try {
        const answer = await fetch(`${this.url}/v1/${call}`, {
          method: 'POST',
          headers: headersWith(this.writeKey),
          body: JSON.stringify(body),
        });
        await answer.text();
        if (answer.status === 200) return true;
        this.refused.push(`${call} ${messageId}: ${answer.status}`);
        return false;
      } catch (error) {
        const code = codeOfFailedFetch(error);
        if (!CLOSED_BEFORE_ANSWER.has(code)) {
          this.refused.push(`${call} ${messageId}: ${code}`);
          return false;
        }
      }
    }
  }
}

const headersWith = (writeKey: string) => ({
  Authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`,
  'X-Strict-Mode': '1',
});

/** Calls of the API, one after another, on connections that are kept. */
export function readAllTheTime(
  url: string,
): () => Promise<{ answered: number; closed: number; refused: string[] }> {
  let isStopping = false;
  const counts = { answered: 0, closed: 0, refused: [] as string[] };
  const running = (async () => {
    for (; !isStopping; await sleep(READ_INTERVAL_MS)) {
      try {
        const answer = await fetch(`${url}/v1/reporting_webhooks`, {
          headers: { authorization: `Bearer ${DEMO.appKey}` },
        });
        await answer.text();
        if (answer.status === 200) counts.answered++;
        else counts.refused.push(String(answer.status));
      } catch (error) {
        const code = codeOfFailedFetch(error);
        if (CLOSED_BEFORE_ANSWER.has(code)) counts.closed++;
        else counts.refused.push(code);
      }
    }
  })();
  return () => {
    isStopping = true;
    return running.then(() => counts);
  };
}

export interface Endpoint {
  readonly url: string;
  /** Status of its answers. */
  status: number;
  /** The next delivery that comes, and each attempt of it, is answered 400. */
  refusesNext: boolean;
  /** Keys that it takes; a delivery without a signature by one of them is in `unsigned`. */
  keys: string[];
  /** `event_id`s of signed deliveries that were answered with a success, in order. */
  readonly received: string[];
  readonly unsigned: string[];
  close(): void;
}

export async function startEndpoint(): Promise<Endpoint> {
  let refused: string | undefined;
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      const { headers } = request;
      const signatures = [headers['x-svc-signature'], headers['x-svc-signature-next']];
      const isSigned = endpoint.keys.some((key) =>
        signatures.includes(
          createHmac('sha256', key)
            .update(`v0:${String(headers['x-svc-timestamp'])}:${body}`)
            .digest('hex'),
        ),
      );
      const { event_id: id } = JSON.parse(body) as { event_id: string };
      if (endpoint.refusesNext) refused = id;
      endpoint.refusesNext = false;
      const status = id === refused ? 400 : endpoint.status;
      if (!isSigned) endpoint.unsigned.push(id);
      else if (status < 300) endpoint.received.push(id);
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const endpoint: Endpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    status: 200,
    refusesNext: false,
    keys: [DEMO.signingKey],
    received: [],
    unsigned: [],
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return endpoint;
}
