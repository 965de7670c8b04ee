/**
 * Sends mail: by SMTP if a server is set, else into a folder, one `.eml` file a mail.
 *
 * Only this file knows nodemailer, and loads it with the first mail: a start is shorter without it. Everything that goes into a mail's head is made by us or was checked to be one
 * address (`account-fields.ts`).
 */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

export interface Mailer {
  /** For the log: the destination of mails. */
  readonly description: string;
  /** Rejects if the mail was not taken; it may be sent again. */
  send(mail: Mail): Promise<void>;
  close(): void;
}

export interface MailerOptions {
  /** `smtp://user:password@host:587`, or smtps. Absent: the folder. */
  readonly smtpUrl: string | undefined;
  readonly directory: string;
  readonly from: string;
}

const SMTP_TIMEOUT_MS = 10_000;

export function createMailer({ smtpUrl, directory, from }: MailerOptions): Mailer {
  if (smtpUrl === undefined) return fileMailer(resolve(directory), from);
  const open = async () =>
    (await loadMailing()).createTransport({
      url: smtpUrl,
      connectionTimeout: SMTP_TIMEOUT_MS,
      greetingTimeout: SMTP_TIMEOUT_MS,
      socketTimeout: SMTP_TIMEOUT_MS,
    });
  let opened: ReturnType<typeof open> | undefined;
  return {
    description: `by SMTP to ${new URL(smtpUrl).host}`,
    async send(mail) {
      try {
        opened ??= open();
        const transport = await opened;
        await transport.sendMail({ from, ...mail });
      } catch (error) {
        throw withoutAnswer(error);
      }
    },
    close: () => void opened?.then((transport) => transport.close()),
  };
}

const loadMailing = async () => (await import('nodemailer')).default;

/** A server's answer quotes the recipient, and failures are logged: only the codes of an answer are kept. */
function withoutAnswer(error: unknown): unknown {
  const { code, response } = error as { readonly code?: string; readonly response?: string };
  if (response === undefined) return error;
  const [codes = 'no code'] = /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?/.exec(response) ?? [];
  return new Error(`the mail server did not take it (${code}): ${codes}`);
}

function fileMailer(directory: string, from: string): Mailer {
  return {
    description: `into the folder ${directory}`,
    async send(mail) {
      const mailing = await loadMailing();
      const transport = mailing.createTransport({ streamTransport: true, buffer: true });
      const { message } = await transport.sendMail({ from, ...mail });
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const name = `${new Date().toISOString().replaceAll(':', '-')}-${randomUUID()}.eml`;
      // A person who watches the folder sees whole mails only.
      const unfinished = join(directory, `.${name}.unfinished`);
      try {
        await writeFile(unfinished, message as Buffer, { mode: 0o600 });
        await rename(unfinished, join(directory, name));
      } catch (error) {
        // It may have a code of a sign-in, and is not looked at again.
        await rm(unfinished, { force: true }).catch(() => undefined);
        throw error;
      }
    },
    close() {},
  };
}
