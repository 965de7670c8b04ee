/** The simulated payment provider as a process: settings, the catalogue, the server. */
import { beginProcess } from '@sluice/platform/process/begin-process';
import { readCatalogue } from './catalogue/read-catalogue.ts';
import { simulatorSettings } from './settings.ts';
import { startSimulator } from './simulator/simulator.ts';

const { settings, logger, lifecycle } = await beginProcess(
  process,
  'vendor simulator',
  simulatorSettings,
);

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
  'the simulated payment provider is listening',
);
