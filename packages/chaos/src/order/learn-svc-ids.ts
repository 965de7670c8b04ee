/**
 * Makes the people whom a sequence names by svc_id.
 *
 * It reads their svc_ids before the first call is sent. Later calls may merge or delete the people; then the svc_id has
 * no person.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AnsweredCall, PlannedCall, SentCall } from './model/call.ts';
import { readSvcId } from './read-people.ts';
import { sendSequence, type Client } from './send-calls.ts';

export interface Learned {
  readonly calls: readonly PlannedCall[];
  /** Before the calls: its places are below 0. */
  readonly history: readonly AnsweredCall[];
}

const LOOK_INTERVAL_MS = 50;
const LOOKS_MAX = 1_200;

/**
 * @param prefix - of the sequence's names.
 * @throws Error if a person is not there after a minute.
 */
export async function learnSvcIds(
  client: Client,
  calls: readonly PlannedCall[],
  prefix: string,
): Promise<Learned> {
  let text = JSON.stringify(calls);
  const numbers = [...new Set([...text.matchAll(/\^(\d)\^/g)].map(([, number]) => number))];
  const made: AnsweredCall[] = [];
  const learned: AnsweredCall[] = [];
  for (const number of numbers) {
    const id = `${prefix}p${number}`;
    const call: SentCall = { api: 'v1', method: 'PUT', path: ['customers', id], body: {} };
    made.push(...(await sendSequence(client, [{ call, sender: 0, intake: 0 }])));
    const svcId = await waitForSvcId(client, id);
    learned.push({ ...noCall, call: { api: 'learn', id, svcId: `svc_${svcId}` } });
    text = text.replaceAll(`^${number}^`, `svc_${svcId}`);
  }
  const all = [...made, ...learned];
  const history = all.map((each, index) => {
    const sentAt = 2 * (index - all.length);
    return { ...each, sentAt, answeredAt: sentAt + 1 };
  });
  return { calls: JSON.parse(text) as PlannedCall[], history };
}

const noCall = { sender: 0, intake: 0, sentAt: 0, answeredAt: 0 } as const;

async function waitForSvcId(client: Client, id: string): Promise<string> {
  for (let look = 0; look < LOOKS_MAX; look++) {
    const found = await readSvcId(client, id);
    if (found !== undefined) return found;
    await sleep(LOOK_INTERVAL_MS);
  }
  throw new Error(`the person with the id ${id} was not found within a minute`);
}
