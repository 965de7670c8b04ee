/**
 * The web console of a fleet in a real Chromium.
 *
 * It also records actions that no page of ours may do.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { sql } from 'kysely';
import { expect, vi } from 'vitest';
import { startFleet, WAIT } from '../fleet-under-test.ts';
import { sharedBrowser } from './shared-browser.ts';

const ROOT = fileURLToPath(new URL('../../../../../', import.meta.url));

/** Ten times the time of an action on an idle machine, and a standstill. */
const ACTION_MS_MAX = 60_000;
const SENT_AGAIN_MS = 1_000;
const REFUSED_TAILS_MAX = 2;

/** One of the operator's beside the demo's. */
export const OPERATOR_ACCOUNT_ID = 4242;

export type ConsoleUnderTest = Awaited<ReturnType<typeof startConsole>>;

/** @returns the folder of the built console, as `npm start` builds it. */
export async function builtConsole(): Promise<string> {
  const { buildConsole } = (await import(
    pathToFileURL(`${ROOT}scripts/build-console.mjs`).href
  )) as { buildConsole: () => Promise<string> };
  return buildConsole();
}

/** @param more - settings of the fleet. */
export async function startConsole(more: Readonly<Record<string, string>> = {}) {
  const mailDirectory = await mkdtemp(join(tmpdir(), 'sluice-mail-'));
  const [fleet, browser] = await Promise.all([
    builtConsole().then((directory) =>
      startFleet('redis', {
        CONSOLE_DIRECTORY: directory,
        MAIL_DIRECTORY: mailDirectory,
        OPERATOR_ACCOUNT_IDS: `${DEMO.accountId},${OPERATOR_ACCOUNT_ID}`,
        WEBHOOK_LISTED_FAILURE_WAIT_MS: '3600000',
        // The default: a page must do with it.
        API_RATE_LIMIT_PER_MINUTE: '500',
        ...more,
      }),
    ),
    sharedBrowser(),
  ]);
  /** Errors and warnings of the browser, violations of the policy among them; requests to others. */
  const misdeeds: string[] = [];
  const allowed = new Set<string>();
  const contexts: BrowserContext[] = [];
  const watch = (page: Page): void => {
    let refusedTails = 0;
    page.setDefaultTimeout(ACTION_MS_MAX);
    page.on('console', (message) => {
      // A live tail is refused if a busy API does not reach its channel within two seconds; the page comes again.
      const isRefusedTail =
        / 503 /.test(message.text()) && message.location().url.includes('/v1/stream');
      if (isRefusedTail && ++refusedTails <= REFUSED_TAILS_MAX) return;
      if (message.type() === 'error' || message.type() === 'warning')
        misdeeds.push(`${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => misdeeds.push(`thrown: ${error.message}`));
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (allowed.has(origin)) return;
      if (origin !== fleet.api.url && protocol !== 'blob:' && protocol !== 'data:')
        misdeeds.push(`asked for ${request.url()}`);
    });
  };
  return {
    fleet,
    url: fleet.api.url,
    /** Lets the browser go to another origin, such as an identity provider's. */
    allow: (origin: string): void => void allowed.add(origin),
    /** A page of another product, which may do things that the console may not. */
    async newForeignPage(): Promise<Page> {
      const context = await browser.newContext();
      contexts.push(context);
      return context.newPage();
    },
    async newPage(options: BrowserContextOptions = {}): Promise<Page> {
      const context = await browser.newContext(options);
      contexts.push(context);
      // Further tabs too.
      context.on('page', watch);
      return context.newPage();
    },
    /** A page that is signed in to the demo, by the call of its button, which other tests press. */
    async demoPage(options: BrowserContextOptions = {}): Promise<Page> {
      const page = await this.newPage(options);
      const answer = await page.request.post(`${fleet.api.url}/console/session`, {
        headers: { origin: fleet.api.url },
        data: { demo: true },
      });
      expect(answer.status()).toBe(204);
      await page.goto(fleet.api.url);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      return page;
    },
    /** A new user of an account of the demo, with its workspace, which has the same number. */
    async insertUser(
      role: 'member' | 'account_admin',
      accountId: number = DEMO.accountId,
    ): Promise<{ email: string; userId: number }> {
      const email = `${crypto.randomUUID()}@example.com`;
      const { rows } = await sql<{ userId: number }>`
        with made as (
          insert into users (account_id, email, first_name, last_name, role, status)
          values (${accountId}, ${email}, 'Ada', 'Lovelace', ${role}, 'active') returning user_id
        ), joined as (
          insert into memberships (account_id, user_id, environment_id)
          select ${accountId}, user_id, ${accountId} from made)
        select user_id as "userId" from made`.execute(fleet.database);
      return { email, userId: rows[0]!.userId };
    },
    /** The mails to an address, oldest first. */
    async mailsTo(email: string): Promise<string[]> {
      const files = await readdir(mailDirectory);
      const names = files.filter((name) => name.endsWith('.eml')).toSorted();
      const texts = await Promise.all(
        names.map((name) => readFile(join(mailDirectory, name), 'utf8')),
      );
      return texts.filter((text) => text.includes(`To: ${email}`));
    },
    /** Gives the email and the code that is mailed to it. */
    async giveMailedCode(page: Page, email: string): Promise<void> {
      const { length } = await this.mailsTo(email);
      await page.getByLabel('Email').fill(email);
      await page.getByRole('button', { name: 'Go on', exact: true }).click();
      const mail = await vi.waitFor(async () => {
        const mails = await this.mailsTo(email);
        expect(mails.length).toBeGreaterThan(length);
        return mails.at(-1);
      }, WAIT);
      const [, code = ''] = /code to sign in is (\d{6})/.exec(mail ?? '') ?? [];
      await page.getByLabel('Code of six digits').fill(code);
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    },
    /** A page of a new user of an account of the demo, who signed in by mail. */
    async userPage(
      role: 'member' | 'account_admin',
      accountId: number = DEMO.accountId,
    ): Promise<{ page: Page; email: string }> {
      const { email } = await this.insertUser(role, accountId);
      const page = await this.newPage();
      await page.goto(fleet.api.url);
      await this.giveMailedCode(page, email);
      await page.getByRole('navigation', { name: 'Screens' }).waitFor();
      return { page, email };
    },
    /** A call to the API, with the demo's app key unless it has another. */
    async call<Answer>(
      method: string,
      path: string,
      body?: object,
      key: string = DEMO.appKey,
    ): Promise<Answer> {
      const answer = await fetch(`${fleet.api.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      expect(answer.status, text).toBe(200);
      return (text === '' ? undefined : JSON.parse(text)) as Answer;
    },
    /**
     * Runs a sample of the page in a shell, with the demo's keys in the environment.
     *
     * @returns the answer.
     */
    async paste(sample: Locator): Promise<string> {
      const text = ((await sample.textContent()) ?? '').replace(
        'http://127.0.0.1:8080',
        fleet.intake.url,
      );
      const { stdout } = await promisify(execFile)('sh', ['-c', `${text} -sS --fail-with-body`], {
        env: {
          ...process.env,
          SLUICE_KEY: DEMO.appKey,
          SLUICE_SITE_KEY: `${DEMO.siteId}:${DEMO.apiKey}`,
        },
      });
      return stdout;
    },
    /** @returns the id of the import, which has ended. */
    async importFile(name: string, csv: string, key: string = DEMO.appKey): Promise<number> {
      const body = new FormData();
      const fields = { name, type: 'event', identifier: 'id', data_to_process: 'all' };
      for (const [field, value] of Object.entries(fields)) body.set(field, value);
      body.set('file', new Blob([csv], { type: 'text/csv' }), name);
      const headers = { authorization: `Bearer ${key}` };
      const answer = await fetch(`${fleet.api.url}/v1/imports`, { method: 'POST', headers, body });
      const made = (await answer.json()) as { readonly import: { readonly id: number } };
      const { id } = made.import;
      await vi.waitFor(async () => {
        const path = `/v1/imports/${id}`;
        const now = await this.call<{ import: { state: string } }>('GET', path, undefined, key);
        expect(now.import.state).toBe('imported');
      }, WAIT);
      return id;
    },
    /** A message of one's own, by the demo's API key. */
    async publish(message: object): Promise<void> {
      const answer = await fetch(`${fleet.intake.url}/v1/publish`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(`${DEMO.siteId}:${DEMO.apiKey}`)}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify(message),
      });
      expect(answer.status, await answer.text()).toBe(200);
    },
    /** A call to intake, with the demo's write key unless it has another. */
    async send(
      path: string,
      body: object,
      isStrict = true,
      key: string = DEMO.writeKey,
    ): Promise<number> {
      const answer = await fetch(`${fleet.intake.url}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(`${key}:`)}`,
          'content-type': 'application/json',
          ...(isStrict && { 'x-strict-mode': '1' }),
        },
        body: JSON.stringify(body),
      });
      await answer.arrayBuffer();
      return answer.status;
    },
    /** For lines of a tail: intake hears of a new reader a moment after the page learns that it listens. */
    async sendUntilShown(shown: Locator, send: () => unknown): Promise<void> {
      const until = performance.now() + ACTION_MS_MAX;
      for (;;) {
        await send();
        const seen = shown.first().waitFor({ timeout: SENT_AGAIN_MS });
        if (performance.now() > until) return seen;
        if (
          await seen.then(
            () => true,
            () => false,
          )
        )
          return;
      }
    },
    /**
     * Presses keys of the whole page. It listens to them a moment after it is drawn, and takes two for one command only
     * within a second.
     */
    async pressUntilShown(page: Page, keys: readonly string[], shown: Locator): Promise<void> {
      await this.sendUntilShown(shown, async () => {
        for (const key of keys) await page.keyboard.press(key);
      });
    },
    async makeWebhook(name: string, endpoint: string): Promise<number> {
      const { id } = await this.call<{ id: number }>('POST', '/v1/reporting_webhooks', {
        name,
        endpoint,
        events: ['customer_subscribed', 'customer_unsubscribed'],
      });
      return id;
    },
    /**
     * @throws Error with the page's faults. Allowed are 404 for an object that does not exist yet, 410 for one that is
     * not kept, 401 for a session that is over, 400 or 422 for a wrong value, 403 for a refused sign-in, 409 for an
     * object that another user changed first, and 429 for a caller that is to wait.
     */
    async close(): Promise<void> {
      // Before the API: a page would report that it does not answer.
      const closed = await Promise.allSettled(contexts.map((context) => context.close()));
      await fleet.close();
      await rm(mailDirectory, { recursive: true });
      for (const each of closed) if (each.status === 'rejected') throw each.reason;
      const wrong = misdeeds.filter(
        (each) =>
          !/Failed to load resource.* (?:400|401|403|404|409|410|422|429) |net::ERR_CONNECTION_ABORTED$/.test(
            each,
          ),
      );
      if (wrong.length > 0) throw new Error(wrong.join('\n'));
    },
  };
}

/** A receiver whose answer the test changes. */
export async function startReceiver() {
  const answer = { status: 500, body: '{"error":"database down"}' };
  const bodies: string[] = [];
  const heads: Readonly<Record<string, unknown>>[] = [];
  const reply = (response: ServerResponse): void => {
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(answer.body);
  };
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      bodies.push(body);
      heads.push(request.headers);
      reply(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    answer,
    bodies,
    /** The headers of each request, as `bodies`. */
    heads,
    url: `http://127.0.0.1:${port}/hook`,
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}
