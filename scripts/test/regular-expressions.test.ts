/** Security: a text of a stranger costs each regular expression of the services linear time at most. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';
import { expect, test } from 'vitest';
import { findAmbiguity } from './ambiguous-pattern.ts';

const PACKAGES = fileURLToPath(new URL('../../packages/', import.meta.url));

/** Programs and worlds of tests read no text of a stranger. */
const SOURCE = /^(?!chaos\/)[\w-]+\/src\/(?!(?:.+\/)?testing\/).+\.(?:tsx?|js)$/;

const OWN_METRICS = 'reads the metrics of the processes that the operator runs';
const OWN_LINE = 'reads one line that a user types, in that user’s own process';
/** Patterns that may need more than linear time, by their file, with the reason why they do no harm. */
const HARMLESS: Readonly<Record<string, string>> = {
  [String.raw`client/src/client.js \/+$`]: 'reads the address that the program’s author gives',
  [String.raw`command-line/src/commands/status.ts ^sluice_\w+\{[^}]*\bservice="(\w+)"`]:
    OWN_METRICS,
  [String.raw`command-line/src/commands/status.ts ^sluice_build_info\{[^}]*\bversion="([^"]*)"`]:
    OWN_METRICS,
  [String.raw`command-line/src/commands/status.ts ^process_start_time_seconds(?:\{[^}]*\})? (\S+)$`]:
    OWN_METRICS,
  [String.raw`command-line/src/commands/status.ts ^(sluice_\w+)(?:\{[^}]*\})? (\S+)$`]: OWN_METRICS,
  [String.raw`command-line/src/input/arguments.ts \/+$`]: OWN_LINE,
  [String.raw`command-line/src/input/arguments.ts ^\s*(\S+)\s+(\S+)(?:\s+(.*\S))?\s*$`]: OWN_LINE,
  [String.raw`console/src/sentences/subscription-text.ts ^(\S+)\s*(\S*)(?:\s+(.*))?$`]: OWN_LINE,
  [String.raw`domain/src/event-schemas/pattern-program.ts ^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??`]:
    'reads a pattern that the engine has compiled, which closes each brace that it repeats by',
  [String.raw`platform/src/telemetry/open-tracer.ts \/+$`]: 'reads a setting of the operator',
};

/** Files that make a pattern of a text, with the reason why the text is no stranger's. */
const MADE: Readonly<Record<string, string>> = {
  'billing-vendor/src/simulator/simulator-routes.ts': 'of the paths in the same file',
  'domain/src/delivery/retry-after.ts': 'of constants, each of which reads a fixed length',
  'domain/src/event-schemas/pattern-program.ts':
    'of one class or escape, which reads one character; the whole is compiled and not run',
  'platform/src/redis/redis-capacity.ts': 'of names in the same file',
};

interface FoundPattern {
  readonly path: string;
  readonly pattern: string;
  readonly flags: string;
}

const found: FoundPattern[] = [];
const made = new Set<string>();
for (const path of readdirSync(PACKAGES, { recursive: true, encoding: 'utf8' })) {
  if (!SOURCE.test(path)) continue;
  collect(path, parseSync(path, readFileSync(join(PACKAGES, path), 'utf8')).program);
}

function collect(path: string, node: unknown): void {
  if (typeof node !== 'object' || node === null) return;
  const { type, regex, callee } = node as {
    type?: string;
    regex?: { pattern: string; flags: string };
    callee?: { name?: string };
  };
  if (type === 'Literal' && regex) found.push({ path, ...regex });
  if (callee?.name === 'RegExp') made.add(path);
  for (const each of Object.values(node)) collect(path, each);
}

test.each([
  ['(a+)+$', ''],
  ['^(a*)*b', ''],
  ['(a|a)*b', ''],
  ['^(?:a|ab|b)*$', ''],
  [String.raw`^(\w+\s?)*$`, ''],
  [String.raw`\s+$`, ''],
  [String.raw`\s*;\s*`, ''],
  ['^x*x*y', ''],
  ['^.*,.*,', ''],
  [String.raw`^name:[ \t]*(.*?)[ \t]*$`, 'im'],
  ['^(?=.*,.*,)x', ''],
])('the check finds /%s/%s', (pattern, flags) => {
  expect(findAmbiguity(pattern, flags)).toBeDefined();
});

test.each([
  ['^a+$', ''],
  [String.raw`\d+`, 'g'],
  [String.raw`^(?:[a-z]+\.)+[a-z]+$`, ''],
  ['^(a|ab)(c|bcd)*$', ''],
  ['^[^@]+@[^@]+$', ''],
  ['^name:(.*)', 'im'],
  ['[?#].*', 's'],
  ['a{2,3}$', ''],
])('the check lets /%s/%s pass', (pattern, flags) => {
  expect(findAmbiguity(pattern, flags)).toBeUndefined();
});

test('no regular expression has two ways to read one repeated text', () => {
  expect(found.length).toBeGreaterThan(300);
  const ambiguous = found
    .map(({ path, pattern, flags }) => ({
      name: `${path} ${pattern}`,
      ambiguity: findAmbiguity(pattern, flags),
    }))
    .filter(({ ambiguity }) => ambiguity !== undefined);
  expect(ambiguous.filter(({ name }) => !(name in HARMLESS))).toEqual([]);
  expect(Object.keys(HARMLESS).toSorted()).toEqual(
    [...new Set(ambiguous.map(({ name }) => name))].toSorted(),
  );
});

test('no text of a stranger becomes a regular expression', () => {
  expect([...made].toSorted()).toEqual(Object.keys(MADE));
});
