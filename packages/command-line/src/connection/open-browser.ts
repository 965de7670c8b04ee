/** Opens an address in the browser of this machine's user. */
import { spawn } from 'node:child_process';

/** Program that opens an address, by `process.platform`; elsewhere `xdg-open`. */
const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer' };

/**
 * The browser outlives the command.
 *
 * @throws Error if no program opens it.
 */
export async function openBrowser(platform: NodeJS.Platform, url: string): Promise<void> {
  const opener = OPENERS[platform] ?? 'xdg-open';
  await new Promise<void>((resolve, reject) => {
    const child = spawn(opener, [url], { stdio: 'ignore', detached: true });
    child.once('error', reject);
    child.once('spawn', () => {
      child.unref();
      resolve();
    });
  });
}
