/**
 * The stored numbers of people, and the counted numbers.
 *
 * The stored ones are from `migrations/0027_people_counts.ts`. Beside `meter-reads.ts`, which the bill goes by; used by
 * `npm run verify`. Reads the primary key of `people` once, about 0.1 s a million.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface PeopleCount {
  readonly environmentId: number;
  readonly kept: number;
  readonly counted: number;
}

/** Every workspace that has or had people, in one snapshot. */
export async function listPeopleCounts(database: DatabaseOrTransaction): Promise<PeopleCount[]> {
  const { rows } = await sql<PeopleCount>`
    with kept as (
      select environment_id, sum(people) as people from people_counts group by environment_id
    ), counted as (
      select environment_id, count(*) as people from people group by environment_id
    )
    select environment_id as "environmentId", coalesce(kept.people, 0)::float8 as kept,
           coalesce(counted.people, 0)::float8 as counted
      from kept full join counted using (environment_id)
     order by environment_id`.execute(database);
  return rows;
}
