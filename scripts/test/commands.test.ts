/** Each command of a fresh clone installs its packages first: no user meets `command not found`. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const { scripts } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { scripts: Readonly<Record<string, string>> };

/** It runs without our packages, and reports missing programs itself. */
const WITHOUT_PACKAGES = new Set(['alerts']);

test.each(Object.entries(scripts).filter(([name]) => !WITHOUT_PACKAGES.has(name)))(
  'npm run %s installs the missing packages',
  (name, command) => {
    if (name === 'sluice') {
      expect(command).toBe('./sluice');
      const script = readFileSync(new URL('../../sluice', import.meta.url), 'utf8');
      expect(script.indexOf('/scripts/install.mjs')).toBeGreaterThan(0);
      return;
    }
    const [first = '', rest = ''] = command.split(/ && (.*)/s);
    expect(first).toMatch(
      /^node scripts\/install\.mjs( --with-tools)?( --with-redis)?( --with-chromium)?$/,
    );
    // Packages that services do not need have to be asked for.
    const isService = /node_modules\/\.bin\/node (--\S+ )*(packages\/(?!chaos)|scripts\/)/.test(
      rest,
    );
    expect(first.includes('--with-tools')).toBe(!isService);
  },
);
