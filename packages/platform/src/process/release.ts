/** The version of the release, which all packages have. */
import { readFileSync } from 'node:fs';

const manifest = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string };

export const RELEASE_VERSION: string = manifest.version;
