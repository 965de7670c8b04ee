/**
 * Every command of `sluice` with its options and help, in the order of `sluice --help`. What a command does is
 * in the file of its name; here its words become arguments.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { createApiClient, type ApiClient, type ApiClientOptions } from './api-client.ts';
import {
  address,
  connectionCount,
  eventId,
  gather,
  httpStatus,
  notEmpty,
  port,
  positiveInteger,
  wholeNumber,
} from './arguments.ts';
import { addImportCommand } from './import-command.ts';
import { addKeyCommands } from './key-commands.ts';
import { listen } from './listen.ts';
import { sampleCalls } from './sample-calls.ts';
import type { RunningStart } from './running-start.ts';
import { addScriptCommands, type RunScript } from './script-commands.ts';
import { send } from './send.ts';
import { readStatus, writeStatus } from './status.ts';
import { tail } from './tail.ts';
import { writeFields, writeRows, type Terminal } from './terminal.ts';
import { addWebhookCommands } from './webhook-commands.ts';

const APP_KEY_ADVICE = 'set --key (SLUICE_KEY) to an app API key of the workspace';
const ACCOUNT_ADVICE = {
  keyAdvice:
    'set --token (SLUICE_ACCOUNT_TOKEN) to a token of a service account that is an account admin',
  accountAdvice:
    'set --account (SLUICE_ACCOUNT) to the account of the token, the account_id that its signup answered',
};

export interface ProgramDependencies {
  readonly terminal: (isJson: boolean) => Terminal;
  /** Aborted by Ctrl-C, and by SIGTERM. */
  readonly signal: AbortSignal;
  readonly runId: () => string;
  /** The `npm start` beside; its addresses are the defaults. */
  readonly runningStart: RunningStart | undefined;
  /** Resolves with the script's exit code. */
  readonly runScript: RunScript<number>;
  readonly setExitCode: (code: number) => void;
  /** Sets the exit code that a signal gives, so that a shell runs nothing after `&&`. */
  readonly setInterrupted: () => void;
}

/** What may stand before the name of a command. */
interface ProgramOptions {
  readonly apiUrl: string;
  readonly intakeUrl: string;
  readonly key: string;
  readonly json: boolean;
}

/** What the commands share. Options are known only once the program has read its words. */
interface Context {
  readonly program: Command;
  readonly deps: ProgramDependencies;
  readonly options: () => ProgramOptions;
  readonly terminal: () => Terminal;
  /** The API, called with `--key`. */
  readonly api: () => ApiClient;
}

/** The program with all its commands; `parseAsync` runs the one that was typed. */
export function createProgram(deps: ProgramDependencies): Command {
  const program = createBareProgram(deps.runningStart);
  const options = () => program.opts<ProgramOptions>();
  const terminal = () => deps.terminal(options().json);
  let waiting: Terminal | undefined;
  const onWait = (waitedMs: number | undefined): void => {
    waiting ??= terminal();
    if (waitedMs === undefined) waiting.progressDone();
    else
      waiting.progress(`waiting for the API: ${Math.floor(waitedMs / 1_000)} s`, {
        progress: 'waiting for the API',
        elapsed_ms: Math.round(waitedMs),
      });
  };
  const apiWith = (key: string, advice: Pick<ApiClientOptions, 'keyAdvice' | 'accountAdvice'>) =>
    createApiClient({ url: options().apiUrl, key, ...advice, signal: deps.signal, onWait });
  const api = () => apiWith(options().key, { keyAdvice: APP_KEY_ADVICE });
  const context = { program, deps, options, terminal, api };

  addStatus(context);
  addWebhookCommands(program, api, terminal, { ...timeUntil(deps.signal), signal: deps.signal });
  addImportCommand({ program, api, terminal, deps: { ...timeUntil(deps.signal), ...deps } });
  addKeyCommands(program, terminal, (token) => apiWith(token, ACCOUNT_ADVICE));
  addTrace(context);
  addIssues(context);
  addTail(context);
  addSend(context);
  addListen(context);
  addScriptCommands(program, async (name, words = []) => {
    deps.setExitCode(await deps.runScript(name, options().json ? [...words, '--json'] : words));
  });
  return program;
}

/** The program without its commands. */
function createBareProgram(start: RunningStart | undefined): Command {
  return (
    new Command('sluice')
      .description('Shows and operates a Sluice installation: processes, waiting work, deliveries.')
      .addOption(
        new Option('--api-url <url>', 'the API')
          .env('SLUICE_API_URL')
          .default(start?.apiUrl ?? 'http://127.0.0.1:8090')
          .argParser(address),
      )
      .addOption(
        new Option('--intake-url <url>', 'intake')
          .env('SLUICE_INTAKE_URL')
          .default(start?.intakeUrl ?? 'http://127.0.0.1:8080')
          .argParser(address),
      )
      .addOption(
        new Option('--key <key>', 'an app API key of the workspace')
          .env('SLUICE_KEY')
          .default('demo_app_key', "the demo workspace's"),
      )
      .option('--json', 'one JSON document (or one a line) instead of text', false)
      // A wrong word ends it with a code of its own (`main.ts`).
      .exitOverride()
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
      )
  );
}

function addStatus({ program, deps, options, terminal }: Context): void {
  const workerUrl = deps.runningStart?.workerUrl ?? 'http://127.0.0.1:8092';
  program
    .command('status')
    .description(
      'who runs, whether each is ready, and how far behind the fleet is; exits 1 where one is not ready',
    )
    .option('--worker-url <url>', `a worker; again for more (${workerUrl})`, gather)
    .option('--also <url>', 'another process; again for more', gather)
    .action(async (given: { workerUrl?: string[]; also?: string[] }) => {
      const { intakeUrl, apiUrl } = options();
      const workers = given.workerUrl ?? [workerUrl];
      const found = await readStatus([intakeUrl, apiUrl, ...workers, ...(given.also ?? [])]);
      if (!writeStatus(terminal(), found)) deps.setExitCode(1);
    });
}

function addTrace({ program, api, terminal }: Context): void {
  program
    .command('events')
    .description('single events')
    .command('trace')
    .argument('<event-id>', "the sender's messageId, or the event_id of a delivery", eventId)
    .description('the path of one event: received, commit batch, processed, deliveries, attempts')
    .action(async (id: string) => {
      const { trace } = await api().request('GET', `/v1/events/${encodeURIComponent(id)}/trace`);
      writeFields(terminal(), trace as object);
    });
}

interface IssueOptions {
  readonly limit: number;
  readonly code?: string;
  readonly source?: string;
  readonly severity?: string;
}

function addIssues({ program, api, terminal }: Context): void {
  program
    .command('issues')
    .description('refused, skipped and corrected input, newest day first')
    .option('--code <code>', 'only this code')
    .option('--source <call>', 'only from this call, like pipelines.track')
    .addOption(
      new Option('--severity <severity>', 'only refused input, or only corrected input').choices([
        'error',
        'warning',
      ]),
    )
    .option('--limit <count>', 'rows', positiveInteger, 50)
    .action(async ({ limit, ...filters }: IssueOptions) => {
      const query = new URLSearchParams({ limit: String(limit), ...filters });
      const { ingestion_issues: issues } = await api().request(
        'GET',
        `/v1/ingestion_issues?${query.toString()}`,
      );
      writeRows(terminal(), issues as Record<string, unknown>[], [
        'day',
        'count',
        'severity',
        'code',
        'source',
        'field',
        'message',
      ]);
    });
}

function addTail({ program, deps, api, terminal }: Context): void {
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
      tail(
        { api: api(), terminal: terminal(), ...timeUntil(deps.signal), signal: deps.signal },
        options,
      ),
    );
}

function addSend({ program, deps, options, terminal }: Context): void {
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
      async (given: {
        count: number;
        rate: number;
        batch: number;
        connections: number;
        people: number;
        seed: number;
        writeKey: string;
      }) => {
        const result = await send(
          {
            calls: sampleCalls(given.seed, given.people, deps.runId()),
            terminal: terminal(),
            ...timeUntil(deps.signal),
            signal: deps.signal,
          },
          { ...given, url: options().intakeUrl, batchSize: given.batch },
        );
        writeFields(terminal(), result);
        if (result.sent < given.count) deps.setInterrupted();
        else if (result.accepted < result.sent) deps.setExitCode(1);
      },
    );
}

function addListen({ program, deps, terminal }: Context): void {
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
}

/** A clock, and a pause that the signal ends early. */
function timeUntil(signal: AbortSignal) {
  return {
    now: () => performance.now(),
    pause: (durationMs: number) => sleep(durationMs, undefined, { signal }).catch(() => undefined),
  };
}
