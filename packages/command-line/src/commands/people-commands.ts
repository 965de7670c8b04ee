/** `sluice people …` and `sluice objects …`: a person in the workspace, and the objects of people. */
import { Option, type Command } from 'commander';
import type { ApiClient } from '../connection/api-client.ts';
import { notEmpty, positiveInteger } from '../input/arguments.ts';
import { writeFields, writeRows, type Row } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';

const ID_TYPES = ['id', 'email', 'svc_id'] as const;
const PERSON_PARTS = ['attributes', 'activities', 'relationships'] as const;

export function addPeopleCommands(
  program: Command,
  api: () => ApiClient,
  terminal: () => Terminal,
): void {
  const people = program
    .command('people')
    .description('people, their attributes and their history');
  people
    .command('list')
    .argument('[query]', 'how an id, an email or a svc_id begins')
    .option('--limit <count>', 'rows', positiveInteger, 50)
    .description('people that match; without a query the newest people')
    .action(async (query: string | undefined, { limit }: { limit: number }) => {
      const asked = new URLSearchParams({ query: query ?? '', limit: String(limit) });
      const { results } = await api().request('GET', `/v1/customers?${asked.toString()}`);
      writeRows(
        terminal(),
        results as Row[],
        ['id', 'email', 'svc_id'],
        query === undefined
          ? 'no person yet'
          : `no person has an id, email or svc_id that begins with ${query}`,
      );
    });
  people
    .command('show')
    .argument('<identifier>', 'of the person', notEmpty)
    .addOption(new Option('--by <kind>', 'kind of the identifier').choices(ID_TYPES).default('id'))
    .addOption(
      new Option('--part <part>', 'shown part').choices(PERSON_PARTS).default('attributes'),
    )
    .description('attributes and devices, or activities, or relationships')
    .action(async (identifier: string, { by, part }: { by: string; part: string }) => {
      const answer = await api().request(
        'GET',
        `/v1/customers/${encodeURIComponent(identifier)}/${part}?id_type=${by}`,
      );
      writeAnswer(terminal(), answer, part, `no ${part} of ${identifier} are kept`);
    });

  const objects = program.command('objects').description('objects, to which people belong');
  objects
    .command('types')
    .description('the types of object that there are')
    .action(async () => {
      const { types } = await api().request('GET', '/v1/object_types');
      writeRows(
        terminal(),
        types as Row[],
        ['id', 'object_type_id', 'name'],
        'no type of object yet',
      );
    });
  objects
    .command('list')
    .argument('<type>', 'of the objects, a number', positiveInteger)
    .option('--limit <count>', 'rows', positiveInteger, 50)
    .description('in the order of their ids')
    .action(async (type: number, { limit }: { limit: number }) => {
      const { identifiers } = await api().request('POST', `/v1/objects?limit=${limit}`, {
        object_type_id: type,
        filter: { object_attribute: { field: 'object_id', operator: 'exists' } },
      });
      writeRows(
        terminal(),
        identifiers as Row[],
        ['object_type_id', 'object_id', 'svc_object_id'],
        `no object of type ${type}`,
      );
    });
  objects
    .command('show')
    .argument('<type>', 'of the object, a number', positiveInteger)
    .argument('<id>', 'of the object', notEmpty)
    .addOption(
      new Option('--part <part>', 'shown part')
        .choices(['attributes', 'relationships'])
        .default('attributes'),
    )
    .description('attributes, or the people that it is related to')
    .action(async (type: number, id: string, { part }: { part: string }) => {
      const answer = await api().request(
        'GET',
        `/v1/objects/${type}/${encodeURIComponent(id)}/${part}`,
      );
      writeAnswer(terminal(), answer, part, `no person is related to ${id}`);
    });
}

/** Attributes are of one; activities and relationships are rows. */
function writeAnswer(terminal: Terminal, answer: Row, part: string, none: string): void {
  if (part === 'attributes') {
    writeFields(terminal, (answer['customer'] ?? answer['object']) as object);
    return;
  }
  const columns =
    part === 'activities'
      ? ['timestamp', 'type', 'name', 'data']
      : ['object_type_id', 'identifiers'];
  // The wire has the relationships under two names.
  const rows = answer[part] ?? answer[`svc_${part}`] ?? [];
  writeRows(terminal, rows as Row[], columns, none);
}
