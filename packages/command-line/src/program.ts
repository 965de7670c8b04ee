/**
 * Every command of `sluice` with its options and help.
 *
 * They are in the order of `sluice --help`. A command itself is in the file of its name; here its words become
 * arguments.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import {
  addAuditCommands,
  addBillingCommands,
  type AccountContext,
} from './commands/account-commands.ts';
import { addApiCommand, addOpenCommand } from './commands/api-commands.ts';
import { addCompletionCommand } from './commands/completion.ts';
import { addDeliveryCommands } from './webhooks/delivery-commands.ts';
import { addEventCommands } from './commands/event-commands.ts';
import { addImportCommands } from './commands/import-commands.ts';
import { addKeyCommands } from './commands/key-commands.ts';
import { addLiveCommands } from './commands/live-commands.ts';
import { addLoginCommand, addLogoutCommand, type LoginContext } from './commands/login-command.ts';
import { addPeopleCommands } from './commands/people-commands.ts';
import { addScriptCommands, type RunScript } from './commands/script-commands.ts';
import { addStatusCommand } from './commands/status-command.ts';
import { addMoveCommands } from './moving/move-commands.ts';
import { addWebhookCommands } from './webhooks/webhook-commands.ts';
import type { Context } from './commands/context.ts';
import { connectApi, type ApiClientOptions } from './connection/api-client.ts';
import {
  addressesOf,
  createBareProgram,
  type ProgramOptions,
  resolveOptions,
} from './connection/program-options.ts';
import type { Profiles } from './connection/profiles.ts';
import type { RunningStart } from './connection/running-start.ts';
import type { OutputFormat, Terminal } from './output/terminal.ts';

const APP_KEY_ADVICE = 'set --key (SLUICE_KEY) to an app API key of the workspace';
const ACCOUNT_ADVICE = {
  keyAdvice:
    'set --token (SLUICE_ACCOUNT_TOKEN) to a token of a service account that is an account admin',
  accountAdvice:
    'set --account (SLUICE_ACCOUNT) to the account of the token, the account_id that its signup answered',
};

export interface ProgramDependencies {
  readonly version: string;
  readonly terminal: (format: OutputFormat, columns: readonly string[] | undefined) => Terminal;
  /** Aborted by Ctrl-C, and by SIGTERM. */
  readonly signal: AbortSignal;
  readonly runId: () => string;
  /** The `npm start` beside; its addresses are the defaults. */
  readonly runningStart: RunningStart | undefined;
  /** @throws AppError COMMAND_MISUSED if they cannot be read */
  readonly readProfiles: () => Profiles;
  readonly profilesFile: string;
  /** Of `login`. */
  readonly input: NodeJS.ReadableStream;
  /** Of this machine. The console shows it to the user. */
  readonly hostName: () => string;
  readonly openBrowser: (url: string) => Promise<void>;
  /** Resolves with the script's exit code. */
  readonly runScript: RunScript<number>;
  readonly setExitCode: (code: number) => void;
  /** Sets the exit code that a signal gives, so that a shell stops before the command after `&&`. */
  readonly setInterrupted: () => void;
}

/** The program with all its commands; `parseAsync` runs the one that was typed. */
export function createProgram(deps: ProgramDependencies): Command {
  const program = createBareProgram(deps.version, deps.runningStart);
  const options = () => resolveOptions(program, deps);
  const terminal = () => {
    const { output, columns } = options();
    return deps.terminal(output, columns);
  };
  const apiWith = apiClients(deps, options, terminal);
  const api = () => apiWith(options().key, { keyAdvice: APP_KEY_ADVICE });
  const accountApi = () => apiWith(options().token, ACCOUNT_ADVICE);
  const closingApi = () =>
    connectApi({
      url: options().apiUrl,
      key: options().key,
      keyAdvice: APP_KEY_ADVICE,
      signal: new AbortController().signal,
    });
  const waiting = { ...timeUntil(deps.signal), signal: deps.signal };
  const context: Context = {
    ...{ program, options, terminal, api, accountApi, closingApi, ...waiting },
    runId: deps.runId,
    setExitCode: deps.setExitCode,
    setInterrupted: deps.setInterrupted,
  };
  const account: AccountContext = {
    program,
    terminal,
    api: accountApi,
    ofAccount: () => ({ account_id: options().account }),
  };
  const calls = { program, terminal, api, accountApi, apiUrl: () => options().apiUrl };

  addStatusCommand(context);
  addWebhookCommands(program, api, terminal, waiting, deps);
  addDeliveryCommands(program, api, terminal);
  addMoveCommands(context);
  addEventCommands(program, api, terminal);
  addPeopleCommands(program, api, terminal);
  addImportCommands({ program, api, terminal, deps: { ...waiting, ...deps } });
  addKeyCommands(account);
  addAuditCommands(account);
  addBillingCommands(account);
  addLiveCommands(context);
  addOpenCommand({ ...calls, openBrowser: deps.openBrowser });
  addApiCommand({ ...calls, openBrowser: deps.openBrowser });
  const login: LoginContext = {
    program,
    terminal,
    apiWith: (key) => apiWith(key, { keyAdvice: 'give another one' }),
    addresses: () => addressesOf(program, options()),
    account: () => options().account,
    profileName: () => options().profile,
    profilesFile: deps.profilesFile,
    input: deps.input,
    hostName: deps.hostName,
    signal: deps.signal,
    pause: waiting.pause,
  };
  addLoginCommand(login);
  addLogoutCommand(login);
  addCompletionCommand(program, (script) => terminal().line(script.trimEnd()));
  addScriptCommands(program, async (name, words = []) => {
    const isJson = options().output === 'json';
    deps.setExitCode(await deps.runScript(name, isJson ? [...words, '--json'] : words));
  });
  return program;
}

/** @returns a function that makes a client for a key; the terminal shows a wait for the API. */
function apiClients(
  deps: ProgramDependencies,
  options: () => ProgramOptions,
  terminal: () => Terminal,
) {
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
  return (key: string | undefined, advice: Pick<ApiClientOptions, 'keyAdvice' | 'accountAdvice'>) =>
    connectApi({ url: options().apiUrl, key, ...advice, signal: deps.signal, onWait });
}

/** A clock, and a pause that the signal ends early. */
function timeUntil(signal: AbortSignal) {
  return {
    now: () => performance.now(),
    pause: (durationMs: number) => sleep(durationMs, undefined, { signal }).catch(() => undefined),
  };
}
