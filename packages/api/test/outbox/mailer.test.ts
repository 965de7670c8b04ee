/** Mail by SMTP: the report of a mail that was not taken. */
import { errorForLog } from '@sluice/platform/process/logger';
import { SMTPServer } from 'smtp-server';
import { expect, onTestFinished, test } from 'vitest';
import { createMailer } from '../../src/outbox/mailer.ts';

const MAIL = { to: 'ada@example.com', subject: 'a code', text: 'the code is 123456' };

async function failureAt(port: number): Promise<string> {
  const mailer = createMailer({
    smtpUrl: `smtp://user:hidden@127.0.0.1:${port}`,
    directory: '/nowhere',
    from: 'Sluice <no-reply@sluice.example>',
  });
  const error: unknown = await mailer.send(MAIL).catch((reason: unknown) => reason);
  mailer.close();
  return JSON.stringify(errorForLog(error));
}

// Servers quote the address in their answers, and this goes into the log.
test('the error of a refused recipient has the codes of the server but not the recipient', async () => {
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    authOptional: true,
    onAuth: (_credentials, _session, done) => done(null, { user: 'user' }),
    onRcptTo: ({ address }, _session, done) =>
      done(Object.assign(new Error(`5.1.1 <${address}> is unknown`), { responseCode: 550 })),
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as { port: number };
  onTestFinished(() => new Promise<void>((resolve) => server.close(resolve)));
  const line = await failureAt(port);
  expect(line).toMatch(/"message":"[^"]*EENVELOPE[^"]*\b550 5\.1\.1/);
  expect(line).not.toContain('ada@');
});

test('the error of a server that is away has its address but not the password', async () => {
  const line = await failureAt(1);
  expect(line).toContain('ECONNREFUSED 127.0.0.1:1');
  expect(line).not.toContain('hidden');
});
