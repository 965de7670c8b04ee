/** The list of all messages: it finds each way in which the code makes one, and the committed page is current. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { findMessages, messagesIn } from '../messages/find-messages.ts';
import { messagesPage } from '../messages/messages-page.ts';
import { readSourceFile } from '../messages/source-files.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** The messages of files with these texts. */
function found(texts: Readonly<Record<string, string>>): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-messages-'));
  folders.push(folder);
  const files = Object.entries(texts).map(([path, text]) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    // As oxfmt leaves files: statements begin their lines.
    writeFileSync(join(folder, path), text.replaceAll(/^ +/gm, ''));
    return readSourceFile(folder, path);
  });
  return messagesIn(files).map(({ kind, code, text }) => `${kind} ${code}: ${text}`);
}

const FILE = 'packages/api/src/people/people.ts';

test('docs/reference/messages.md has every message of the code, and no other ("npm run docs" writes it)', () => {
  const page = readFileSync(join(ROOT, 'docs/reference/messages.md'), 'utf8');
  const made = messagesPage(findMessages(ROOT));
  expect(made.split('\n').length).toBeGreaterThan(1_000);
  expect(page).toContain(`\n\n${made}\n\n`);
});

test('an error, a log line, a problem and an issue are messages, with their codes', () => {
  expect(
    found({
      [FILE]: `
        throw new AppError('PORT_TAKEN', \`port \${port} is taken\`);
        logger.warn({ error }, 'a task failed');
        reply({ code: 'conflict', message: 'it has ended' });
        draft.refuse('required', field, 'name is required');`,
    }),
  ).toEqual([
    'failure PORT_TAKEN: port {port} is taken',
    'log warn: a task failed',
    'http conflict: it has ended',
    'issue required: name is required',
  ]);
});

test('constants, conditions and tables are followed, also into another file', () => {
  expect(
    found({
      'packages/api/src/people/texts.ts': `export const TEXTS = { one: 'the one is', two: 'the two are' };`,
      [FILE]: `
        import { TEXTS } from './texts.ts';
        const what = isEnded ? 'has ended' : 'runs still';
        logger.error(\`the import \${what}\`);
        logger.error(TEXTS[name]);`,
    }),
  ).toEqual([
    'log error: the import [has ended|runs still]',
    'log error: the one is',
    'log error: the two are',
  ]);
});

test('a function that passes a parameter on is followed to its callers', () => {
  expect(
    found({
      'packages/api/src/http/missing.ts': `
        export function missing(what: string) { return { code: 'not_found', message: \`\${what} is missing\` }; }`,
      [FILE]: `
        import { missing } from '../http/missing.ts';
        send(missing('the person'));`,
    }),
  ).toEqual(['http not_found: the person is missing']);
});

test('functions that call each other with longer and longer texts come to an end', () => {
  expect(
    found({
      [FILE]: `
        function one(message: string) { logger.warn(\`\${message} or so\`); two(\`\${message} again\`); }
        function two(message: string) { one(\`\${message} and again\`); }
        one('a task failed');`,
    }).length,
  ).toBeGreaterThan(0);
});
