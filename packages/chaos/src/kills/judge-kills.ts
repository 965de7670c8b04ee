/** Promises of a run with kills. Used by `npm run chaos -- --oracle kills` and, with more time, by `npm test`. */
import type { KillsReport } from './run-kills.ts';

/** From the kill to the last delivery, on two cores without other work. */
export const LAST_DELIVERY_MS_MAX = 5_000;

/** @returns a sentence for each promise that was broken; empty if all were kept. */
export function judgeKills(
  report: KillsReport,
  lastDeliveryMsMax: number = LAST_DELIVERY_MS_MAX,
): readonly string[] {
  const { events, acknowledged, lost, doubled, inFlight, lastDeliveryMs } = report;
  const problems: string[] = [];
  if (acknowledged !== events)
    problems.push(`${events - acknowledged} of ${events} events were never acknowledged`);
  if (lost > 0) problems.push(`${lost} events were not delivered`);
  if (doubled > inFlight)
    problems.push(`${doubled} deliveries came twice, but only ${inFlight} were in flight`);
  if (lastDeliveryMs > lastDeliveryMsMax)
    problems.push(
      `the last delivery came ${lastDeliveryMs} ms after the kill, not within ${lastDeliveryMsMax}`,
    );
  return problems;
}
