/**
 * The catalogue from its file (`BILLING_CATALOGUE_FILE`, JSON), validated whole at start: a process
 * with a catalogue that contradicts itself does not start.
 */
import { readFileSync } from 'node:fs';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { AppError } from '@sluice/domain/values/errors';
import { describeProblems } from '@sluice/platform/settings/config';
import { catalogueFile } from './catalogue-file.ts';
import { DEFAULT_CATALOGUE } from './default-catalogue.ts';

/**
 * @param file - absent: the catalogue that comes with the program.
 * @throws AppError CONFIG_INVALID with every problem of it.
 */
export function readCatalogue(file: string | undefined): Catalogue {
  return parseCatalogue(file === undefined ? DEFAULT_CATALOGUE : readJson(file), file);
}

/** @throws AppError CONFIG_INVALID */
export function parseCatalogue(given: unknown, source = 'the built-in catalogue'): Catalogue {
  const parsed = catalogueFile.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new AppError(
    'CONFIG_INVALID',
    `${source} cannot be used; correct these problems. ${describeProblems(parsed.error)}`,
  );
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new AppError(
      'CONFIG_INVALID',
      `BILLING_CATALOGUE_FILE names ${file}, which cannot be read as JSON (${(cause as Error).message}); correct the path or the file`,
      { cause },
    );
  }
}
