/**
 * Every command of `sluice` with its options and help. What a command does is in the file of its name;
 * here its words become arguments.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { createApiClient, type ApiClient } from './api-client.ts';
import {
  address,
  connectionCount,
  gather,
  httpStatus,
  notEmpty,
  port,
  positiveInteger,
  wholeNumber,
} from './arguments.ts';
import { addKeyCommands } from './key-commands.ts';
import { listen } from './listen.ts';
import { sampleCalls } from './sample-calls.ts';
import { send } from './send.ts';
import { readStatus, writeStatus } from './status.ts';
import { tail } from './tail.ts';
import { writeFields, writeRows, type Terminal } from './terminal.ts';
import { addWebhookCommands } from './webhook-commands.ts';

const APP_KEY_ADVICE = 'set --key (SLUICE_KEY) to an app API key of the workspace';
const ACCOUNT_TOKEN_ADVICE =
  'set --token (SLUICE_ACCOUNT_TOKEN) to a token of a service account that is an account admin';

type ScriptName = 'migrate' | 'verify' | 'purchases' | 'secrets';

export interface ProgramDependencies {
  readonly terminal: (isJson: boolean) => Terminal;
  /** Aborted by Ctrl-C, and by SIGTERM. */
  readonly signal: AbortSignal;
  readonly runId: () => string;
  /** Runs a script of the checkout with the pinned Node and this environment; resolves with its exit code. */
  readonly runScript: (name: ScriptName, words?: readonly string[]) => Promise<number>;
  readonly setExitCode: (code: number) => void;
  /** Ends with the code of what a signal ended: nothing after `&&` goes on. */
  readonly setInterrupted: () => void;
}

export function createProgram(deps: ProgramDependencies): Command {
  const program = new Command('sluice')
    .description('Looks after a Sluice: what runs, what waits, what was sent.')
    .addOption(
      new Option('--api-url <url>', 'the API')
        .env('SLUICE_API_URL')
        .default('http://127.0.0.1:8090')
        .argParser(address),
    )
    .addOption(
      new Option('--intake-url <url>', 'intake')
        .env('SLUICE_INTAKE_URL')
        .default('http://127.0.0.1:8080')
        .argParser(address),
    )
    .addOption(
      new Option('--key <key>', 'an app API key of the workspace')
        .env('SLUICE_KEY')
        .default('demo_app_key', "the demo workspace's"),
    )
    .option('--json', 'one JSON document (or one a line) instead of text', false)
    .showHelpAfterError()
    .addHelpText(
      'after',
      `
Examples, beside a running npm start:
  sluice status
  sluice send --count 1000 --rate 200
  sluice tail --outcome refused
  sluice events trace 01K…
  sluice webhooks list`,
    );

  const terminal = (): Terminal => deps.terminal(program.opts<{ json: boolean }>().json);
  const api = (): ApiClient => {
    const { apiUrl, key } = program.opts<{ apiUrl: string; key: string }>();
    return createApiClient({ url: apiUrl, key, keyAdvice: APP_KEY_ADVICE, signal: deps.signal });
  };

  const time = {
    now: () => performance.now(),
    /** Ends early with the signal. */
    pause: (durationMs: number) =>
      sleep(durationMs, undefined, { signal: deps.signal }).catch(() => undefined),
  };

  program
    .command('status')
    .description(
      'who runs, whether each is ready, and how far behind the fleet is; exits 1 where one is not ready',
    )
    .option('--worker-url <url>', 'a worker; again for more (http://127.0.0.1:8092)', gather)
    .option('--also <url>', 'another process; again for more', gather)
    .action(async (options: { workerUrl?: string[]; also?: string[] }) => {
      const { intakeUrl, apiUrl } = program.opts<{ intakeUrl: string; apiUrl: string }>();
      const workers = options.workerUrl ?? ['http://127.0.0.1:8092'];
      const found = await readStatus([intakeUrl, apiUrl, ...workers, ...(options.also ?? [])]);
      if (!writeStatus(terminal(), found)) deps.setExitCode(1);
    });

  addWebhookCommands(program, api, terminal);
  addKeyCommands(program, terminal, (key) => {
    const { apiUrl } = program.opts<{ apiUrl: string }>();
    return createApiClient({
      url: apiUrl,
      key,
      keyAdvice: ACCOUNT_TOKEN_ADVICE,
      signal: deps.signal,
    });
  });

  program
    .command('events')
    .description('single events')
    .command('trace')
    .argument('<event-id>', "the sender's messageId, or the event_id of a delivery")
    .description('the whole way of one event: received, envelope, processed, deliveries, attempts')
    .action(async (eventId: string) => {
      const { trace } = await api().request(
        'GET',
        `/v1/events/${encodeURIComponent(eventId)}/trace`,
      );
      writeFields(terminal(), trace as object);
    });

  program
    .command('issues')
    .description('what was refused, skipped or put right, newest day first')
    .option('--code <code>', 'only this code')
    .option('--source <call>', 'only from this call, like pipelines.track')
    .option('--limit <count>', 'rows', positiveInteger, 50)
    .action(async (options: { code?: string; source?: string; limit: number }) => {
      const query = new URLSearchParams({
        limit: String(options.limit),
        ...(options.code === undefined ? {} : { code: options.code }),
        ...(options.source === undefined ? {} : { source: options.source }),
      });
      const { ingestion_issues: issues } = await api().request(
        'GET',
        `/v1/ingestion_issues?${query.toString()}`,
      );
      writeRows(terminal(), issues as Record<string, unknown>[], [
        'day',
        'count',
        'code',
        'source',
        'field',
        'message',
      ]);
    });

  program
    .command('tail')
    .description('what comes in and what is reported, as it happens')
    .option('--person <identifier>', 'only about this person')
    .option('--name <name>', 'only events of this name, or reports of this type')
    .option(
      '--outcome <outcome>',
      'only accepted, mended, refused, rate_limited, overloaded, delivered, retrying or abandoned',
    )
    .action((options: { person?: string; name?: string; outcome?: string }) =>
      tail({ api: api(), terminal: terminal(), ...time, signal: deps.signal }, options),
    );

  program
    .command('send')
    .description('realistic calls from a seed, to try things with')
    .option('--count <calls>', 'how many', positiveInteger, 1_000)
    .option('--rate <calls>', 'a second; 0: as fast as they are taken', wholeNumber, 0)
    .option('--batch <calls>', 'in one request', positiveInteger, 1)
    .option('--connections <count>', 'at the same time', connectionCount, 16)
    .option('--people <count>', 'whom they are about', positiveInteger, 1_000)
    .option('--seed <number>', 'the same seed gives the same calls', positiveInteger, 1)
    .addOption(
      new Option('--write-key <key>', 'of the workspace')
        .env('SLUICE_WRITE_KEY')
        .default('demo_write_key', "the demo workspace's"),
    )
    .action(
      async (options: {
        count: number;
        rate: number;
        batch: number;
        connections: number;
        people: number;
        seed: number;
        writeKey: string;
      }) => {
        const { intakeUrl } = program.opts<{ intakeUrl: string }>();
        const result = await send(
          {
            calls: sampleCalls(options.seed, options.people, deps.runId()),
            terminal: terminal(),
            ...time,
            signal: deps.signal,
          },
          { ...options, url: intakeUrl, batchSize: options.batch },
        );
        writeFields(terminal(), result);
        if (result.sent < options.count) deps.setInterrupted();
        else if (result.accepted < result.sent) deps.setExitCode(1);
      },
    );

  program
    .command('listen')
    .description('receives deliveries on this machine, checks their signatures and prints them')
    .option('--port <port>', 'on 127.0.0.1; 0: any free one', port, 9000)
    .addOption(
      new Option('--secret <secret>', "the webhook's signing secret")
        .env('SLUICE_WEBHOOK_SECRET')
        .argParser(notEmpty),
    )
    .option('--status <status>', 'answer every genuine delivery with it', httpStatus, 200)
    .action(async (options: { port: number; secret?: string; status: number }) => {
      const output = terminal();
      const listener = await listen(output, options);
      output.note(`listening on ${listener.url}; Ctrl-C ends it`);
      await new Promise((resolve) =>
        deps.signal.addEventListener('abort', resolve, { once: true }),
      );
      await listener.close();
    });

  const purchases = program
    .command('purchases')
    .description('purchases that were set aside for a person, in the database of DATABASE_URL');
  const runScript = async (name: ScriptName, ...words: string[]): Promise<void> => {
    const { json } = program.opts<{ json: boolean }>();
    deps.setExitCode(await deps.runScript(name, json ? [...words, '--json'] : words));
  };
  purchases
    .command('list')
    .description('what contradicts itself, oldest first: which run, of which account, and why')
    .action(() => runScript('purchases', 'list'));
  purchases
    .command('release')
    .argument('<run-id>', 'of the purchase')
    .description("lets it go on, once you have looked at the payment vendor's side")
    .action((runId: string) => runScript('purchases', 'release', runId));

  program
    .command('secrets')
    .description('secrets of webhooks in the database of DATABASE_URL')
    .command('lost')
    .option(
      '--replace <key-id>',
      'give up what the key of this id sealed and none opens: new signing keys, shown once, and no headers',
    )
    .description(
      'what the keys of SEALING_KEYS do not open, by webhook; only reads without --replace; exits 1 where something does not, 2 where it could not look',
    )
    .action(({ replace }: { replace?: string }) =>
      runScript('secrets', 'lost', ...(replace === undefined ? [] : ['--replace', replace])),
    );

  for (const [name, description] of [
    ['migrate', 'brings the database of DATABASE_URL to this version'],
    [
      'verify',
      'checks in the database of DATABASE_URL that nothing recorded was changed; exits 1 where something was, 2 where it could not look',
    ],
  ] as const) {
    program
      .command(name)
      .description(description)
      .action(() => runScript(name));
  }
  return program;
}
