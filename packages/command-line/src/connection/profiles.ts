/**
 * Other installations, by name: addresses and keys in `~/.config/sluice/profiles.json`, which only its owner may read.
 * `sluice login` writes it, `--profile` names one. The keys are as plain there as in the environment of a shell.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { AppError, reasonOf } from '@sluice/domain/values/errors';

/** Options of a command that neither the words nor the environment set. */
export interface Profile {
  readonly apiUrl?: string;
  readonly intakeUrl?: string;
  readonly workerUrls?: readonly string[];
  /** An app API key. */
  readonly key?: string;
  readonly writeKey?: string;
  /** Of a service account. */
  readonly token?: string;
  readonly account?: number;
}

export type Profiles = Readonly<Record<string, Profile>>;

/** The profile that is used without `--profile` if no `npm start` runs beside. */
export const DEFAULT_PROFILE = 'default';

const MEMBERS = ['apiUrl', 'intakeUrl', 'workerUrls', 'key', 'writeKey', 'token', 'account'];
/** Read, written or run by others than its owner. */
const OTHERS = 0o077;

/** @param environment - `XDG_CONFIG_HOME` is the folder for settings of programs. */
export const profilesFile = (environment: Readonly<Record<string, string | undefined>>): string =>
  join(environment['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'sluice', 'profiles.json');

/**
 * @returns an empty object if there is no file.
 * @throws AppError COMMAND_MISUSED if it is no such file, or others may read it.
 */
export function readProfiles(file: string): Profiles {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new AppError(
      'COMMAND_MISUSED',
      `${file} cannot be read (${reasonOf(error)}); correct its rights`,
    );
  }
  if ((statSync(file).mode & OTHERS) !== 0)
    throw new AppError(
      'COMMAND_MISUSED',
      `other users can read the keys in ${file}; run chmod 600 ${file}`,
    );
  const parsed = parse(text);
  if (parsed === undefined)
    throw new AppError(
      'COMMAND_MISUSED',
      `${file} is no JSON object of profiles. Correct it; a profile may have ${MEMBERS.join(', ')}`,
    );
  return parsed;
}

/** @throws AppError COMMAND_MISUSED if there is no profile of this name. */
export function profileOf(profiles: Profiles, name: string, file: string): Profile {
  if (Object.hasOwn(profiles, name)) return profiles[name] as Profile;
  const names = Object.keys(profiles);
  throw new AppError(
    'COMMAND_MISUSED',
    `there is no profile ${name} in ${file}; ${names.length === 0 ? 'sluice login makes one' : `there are ${names.join(', ')}`}`,
  );
}

/** Adds or replaces one. A process that reads meanwhile reads the former file. */
export function writeProfile(file: string, name: string, profile: Profile): void {
  write(file, { ...readProfiles(file), [name]: profile });
}

/** Removes one. An unknown name is ignored. */
export function removeProfile(file: string, name: string): void {
  const { [name]: _removed, ...others } = readProfiles(file);
  write(file, others);
}

function write(file: string, profiles: Profiles): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const written = `${file}.${randomUUID()}`;
  writeFileSync(written, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  renameSync(written, file);
}

function parse(text: string): Profiles | undefined {
  try {
    const profiles: unknown = JSON.parse(text);
    return isObject(profiles) && Object.values(profiles).every(isProfile)
      ? (profiles as Profiles)
      : undefined;
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isProfile = (value: unknown): boolean =>
  isObject(value) && Object.keys(value).every((name) => MEMBERS.includes(name));
