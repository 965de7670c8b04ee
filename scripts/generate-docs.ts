/**
 * `npm run docs`: writes the tables of the pages that are made from code, and from the newest measurement.
 * With `--check` it writes nothing, and fails if a table is not current.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { apiSettings } from '@sluice/api/settings';
import { billingSettings, simulatorSettings } from '@sluice/billing-vendor/settings';
import { intakeSettings } from '@sluice/intake/settings';
import { importSettings, platformSettings } from '@sluice/platform/settings/config';
import { tracingSettings } from '@sluice/platform/telemetry/tracing';
import { workerSettings } from '@sluice/worker/process/settings';
import { z } from 'zod';
import { markdownTable, newestSuite, type SuiteResult } from '../benchmarks/src/suite-table.ts';
import { findMessages } from './messages/find-messages.ts';
import { messagesPage } from './messages/messages-page.ts';

const ROOT = new URL('../', import.meta.url);

interface Property {
  readonly description?: string;
  readonly default?: string | number | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly enum?: readonly string[];
}

function propertiesOf(schema: z.ZodObject): Record<string, Property> {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return (json as { properties: Record<string, Property> }).properties;
}

function settingsTable(): string {
  const common = propertiesOf(platformSettings);
  const shared = { ...propertiesOf(billingSettings), ...propertiesOf(importSettings) };
  const tracing = propertiesOf(tracingSettings);
  const groups: [string, Record<string, Property>][] = [
    ['every process', common],
    ['worker and API', shared],
    ['intake, worker and API', tracing],
    ...(
      [
        ['intake', intakeSettings],
        ['worker', workerSettings],
        ['API', apiSettings],
        ['provider simulator', simulatorSettings],
      ] as const
    ).map(([name, schema]): [string, Record<string, Property>] => [
      name,
      Object.fromEntries(
        Object.entries(propertiesOf(schema)).filter(
          ([key]) => !(key in common) && !(key in shared) && !(key in tracing),
        ),
      ),
    ]),
  ];
  const rows = groups.flatMap(([group, properties]) =>
    Object.entries(properties).map(([name, property]) => {
      if (property.description === undefined) throw new Error(`${name} has no description`);
      const fallback = property.default === undefined ? '' : `\`${String(property.default)}\``;
      return `| \`${name}\` | ${group} | ${fallback === '``' ? '' : fallback} | ${property.description} |`;
    }),
  );
  return ['| variable | of | default | |', '|---|---|---|---|', ...rows].join('\n');
}

const RESULTS = new URL('benchmarks/results/', ROOT);

function suiteTable(): string {
  const suites = readdirSync(RESULTS)
    .filter((name) => name.endsWith('-suite.json'))
    .map((name) => JSON.parse(readFileSync(new URL(name, RESULTS), 'utf8')) as SuiteResult);
  return markdownTable(newestSuite(suites));
}

/** Puts a text between the marks of a section. */
function withSection(text: string, section: string, made: string, page: string): string {
  const begin = `<!-- ${section}:begin (npm run docs) -->`;
  const from = text.indexOf(begin) + begin.length;
  const to = text.indexOf(`<!-- ${section}:end -->`);
  if (to < 0 || from < begin.length) throw new Error(`${page} has no place for the ${section}`);
  return `${text.slice(0, from)}\n\n${made}\n\n${text.slice(to)}`;
}

for (const [page, section, made] of [
  ['docs/reference/settings.md', 'settings', settingsTable()],
  ['benchmarks/README.md', 'benchmarks', suiteTable()],
] as const)
  writePage(page, section, made);
// A test compares this page (`scripts/test/messages.test.ts`), so that a changed message fails no other check.
if (!process.argv.includes('--check'))
  writePage(
    'docs/reference/messages.md',
    'messages',
    messagesPage(findMessages(fileURLToPath(ROOT))),
  );

function writePage(page: string, section: string, made: string): void {
  const current = readFileSync(new URL(page, ROOT), 'utf8');
  const next = withSection(current, section, made, page);
  if (next === current) return;
  if (process.argv.includes('--check')) {
    console.error(`${page} is not what the code and the newest results say: npm run docs`);
    process.exitCode = 1;
  } else {
    writeFileSync(new URL(page, ROOT), next);
  }
}
