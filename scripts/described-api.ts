/**
 * The description of both services, as the API serves it at `/openapi.json`: of an API that is built and never listens, so
 * that no database is needed.
 *
 * Used by `generate-client.ts`.
 */
import type { ApiEffects } from '@sluice/api/api-effects';
import { buildServer } from '@sluice/api/server';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { createLogger } from '@sluice/platform/process/logger';

export async function describeServices(): Promise<string> {
  // The effects that routes are declared with; the others are for calls, and only the description is called.
  const declared: Partial<ApiEffects> = {
    logger: createLogger('docs', 'silent'),
    catalogue: readCatalogue(undefined),
    trustedProxies: [],
    addressConnectionCountMax: 0,
    demoHosts: [],
    recordRequest: () => {},
    newId: () => 'docs',
  };
  const app = await buildServer(declared as ApiEffects);
  try {
    return (await app.inject('/openapi.json')).body;
  } finally {
    await app.close();
  }
}
