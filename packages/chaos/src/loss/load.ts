/**
 * Random calls on both APIs, as real clients make them: each client sends one call after another, to one intake, and
 * sends a call again, with the same ids, until it is answered 200.
 *
 * Every event has a name of its own and its place among the events of its person, so that it can be compared with the
 * rows in Postgres.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { pick, type Random } from '@sluice/domain/values/seeded-random';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { PIPELINES, TRACK, type Call, type SentEvent, type SentPerson } from './loss-call.ts';
import { callsOfSignUp } from './sign-up.ts';

export interface Load {
  readonly people: readonly SentPerson[];
  /** Messages about no person (`POST /v1/publish`), acknowledged. */
  readonly published: readonly SentEvent[];
  /** Acknowledged calls, and how often any call was sent. */
  readonly counts: { calls: number; sent: number };
  /** Resolves when every client's last call is acknowledged. */
  stop(): Promise<void>;
}

const CLIENTS = 6;
/** Of a client's turns; each is three calls. */
const SIGN_UP_SHARE = 0.1;
const CALL_DEADLINE_MS = 2_500;
const RETRY_DELAY_MS = 40;
/** Far from now: an earlier second than the one before it is never used. */
const FIRST_STEP_SECONDS = 1_700_000_000;

export function startLoad(
  random: Random,
  seed: number,
  intakeUrls: readonly string[],
  fail: (problem: string) => void,
): Load {
  const newId = createIdGenerator(Date.now);
  const counts = { calls: 0, sent: 0 };
  const people: SentPerson[] = [];
  const published: SentEvent[] = [];
  let isStopping = false;

  /** @returns how often it was sent. */
  const send = async (url: string, call: Call): Promise<number> => {
    for (let attempt = 1; ; attempt++) {
      counts.sent++;
      const status = await post(url, call);
      if (status === 200) {
        counts.calls++;
        call.acknowledge(`${call.name}, attempt ${attempt}`);
        return attempt;
      }
      if (status !== undefined && status !== 503)
        fail(`${call.name} was answered ${status}: ${JSON.stringify(call.body)}`);
      await sleep(RETRY_DELAY_MS);
    }
  };

  const run = async (client: number): Promise<void> => {
    const url = intakeUrls[client % intakeUrls.length] as string;
    const own = ['a', 'b'].map((letter) => newPerson(`chaos-${seed}-${client}${letter}`));
    people.push(...own);
    const make = callMaker(random, newId, published);
    for (const person of own) await send(url, make.identify(person));
    for (let number = 1; !isStopping;) {
      if (random() >= SIGN_UP_SHARE) {
        await send(url, make.any(own));
        continue;
      }
      const name = `chaos-${seed}-${client}u${number++}`;
      const person = newPerson(name, `${name}@x.example`);
      people.push(person);
      for (const call of callsOfSignUp(person, pick(random, own).name, random, newId))
        if ((await send(url, call)) > 1) person.isSentAgain = true;
    }
  };
  const running = Promise.all(Array.from({ length: CLIENTS }, (_, client) => run(client)));
  return {
    people,
    published,
    counts,
    async stop() {
      isStopping = true;
      await running;
    },
  };
}

const newPerson = (name: string, email?: string): SentPerson => ({
  name,
  ...(email !== undefined && { email }),
  events: [],
  step: 0,
  fate: 'there',
  isSentAgain: false,
});

/** Undefined if the answer did not come. */
async function post(
  url: string,
  { method, path, headers, body }: Call,
): Promise<number | undefined> {
  try {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_DEADLINE_MS),
    });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return undefined;
  }
}

function callMaker(random: Random, newId: () => string, published: SentEvent[]) {
  /** Events for these people, in this order, and the note for their acknowledgement. */
  const eventsFor = (people: readonly SentPerson[]) => {
    const events = people.map((person) => ({ person, eventId: newId() }));
    return {
      events,
      acknowledge: (call: string) => {
        for (const { person, eventId } of events) person.events.push({ eventId, call });
      },
    };
  };
  const identify = (person: SentPerson): Call => {
    const step = person.step + 1;
    return {
      name: 'PUT /api/v1/customers',
      method: 'PUT',
      path: `/api/v1/customers/${person.name}`,
      headers: TRACK,
      // A copy that comes late must not undo a later step.
      body: { step, _timestamp: FIRST_STEP_SECONDS + step },
      acknowledge: () => void (person.step = step),
    };
  };
  const calls: ((own: readonly SentPerson[]) => Call)[] = [
    (own) => {
      const { events, acknowledge } = eventsFor([pick(random, own)]);
      const [{ person, eventId } = raise()] = events;
      return {
        name: 'POST /v1/track',
        method: 'POST',
        path: '/v1/track',
        headers: PIPELINES,
        body: { userId: person.name, event: eventId, messageId: eventId },
        acknowledge,
      };
    },
    (own) => {
      const { events, acknowledge } = eventsFor([pick(random, own)]);
      const [{ person, eventId } = raise()] = events;
      return {
        name: 'POST /api/v1/customers/…/events',
        method: 'POST',
        path: `/api/v1/customers/${person.name}/events`,
        headers: TRACK,
        body: { name: eventId, id: eventId },
        acknowledge,
      };
    },
    (own) => {
      const { events, acknowledge } = eventsFor([...own, pick(random, own)]);
      return {
        name: 'POST /v1/batch',
        method: 'POST',
        path: '/v1/batch',
        headers: PIPELINES,
        body: {
          batch: events.map(({ person, eventId }) => ({
            type: 'track',
            userId: person.name,
            event: eventId,
            messageId: eventId,
          })),
        },
        acknowledge,
      };
    },
    (own) => {
      const { events, acknowledge } = eventsFor([pick(random, own), ...own]);
      return {
        name: 'POST /api/v2/batch',
        method: 'POST',
        path: '/api/v2/batch',
        headers: TRACK,
        body: {
          batch: events.map(({ person, eventId }) => ({
            type: 'person',
            action: 'event',
            identifiers: { id: person.name },
            name: eventId,
            id: eventId,
          })),
        },
        acknowledge,
      };
    },
    (own) => identify(pick(random, own)),
    () => {
      const eventIds = [newId(), newId()];
      return {
        name: 'POST /v1/publish',
        method: 'POST',
        path: '/v1/publish',
        headers: TRACK,
        body: {
          messages: eventIds.map((eventId) => ({
            event_type: eventId,
            event_id: eventId,
            payload: { eventId },
          })),
        },
        acknowledge: (call) => {
          for (const eventId of eventIds) published.push({ eventId, call });
        },
      };
    },
  ];
  return { identify, any: (own: readonly SentPerson[]) => pick(random, calls)(own) };
}

function raise(): never {
  throw new Error('no event was made');
}
