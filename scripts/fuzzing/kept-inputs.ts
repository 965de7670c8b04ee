/** Inputs of each target in the repository: few and short, and together they reach as much as a long run. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Of all inputs of a target together. */
const SIZE_BYTES_MAX = 16_384;

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`kept/${name}.json`, import.meta.url));

/** One byte a character, in ASCII. */
export function readKept(name: string): Buffer[] {
  if (!existsSync(pathOf(name))) return [];
  const texts = JSON.parse(readFileSync(pathOf(name), 'utf8')) as string[];
  return texts.map((text) => Buffer.from(text, 'latin1'));
}

export function writeKept(name: string, inputs: readonly Buffer[]): void {
  const texts = inputs.map((input) => input.toString('latin1'));
  const json = JSON.stringify(texts, null, 2).replaceAll(
    /[\u007f-\u00ff]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
  writeFileSync(pathOf(name), `${json}\n`);
}

/**
 * The shortest inputs first, each only if it shows something that the ones before it did not.
 *
 * @param showsNew - runs an input, and compares it with all that it was called with before.
 */
export async function choose(
  inputs: readonly Buffer[],
  showsNew: (input: Buffer) => Promise<boolean>,
): Promise<Buffer[]> {
  const chosen: Buffer[] = [];
  let sizeBytes = 0;
  for (const input of inputs.toSorted((one, other) => one.length - other.length)) {
    if (sizeBytes + input.length > SIZE_BYTES_MAX) break;
    if (!(await showsNew(input))) continue;
    chosen.push(input);
    sizeBytes += input.length;
  }
  return chosen;
}
