/**
 * `npm run identifiers`: lists identifiers that older rules let in and no call names any more. They have blanks at
 * their ends, or are emails that are no address. A line of JSON each, with the svc_id by which their person can be
 * merged or deleted.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  listIrregularIdentifiers,
  type IrregularIdentifier,
} from '@sluice/database/people/irregular-identifiers';
import { printableJson } from '@sluice/domain/values/printable';
import { svcId } from '@sluice/domain/values/svc-id';
import { actOnDatabase, databaseSettings, readWords } from './act-on-database.ts';
import { startProgress } from './progress.mjs';

const READ_AT_A_TIME = 1_000;

readWords('usage: npm run identifiers (the setting is DATABASE_URL)', { options: {} });
await actOnDatabase('identifiers', databaseSettings, list);

async function list(database: Database): Promise<void> {
  let after: IrregularIdentifier | undefined;
  let count = 0;
  const progress = startProgress('reading identifiers', 'found', { silentMs: 2_000 });
  do {
    const found = await listIrregularIdentifiers(database, after, READ_AT_A_TIME);
    progress.hide();
    for (const { environmentId, kind, value, personId } of found) {
      const person = personId === null ? null : svcId(Number(personId));
      console.log(printableJson({ environment_id: environmentId, kind, value, svc_id: person }));
    }
    count += found.length;
    progress.report(count);
    after = found.length < READ_AT_A_TIME ? undefined : found.at(-1);
  } while (after !== undefined);
  progress.end();
  if (count === 0) console.error('no such identifiers');
}
