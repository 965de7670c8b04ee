/**
 * A call of the load, with the effect of its acknowledgement.
 *
 * The effect is on the people whom the call names.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';

export interface SentEvent {
  readonly eventId: string;
  /** The call that it came in, to help a search. */
  readonly call: string;
}

export interface SentPerson {
  readonly name: string;
  /** Absent for a person without an email. */
  readonly email?: string;
  /** Acknowledged, in the order in which the client sent them. */
  readonly events: SentEvent[];
  /** Of the last acknowledged identify. */
  step: number;
  /** Effect of the last acknowledged call on the person. */
  fate: Fate;
  /** A copy of a call that was sent again may take effect late: a person who is gone may then be there again. */
  isSentAgain: boolean;
}

export type Fate = 'there' | 'deleted' | { readonly mergedInto: string };

export interface Call {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: unknown;
  /** Records an acknowledgement of it. */
  readonly acknowledge: (call: string) => void;
}

const BASIC = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
export const PIPELINES = { Authorization: BASIC(`${DEMO.writeKey}:`), 'X-Strict-Mode': '1' };
export const TRACK = { Authorization: BASIC(`${DEMO.siteId}:${DEMO.apiKey}`) };
