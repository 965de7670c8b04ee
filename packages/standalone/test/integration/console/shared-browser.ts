/**
 * One Chromium for all test files of a process. A file's pages are apart in contexts of their own.
 *
 * Modules of ours are loaded anew for each file (`scripts/fresh-modules.ts`), so the process keeps it. It ends with the
 * process.
 */
import { type Browser, chromium } from 'playwright-core';
import { chromiumPath } from '../chromium-under-test.ts';

/** Chromium itself sends no other request, so each one is the page's. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
];
const LAUNCH_MS_MAX = 120_000;

const KEY = Symbol.for('sluice.browser-under-test');
const ofProcess = globalThis as { [KEY]?: Promise<Browser> };

export async function sharedBrowser(): Promise<Browser> {
  const before = await ofProcess[KEY]?.catch(() => undefined);
  if (before?.isConnected()) return before;
  // Vitest ends a process by SIGTERM, and half a second later by SIGKILL. That is too short for a goodbye, and at its exit
  // the process ends the browser at once.
  if (!ofProcess[KEY]) process.once('SIGTERM', () => process.exit());
  ofProcess[KEY] = chromium.launch({
    executablePath: chromiumPath(),
    args: FLAGS,
    timeout: LAUNCH_MS_MAX,
    handleSIGTERM: false,
  });
  return ofProcess[KEY];
}
