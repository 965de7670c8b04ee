/**
 * The version that wrote the data (`version.json` of the data directory).
 *
 * If a version cannot open the data, its error names one that can, and how to set them aside.
 */
import { execFile } from 'node:child_process';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@sluice/domain/values/errors';
import { z } from 'zod';

const FILE = 'version.json';

const versionSchema = z.object({
  version: z.string(),
  /** Of the checkout; null if git cannot give it. */
  commit: z.string().nullable(),
  opened_at: z.string(),
});

export type DataVersion = z.infer<typeof versionSchema>;

/** The version of this checkout. Git gives the commit, if there is git and a repository. */
export async function readOwnVersion(root: string, openedAtMs: number): Promise<DataVersion> {
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')));
  const commit = await new Promise<string | null>((resolve) => {
    execFile('git', ['-C', root, 'rev-parse', '--short=12', 'HEAD'], (error, stdout) =>
      resolve(error ? null : stdout.trim()),
    );
  });
  return { version, commit, opened_at: new Date(openedAtMs).toISOString() };
}

/** Called once the data were opened: from then on an older version may not be able to. */
export async function recordVersion(directory: string, version: DataVersion): Promise<void> {
  const file = join(directory, FILE);
  // Whole or not at all, whenever the machine stops.
  await writeFile(`${file}.new`, `${JSON.stringify(version, undefined, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/**
 * Runs `open`. If it fails because of the data, the error also names the version that can open them, and how to set
 * them aside.
 *
 * @throws AppError as `open` does.
 */
export async function openingData<Value>(
  directory: string,
  open: () => Promise<Value>,
): Promise<Value> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof AppError) || !OF_THE_DATA.has(error.code)) throw error;
    const advice = await describeVersion(directory);
    throw new AppError(error.code, `${error.message}\n${advice}`, { cause: error });
  }
}

const OF_THE_DATA: ReadonlySet<string> = new Set(['DATABASE_START_FAILED', 'MIGRATION_MISMATCH']);

async function describeVersion(directory: string): Promise<string> {
  const setAside = `To begin anew and keep these data: mv ${directory} ${directory}.before`;
  const read = await readFile(join(directory, FILE), 'utf8')
    .then((text) => versionSchema.parse(JSON.parse(text)))
    .catch(() => undefined);
  if (read === undefined)
    return `A version from before 26 November 2026 wrote these data, and did not note its number; "git log" shows the earlier checkouts. ${setAside}`;
  const { version, commit, opened_at: at } = read;
  const how = commit === null ? '' : `: git checkout ${commit} && npm start`;
  return `Sluice ${version}${commit === null ? '' : `, commit ${commit},`} opened these data on ${at.slice(0, 10)}, and can${how}. ${setAside}`;
}
