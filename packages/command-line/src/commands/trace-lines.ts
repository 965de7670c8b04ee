/** The path of one event as a timeline: each step with how long after the first it came. Pure. */
import type { components } from '@sluice/client';
import { instantText } from '@sluice/console/sentences/time-text';
import { printable } from '@sluice/domain/values/printable';

type Trace = components['schemas']['EventTrace'];

interface Step {
  readonly atMs: number;
  readonly text: string;
}

const OFFSET_WIDTH = 10;

/** Two lines about the event, then one for each step in the order of its time. Texts are `printable`. */
export function traceLines(trace: Trace): string[] {
  const { event, event_id: id, caused_by_event_id: causeId } = trace;
  const what = event ? [event.kind, event.name].filter((part) => part !== null).join(' ') : 'event';
  const who = event?.svc_id ?? event?.anonymous_id;
  const steps = stepsOf(trace).toSorted((a, b) => a.atMs - b.atMs);
  const [first] = steps;
  const pending = trace.deliveries.filter(({ attempts }) => attempts.length === 0);
  return [
    printable(`${what}  ${id}${causeId === null ? '' : `, of ${causeId}`}`),
    printable(who == null ? 'it belongs to no person yet' : `person ${who}`),
    '',
    ...steps.map(
      ({ atMs, text }) =>
        `${instantText(atMs)}  ${offsetText(atMs - (first?.atMs ?? atMs)).padStart(OFFSET_WIDTH)}  ${printable(text)}`,
    ),
    ...pending.map(({ webhook_id: webhookId, sequence, state }) =>
      printable(
        `webhook ${webhookId} #${sequence} is ${state} and not tried yet; sluice webhooks show ${webhookId} shows the reason`,
      ),
    ),
    ...(trace.deliveries.length === 0 ? ['no webhook is sent it'] : []),
  ];
}

function stepsOf({ received, envelope, deliveries }: Trace): Step[] {
  const arrival =
    received === null
      ? []
      : [
          {
            atMs: received.at_ms,
            text: `received${received.source === null ? '' : ` by ${received.source}`}`,
          },
        ];
  const batch =
    envelope === null
      ? []
      : [
          ...(envelope.made_at_ms === null
            ? []
            : [
                {
                  atMs: envelope.made_at_ms,
                  text: `queued in commit batch ${envelope.id} with ${envelope.operations} operations`,
                },
              ]),
          { atMs: envelope.processed_at_ms, text: 'processed' },
        ];
  const sent = deliveries.flatMap((delivery) => {
    const name = `webhook ${delivery.webhook_id} #${delivery.sequence}`;
    return [
      { atMs: delivery.logged_at_ms, text: `logged for ${name}: ${delivery.event_type}` },
      ...delivery.attempts.map((each) => ({
        atMs: each.started_at_ms,
        text: `${name} attempt ${each.attempt}: ${each.status ?? each.failure_message ?? each.failure ?? '-'} in ${each.duration_ms} ms, ${each.outcome}`,
      })),
    ];
  });
  return [...arrival, ...batch, ...sent];
}

/** `+49 ms`, `+12.5 s`, `+3.2 h`. */
function offsetText(offsetMs: number): string {
  if (offsetMs < 10_000) return `+${offsetMs} ms`;
  const seconds = offsetMs / 1_000;
  if (seconds < 600) return `+${seconds.toFixed(1)} s`;
  return seconds < 36_000
    ? `+${(seconds / 60).toFixed(1)} min`
    : `+${(seconds / 3_600).toFixed(1)} h`;
}
