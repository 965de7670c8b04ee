/** The words of `sluice tail`, `send` and `listen`. */
import type { components } from '@sluice/client';
import { AppError } from '@sluice/domain/values/errors';
import { Option } from 'commander';
import {
  address,
  connectionCount,
  gatherTexts,
  httpStatus,
  notEmpty,
  port,
  positiveInteger,
  wholeNumber,
} from '../input/arguments.ts';
import { listen } from '../live/listen.ts';
import { sampleCalls } from '../live/sample-calls.ts';
import { send } from '../live/send.ts';
import { tail, type TailOptions } from '../live/tail.ts';
import { makeTemporaryWebhook, type TemporaryWebhook } from '../live/temporary-webhook.ts';
import { writeFields } from '../output/result.ts';
import type { Context } from './context.ts';

export function addLiveCommands(context: Context): void {
  addTail(context);
  addSend(context);
  addListen(context);
}

function addTail({ program, api, terminal, now, pause, signal }: Context): void {
  program
    .command('tail')
    .description('incoming calls and reported events, as they happen')
    .option('--person <identifier>', 'only about this person')
    .option('--name <name>', 'only events of this name, or reports of this type')
    .option(
      '--outcome <outcome>',
      'only accepted, mended, refused, rate_limited, overloaded, delivered, retrying or abandoned',
    )
    .option('--source <call>', 'only of this call, such as pipelines.track, or of all pipelines')
    .option('--webhook <id>', 'only delivery attempts of this webhook', positiveInteger)
    .option(
      '--grep <words>',
      'only lines with this text in any value, or with this value, such as status=500; repeat it for more',
      gatherTexts,
    )
    .action((options: TailOptions) =>
      tail({ api: api(), terminal: terminal(), now, pause, signal }, options),
    );
}

interface SendCommandOptions {
  readonly count: number;
  readonly rate: number;
  readonly batch: number;
  readonly connections: number;
  readonly people: number;
  readonly seed: number;
  readonly writeKey?: string;
}

function addSend(context: Context): void {
  const { program, options, terminal, now, pause, signal } = context;
  program
    .command('send')
    .description('realistic calls from a seed, to try things with')
    .option('--count <calls>', 'how many', positiveInteger, 1_000)
    .option('--rate <calls>', 'calls a second, or 0 for as many as intake accepts', wholeNumber, 0)
    .option('--batch <calls>', 'in one request', positiveInteger, 1)
    .option('--connections <count>', 'at the same time', connectionCount, 16)
    .option('--people <count>', 'whom they are about', positiveInteger, 1_000)
    .option('--seed <number>', 'the same seed gives the same calls', positiveInteger, 1)
    .addOption(
      new Option('--write-key <key>', "of the workspace; the demo workspace's unless given").env(
        'SLUICE_WRITE_KEY',
      ),
    )
    .action(async (given: SendCommandOptions) => {
      const { intakeUrl: url, writeKey: keptKey } = options();
      const writeKey = given.writeKey ?? keptKey;
      if (url === undefined || writeKey === undefined)
        throw new AppError(
          'COMMAND_MISUSED',
          `the profile has no ${url === undefined ? 'address of intake; give --intake-url (SLUICE_INTAKE_URL)' : 'write key; give --write-key (SLUICE_WRITE_KEY)'}, or add it to the profile`,
        );
      const result = await send(
        {
          calls: sampleCalls(given.seed, given.people, context.runId()),
          ...{ terminal: terminal(), now, pause, signal },
        },
        { ...given, writeKey, url, batchSize: given.batch },
      );
      writeFields(terminal(), result);
      if (result.sent < given.count) context.setInterrupted();
      else if (result.accepted < result.sent) context.setExitCode(1);
    });
}

interface ListenCommandOptions {
  readonly port?: number;
  readonly secret?: string;
  readonly status: number;
  readonly forwardTo?: string;
  /** The API names the types to a user who gives another one. */
  readonly event: components['schemas']['NewReportingWebhookInput']['events'];
  readonly pretty?: true;
}

/** Of a receiver that a webhook of yours names; a temporary webhook names any. */
const PORT_DEFAULT = 9_000;

function addListen(context: Context): void {
  const { program, terminal, signal, api, closingApi } = context;
  program
    .command('listen')
    .description(
      'receives deliveries on this machine, checks their signatures and prints them; with --forward-to by a webhook of its own, for as long as it runs',
    )
    .option('--port <port>', `on 127.0.0.1, or 0 for any free port (${PORT_DEFAULT})`, port)
    .addOption(
      new Option('--secret <secret>', "the webhook's signing secret")
        .env('SLUICE_WEBHOOK_SECRET')
        .argParser(notEmpty),
    )
    .option('--status <status>', 'answer every genuine delivery with it', httpStatus, 200)
    .option(
      '--forward-to <url>',
      'pass genuine deliveries on to it, and answer with its status; the services run on this machine too',
      address,
    )
    .option('--event <type...>', 'with --forward-to: types of the sent events', ['*'])
    .option('--pretty', 'bodies as indented JSON')
    .action(async (options: ListenCommandOptions) => {
      const output = terminal();
      const isOwn = options.forwardTo !== undefined;
      const secret = Promise.withResolvers<string | undefined>();
      if (!isOwn) secret.resolve(options.secret);
      let webhook: TemporaryWebhook | undefined;
      const listener = await listen(output, {
        port: options.port ?? (isOwn ? 0 : PORT_DEFAULT),
        secret: secret.promise,
        status: options.status,
        forwardTo: options.forwardTo,
        isPretty: options.pretty,
      });
      try {
        if (isOwn) {
          webhook = await makeTemporaryWebhook(
            { api: api(), closingApi: closingApi() },
            `${listener.url}/`,
            options.event,
          );
          secret.resolve(webhook.secret);
          output.note(
            `webhook ${webhook.id} sends to ${options.forwardTo} while this command runs, with the secret: ${webhook.secret}`,
          );
        }
        output.note(`listening on ${listener.url}; Ctrl-C ends it`);
        if (!signal.aborted)
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      } finally {
        // An open listener would keep the process after a refused deletion.
        try {
          await webhook?.remove();
        } finally {
          await listener.close();
        }
      }
    });
}
