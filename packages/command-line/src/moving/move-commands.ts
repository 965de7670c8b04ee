/** `sluice move …`: applications and endpoints of Svix or Convoy, with the secrets that their receivers know. */
import type { ApiClient } from '@sluice/client';
import { AppError, reasonOf } from '@sluice/domain/values/errors';
import { isJsonObject, type JsonObject } from '@sluice/domain/values/json';
import { type Command, Option } from 'commander';
import { type Row, writeRows } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';
import { moveApplication, moveEndpoint, type MoveRun } from './move-endpoint.ts';
import type { Moved, ReadSource } from './moved-endpoint.ts';
import { readConvoy } from './read-convoy.ts';
import { readSvix } from './read-svix.ts';

const TIMEOUT_MS = 30_000;
const ATTEMPTS_MAX = 6;
const WAIT_SECONDS_DEFAULT = 1;
const WAIT_SECONDS_MAX = 60;

interface MoveOptions {
  readonly from: string;
  readonly fromToken?: string;
  readonly project?: string;
  readonly dryRun?: boolean;
}

interface MoveContext {
  readonly program: Command;
  readonly terminal: () => Terminal;
  readonly api: () => ApiClient;
  readonly signal: AbortSignal;
  /** Ended early by `signal`. */
  readonly pause: (durationMs: number) => Promise<unknown>;
  readonly setExitCode: (code: number) => void;
}

export function addMoveCommands(context: MoveContext): void {
  const move = context.program
    .command('move')
    .description('endpoints of another product, with their secrets; that product is only read');
  const dryRun = () => new Option('--dry-run', 'only list the objects that would be moved');

  move
    .command('svix')
    .requiredOption('--from <url>', 'its API, as https://api.eu.svix.com')
    .addOption(new Option('--from-token <token>', 'of its API').env('SVIX_TOKEN'))
    .addOption(dryRun())
    .description('applications and endpoints, with types, channels, rates, headers and secrets')
    .action(async (options: MoveOptions) => {
      await moveAll(context, options, readSvix(readerOf(context, options, 'SVIX_TOKEN')));
    });
  move
    .command('convoy')
    .requiredOption('--from <url>', 'its API, as https://us.getconvoy.cloud')
    .requiredOption('--project <id>', 'whose endpoints they are')
    .addOption(new Option('--from-token <token>', 'of its API').env('CONVOY_API_KEY'))
    .addOption(dryRun())
    .description(
      'owners as applications; endpoints with types, filters, rates, credentials and secrets',
    )
    .action(async (options: MoveOptions) => {
      const read = readerOf(context, options, 'CONVOY_API_KEY');
      await moveAll(context, options, readConvoy(read, options.project ?? ''));
    });
}

/**
 * One that is refused does not keep the others. All are read before the first is moved: the match of an endpoint depends
 * on the others of its application.
 */
async function moveAll(
  { terminal, api, setExitCode }: MoveContext,
  { dryRun: isDry }: MoveOptions,
  source: AsyncIterable<Moved>,
): Promise<void> {
  const all: Moved[] = [];
  for await (const each of source) all.push(each);
  const run = {
    source: all.filter((each) => each.settings !== undefined),
    matched: new Set<number>(),
  };
  const rows: Row[] = [];
  const client = api();
  for (const moved of all) {
    const result = isDry ? 'would be moved' : await resultOf(client, moved, run);
    if (result.startsWith('refused')) setExitCode(1);
    rows.push({ ...rowOf(moved), result });
  }
  const columns = ['application', 'name', 'endpoint', 'result', 'by_hand'];
  writeRows(terminal(), rows, columns, 'there is no application or endpoint to move');
}

const rowOf = (moved: Moved): Row =>
  moved.settings === undefined
    ? { application: moved.application.id, name: moved.application.name, endpoint: '', by_hand: '' }
    : {
        application: moved.application.id,
        name: moved.settings.name,
        endpoint: moved.settings.endpoint,
        by_hand: [...moved.byHand, ...(moved.secret === undefined ? ['secret'] : [])].join('; '),
      };

/** @throws AppError if another one would not be taken either: no answer, or no right. */
async function resultOf(api: ApiClient, moved: Moved, run: MoveRun): Promise<string> {
  try {
    return moved.settings === undefined
      ? await moveApplication(api, moved.application)
      : await moveEndpoint(api, moved, run);
  } catch (error) {
    if (error instanceof AppError && error.code === 'COMMAND_FAILED' && error.cause === undefined)
      return `refused: ${error.message}`;
    throw error;
  }
}

function readerOf(
  { signal, pause }: MoveContext,
  { from, fromToken = '' }: MoveOptions,
  tokenVariable: string,
): ReadSource {
  const base = URL.parse(from)?.href.replace(/\/$/, '');
  if (base === undefined)
    throw new AppError(
      'COMMAND_MISUSED',
      '--from is no address; give a URL such as https://api.eu.svix.com',
    );
  if (!/^[\x21-\x7e]+$/.test(fromToken))
    throw new AppError('COMMAND_MISUSED', `give its token by --from-token (${tokenVariable})`);
  return async (path) => {
    for (let attempt = 1; ; attempt++) {
      const answer = await fetch(`${base}${path}`, {
        headers: { authorization: `Bearer ${fromToken}`, accept: 'application/json' },
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      }).catch((cause: unknown) => {
        throw new AppError(
          'COMMAND_NOT_REACHED',
          `no answer of ${base} (${reasonOf(cause)}); is --from right?`,
          {
            cause,
          },
        );
      });
      if (answer.ok) return await objectIn(answer, `${base}${path}`);
      await answer.body?.cancel();
      const { status } = answer;
      if (status === 401 || status === 403)
        throw new AppError(
          'COMMAND_NOT_ALLOWED',
          `${base} refuses the token with ${status}; is --from-token (${tokenVariable}) right?`,
        );
      if (status !== 429 || attempt === ATTEMPTS_MAX)
        throw new AppError(
          'COMMAND_FAILED',
          `${base}${path} answers ${status}; check --from, then run the command again`,
          {
            cause: new Error(`status ${status}`),
          },
        );
      await pause(waitSecondsOf(answer) * 1_000);
    }
  };
}

async function objectIn(answer: Response, url: string): Promise<JsonObject> {
  const body: unknown = await answer.json().catch(() => undefined);
  if (isJsonObject(body)) return body;
  throw new AppError(
    'COMMAND_FAILED',
    `${url} does not answer with a JSON object; is --from the API of this product?`,
    {
      cause: new Error('not an object'),
    },
  );
}

function waitSecondsOf({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after') ?? WAIT_SECONDS_DEFAULT);
  return Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds, WAIT_SECONDS_MAX)
    : WAIT_SECONDS_DEFAULT;
}
