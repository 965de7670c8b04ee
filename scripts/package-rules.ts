/** Rules for packages in `package-lock.json`: licence, origin, install script. Used by `check-packages.ts`. */

export interface LockedEntry {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly hasInstallScript?: boolean;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly name?: string;
}

/** They ask for no more than their notice. */
const PERMISSIVE: ReadonlySet<string> = new Set([
  'MIT',
  'MIT-0',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
  'Unlicense',
  'Zlib',
]);

/** Of tools alone, which no installation gets: their own files stay under the licence, ours do not come under it. */
const OF_TOOLS: ReadonlySet<string> = new Set(['MPL-2.0', 'Python-2.0']);

/** Licences that npm does not have, read in the package itself. All are clients that tests drive. */
const READ_BY_HAND: Readonly<Record<string, string>> = {
  '@customerio/cdp-analytics-node@0.5.9': 'MIT',
  '@segment/facade@3.4.10': 'MIT',
  '@segment/isodate@1.0.3': 'MIT',
  '@segment/isodate-traverse@1.1.1': 'MIT',
  'customerio-gist-web@3.26.0': 'MIT',
  'new-date@1.0.3': 'MIT',
};

/** @param scripts - `allowScripts` of package.json: each package with an install script, and whether it may run. */
export function packageProblems(
  packages: Readonly<Record<string, LockedEntry>>,
  scripts: Readonly<Record<string, boolean>>,
): string[] {
  return Object.entries(packages).flatMap(([path, entry]) => {
    if (!/(^|\/)node_modules\//.test(path) || entry.link === true) return [];
    const name = entry.name ?? path.replace(/^.*node_modules\//, '');
    const spec = `${name}@${entry.version}`;
    const problems: string[] = [];
    const licence = READ_BY_HAND[spec] ?? entry.license;
    if (licence === undefined || !isAllowed(licence, entry.dev === true))
      problems.push(`${spec}: its licence ${licence ?? 'is not known'} is not among those allowed`);
    if (entry.hasInstallScript === true && scripts[name] === undefined)
      problems.push(
        `${spec}: runs a script when it is installed; say in allowScripts whether it may`,
      );
    if (entry.integrity === undefined) problems.push(`${spec}: the lockfile has no hash of it`);
    if (entry.resolved !== undefined && !entry.resolved.startsWith('https://registry.npmjs.org/'))
      problems.push(`${spec}: comes from ${entry.resolved}`);
    return problems;
  });
}

/** An SPDX expression of `OR` and `AND`, in parentheses or not. */
function isAllowed(expression: string, isTool: boolean): boolean {
  const allows = (licence: string): boolean =>
    PERMISSIVE.has(licence) || (isTool && OF_TOOLS.has(licence));
  return expression
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((alternative) => alternative.split(' AND ').every(allows));
}
