/**
 * Vite's plugin that gives the tests the active mutant. `active-mutant.mjs` has the mutant, which takes the place of
 * its file.
 */
import type { Plugin } from 'vite';
import { activeMutant } from './active-mutant.mjs';

export const mutantPlugin = (): Plugin => ({
  name: 'active-mutant',
  enforce: 'pre',
  load(id) {
    const mutant = activeMutant();
    return mutant?.path === id.replace(/[?#].*$/, '') ? mutant.text : undefined;
  },
});
