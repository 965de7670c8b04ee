/** `docs/reference/settings.md`: every setting of every process, from the schemas that check them. */
import { apiSettings } from '@sluice/api/settings';
import { simulatorSettings } from '@sluice/billing-vendor/settings';
import { intakeSettings } from '@sluice/intake/settings';
import { HELP } from '@sluice/standalone/settings';
import { workerSettings } from '@sluice/worker/process/settings';
import { z } from 'zod';
import { code, page, table } from './markdown.ts';

interface Property {
  readonly type?: string;
  readonly description?: string;
  readonly default?: string | number | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly enum?: readonly string[];
}

interface Setting {
  readonly name: string;
  readonly property: Property;
  readonly readers: string[];
}

/** Process → the schema of its settings, in the order of an event's path. */
const PROCESSES: readonly (readonly [string, z.ZodObject])[] = [
  ['intake', intakeSettings],
  ['workers', workerSettings],
  ['the API', apiSettings],
  ['the provider simulator', simulatorSettings],
];

const INTRODUCTION = `Settings are environment variables. Each name ends in its unit. A process checks its settings when it starts. If one is
invalid, the process lists every problem and ends with \`CONFIG_INVALID\` ([errors](errors.md)). A flag takes \`true\`, \`false\`, \`1\` or
\`0\`. An empty default means that the setting is absent, or an empty text.`;

const STANDALONE = `\`npm start\` hands every setting on to its services. It also has settings of its own, and some other defaults.
\`npm start -- --help\` prints:`;

function propertiesOf(schema: z.ZodObject): Record<string, Property> {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return (json as { properties: Record<string, Property> }).properties;
}

/** One entry for each setting, or several if processes read it in different ways. */
function readSettings(): Setting[] {
  const settings = new Map<string, Setting>();
  for (const [process, schema] of PROCESSES)
    for (const [name, property] of Object.entries(propertiesOf(schema))) {
      if (property.description === undefined) throw new Error(`${name} has no description`);
      const key = `${name} ${JSON.stringify(property)}`;
      const known = settings.get(key);
      if (known) known.readers.push(process);
      else settings.set(key, { name, property, readers: [process] });
    }
  return [...settings.values()];
}

function boundsOf({
  type,
  minimum,
  maximum,
  minLength,
  maxLength,
  enum: values,
}: Property): string {
  if (values) return values.includes('true') ? 'flag' : values.map(code).join(', ');
  const isNumber = type === 'integer' || type === 'number';
  const [from, to] = isNumber ? [minimum, maximum] : [minLength, maxLength];
  const unit = isNumber ? '' : ' characters';
  // The largest whole number of a double means that the schema has no bound of its own.
  const isBounded = to !== undefined && to < Number.MAX_SAFE_INTEGER;
  if (from === undefined) return isBounded ? `at most ${to}${unit}` : '';
  return isBounded ? `${from} to ${to}${unit}` : `at least ${from}${unit}`;
}

/** The page as Markdown. */
export function settingsPage(): string {
  const names = new Intl.ListFormat('en-GB');
  const byReaders = Map.groupBy(readSettings(), ({ readers }) => names.format(readers));
  const sections = [...byReaders].map(([readers, settings]) => {
    const isOfAll = settings[0]?.readers.length === PROCESSES.length;
    const title = isOfAll ? 'every process' : readers;
    const rows = settings.map(({ name, property }) => [
      code(name),
      code(property.default === undefined ? '' : String(property.default)),
      boundsOf(property),
      property.description ?? '',
    ]);
    return `## Read by ${title}\n\n${table(['setting', 'default', 'bounds', 'meaning'], rows)}`;
  });
  return page(
    'Settings',
    INTRODUCTION,
    ...sections,
    `## Read by npm start\n\n${STANDALONE}\n\n\`\`\`text\n${HELP.trimEnd()}\n\`\`\``,
  );
}
