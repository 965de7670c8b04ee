/** What axe finds on a page that is open. */
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
