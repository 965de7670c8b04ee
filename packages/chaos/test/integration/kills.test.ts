/**
 * Intake and worker of an installation are killed under load: no delivery is lost, few are sent twice, and the last one
 * comes soon. `npm run chaos -- --oracle kills` asserts 5 s for the last delivery, on a machine of its own.
 */
import { expect, test } from 'vitest';
import { judgeKills } from '../../src/kills/judge-kills.ts';
import { runKills } from '../../src/kills/run-kills.ts';

/** On an idle machine it is 3.5 s, and 15 s more without the look for killed workers. */
const LAST_DELIVERY_MS_MAX = 12_000;
/**
 * The last delivery in first acknowledgements after the kill. Of these an idle machine takes 2.5. Beside ten busy
 * processes the start takes 7 s and more, the backlog takes longer still, and it was 3.1. A worker that is stopped for
 * nine tenths of its time took 5.3.
 */
const FIRST_ACKNOWLEDGEMENTS_MAX = 8;
/**
 * Maximum requests in flight of a lane (`WEBHOOK_WINDOW_MAX`). Their number is counted by the requests that the
 * receiver has seen a moment after the kill. Beside other tests it may see some later: 28 came twice although 15 were
 * counted.
 */
const IN_FLIGHT_MAX = 64;

test('after kill -9 of intake and worker at 1,500 events a second, deliveries go on in seconds, and only deliveries in flight repeat', async () => {
  const report = await runKills(
    { broker: 'redis', eventCount: 3_000, rate: 1_500, seed: 1 },
    {
      path: process.env['PATH'],
      kill: (pid) => void process.kill(pid, 'SIGKILL'),
      onLog: () => {},
    },
  );
  const lastDeliveryMsMax = Math.max(
    LAST_DELIVERY_MS_MAX,
    FIRST_ACKNOWLEDGEMENTS_MAX * report.firstAcknowledgedMs,
  );
  const inFlight = Math.max(report.inFlight, IN_FLIGHT_MAX);
  expect(judgeKills({ ...report, inFlight }, lastDeliveryMsMax)).toEqual([]);
}, 400_000);
