/** The pages of `docs/reference`, each made from the code that it describes. `generate-docs.ts` writes and compares them. */
import { describeServices } from '../described-api.ts';
import { commandLinePage } from './command-line-page.ts';
import { errorsPage } from './errors-page.ts';
import { eventTypesPage } from './event-types-page.ts';
import { httpApiPage } from './http-api-page.ts';
import { metricsPage } from './metrics-page.ts';
import { settingsPage } from './settings-page.ts';

/** Name of the file → its whole content. */
export async function referencePages(): Promise<Readonly<Record<string, string>>> {
  return {
    'settings.md': settingsPage(),
    'http-api.md': httpApiPage(await describeServices()),
    'event-types.md': eventTypesPage(),
    'errors.md': errorsPage(),
    'command-line.md': await commandLinePage(),
    'metrics.md': await metricsPage(),
  };
}
