/**
 * Adapters of other systems, by the documentation of their public HTTP APIs. They register receivers and send events.
 * Each run has a tenant of its own there, named by `run`, so runs do not meet.
 *
 * The payload of an event is the same for all: some 150 bytes of JSON.
 */
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { Target } from './paced-deliveries.ts';

/** As the command line names them. */
export interface PeerPlace {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string;
  /** Convoy's project; the address of Sluice's API. */
  readonly extra: string;
}

export interface Registered {
  /** Takes an event for all of the receivers. */
  readonly target: Target;
  /** Removes the registered receivers. */
  remove(): Promise<void>;
}

export interface Peer {
  /** Meaning of `extra`, if it needs one. */
  readonly extra?: string;
  readonly token: string;
  /** False if no webhook can be registered over its API, so only its intake is measured. */
  readonly hasWebhooks: boolean;
  /** @throws Error if it refuses. */
  register(place: PeerPlace, receivers: readonly string[], run: string): Promise<Registered>;
}

const EVENT_TYPE = 'message.delivered';

const payloadOf = (number: number, person: number): object => ({
  delivery_id: String(number),
  metric: 'delivered',
  recipient: `person-${person}@example.com`,
  timestamp: Math.floor(Date.now() / 1_000),
});

async function call(
  method: 'POST' | 'PUT' | 'DELETE',
  url: string,
  token: string,
  body?: object,
): Promise<Record<string, unknown>> {
  const answer = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url} answered ${answer.status}: ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
}

/** One after another: an API has a limit of calls at a time. */
const remover = (urls: readonly string[], token: string) => async (): Promise<void> => {
  for (const url of urls) await call('DELETE', url, token);
};

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

const svix: Peer = {
  token: 'of svix-server jwt generate',
  hasWebhooks: true,
  async register({ url, token }, receivers, run) {
    const { id } = await call('POST', `${url}/api/v1/app/`, token, { name: run });
    for (const receiver of receivers)
      await call('POST', `${url}/api/v1/app/${String(id)}/endpoint/`, token, { url: receiver });
    return {
      target: {
        url: `${url}/api/v1/app/${String(id)}/msg/`,
        headers: bearer(token),
        bodyOf: (number, person) => ({ eventType: EVENT_TYPE, payload: payloadOf(number, person) }),
      },
      remove: remover([`${url}/api/v1/app/${String(id)}/`], token),
    };
  },
};

const convoy: Peer = {
  token: 'key of the project',
  extra: 'id of the project',
  hasWebhooks: true,
  async register({ url, token, extra: project }, receivers, run) {
    const base = `${url}/api/v1/projects/${project}`;
    const endpoints: string[] = [];
    for (const [index, receiver] of receivers.entries()) {
      const { data } = await call('POST', `${base}/endpoints`, token, {
        name: `${run}-${index}`,
        url: receiver,
        owner_id: run,
      });
      const { uid } = data as { readonly uid: string };
      endpoints.push(`${base}/endpoints/${uid}`);
      await call('POST', `${base}/subscriptions`, token, {
        name: `${run}-${index}`,
        endpoint_id: uid,
        filter_config: { event_types: ['*'] },
      });
    }
    return {
      target: {
        url: `${base}/events/fanout`,
        headers: bearer(token),
        bodyOf: (number, person) => ({
          owner_id: run,
          event_type: EVENT_TYPE,
          data: payloadOf(number, person),
        }),
      },
      remove: remover(endpoints, token),
    };
  },
};

const outpost: Peer = {
  token: 'its API_KEY',
  extra: 'a topic that it is started with',
  hasWebhooks: true,
  async register({ url, token, extra: topic }, receivers, run) {
    await call('PUT', `${url}/api/v1/tenants/${run}`, token, {});
    for (const receiver of receivers)
      await call('POST', `${url}/api/v1/tenants/${run}/destinations`, token, {
        type: 'webhook',
        topics: ['*'],
        config: { url: receiver },
      });
    return {
      target: {
        url: `${url}/api/v1/publish`,
        headers: bearer(token),
        bodyOf: (number, person) => ({
          tenant_id: run,
          topic,
          eligible_for_retry: true,
          data: payloadOf(number, person),
        }),
      },
      remove: remover([`${url}/api/v1/tenants/${run}`], token),
    };
  },
};

const rudder: Peer = {
  token: 'write key of a source',
  hasWebhooks: false,
  register: ({ url, token }) =>
    Promise.resolve({
      target: {
        url: `${url}/v1/track`,
        headers: { Authorization: `Basic ${btoa(`${token}:`)}` },
        bodyOf: (number, person) => ({
          userId: `person-${person}`,
          event: EVENT_TYPE,
          properties: payloadOf(number, person),
        }),
      },
      remove: () => Promise.resolve(),
    }),
};

const sluice: Peer = {
  token: 'bearer of the app API; intake takes the demo workspace',
  extra: 'address of the API',
  hasWebhooks: true,
  async register({ url, token, extra: api }, receivers, run) {
    const webhooks = `${api}/v1/reporting_webhooks`;
    const registered: string[] = [];
    for (const [index, receiver] of receivers.entries()) {
      const { id } = await call('POST', webhooks, token, {
        name: `${run}-${index}`,
        endpoint: receiver,
        events: ['email_delivered'],
      });
      registered.push(`${webhooks}/${String(id)}`);
    }
    return {
      target: {
        url: `${url}/api/v1/metrics`,
        headers: { Authorization: `Basic ${btoa(`${DEMO.siteId}:${DEMO.apiKey}`)}` },
        bodyOf: payloadOf,
      },
      remove: remover(registered, token),
    };
  },
};

export const PEERS: Readonly<Record<string, Peer>> = { svix, convoy, outpost, rudder, sluice };
