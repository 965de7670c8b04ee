/**
 * Rule for the files of `results/`: of each benchmark, and of the whole suite, the latest of each month is
 * kept.
 */

/** `<date>-<commit>-<name>.json` */
const RESULT = /^(\d{4}-\d{2})-\d{2}-[0-9a-z]+-(.+)\.json$/;

/** The month of a result and the name of its benchmark: of each pair one file is kept. */
export function keptAs(file: string): string {
  const [, month = '', name = ''] = RESULT.exec(file) ?? [];
  return `${month} ${name}`;
}

/** The files whose place a new result takes. */
export function replacedBy(file: string, files: readonly string[]): string[] {
  return files.filter((other) => other !== file && keptAs(other) === keptAs(file));
}
