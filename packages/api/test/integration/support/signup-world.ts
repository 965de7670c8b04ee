/** Signups over the API. A real SMTP server receives the codes. */
import { sql } from 'kysely';
import { SMTPServer } from 'smtp-server';
import { expect } from 'vitest';
import { createMailer } from '../../../src/outbox/mailer.ts';
import { createRelay } from '../../../src/outbox/outbox-relay.ts';
import { SECRET, startApi } from './api-under-test.ts';

export const completion = (email: string, code: string) => ({
  email,
  code,
  company_name: 'Acme',
  first_name: 'Ada',
  last_name: 'Lovelace',
  data_center: 'eu',
});

export const otherThan = (code: string): string => (code === '000000' ? '000001' : '000000');

export type SignupWorld = Awaited<ReturnType<typeof startSignups>>;

export async function startSignups(changes: Parameters<typeof startApi>[0] = {}) {
  const api = await startApi(changes);
  const mails: { to: string; text: string }[] = [];
  const failures: unknown[] = [];
  /** `next`: the refusal of the next mail, if there is one. */
  const refusal: { next: Error | undefined } = { next: undefined };
  /** `until`: the server answers no mail before. */
  const delay: { until: Promise<void> } = { until: Promise.resolve() };
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const refused = refusal.next;
        refusal.next = undefined;
        if (!refused) {
          const to = session.envelope.rcptTo.map(({ address }) => address).join(',');
          mails.push({ to, text: Buffer.concat(chunks).toString('utf8') });
        }
        void delay.until.then(() => done(refused));
      });
    },
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as { port: number };
  const mailer = createMailer({
    smtpUrl: `smtp://127.0.0.1:${port}`,
    directory: '/nowhere',
    from: 'Sluice <no-reply@sluice.example>',
  });
  const relay = createRelay({
    database: api.database,
    mailer,
    analytics: undefined,
    providerTimeoutMs: 1_000,
    secret: SECRET,
    now: () => api.clock.nowMs,
    onFailure: (_entry, error) => failures.push(error),
  });

  let addressCount = 0;
  let ipCount = 0;
  /** The tests share a clock's hour; each call has an IP address of its own, unless one is given. */
  const newIp = (): string => `10.9.${Math.floor(++ipCount / 250)}.${ipCount % 250}`;
  const post = (url: string, body: unknown, ip = newIp()) =>
    api.app.inject({
      method: 'POST',
      url,
      remoteAddress: ip,
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify(body),
    });
  const start = (email: string, ip?: string) => post('/v1/account_signup', { email }, ip);
  /** The code that is mailed to the address now. */
  const mailedCode = async (email: string): Promise<string> => {
    await relay();
    const mail = mails.findLast(({ to }) => to === email);
    return /code is (\d{6})\b/.exec(mail?.text ?? '')?.[1] ?? 'no code';
  };

  return {
    api,
    mails,
    failures,
    refusal,
    delay,
    relay,
    newAddress: (): string => `user${++addressCount}@example.com`,
    newIp,
    post,
    start,
    mailedCode,
    complete: (email: string, code: string, ip?: string) =>
      post('/v1/account_signup/code', completion(email, code), ip),
    async startedCode(email: string): Promise<string> {
      expect((await start(email)).statusCode).toBe(200);
      return mailedCode(email);
    },
    async accountCountOf(email: string): Promise<number> {
      const { rows } = await sql<{ count: number }>`
        select count(*)::int as count from users where email = ${email}`.execute(api.database);
      return rows[0]!.count;
    },
    async close(): Promise<void> {
      mailer.close();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await api.close();
    },
  };
}
