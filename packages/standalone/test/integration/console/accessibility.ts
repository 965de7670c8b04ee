/** Findings of axe on an open page. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** By the DevTools protocol, as the page's own policy lets in no script of others. */
export async function violationsOf(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const run = `(async () => { ${AXE}; const { violations, incomplete } = await axe.run(document, {
    resultTypes: ['violations', 'incomplete'] });
    return JSON.stringify([...violations, ...incomplete].map(({ id, nodes }) =>
      id + ' ' + nodes.map(({ target }) => target.join(' ')).join(', '))); })()`;
  const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
    expression: run,
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? 'axe failed');
  return JSON.parse(String(result.value)) as string[];
}

/** So high that a dialog shows all of itself: axe judges no colour of parts that are scrolled away. */
const WHOLE_HEIGHT = 3_600;

/** The page as it stands, in light and dark, 1280 and 360 px wide: violations, and text that sticks out. */
export async function problemsOf(page: Page): Promise<object[]> {
  const found: object[] = [];
  const before = page.viewportSize();
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1280, 360]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: WHOLE_HEIGHT });
      const violations = await violationsOf(page);
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      if (violations.length > 0 || overflow > 0)
        found.push({ url: page.url(), colorScheme, width, violations, overflow });
    }
  }
  await page.emulateMedia({ colorScheme: null });
  if (before) await page.setViewportSize(before);
  return found;
}
