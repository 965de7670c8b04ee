/**
 * Cost of sign-ups and merges for a worker, on both brokers. Sign-ups (a new id with a new email) and merges are
 * compared with identifies of people who are known by one id, and plain identifies beside merges with plain
 * identifies alone.
 *
 * A round has these calls, in order. Each is applied before the next is queued.
 *
 * 1. Sign-ups of people of the round's own.
 * 2. A plain identify of each of them.
 * 3. Merges of one half of them into the other, in pairs.
 * 4. Plain identifies of the remaining people, twice, so that steps 4 and 5 have about as many.
 * 5. The same beside merges, which are 5 % of the calls and merge a person of another round into one whom the
 *    other calls name.
 */
import { parseArgs } from 'node:util';
import type { IdentifyPerson, MergePeople, Operation } from '@sluice/domain/operations/operation';
import type { Bars } from './bars.ts';
import { calmestRounds, stolenShares } from './host-steal.ts';
import { BACKENDS, startPausedWorkers, type Backend } from './paused-workers.ts';
import { addOperations, ENVIRONMENT_ID } from './queued-events.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

const SHARD_COUNT = 4;
/** One merge in so many calls, if they are beside plain ones. */
const CALLS_PER_MERGE = 20;

const KINDS = ['merges', 'sign-ups', 'beside merges'] as const;
type Kind = (typeof KINDS)[number];

/** Of the rate of plain calls, in the same round. */
const LEAST: Readonly<Record<Kind, number>> = {
  merges: 0.25,
  'sign-ups': 0.6,
  'beside merges': 0.7,
};

const ratioName = (kind: Kind, backend: Backend): string =>
  `${kind}/plain${backend === 'postgres' ? ', postgres backend' : ''}`;

export const MERGES_BARS: Bars = Object.fromEntries(
  BACKENDS.flatMap((backend) =>
    KINDS.map((kind) => [ratioName(kind, backend), { atLeast: LEAST[kind] }]),
  ),
);

/** Calls per second. */
interface Rates {
  readonly plain: number;
  readonly merges: number;
  readonly signUps: number;
  /** Of the people who are left after the merges. */
  readonly plainOfFewer: number;
  /** Plain ones alone are counted. */
  readonly besideMerges: number;
}

export async function benchMerges(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      rounds: { type: 'string', default: '5' },
      people: { type: 'string', default: '20000' },
      operations: { type: 'string', default: '1000' },
    },
  });
  const peopleCount = Number(values.people);
  const operationsPerCommitBatch = Number(values.operations);

  return withWorld('full', async (world) => {
    const workers = await startPausedWorkers(world, SHARD_COUNT);
    const run = async (backend: Backend, operations: Operation[]): Promise<number> => {
      const { seconds } = await workers.process(backend, (producer) =>
        addOperations(producer, operations, { shardCount: SHARD_COUNT, operationsPerCommitBatch }),
      );
      return operations.length / seconds;
    };
    const runRound = async (backend: Backend, round: number): Promise<Rates> => {
      const people = numbered(`${backend}-${round}`, peopleCount);
      const primaries = people.slice(0, peopleCount / 2);
      const plain = () =>
        [...primaries, ...primaries].map((id) => identify(id, { at: Date.now() }));
      const others = numbered(`${backend}-${round}-other`, peopleCount / CALLS_PER_MERGE);

      const signUps = await run(backend, people.map(signUp));
      const plainRate = await run(
        backend,
        people.map((id) => identify(id, { plan: 'pro' })),
      );
      const merges = await run(
        backend,
        primaries.map((id, index) => merge(id, people[primaries.length + index] as string)),
      );
      const plainOfFewer = await run(backend, plain());
      await run(backend, others.map(signUp));
      const mixed = plain().flatMap((call, index) =>
        index % CALLS_PER_MERGE === 0
          ? [call, merge(call.person.value, others[index / CALLS_PER_MERGE] as string)]
          : [call],
      );
      const mixedRate = await run(backend, mixed);
      return {
        signUps,
        plain: plainRate,
        merges,
        plainOfFewer,
        besideMerges: (mixedRate * plain().length) / mixed.length,
      };
    };

    // V8 compiles the code of the first rounds.
    for (const backend of BACKENDS) await runRound(backend, 0);
    const measured = await calmestRounds(Number(values.rounds), async (round) => {
      const rates = {
        redis: await runRound('redis', round),
        postgres: await runRound('postgres', round),
      };
      for (const [name, each] of Object.entries(rates))
        console.log(`${round} ${name.padEnd(9)} ${told(each)}`);
      return rates;
    });

    const medianOf = (of: Backend, value: (rates: Rates) => number): number =>
      median(measured.map(({ result }) => value(result[of])));
    const ratios: Record<Kind, (rates: Rates) => number> = {
      merges: ({ merges, plain }) => merges / plain,
      'sign-ups': ({ signUps, plain }) => signUps / plain,
      'beside merges': ({ besideMerges, plainOfFewer }) => besideMerges / plainOfFewer,
    };
    return {
      bench: 'merges',
      ratios: Object.fromEntries(
        BACKENDS.flatMap((of) =>
          KINDS.map((kind) => [ratioName(kind, of), medianOf(of, ratios[kind])]),
        ),
      ),
      rates: Object.fromEntries(
        BACKENDS.flatMap((of) => [
          [`plain, ${of}`, medianOf(of, ({ plain }) => plain)],
          [`merges, ${of}`, medianOf(of, ({ merges }) => merges)],
          [`sign-ups, ${of}`, medianOf(of, ({ signUps }) => signUps)],
        ]),
      ),
      latencyMs: {},
      details: {
        people: peopleCount,
        operations_per_commit_batch: operationsPerCommitBatch,
        shards: SHARD_COUNT,
        merges_beside_plain_calls: `1 in ${CALLS_PER_MERGE + 1}`,
        stolen_by_host: stolenShares(measured),
      },
      versions: world.versions,
    };
  });
}

const numbered = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, number) => `${prefix}-${number}`);

const base = () => ({ environmentId: ENVIRONMENT_ID, receivedAtMs: Date.now() });

function identify(id: string, attributes: IdentifyPerson['attributes']): IdentifyPerson {
  return {
    ...base(),
    type: 'person.identify',
    person: { kind: 'id', value: id },
    attributes,
    mayCreate: true,
  };
}

const signUp = (id: string): IdentifyPerson =>
  identify(id, { email: `${id}@example.com`, plan: 'free' });

function merge(primary: string, secondary: string): MergePeople {
  return {
    ...base(),
    type: 'person.merge',
    primary: { kind: 'id', value: primary },
    secondary: { kind: 'id', value: secondary },
  };
}

const told = (rates: Rates): string =>
  Object.entries(rates)
    .map(([name, rate]) => `${name} ${Math.round(rate as number)}/s`)
    .join(', ');
