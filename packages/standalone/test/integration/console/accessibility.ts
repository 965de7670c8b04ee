/** Findings of axe on an open page. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Off by default in axe: WCAG 2.2 asks for targets of 24 pixels, or as much space around them. */
const MORE_RULES = { 'target-size': { enabled: true } };

/** The rules whose result depends on colours. */
export const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/**
 * By the DevTools protocol, as the page's own policy lets in no script of others.
 *
 * @param rules - every one by default.
 */
export async function violationsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const evaluate = async (expression: string): Promise<string> => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? 'axe failed');
    return String(result.value);
  };
  const only = rules && { runOnly: { type: 'rule', values: rules } };
  const options = JSON.stringify({
    resultTypes: ['violations', 'incomplete'],
    ...(only ?? { rules: MORE_RULES }),
  });
  // Half a megabyte, once for a document.
  if ((await evaluate('typeof axe')) === 'undefined') await evaluate(AXE);
  const found = await evaluate(`axe.run(document, ${options}).then(({ violations, incomplete }) =>
    JSON.stringify([...violations, ...incomplete].map(({ id, nodes }) =>
      id + ' ' + nodes.map(({ target }) => target.join(' ')).join(', '))))`);
  await session.detach();
  return JSON.parse(found) as string[];
}

/**
 * The page as it stands, in light and dark: violations, and text that sticks out. The two differ in colours alone
 * (`light-dark()` of `styles/tokens.css`), so that every other rule judges the page once.
 */
export async function problemsAtWidth(page: Page): Promise<object[]> {
  const found: object[] = [];
  for (const [colorScheme, rules] of [
    ['light', undefined],
    ['dark', COLOUR_RULES],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    const violations = await violationsOf(page, rules);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    if (violations.length > 0 || overflow > 0) {
      const width = page.viewportSize()?.width;
      found.push({ url: page.url(), colorScheme, width, violations, overflow });
    }
  }
  await page.emulateMedia({ colorScheme: null });
  return found;
}

/** So high that a dialog shows all of itself: axe judges no colour of parts that are scrolled away. */
const WHOLE_HEIGHT = 3_600;

/** The same, 1280 and 360 px wide. */
export async function problemsOf(page: Page): Promise<object[]> {
  const found: object[] = [];
  const before = page.viewportSize();
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: WHOLE_HEIGHT });
    found.push(...(await problemsAtWidth(page)));
  }
  if (before) await page.setViewportSize(before);
  return found;
}
