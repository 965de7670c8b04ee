/** The simulated payment vendor as a process: settings, the catalogue, the server. */
import { parseSettings } from '@sluice/platform/config';
import { createLifecycle, stopOnSignal } from '@sluice/platform/lifecycle';
import { createLogger } from '@sluice/platform/logger';
import { readCatalogue } from './read-catalogue.ts';
import { simulatorSettings } from './settings.ts';
import { startSimulator } from './simulator.ts';

const settings = parseSettings(simulatorSettings, process.env);
const logger = createLogger('vendor simulator', settings.LOG_LEVEL);
const lifecycle = createLifecycle(logger);
stopOnSignal(process, lifecycle, logger, settings.DRAIN_TIMEOUT_MS);

const simulator = await startSimulator({
  host: settings.SIMULATOR_HOST,
  port: settings.SIMULATOR_PORT,
  file: settings.SIMULATOR_FILE,
  webhookUrl: settings.SIMULATOR_WEBHOOK_URL,
  webhookSecret: settings.STRIPE_WEBHOOK_SECRET,
  catalogue: readCatalogue(settings.BILLING_CATALOGUE_FILE),
  now: Date.now,
  random: Math.random,
});
lifecycle.defer('simulator', () => simulator.close());
logger.info(
  { host: settings.SIMULATOR_HOST, port: simulator.port },
  'the simulated payment vendor is listening',
);
