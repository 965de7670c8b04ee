/**
 * Comparator: an undici `dispatch` loop that only signs and posts the log. It has no order, no
 * state and no record. It has the bodies in memory before it begins.
 *
 * Its parent sends a message over IPC for each round, and it sends the count, the duration and the CPU time back when
 * its connections are closed. They were kept at first: closing 10,000 of them took 0.7 of a core for the nine seconds
 * after a round, in which the worker was measured.
 */
import { createHmac } from 'node:crypto';
import { createDatabase } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { Agent } from 'undici';

const database = createDatabase({
  url: process.env['DATABASE_URL'] as string,
  poolMax: 1,
  applicationName: 'bench-dispatch',
  onError: () => undefined,
});
const inFlightMax = Number(process.env['IN_FLIGHT']);

process.on('message', () => {
  void run().then((report) => process.send?.(report));
});
process.send?.('ready');

/** @property cpuSeconds - of this process, without reading the log before and closing the connections after. */
export interface DispatchReport {
  readonly count: number;
  readonly failures: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

async function run(): Promise<DispatchReport> {
  const { rows } = await sql<{ endpoint: string; body: string }>`
    select endpoint, body from delivery_log join webhooks using (environment_id, webhook_id)
     where environment_id = ${DEMO.environmentId} order by sequence, webhook_id`.execute(database);
  const deliveries = rows.map(({ endpoint, body }) => {
    const url = new URL(endpoint);
    return { origin: url.origin, path: url.pathname, body };
  });
  // By default undici closes a connection after 4 s, in which a slow machine opens no 10,000 of them.
  const agent = new Agent({ connections: inFlightMax, pipelining: 1, keepAliveTimeout: 60_000 });
  let next = 0;
  let ended = 0;
  let failures = 0;
  const startedAtMs = performance.now();
  const cpuBefore = process.cpuUsage();
  await new Promise<void>((resolve) => {
    const startOne = (): void => {
      const delivery = deliveries[next++];
      if (!delivery) return;
      const timestamp = String(Math.floor(Date.now() / 1000));
      const signature = createHmac('sha256', DEMO.signingKey)
        .update(`v0:${timestamp}:${delivery.body}`)
        .digest('hex');
      const end = (): void => {
        if (++ended === deliveries.length) resolve();
        else startOne();
      };
      agent.dispatch(
        {
          origin: delivery.origin,
          path: delivery.path,
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'user-agent': 'Sluice-Webhooks/1.0',
            'x-svc-timestamp': timestamp,
            'x-svc-signature': signature,
          },
          body: delivery.body,
        },
        {
          onRequestStart() {},
          onResponseStart(_, status) {
            if (status !== 200) failures++;
          },
          onResponseData() {},
          onResponseEnd: end,
          onResponseError(_, error) {
            if (failures++ === 0) console.error(error);
            end();
          },
        },
      );
    };
    for (let slot = 0; slot < inFlightMax; slot++) startOne();
  });
  const seconds = (performance.now() - startedAtMs) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  await agent.destroy();
  return { count: ended, failures, seconds, cpuSeconds: (user + system) / 1e6 };
}
