/** `sluice send`: sample calls to intake at a rate, with their results. */
import { type components, createIntakeClient, type IntakeClient } from '@sluice/client';
import { AppError } from '@sluice/domain/values/errors';
import type { SampleCall } from './sample-calls.ts';
import type { Terminal } from '../output/terminal.ts';

export interface SendOptions {
  readonly url: string;
  readonly writeKey: string;
  readonly count: number;
  /** Calls per second. 0: as fast as intake accepts them. */
  readonly rate: number;
  /** Calls in one request. 1: each by itself. */
  readonly batchSize: number;
  readonly connections: number;
}

export interface SendDependencies {
  readonly calls: Iterator<SampleCall>;
  readonly terminal: Terminal;
  readonly now: () => number;
  readonly pause: (durationMs: number) => Promise<unknown>;
  readonly signal: AbortSignal;
}

export interface SendResult {
  readonly sent: number;
  readonly accepted: number;
  /** Refused or not answered, by status or reason. */
  readonly failures: Readonly<Record<string, number>>;
  readonly durationMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

type BatchItem = components['schemas']['PipelinesItem'];

const PROGRESS_INTERVAL_MS = 500;

/** Time limits of intake's answers: in general, and for requests in progress once `signal` is aborted. */
const PATIENCE = { answerMs: 30_000, lastAnswersMs: 2_000 } as const;

/** Sends until `count` calls are sent or `signal` is aborted. A failed request is counted, not sent again. */
export async function send(
  deps: SendDependencies,
  options: SendOptions,
  patience: { readonly answerMs: number; readonly lastAnswersMs: number } = PATIENCE,
): Promise<SendResult> {
  const { calls, terminal, now, pause, signal } = deps;
  const startedAtMs = now();
  const failures: Record<string, number> = {};
  const latenciesMs: number[] = [];
  let sent = 0;
  let accepted = 0;
  let shownAtMs = startedAtMs;
  // Strict mode, so that errors are reported.
  const intake = createIntakeClient({
    url: options.url,
    writeKey: options.writeKey,
    isStrict: true,
  });
  const underWay = new Set<AbortController>();
  const cut = (): void => {
    for (const each of underWay) each.abort();
  };
  const lastAnswers = (): void => void setTimeout(cut, patience.lastAnswersMs).unref();
  signal.addEventListener('abort', lastAnswers, { once: true });
  const ask = async (batch: readonly SampleCall[]): Promise<string> => {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), patience.answerMs);
    underWay.add(abort);
    try {
      return await post(intake, batch, abort.signal);
    } finally {
      clearTimeout(timer);
      underWay.delete(abort);
    }
  };

  const show = (): void => {
    const seconds = Math.max(0.001, (now() - startedAtMs) / 1_000);
    const share = Math.floor((accepted / options.count) * 30);
    const bar = '#'.repeat(share).padEnd(30, '.');
    terminal.progress(
      `[${bar}] ${accepted} of ${options.count} taken, ${Math.round(accepted / seconds)} a second`,
      {
        progress: 'sending',
        done: accepted,
        all: options.count,
        elapsed_ms: Math.round(now() - startedAtMs),
      },
    );
  };
  const takeBatch = (): SampleCall[] => {
    const size = Math.min(options.batchSize, options.count - sent);
    sent += size;
    return Array.from({ length: size }, () => calls.next().value as SampleCall);
  };
  const connection = async (): Promise<void> => {
    while (sent < options.count && !signal.aborted) {
      const batch = takeBatch();
      const dueAtMs =
        options.rate === 0 ? 0 : startedAtMs + ((sent - batch.length) / options.rate) * 1_000;
      if (dueAtMs > now()) await pause(dueAtMs - now());
      if (signal.aborted) {
        sent -= batch.length;
        return;
      }
      const requestedAtMs = now();
      const outcome = await ask(batch);
      latenciesMs.push(now() - requestedAtMs);
      if (outcome === 'accepted') accepted += batch.length;
      else failures[outcome] = (failures[outcome] ?? 0) + batch.length;
      if (now() - shownAtMs > PROGRESS_INTERVAL_MS) {
        shownAtMs = now();
        show();
      }
    }
  };
  await Promise.all(Array.from({ length: options.connections }, connection));
  show();
  terminal.progressDone();
  if (accepted === 0 && failures['not reached'] !== undefined) {
    throw new AppError(
      'COMMAND_NOT_REACHED',
      `intake at ${options.url} cannot be reached; is it running, and is --intake-url (SLUICE_INTAKE_URL) right?`,
    );
  }
  if (accepted === 0 && failures['status 401'] !== undefined) {
    throw new AppError(
      'COMMAND_NOT_ALLOWED',
      `intake at ${options.url} does not know the write key; is --write-key (SLUICE_WRITE_KEY) right?`,
    );
  }
  if (accepted === 0 && failures['status 404'] !== undefined) {
    throw new AppError(
      'COMMAND_NOT_REACHED',
      `the server at ${options.url} is not intake (404); is --intake-url (SLUICE_INTAKE_URL) right?`,
    );
  }
  latenciesMs.sort((a, b) => a - b);
  const percentile = (share: number): number =>
    Math.round(
      (latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * share))] ?? 0) *
        100,
    ) / 100;
  return {
    sent,
    accepted,
    failures,
    durationMs: Math.round(now() - startedAtMs),
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
  };
}

async function post(
  intake: IntakeClient,
  calls: readonly SampleCall[],
  signal: AbortSignal,
): Promise<string> {
  try {
    const { response } = await request(intake, calls, signal);
    return response.ok ? 'accepted' : `status ${response.status}`;
  } catch {
    return signal.aborted ? 'not answered' : 'not reached';
  }
}

function request(
  intake: IntakeClient,
  calls: readonly SampleCall[],
  signal: AbortSignal,
): Promise<{ readonly response: Response }> {
  const [call] = calls;
  // Only the status counts, so the body may be any text.
  const init = { signal, parseAs: 'text' } as const;
  if (calls.length > 1 || call === undefined) {
    const batch = calls.map(({ type, body }) => ({ type, ...body }) as BatchItem);
    return intake.POST('/v1/batch', { ...init, body: { batch } });
  }
  switch (call.type) {
    case 'identify':
      return intake.POST('/v1/identify', { ...init, body: call.body });
    case 'track':
      return intake.POST('/v1/track', { ...init, body: call.body });
    case 'page':
      return intake.POST('/v1/page', { ...init, body: call.body });
  }
}
