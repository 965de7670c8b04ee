/**
 * The description of both services, as the API serves it at `/openapi.json`: of an API that is built and never listens, so
 * that no database is needed.
 *
 * Used by `generate-client.ts`.
 */
import { buildServer, type ApiEffects } from '@sluice/api/server';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { createLogger } from '@sluice/platform/process/logger';

export async function describeServices(): Promise<string> {
  // What a route is declared with; the rest is for calls, and none is made but that of the description.
  const declared: Partial<ApiEffects> = {
    logger: createLogger('docs', 'silent'),
    catalogue: readCatalogue(undefined),
    trustedProxies: [],
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
