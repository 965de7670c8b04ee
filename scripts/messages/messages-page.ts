/** The generated part of `docs/reference/messages.md`: every message, by its kind. */
import { PROBLEMS } from '@sluice/api/http/problem';
import { ISSUE_CODES } from '@sluice/domain/operations/issue';
import { ERRORS } from '@sluice/domain/values/errors';
import type { Message } from './find-messages.ts';

interface Section {
  readonly title: string;
  /** The heads of the columns beside the message and the file. */
  readonly columns: readonly string[];
  readonly belongs: (message: Message) => boolean;
  readonly cells: (message: Message) => readonly string[];
}

const isOf = (message: Message, ...packages: string[]): boolean =>
  packages.some((name) => message.path.startsWith(`packages/${name}/`));

const isIssue = ({ kind, code }: Message): boolean =>
  kind === 'issue' || (kind === 'http' && codesIn(code).some((each) => each in ISSUE_CODES));

const codesIn = (code: string): string[] => code.split(', ');

/** Each message stands in the first section to which it belongs. */
const SECTIONS: readonly Section[] = [
  {
    title: 'Failures of processes and commands',
    columns: ['code'],
    belongs: ({ kind }) => kind === 'failure',
    cells: ({ code }) => [code],
  },
  {
    title: 'Log lines: warnings and errors',
    columns: ['level', 'fields'],
    belongs: ({ kind }) => kind === 'log',
    cells: ({ code, fields }) => [code, fields.join(', ')],
  },
  {
    title: 'Answers of the API',
    columns: ['status', 'code'],
    belongs: (message) =>
      message.kind === 'http' && isOf(message, 'api') && message.code in PROBLEMS,
    cells: ({ code }) => [String(PROBLEMS[code as keyof typeof PROBLEMS].status), code],
  },
  {
    title: 'Issues of calls',
    columns: ['severity', 'code'],
    belongs: (message) => isIssue(message) && isOf(message, 'domain', 'intake', 'worker'),
    cells: ({ code }) => [
      [...new Set(codesIn(code).map((each) => ISSUE_CODES[each as keyof typeof ISSUE_CODES]))].join(
        ', ',
      ),
      code,
    ],
  },
  {
    title: 'Answers of intake',
    columns: ['code'],
    belongs: (message) => isOf(message, 'intake'),
    cells: ({ code }) => [code],
  },
  {
    title: 'Lines of the command line and of npm start',
    columns: [],
    belongs: ({ kind, path }) =>
      kind === 'command' ||
      path.startsWith('scripts/') ||
      (path.startsWith('packages/command-line/') && kind !== 'help'),
    cells: () => [],
  },
  {
    title: 'Help of the command line',
    columns: [],
    belongs: ({ kind }) => kind === 'help',
    cells: () => [],
  },
  {
    title: 'Failed deliveries and imports',
    columns: [],
    belongs: (message) => isOf(message, 'worker'),
    cells: () => [],
  },
  {
    title: 'Refused values',
    columns: ['reason'],
    belongs: () => true,
    cells: ({ code }) => [code === 'custom' ? '' : code],
  },
];

/** @param messages - in any order; each section is sorted by code, message and file. */
export function messagesPage(messages: readonly Message[]): string {
  const left = new Set(messages);
  const parts = [errorTable(), problemTable()];
  for (const { title, columns, belongs, cells } of SECTIONS) {
    const own = [...left].filter(belongs);
    for (const message of own) left.delete(message);
    const rows = own.map((message) => [...cells(message), message.text, `\`${message.path}\``]);
    parts.push(section(title, [...columns, 'message', 'file'], merged(rows)));
  }
  return parts.join('\n\n');
}

const errorTable = (): string =>
  section(
    'Errors with a code: meaning and action',
    ['code', 'meaning and action'],
    Object.entries(ERRORS),
  );

const problemTable = (): string =>
  section(
    'Errors of the API: meaning and action',
    ['status', 'code', 'meaning and action'],
    Object.entries(PROBLEMS).map(([code, { status, meaning }]) => [String(status), code, meaning]),
  );

/** Rows that differ only in the file become one with the files. */
function merged(rows: readonly string[][]): string[][] {
  const files = new Map<string, string[]>();
  for (const row of rows) {
    const key = JSON.stringify(row.slice(0, -1));
    files.set(key, [...(files.get(key) ?? []), row.at(-1) ?? '']);
  }
  return [...files]
    .map(([key, paths]) => [
      ...(JSON.parse(key) as string[]),
      [...new Set(paths)].toSorted().join(', '),
    ])
    .toSorted((one, other) => (one.join('\n') < other.join('\n') ? -1 : 1));
}

function section(
  title: string,
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [
    `## ${title}`,
    '',
    line(columns),
    `|${'---|'.repeat(columns.length)}`,
    ...rows.map(line),
  ].join('\n');
}

const cell = (text: string): string =>
  text
    .replaceAll('](', '] (')
    .replaceAll('|', '\\|')
    .replaceAll('<', '&lt;')
    .replaceAll(/\s*\n\s*/g, '<br>');
