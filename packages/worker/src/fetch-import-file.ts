/**
 * Fetches the file of an import, and tells a failure of the egress proxy from one of the file: the first is no matter of
 * the import's owner, and passes once the operator has seen to it.
 *
 * Before: `import-sweep.ts`, `run-import.ts`. After: `fetch-file.ts`.
 */
import { fetchFile, type FetchOptions } from './fetch-file.ts';
import { ProxyFailure } from './proxy-tunnel.ts';
import type { VettedConnector } from './vetted-connection.ts';

/** @throws ProxyFailure where the proxy is away or refuses; FetchFault as `fetchFile` does. */
export async function* fetchImportFile(
  connector: VettedConnector,
  address: string,
  options: FetchOptions,
): AsyncGenerator<Buffer, void, undefined> {
  let proxyFailure: ProxyFailure | undefined;
  const watched: VettedConnector = {
    openSocket: (target, onOpened, onRead) =>
      connector.openSocket(
        target,
        (error, socket) => {
          if (error instanceof ProxyFailure && !error.mayBeOfTarget) proxyFailure = error;
          onOpened(error, socket);
        },
        onRead,
      ),
  };
  try {
    yield* fetchFile(watched, address, options);
  } catch (error) {
    throw proxyFailure ?? error;
  }
}
