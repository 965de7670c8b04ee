/** State of a webhook's deliveries in one sentence, with advice. Pure. */
import type { Described } from '../client/operations.ts';
import { ageText, durationText, type InstantForm, instantText } from './time-text.ts';

type Lane = Described<'LaneState'>;

/** The part of `GET /v1/reporting_webhooks/{id}/state` that the sentence is made of. */
export interface LaneState extends Omit<Lane, 'disabled' | 'disabled_by' | 'head'> {
  readonly disabled_by: Pick<NonNullable<Lane['disabled_by']>, 'type' | 'name'> | null;
  readonly head: Omit<
    NonNullable<Lane['head']>,
    'event_id' | 'event_type' | 'last_attempt_at'
  > | null;
}

export interface LaneSentence {
  readonly tone: 'good' | 'busy' | 'bad' | 'quiet';
  readonly text: string;
  /** The next step and advice; may be empty. */
  readonly more: string;
}

export function laneSentence(
  lane: LaneState,
  nowMs: number,
  zone: Pick<InstantForm, 'isLocal' | 'zone'> = {},
): LaneSentence {
  const at = (seconds: number): string => instantText(seconds * 1000, { ...zone, isWhole: true });
  const { head, unfinished_count: count } = lane;
  if (lane.state === 'disabled') {
    const by = lane.disabled_by?.name ?? (lane.disabled_by?.type === 'system' ? 'Sluice' : null);
    const since = lane.disabled_at === null ? '' : ` on ${at(lane.disabled_at)}`;
    return {
      tone: 'quiet',
      text: `Paused${by === null ? '' : ` by ${by}`}${since}.`,
      more: `Events of this time are not sent later. ${count === 0 ? 'No delivery is held.' : `${countOf(count)} held until it is resumed.`}`,
    };
  }
  if (lane.state === 'failing' && head) {
    const since = head.first_attempt_at === null ? '' : ` since ${at(head.first_attempt_at)}`;
    const tries = `${head.attempts} ${head.attempts === 1 ? 'try' : 'tries'}`;
    const behind = count - 1;
    return {
      tone: 'bad',
      text: `Delivery ${head.sequence} ${failureText(head)}${since} (${tries}). ${behindText(behind)}`,
      more: [
        lane.next_probe_at === null
          ? ''
          : `Next try ${ageText(lane.next_probe_at * 1000, nowMs)}, at ${at(lane.next_probe_at)}.`,
        head.abandons_at === null ? '' : `Given up on ${at(head.abandons_at)}.`,
        ADVICE[head.failure ?? ''] ?? '',
      ]
        .filter((part) => part !== '')
        .join(' '),
    };
  }
  if (count > 0) {
    const oldest =
      head?.first_attempt_at == null
        ? ''
        : ` The oldest is tried for ${durationText(nowMs - head.first_attempt_at * 1000)}.`;
    return {
      tone: 'busy',
      text: `Sending: ${count === 1 ? '1 delivery waits' : `${count} deliveries wait`}.${oldest}`,
      more: '',
    };
  }
  const last =
    lane.last_delivered_at == null
      ? ''
      : ` The last one in the minute from ${at(lane.last_delivered_at)}.`;
  return { tone: 'good', text: `Everything is delivered.${last}`, more: '' };
}

const countOf = (count: number): string =>
  count === 1 ? '1 delivery is' : `${count} deliveries are`;

function behindText(count: number): string {
  if (count <= 0) return 'No other one waits behind it.';
  return count === 1
    ? '1 later one waits behind it.'
    : `${count} later ones wait behind it, in order.`;
}

/** As the end of a sentence about a delivery. */
function failureText({
  status,
  failure,
  failure_message: message,
}: NonNullable<LaneState['head']>): string {
  if (status !== null) return `gets ${status}`;
  return PHRASES[failure ?? ''] ?? `fails${message === null ? '' : `: ${message}`}`;
}

/** By the class of a failure without an answer. */
const PHRASES: Readonly<Record<string, string>> = {
  timeout: 'gets no whole answer in time',
  end_of_file: 'gets an answer that ends early',
  misbehaving_server: 'gets an answer that is not HTTP',
  connection_refused: 'has its connection refused',
  connection_reset: 'loses its connection',
  tls_verification: 'meets a certificate that is not valid',
  tls_handshake: 'agrees on no TLS connection',
  name_not_resolved: 'finds no address for the host',
  unreachable: 'finds no route to the host',
  address_refused: 'leads to an address that is never called',
  token_unavailable: 'has a token URL that gives no access token',
  unusable_endpoint: 'has an endpoint that cannot be called',
};

/** By the class of the failure, if the receiver can act. */
const ADVICE: Readonly<Record<string, string>> = {
  timeout: 'Answer at once and do the work afterwards.',
  connection_refused: 'Start the receiver, or change the port of the endpoint.',
  tls_verification: 'Renew the certificate, or change the name of the endpoint.',
  name_not_resolved: 'Change the endpoint, or its entry in the DNS.',
  address_refused: 'Change the endpoint: private addresses are not called.',
};
