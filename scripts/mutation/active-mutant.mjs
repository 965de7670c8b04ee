/**
 * The text of the one file that has a mutant.
 * It is outside the checkout, so a run that is killed leaves every file of the checkout as it was.
 *
 * MUTANT_FILE names a file of two lines of JSON: the path of the mutated file, and its text. The plugin of
 * `vitest.config.ts` gives that text to the tests, `load-mutant.mjs` to the processes of Node that the tests start.
 * Plain JavaScript: those processes load it before anything else.
 */
import { readFileSync } from 'node:fs';

/** @returns {{ path: string, text: string } | undefined} */
export function activeMutant() {
  const file = process.env['MUTANT_FILE'];
  if (!file) return undefined;
  const [path, text] = readFileSync(file, 'utf8').split('\n');
  return { path: JSON.parse(path ?? ''), text: JSON.parse(text ?? '') };
}
