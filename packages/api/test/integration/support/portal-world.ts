/** Links to the portal of an API under test. Also the browsers that open them. */
import type { LightMyRequestResponse } from 'fastify';
import { sql } from 'kysely';
import { expect } from 'vitest';
import type { ApiUnderTest } from './api-under-test.ts';
import type { Tenant } from './inserted-rows.ts';
import { ORIGIN } from './console-world.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

interface PortalCallOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A page of the portal. */
export interface PortalPage {
  readonly linkId: string;
  readonly cookie: string;
  /** As the page sends it. */
  readonly header: string;
  call(method: Method, url: string, options?: PortalCallOptions): Promise<LightMyRequestResponse>;
}

export const ofThePage = { origin: ORIGIN, 'sec-fetch-site': 'same-origin' } as const;

export const portalOf = (api: ApiUnderTest) => ({
  async makeWebhook(name: string, tenant: Tenant = api.a, more: object = {}): Promise<number> {
    const answer = await api.call('POST', '/v1/reporting_webhooks', {
      key: tenant.key,
      body: { name, endpoint: `https://${name}.example/hook`, events: ['email_sent'], ...more },
    });
    expect(answer.statusCode, answer.body).toBe(200);
    return answer.json().id as number;
  },

  async makeLink(
    body: object,
    tenant: Tenant = api.a,
  ): Promise<{ id: string; code: string; link: string; url: string }> {
    const answer = await api.call('POST', '/v1/portal_links', {
      key: tenant.key,
      body: { for: 'acme/jo', ...body },
    });
    expect(answer.statusCode, answer.body).toBe(200);
    const { id, url } = answer.json<{ id: string; url: string }>();
    const [, link = '', code = ''] = /\/portal\/([^#]+)#c=(.+)$/.exec(url) ?? [];
    return { id, url, link, code };
  },

  open: (link: string, code: string, headers: object = {}) =>
    api.app.inject({
      method: 'POST',
      url: '/portal/session',
      headers: { ...ofThePage, 'content-type': 'application/json', ...headers },
      payload: JSON.stringify({ link, code }),
    }),

  /** Makes a link and opens it. */
  async openPage(body: object, tenant: Tenant = api.a): Promise<PortalPage> {
    const { id, link, code } = await this.makeLink(body, tenant);
    const answer = await this.open(link, code);
    expect(answer.statusCode, answer.body).toBe(204);
    const cookie = String(answer.headers['set-cookie']).split(';')[0]!;
    return {
      linkId: id,
      cookie,
      header: link,
      call: (method, url, { body: sent, headers } = {}) =>
        api.app.inject({
          method,
          url,
          headers: {
            ...ofThePage,
            cookie,
            'x-sluice-portal': link,
            ...(sent !== undefined && { 'content-type': 'application/json' }),
            ...headers,
          },
          ...(sent !== undefined && { payload: JSON.stringify(sent) }),
        }),
    };
  },

  /** As if so many seconds had passed for the link, by the clock of Postgres. */
  age: (linkId: string, seconds: number) =>
    sql`
      update portal_links
         set code_ends_at = code_ends_at - make_interval(secs => ${seconds}),
             ends_at = ends_at - make_interval(secs => ${seconds})
       where portal_link_id = ${linkId}`.execute(api.database),
});
