/**
 * Real clients on a fleet of their own: the request of each call, the status of the answer, the effect read back. A row
 * of a table is one method of a client.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';
import { PipelinesClient, TrackClient } from 'customerio-node';
import { expect, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

export interface ClientSurface {
  readonly fleet: Fleet;
  readonly track: TrackClient;
  readonly pipelines: PipelinesClient;
  /** `METHOD /path status` of every request that the clients made. */
  readonly exchanges: string[];
  attributes(id: string): Promise<Record<string, string>>;
  expectNobody(id: string): Promise<void>;
  /** Makes people with `colour` blue and an address, and waits until they are there. */
  preparePeople(ids: readonly string[]): Promise<void>;
  /**
   * Sends, and waits until the answer and the effect are as in the row.
   *
   * @returns `METHOD /path status` of each request.
   */
  exchange(row: ClientRow): Promise<string[]>;
  close(): Promise<void>;
}

export interface ClientRow {
  readonly method: string;
  readonly send: () => Promise<unknown>;
  readonly sent: string;
  /** Body of the answer. */
  readonly answer?: unknown;
  /** Retried until it holds. Absent for a read. */
  readonly effect?: () => Promise<unknown>;
}

export async function startClientSurface(): Promise<ClientSurface> {
  const fleet = await startFleet();
  const exchanges: string[] = [];
  const ownFetch = globalThis.fetch;
  // The clients hide method and status; the request itself goes out as it is.
  globalThis.fetch = async (input, init) => {
    const answer = await ownFetch(input, init);
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    exchanges.push(`${init?.method ?? 'GET'} ${pathname}${search} ${answer.status}`);
    return answer;
  };
  const track = new TrackClient(DEMO.siteId, DEMO.apiKey, { url: `${fleet.intake.url}/api/v1` });
  const attributes = async (id: string) => (await fleet.customer(id)).attributes;
  return {
    fleet,
    track,
    pipelines: new PipelinesClient(DEMO.writeKey, {
      url: `${fleet.intake.url}/v1`,
      strictMode: true,
    }),
    exchanges,
    attributes,
    expectNobody: (id) => expect(fleet.customer(id)).rejects.toMatchObject({ statusCode: 404 }),
    async preparePeople(ids) {
      for (const id of ids)
        await track.identify(id, { email: `${id}@example.com`, colour: 'blue' });
      await vi.waitFor(async () => {
        for (const id of ids) expect(await attributes(id)).toMatchObject({ colour: 'blue' });
      }, WAIT);
    },
    async exchange({ send, answer, effect }) {
      const before = exchanges.length;
      const answered = await send();
      const made = exchanges.slice(before);
      if (answer !== undefined) expect(answered).toMatchObject(answer as object);
      if (effect) await vi.waitFor(effect, WAIT);
      return made;
    },
    async close() {
      globalThis.fetch = ownFetch;
      await fleet.close();
    },
  };
}

/** Methods that are no call: the constructor and a builder of bodies. */
const NO_CALLS = new Set(['constructor', 'envelope']);

/** The calls that a client has; a table that lacks one of them fails. */
export const methodsOf = (client: { prototype: object }): string[] =>
  Object.getOwnPropertyNames(client.prototype).filter((name) => !NO_CALLS.has(name));
