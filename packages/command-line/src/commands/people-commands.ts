/** `sluice people …` and `sluice objects …`: a person in the workspace, and the objects of people. */
import { type ApiClient, resultOf } from '@sluice/client';
import { Option, type Command } from 'commander';
import { objectId, personIdentifier, positiveInteger } from '../input/arguments.ts';
import { noteMore, writeFields, writeRows } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';

const ID_TYPES = ['id', 'email', 'svc_id'] as const;
const PERSON_PARTS = ['attributes', 'activities', 'relationships'] as const;
const OBJECT_PARTS = ['attributes', 'relationships'] as const;
/** Columns of relationships. */
const RELATED = ['object_type_id', 'identifiers'];
const RAISE_LIMIT = 'raise --limit';
const IN_CONSOLE = 'the console has all of them';

interface PersonOptions {
  readonly by: (typeof ID_TYPES)[number];
  readonly part: (typeof PERSON_PARTS)[number];
}

interface ObjectOptions {
  readonly part: (typeof OBJECT_PARTS)[number];
}

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
      const { results, next } = await resultOf(
        api().GET('/v1/customers', { params: { query: { query: query ?? '', limit } } }),
      );
      const output = terminal();
      writeRows(
        output,
        results,
        ['id', 'email', 'svc_id'],
        query === undefined
          ? 'no person yet'
          : `no person has an id, email or svc_id that begins with ${query}`,
      );
      noteMore(output, next, RAISE_LIMIT);
    });
  people
    .command('show')
    .argument('<identifier>', 'of the person', personIdentifier)
    .addOption(new Option('--by <kind>', 'kind of the identifier').choices(ID_TYPES).default('id'))
    .addOption(
      new Option('--part <part>', 'shown part').choices(PERSON_PARTS).default('attributes'),
    )
    .description('attributes and devices, or activities, or relationships')
    .action(async (identifier: string, { by, part }: PersonOptions) => {
      const params = { path: { identifier }, query: { id_type: by } };
      const none = `no ${part} of ${identifier} are kept`;
      const output = terminal();
      switch (part) {
        case 'attributes': {
          const { customer } = await resultOf(
            api().GET('/v1/customers/{identifier}/attributes', { params }),
          );
          return writeFields(output, customer);
        }
        case 'activities': {
          const { activities, next } = await resultOf(
            api().GET('/v1/customers/{identifier}/activities', { params }),
          );
          writeRows(output, activities, ['timestamp', 'type', 'name', 'data'], none);
          return noteMore(output, next, IN_CONSOLE);
        }
        case 'relationships': {
          const { svc_relationships: found, next } = await resultOf(
            api().GET('/v1/customers/{identifier}/relationships', { params }),
          );
          writeRows(output, found, RELATED, none);
          return noteMore(output, next, IN_CONSOLE);
        }
      }
    });

  const objects = program.command('objects').description('objects, to which people belong');
  objects
    .command('types')
    .description('the types of object that there are')
    .action(async () => {
      const { types } = await resultOf(api().GET('/v1/object_types'));
      writeRows(terminal(), types, ['id', 'object_type_id', 'name'], 'no type of object yet');
    });
  objects
    .command('list')
    .argument('<type>', 'of the objects, a number', positiveInteger)
    .option('--limit <count>', 'rows', positiveInteger, 50)
    .description('in the order of their ids')
    .action(async (type: number, { limit }: { limit: number }) => {
      const filter = { object_attribute: { field: 'object_id', operator: 'exists' } };
      const { identifiers, next } = await resultOf(
        api().POST('/v1/objects', {
          params: { query: { limit } },
          body: { object_type_id: type, filter },
        }),
      );
      const output = terminal();
      writeRows(
        output,
        identifiers,
        ['object_type_id', 'object_id', 'svc_object_id'],
        `no object of type ${type}`,
      );
      noteMore(output, next, RAISE_LIMIT);
    });
  objects
    .command('show')
    .argument('<type>', 'of the object, a number', positiveInteger)
    .argument('<id>', 'of the object', objectId)
    .addOption(
      new Option('--part <part>', 'shown part').choices(OBJECT_PARTS).default('attributes'),
    )
    .description('attributes, or the people that it is related to')
    .action(async (type: number, id: string, { part }: ObjectOptions) => {
      const params = { path: { object_type_id: type, object_id: id } };
      if (part === 'attributes') {
        const { object } = await resultOf(
          api().GET('/v1/objects/{object_type_id}/{object_id}/attributes', { params }),
        );
        return writeFields(terminal(), object);
      }
      const { svc_relationships: found, next } = await resultOf(
        api().GET('/v1/objects/{object_type_id}/{object_id}/relationships', { params }),
      );
      const output = terminal();
      writeRows(output, found, RELATED, `no person is related to ${id}`);
      return noteMore(output, next, IN_CONSOLE);
    });
}
