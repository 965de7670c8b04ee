/** Mails that were not taken: their report, and the files that they leave. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorForLog } from '@sluice/platform/process/logger';
import { SMTPServer } from 'smtp-server';
import { expect, onTestFinished, test } from 'vitest';
import { createMailer } from '../../src/outbox/mailer.ts';

const MAILER = new URL('../../src/outbox/mailer.ts', import.meta.url).href;
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

test('a mail that the disk has no space for leaves no file', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-mails-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const mail = { ...MAIL, text: `${MAIL.text}\n`.repeat(1_000) };
  const program = `
    import { createMailer } from ${JSON.stringify(MAILER)};
    const mailer = createMailer(${JSON.stringify({ directory, from: 'a@sluice.example' })});
    await mailer.send(${JSON.stringify(mail)}).catch(({ code }) => process.stdout.write(code));`;
  // Of a process that may write files of one block.
  const { stdout } = await promisify(execFile)(
    'sh',
    ['-c', 'ulimit -f 1; exec "$0" "$@"', process.execPath, '--input-type=module', '-e', program],
    { env: {} },
  );
  expect(stdout).toBe('EFBIG');
  expect(await readdir(directory)).toEqual([]);
});
