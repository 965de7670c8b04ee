/** For `node --import`: the processes that a test starts have the mutant too (`active-mutant.mjs`). */
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { activeMutant } from './active-mutant.mjs';

const mutant = activeMutant();
if (mutant) {
  const mutated = pathToFileURL(mutant.path).href;
  registerHooks({
    load(url, context, nextLoad) {
      if (url !== mutated) return nextLoad(url, context);
      return { format: 'module-typescript', source: mutant.text, shortCircuit: true };
    },
  });
}
