/** `sluice api` calls any path with the keys at hand; `sluice open` opens the console at the same thing. */
import { readFile } from 'node:fs/promises';
import type { ApiClient } from '@sluice/client';
import { AppError, reasonOf } from '@sluice/domain/values/errors';
import type { JsonObject } from '@sluice/domain/values/json';
import { Argument, type Command, InvalidArgumentError } from 'commander';
import { isJson } from '../connection/api-client.ts';
import { writeFields, writeText } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';

export interface ApiContext {
  readonly program: Command;
  readonly terminal: () => Terminal;
  /** Called with `--key`. */
  readonly api: () => ApiClient;
  /** Called with `--token`. */
  readonly accountApi: () => ApiClient;
  readonly apiUrl: () => string;
  /** Opens a browser. @throws Error if it cannot be opened */
  readonly openBrowser: (url: string) => Promise<void>;
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const;
type Method = (typeof METHODS)[number];

export function addApiCommand({ program, terminal, api, accountApi }: ApiContext): void {
  program
    .command('api')
    .addArgument(
      // The parser after the choices, which bring one of their own that knows capitals alone.
      new Argument('<method>', 'in any letter case').choices(METHODS).argParser(methodOf),
    )
    .argument('<path>', 'path, for example /v1/reporting_webhooks')
    .option('--data <json>', 'the body: a JSON object, or @FILE that has one')
    .description('calls the API: with --token if the path belongs to an account, else with --key')
    .action(async (method: Method, path: string, { data }: { data?: string }) => {
      if (!path.startsWith('/'))
        throw new AppError('COMMAND_MISUSED', `a path must begin with /: /${path}`);
      const client = /^\/v1\/(?:accounts?|account_\w+|fleet)\b/.test(path) ? accountApi() : api();
      const body = data === undefined ? undefined : await readJson(data);
      if (method === 'GET' && body !== undefined)
        throw new AppError('COMMAND_MISUSED', 'GET has no body; leave --data out');
      const answer = await callAny(client, method, path, body);
      if (typeof answer === 'string') writeText(terminal(), answer);
      else writeFields(terminal(), answer);
    });
}

/**
 * A user types path and body, so no type can check them.
 *
 * @returns the text of an answer that is not JSON; an empty object for an answer without a body.
 */
export async function callAny(
  client: ApiClient,
  method: Method,
  path: string,
  body?: JsonObject,
): Promise<JsonObject | string> {
  const request = client.request as unknown as UncheckedRequest;
  const init = { ...(body !== undefined && { body }), parseAs: 'text' } as const;
  const { data: text = '', response } = await request(method, path, init);
  if (!isJson(response)) return text;
  return text === '' ? {} : (JSON.parse(text) as JsonObject);
}

type UncheckedRequest = (
  method: Method,
  path: string,
  init: { readonly body?: JsonObject; readonly parseAs: 'text' },
) => Promise<{ readonly data?: string; readonly response: Response }>;

function methodOf(text: string): Method {
  const method = METHODS.find((each) => each === text.toUpperCase());
  if (!method) throw new InvalidArgumentError(`Allowed choices are ${METHODS.join(', ')}.`);
  return method;
}

async function readJson(data: string): Promise<JsonObject> {
  const text = data.startsWith('@')
    ? await readFile(data.slice(1), 'utf8').catch((cause: unknown) => {
        throw new AppError(
          'COMMAND_FAILED',
          `${data.slice(1)} cannot be read (${reasonOf(cause)}); name a file that you may read`,
          { cause },
        );
      })
    : data;
  try {
    return JSON.parse(text) as JsonObject;
  } catch (cause) {
    throw new AppError(
      'COMMAND_MISUSED',
      `--data is not JSON (${reasonOf(cause)}); give a JSON object, or @FILE that has one`,
      { cause },
    );
  }
}

/** Screens that can be opened → path in the console, with the id if the screen takes one. */
const SCREENS: Readonly<Record<string, (id: string) => string>> = {
  overview: () => '/',
  live: () => '/live',
  issues: () => '/issues',
  event: (id) => `/events/${id}`,
  webhook: (id) => (id === '' ? '/webhooks' : `/webhooks/${id}`),
  person: (id) => (id === '' ? '/people' : `/people/${id}`),
  import: (id) => (id === '' ? '/imports' : `/imports/${id}`),
  key: (id) => (id === '' ? '/keys' : `/keys/${id}`),
  audit: (id) => (id === '' ? '/audit' : `/audit/${id}`),
  billing: () => '/billing',
  purchase: (id) => `/billing/purchases/${id}`,
  fleet: () => '/fleet',
  settings: () => '/settings',
  docs: () => '/docs',
};

export function addOpenCommand({ program, terminal, apiUrl, openBrowser }: ApiContext): void {
  program
    .command('open')
    .addArgument(
      new Argument('[what]', 'screen to show').choices(Object.keys(SCREENS)).default('overview'),
    )
    .argument('[id]', 'id of the shown object')
    .option('--print', 'prints the address and opens no browser')
    .description('opens the web console at this screen, for example: sluice open webhook 2')
    .action(async (what: string, id: string | undefined, { print }: { print?: true }) => {
      if (id === '.' || id === '..')
        throw new AppError('COMMAND_MISUSED', `no path can name ${id}; open its list`);
      const path = SCREENS[what]?.(encodeURIComponent(id ?? '')) ?? '/';
      const url = `${apiUrl()}${path}`;
      const output = terminal();
      if (output.format === 'table') output.line(url);
      else writeFields(output, { url });
      if (print) return;
      await openBrowser(url).catch((error: unknown) =>
        output.note(
          `no browser can be opened here (${reasonOf(error)}); open the address yourself`,
        ),
      );
    });
}
