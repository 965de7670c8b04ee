/** `docs/reference/event-types.md`: every type of event that a webhook can list, with the fields of its body. */
import { EVENT_SCHEMAS } from '@sluice/api/openapi/event-schemas';
import { isIncomingEventType } from '@sluice/domain/delivery/incoming-event';
import { isOwnEventType, type SelectableEventType } from '@sluice/domain/delivery/reporting-event';
import { z } from 'zod';
import { code, page, table } from './markdown.ts';

interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

interface EventType {
  readonly name: string;
  readonly family: Family;
  readonly objectType: Schema;
  readonly metric: Schema;
  readonly data: Schema;
}

const INTRODUCTION = `A reporting webhook lists the types of events that it gets. \`*\` stands for every type. Each delivery is one JSON object with
the members below. \`data\` has the fields of its type. A receiver must ignore fields that it does not know, because types may
gain fields. The API serves the same as JSON Schema, in the \`webhooks\` of \`/openapi.json\`.`;

type Family = 'messages' | 'subscriptions' | 'incoming' | 'own';

const FAMILIES: readonly (readonly [Family, title: string, meaning: string])[] = [
  ['messages', 'Messages', 'A call reported the metric of a message, such as its click.'],
  ['subscriptions', 'Subscriptions', 'A call changed the subscriptions of a person.'],
  [
    'incoming',
    'Incoming events',
    'Intake took a call. A worker reports it in the transaction that applies the call.',
  ],
  [
    'own',
    'Events of Sluice',
    'A webhook fails or was disabled, a delivery was abandoned, or a purchase ended.',
  ],
];

const textOf = (value: unknown): string => code(String(value));

function typeOf({ type, const: constant, enum: values, anyOf, items }: Schema): string {
  if (constant !== undefined) return textOf(constant);
  if (values) return values.map(textOf).join(', ');
  if (anyOf) return anyOf.map(typeOf).join(' or ');
  if (items) return `array of ${typeOf(items)}`;
  return (typeof type === 'string' ? [type] : (type ?? ['any'])).join(' or ');
}

/** The fields of an object and of the objects within it, with dots between levels. */
function fieldsOf(schema: Schema, prefix = ''): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    const isRequired = schema.required?.includes(name) === true;
    const meaning = field.description ?? '';
    const within = field.anyOf?.find(({ properties }) => properties) ?? field.items ?? field;
    const end = field.items ? '[].' : '.';
    return [
      [code(path), typeOf(field), isRequired ? 'always' : 'if known', meaning],
      ...fieldsOf(within, `${path}${end}`),
    ];
  });
}

const HEAD = ['field', 'type', 'present', 'meaning'];

function familyOf(name: SelectableEventType): Family {
  if (isIncomingEventType(name)) return 'incoming';
  if (isOwnEventType(name)) return 'own';
  return name.startsWith('customer_') ? 'subscriptions' : 'messages';
}

function readTypes(): EventType[] {
  return [...EVENT_SCHEMAS].map(([name, schema]) => {
    const { properties = {} } = z.toJSONSchema(schema) as Schema;
    const { object_type: objectType = {}, metric = {}, data = {} } = properties;
    return { name, family: familyOf(name), objectType, metric, data };
  });
}

/** The members of the body, which every type has. */
function bodyTable(): string {
  const [schema] = EVENT_SCHEMAS.values();
  if (!schema) throw new Error('there are no event types');
  const { properties = {}, required = [] } = z.toJSONSchema(schema) as Schema;
  const body = {
    ...properties,
    object_type: { type: 'string', description: 'The kind of object; see the type.' },
    metric: { type: 'string', description: 'The metric; see the type.' },
    data: { type: 'object', description: 'The fields of the type.' },
  };
  return table(HEAD, fieldsOf({ properties: body, required }));
}

const typesTable = (types: readonly EventType[]): string =>
  table(
    ['type', '`object_type`', '`metric`'],
    types.map(({ name, objectType, metric }) => [code(name), typeOf(objectType), typeOf(metric)]),
  );

/** Types with the same fields stand together, before their fields. */
function typesByFields(types: readonly EventType[]): string {
  const byFields = Map.groupBy(types, ({ data }) => JSON.stringify(fieldsOf(data)));
  return [...byFields.values()]
    .map((alike) => {
      const names = alike.map(({ name }) => name).join(', ');
      const fields = table(HEAD, fieldsOf(alike[0]?.data ?? {}));
      return `### ${names}\n\n${typesTable(alike)}\n\nFields of \`data\`:\n\n${fields}`;
    })
    .join('\n\n');
}

/** The fields of every message once; each type then with the fields that it may have beside them. */
function messageTypes(types: readonly EventType[]): string {
  const rowsByType = types.map(({ data }) => fieldsOf(data));
  const textOfRow = (row: readonly string[]): string => JSON.stringify(row);
  const texts = rowsByType.map((rows) => new Set(rows.map(textOfRow)));
  const isCommon = (row: readonly string[]): boolean =>
    texts.every((each) => each.has(textOfRow(row)));
  const common = rowsByType[0]?.filter(isCommon) ?? [];
  const further = new Map<string, string[]>();
  const rows = types.map(({ name, objectType, metric }, index) => {
    const own = rowsByType[index]?.filter((row) => !isCommon(row)) ?? [];
    for (const row of own) further.set(textOfRow(row), row);
    const names = own.map(([path = '']) => path).filter((path) => !path.includes('.'));
    return [code(name), typeOf(objectType), typeOf(metric), names.join(', ')];
  });
  return [
    `### Fields of every message\n\n${table(HEAD, common)}`,
    `### Types of messages\n\n${table(['type', '`object_type`', '`metric`', 'further fields'], rows)}`,
    `### Further fields of messages\n\n${table(HEAD, [...further.values()])}`,
  ].join('\n\n');
}

/** The page as Markdown. */
export function eventTypesPage(): string {
  const types = readTypes();
  const sections = FAMILIES.map(([family, title, meaning]) => {
    const of = types.filter((each) => each.family === family);
    const text = family === 'messages' ? messageTypes(of) : typesByFields(of);
    return `## ${title} (${of.length})\n\n${meaning}\n\n${text}`;
  });
  return page('Event types', INTRODUCTION, `## The body\n\n${bodyTable()}`, ...sections);
}
