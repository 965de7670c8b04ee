/**
 * Comparator: an undici `dispatch` loop that only signs and posts the log. It has no order, no
 * state and no record. It has the bodies in memory before it begins.
 *
 * Its parent sends a port and the maximum number in flight over IPC, and it sends its duration
 * back.
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
const agent = new Agent({ connections: inFlightMax, pipelining: 1 });

process.on('message', () => {
  void run().then((report) => process.send?.(report));
});
process.send?.('ready');

async function run(): Promise<{ count: number; failures: number; seconds: number }> {
  const { rows } = await sql<{ endpoint: string; body: string }>`
    select endpoint, body from delivery_log join webhooks using (environment_id, webhook_id)
     where environment_id = ${DEMO.environmentId} order by sequence, webhook_id`.execute(database);
  const deliveries = rows.map(({ endpoint, body }) => {
    const url = new URL(endpoint);
    return { origin: url.origin, path: url.pathname, body };
  });
  let next = 0;
  let ended = 0;
  let failures = 0;
  const startedAtMs = performance.now();
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
  return {
    count: ended,
    failures,
    seconds: (performance.now() - startedAtMs) / 1000,
  };
}
