/**
 * Before every test file: modules of ours are loaded anew, as in a process of the file's own, while libraries, which
 * took most of that process's start, stay.
 *
 * Vitest does it only if `isolate` is on. Without it a module that calls `afterAll` as it is loaded, such as the one
 * that drops the databases of a hundred files (`database/src/testing/testing.ts`), calls it in a process's first file
 * alone.
 */
import { vi } from 'vitest';

vi.resetModules();
