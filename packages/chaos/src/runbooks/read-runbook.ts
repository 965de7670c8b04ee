/**
 * The commands of a runbook: its fenced blocks, in order, and their expected output.
 *
 * ````
 * ```sh look          `look`: reads only, and runs again until the output fits
 * curl -s $INTAKE/readyz
 * ```
 * ```text             every line must be in the output of the commands; … stands for anything
 * "durable":true
 * ```
 * <!-- meanwhile: the endpoint answers again -->   an event of the situation, by its name
 * ````
 */

export interface Step {
  /** From 1. */
  readonly number: number;
  /** The first command of the block, to know it by. */
  readonly title: string;
  readonly commands: string;
  readonly isLook: boolean;
  /** Lines that are to be seen. */
  readonly expected: readonly string[];
  /** Events in the world before it, by name. */
  readonly meanwhile: readonly string[];
}

/** A block of a list is indented, and so is each of its lines. */
const FENCE = /^( *)```(\w+)([^\n]*)\n(.*?)^\1```$|^ *<!-- meanwhile: (.*?) -->$/gms;

/**
 * Pure.
 *
 * @throws Error if a block shows output and no commands stand before it.
 */
export function readRunbook(markdown: string): Step[] {
  const steps: Step[] = [];
  let meanwhile: string[] = [];
  for (const [, indent = '', language, words = '', body = '', event] of markdown.matchAll(FENCE)) {
    const text = body.replaceAll(new RegExp(`^${indent}`, 'gm'), '').trim();
    if (event !== undefined) {
      meanwhile.push(event);
    } else if (language === 'sh') {
      const title = text.split('\n').find((line) => !line.startsWith('#')) ?? '';
      const isLook = words.trim() === 'look';
      const number = steps.length + 1;
      steps.push({ number, title, commands: text, isLook, expected: [], meanwhile });
      meanwhile = [];
    } else if (language === 'text') {
      const before = steps.pop();
      if (!before || before.expected.length > 0)
        throw new Error(`this output has no command before it: ${text}`);
      steps.push({ ...before, expected: text.split('\n') });
    }
  }
  return steps;
}

/** The lines that are not in `output`. */
export function unseen(expected: readonly string[], output: string): string[] {
  return expected.filter((line) => {
    const parts = line
      .split('…')
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
    return !new RegExp(parts.join('[^\\n]*')).test(output);
  });
}
