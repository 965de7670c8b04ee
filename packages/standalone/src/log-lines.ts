/**
 * The services' log on stderr: their own JSON for machines, a line with the service's name for people. A caller's text
 * cannot control the terminal there.
 */
import { printable } from '@sluice/domain/values/printable';

export type LogFormat = 'pretty' | 'json';
export type LogEntry = Readonly<Record<string, unknown>>;

/**
 * Turns one line of a service into its shown form.
 *
 * @param process - names the process, for lines without the name of their service.
 */
export function renderLogLine(format: LogFormat, process: string, line: string): string {
  const entry = parseLogLine(line);
  if (format === 'json')
    return entry ? line : JSON.stringify({ level: 50, service: process, msg: line });
  if (!entry) return `${' '.repeat(8)} ${process.padEnd(7)} ${printable(line)}`;
  const { level, time, msg, service, pid: _pid, hostname: _hostname, error, ...rest } = entry;
  const clock = typeof time === 'string' ? time.slice(11, 19) : ' '.repeat(8);
  const detail = Object.entries(rest).map(
    ([name, value]) => ` ${printable(name)}=${renderValue(value)}`,
  );
  const name = typeof service === 'string' ? printable(service) : process;
  return `${clock} ${name.padEnd(7)} ${levelName(level)}${renderValue(msg ?? '')}${detail.join('')}${renderError(error)}`;
}

/** Undefined if it is no line of a log. */
export function parseLogLine(line: string): LogEntry | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as LogEntry;
  } catch {
    return undefined;
  }
}

/** pino's numbers. Most lines are information, which has no word of its own. */
function levelName(level: unknown): string {
  if (level === 60) return 'FATAL ';
  if (level === 50) return 'ERROR ';
  if (level === 40) return 'warning: ';
  return '';
}

const renderValue = (value: unknown): string =>
  printable(typeof value === 'string' ? value : JSON.stringify(value));

/** The stack only: pino puts the causes into it. */
function renderError(error: unknown): string {
  if (error === undefined) return '';
  if (typeof error !== 'object' || error === null) return ` error=${renderValue(error)}`;
  const { stack, message } = error as { stack?: unknown; message?: unknown };
  const text = stack ?? message;
  const lines = typeof text === 'string' ? text.split('\n') : [error];
  return lines.map((line) => `\n    ${renderValue(line)}`).join('');
}
