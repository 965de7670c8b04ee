/**
 * One service, or all of them, as a child process: started, watched, started again when it dies, stopped.
 *
 * States: starting → running → (died → waiting → starting)* → stopping → stopped. A death before it was ever ready is a
 * failed start, which starting again would not help. A service that lives and is not ready waits for Postgres or Redis;
 * the supervisor waits with it and prints that once a minute. After the first ready a service that died is started
 * again after a pause that grows, until it has run for a while.
 *
 * It has a session of its own, so that Ctrl-C reaches only the supervisor, which stops the services in order; and an
 * IPC channel, by which it notices when the supervisor is gone, however that ended.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { AppError } from '@sluice/domain/values/errors';
import { parseLogLine, type LogEntry } from './log-lines.ts';

/** Before the first start again: a service that was killed is missed from then on. */
const PAUSE_MS_MIN = 50;
/** Intake may be in the process too, which refuses calls while it is away; a start that fails again takes a second or two of CPU. */
const PAUSE_MS_MAX = 2_000;
/** After running for so long it did not die for the same reason as before. */
const STABLE_AFTER_MS = 60_000;
const WAIT_LINE_INTERVAL_MS = 60_000;
const POLL_INTERVAL_MS = 50;
/** Of a service that is not ready after the first minute. */
const SLOW_POLL_INTERVAL_MS = 500;
const LAST_WORDS_MAX = 12;
const REASON_LENGTH_MAX = 1_000;

export interface ServiceOptions {
  readonly name: string;
  readonly execPath: string;
  /** Arguments of Node: the service's `main.ts`, after flags if any. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Sent to it as a message once it is known; until then it only loads its modules, and is not asked whether it is ready. */
  readonly laterEnvironment?: Promise<Readonly<Record<string, string | undefined>>>;
  /** Of each service in it. */
  readonly readyUrls: readonly string[];
  /** After this a stop is no longer a request. */
  readonly stopDeadlineMs: number;
  /** Between two lines about a service that is not ready; a minute by default. */
  readonly waitLineIntervalMs?: number;
  /** A line that the service wrote. */
  readonly onLine: (line: string) => void;
  /** A line about the service. */
  readonly onNote: (line: string) => void;
  readonly onStarted: () => void;
}

export interface Service {
  readonly name: string;
  pid(): number | undefined;
  /** Resolves when it has answered on each of `readyUrls`; rejects with its last words when it ends before. */
  readonly ready: Promise<void>;
  /** Asks it to finish its work in progress and waits for its end. */
  stop(): Promise<void>;
  /** Ends it at once. */
  kill(): void;
}

export function startService(options: ServiceOptions): Service {
  let child: ChildProcess | undefined;
  let isStopping = false;
  let wasReady = false;
  let pauseMs = PAUSE_MS_MIN;
  let restart: NodeJS.Timeout | undefined;
  let stopped: Promise<void> | undefined;
  const { promise: ready, resolve: becomeReady, reject } = Promise.withResolvers<void>();
  // It may fail before anyone waits for it.
  ready.catch(() => {});
  const failStart = (message: string): void =>
    reject(new AppError('SERVICE_START_FAILED', message));

  const start = (): void => {
    const startedAtMs = performance.now();
    const lastWords: string[] = [];
    const started = spawnService(options, (line) => {
      options.onLine(line);
      if (isNoFrame(line)) lastWords.push(line);
      if (lastWords.length > LAST_WORDS_MAX) lastWords.shift();
    });
    child = started;
    const end = Promise.withResolvers<void>();
    stopped = end.promise;
    const gone = new AbortController();
    // 'close' comes after the last line was read; a program that could not be run has 'error' only.
    started.once('error', (error) => lastWords.push(error.message));
    started.once('close', (code, signal) => {
      gone.abort();
      end.resolve();
      if (isStopping) return;
      const ending = signal ?? `exit ${code}`;
      // A warning explains an end of its own, not a signal.
      const reason = reasonOf(lastWords, signal === null);
      if (!wasReady) {
        failStart(`${nameOf(options, lastWords)} did not start (${ending})${reason}`);
        return;
      }
      if (performance.now() - startedAtMs > STABLE_AFTER_MS) pauseMs = PAUSE_MS_MIN;
      options.onNote(
        `${nameOf(options, lastWords)} died (${ending}${reason}); starting it again in ${pauseMs / 1000} s`,
      );
      restart = setTimeout(start, pauseMs);
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
    });
    options.onStarted();
    const sayItWaits = (readyUrl: string): void =>
      options.onNote(
        `${options.name} is not ready yet: ${readyUrl} does not answer 200${reasonOf(lastWords, true)}. This command waits for it`,
      );
    void tellEnvironment(options, started)
      .then(() => untilReady(options, gone.signal, sayItWaits))
      .then(() => {
        if (gone.signal.aborted || isStopping) return;
        if (wasReady) options.onNote(`${options.name} is back`);
        wasReady = true;
        becomeReady();
      });
  };
  start();

  return {
    name: options.name,
    pid: () => (child?.exitCode === null && child.signalCode === null ? child.pid : undefined),
    ready,
    async stop() {
      isStopping = true;
      clearTimeout(restart);
      child?.kill('SIGTERM');
      const deadline = setTimeout(() => {
        options.onNote(`${options.name} does not stop; ending it`);
        child?.kill('SIGKILL');
      }, options.stopDeadlineMs);
      await stopped;
      clearTimeout(deadline);
    },
    kill() {
      isStopping = true;
      clearTimeout(restart);
      child?.kill('SIGKILL');
    },
  };
}

function spawnService(options: ServiceOptions, onLine: (line: string) => void): ChildProcess {
  const child = spawn(options.execPath, options.args, {
    env: options.environment,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on('line', onLine);
  }
  return child;
}

/**
 * If the environment cannot be made, the start as a whole fails with the reason; this one waits until it is stopped.
 */
async function tellEnvironment({ laterEnvironment }: ServiceOptions, child: ChildProcess) {
  const environment = await laterEnvironment?.catch(() => new Promise<never>(() => {}));
  // One that has ended meanwhile has ended for a reason of its own, which is reported.
  if (environment !== undefined && child.connected) child.send(environment, () => {});
}

/** Until all of it has answered 200, or is gone. */
async function untilReady(
  { readyUrls, waitLineIntervalMs = WAIT_LINE_INTERVAL_MS }: ServiceOptions,
  gone: AbortSignal,
  onLongWait: (readyUrl: string) => void,
): Promise<void> {
  let pauseMs = POLL_INTERVAL_MS;
  let saidAtMs = performance.now();
  const waiting = [...readyUrls];
  while (!gone.aborted) {
    const [readyUrl] = waiting;
    if (readyUrl === undefined) return;
    const isReady = await fetch(readyUrl, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(5_000),
    }).then(
      (answer) => answer.arrayBuffer().then(() => answer.ok),
      () => false,
    );
    if (isReady) {
      waiting.shift();
      continue;
    }
    if (performance.now() - saidAtMs >= waitLineIntervalMs && !gone.aborted) {
      onLongWait(readyUrl);
      saidAtMs = performance.now();
      pauseMs = SLOW_POLL_INTERVAL_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** A stack's places are in the log; here they would push the reason out of sight. */
const isNoFrame = (line: string): boolean => !/^(\s+at |\s*$|Node\.js v)/.test(line);

/** Of the service that ended the process, if several are in it. */
function nameOf({ name }: ServiceOptions, lastWords: readonly string[]): string {
  const { service } = findLevel(lastWords.map(parseLogLine), 60) ?? {};
  return typeof service === 'string' ? service : name;
}

const findLevel = (entries: readonly (LogEntry | undefined)[], level: number) =>
  entries.findLast((entry) => entry?.['level'] === level);

const findWorst = (entries: readonly (LogEntry | undefined)[]): LogEntry | undefined =>
  findLevel(entries, 60) ?? findLevel(entries, 50);

/** The most likely reason: its worst line of the log, an error's first line, the last line outside the log, or a warning. */
function reasonOf(lastWords: readonly string[], isByWarning: boolean): string {
  const entries = lastWords.map(parseLogLine);
  const entry = findWorst(entries);
  const line = entry
    ? renderReason(entry)
    : (lastWords.find((words) => /^(Uncaught )?\w*Error\b/.test(words)) ??
      lastWords.findLast((_, index) => entries[index] === undefined));
  const warning = isByWarning ? findLevel(entries, 40) : undefined;
  const reason = line?.trim() ?? (warning && renderReason(warning));
  return reason === undefined ? '' : `: ${reason.slice(0, REASON_LENGTH_MAX)}`;
}

function renderReason({ code, msg, error }: LogEntry): string {
  const { message } = (error ?? {}) as { message?: unknown };
  const parts = [code, msg, message].filter((part) => typeof part === 'string');
  return parts.filter((part, index) => index === 0 || !parts[index - 1]?.includes(part)).join(': ');
}
