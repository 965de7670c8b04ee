/** Reads JSON in a worker: `json-worker.ts`. */

export type ReadJson = { readonly value: unknown } | { readonly problem: string };

/** The browser makes a worker only of this path: the policy that lets it through has the one name of our CSP. */
const WORKER_PATH = '/assets/json-worker.js';

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: () => string },
  ): { createScriptURL(path: string): string };
}

const UNREADABLE = 'the browser could not read it';

let workerPath: string | undefined;

/** Once for each page, because the name of a policy is taken only once. Browsers without Trusted Types take the text. */
function trustedPath(): string {
  const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
  workerPath ??=
    trustedTypes
      ?.createPolicy('sluice-worker', { createScriptURL: () => WORKER_PATH })
      .createScriptURL('') ?? WORKER_PATH;
  return workerPath;
}

/** Undefined if the browser refuses workers. */
function makeWorker(): Worker | undefined {
  try {
    return new Worker(trustedPath());
  } catch {
    return undefined;
  }
}

/** @param signal - ends the worker; then there is no answer. */
export async function readJson(text: string, signal: AbortSignal): Promise<ReadJson> {
  const worker = makeWorker();
  if (worker === undefined) return { problem: UNREADABLE };
  signal.addEventListener('abort', () => worker.terminate());
  try {
    return await new Promise<ReadJson>((resolve) => {
      worker.addEventListener('message', ({ data }: MessageEvent<ReadJson>) => resolve(data));
      // The script was not found, or the value could not be handed over.
      for (const failed of ['error', 'messageerror'])
        worker.addEventListener(failed, () => resolve({ problem: UNREADABLE }));
      worker.postMessage(text, []);
    });
  } finally {
    worker.terminate();
  }
}
