/** One runbook from its situation to its end, as operators do it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readRunbook, unseen, type Step } from './read-runbook.ts';
import { situations } from './situations.ts';
import { CHECKOUT } from './fleet.ts';
import { startWorld, type World, type WorldOptions } from './world.ts';

/** To find the reason of a failure. */
const DIAGNOSIS = `
  for service in $INTAKE $WORKER; do curl -s -m 3 $service/readyz; curl -s -m 3 $service/metrics | grep '^sluice_'; done
  psql "$DATABASE_URL" -Atc "select pid, state, wait_event, now() - xact_start, left(query, 80) from pg_stat_activity where datname = current_database()"
  true`;
/** Working through a backlog may take a while on a machine that is used for other things too. */
const LOOK_MS_MAX = 120_000;
const LOOK_INTERVAL_MS = 300;

export const RUNBOOKS: readonly string[] = Object.keys(situations);

/**
 * @param path - of the operator's programs.
 * @param say - called for each block that was typed.
 * @param options - of the world, other than the page's: `{ proxy: undefined }` if there is no nginx. Its own steps are
 * left out
 *   then.
 * @throws Error at the first block that fails or does not show the page's output, or if a call was lost.
 */
export async function executeRunbook(
  name: string,
  path: string,
  say: (line: string) => void,
  options?: WorldOptions,
): Promise<void> {
  const situation = situations[name];
  if (!situation) throw new Error(`no such runbook: ${name}`);
  const steps = readRunbook(
    await readFile(join(CHECKOUT, 'docs/operations/runbooks', `${name}.md`), 'utf8'),
  );
  const world = await startWorld(path, { ...situation.world, ...options });
  try {
    world.traffic.start();
    await world.traffic.more(1);
    await situation.begin(world);
    for (const step of steps) {
      for (const event of step.meanwhile) {
        const happens = situation.meanwhile?.[event];
        if (!happens) throw new Error(`the situation does not define the event: ${event}`);
        await happens(world);
      }
      const startedAtMs = performance.now();
      await take(world, step);
      say(`  ${step.number}. ${Math.round(performance.now() - startedAtMs)} ms  ${step.title}`);
    }
    await world.traffic.stop();
    await world.traffic.expectStored();
    await situation.end?.(world);
  } catch (error) {
    say(await world.shell.run(DIAGNOSIS).catch(String));
    for (const [service, processes] of Object.entries(world.processes))
      for (const line of processes.at(-1)?.lastLogs() ?? [])
        say(`    ${service}: ${JSON.stringify(line).slice(0, 600)}`);
    throw error;
  } finally {
    await world.close();
  }
}

async function take(
  world: World,
  { commands, isLook, expected, number, title }: Step,
): Promise<void> {
  const deadlineMs = performance.now() + LOOK_MS_MAX;
  for (;;) {
    const output = await world.shell
      .run(commands)
      .catch((error: unknown) => (isLook ? String(error) : Promise.reject(error as Error)));
    const missing = unseen(expected, output);
    if (missing.length === 0) return;
    if (!isLook || performance.now() > deadlineMs)
      throw new Error(
        `step ${number} (${title}) does not show ${missing.join(', ')} but:\n${output}`,
      );
    await sleep(LOOK_INTERVAL_MS);
  }
}
