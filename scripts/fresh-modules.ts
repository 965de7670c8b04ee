/**
 * Before every test file: modules of ours are loaded anew, as in a process of the file's own, while libraries, which
 * took most of that process's start, stay.
 *
 * Vitest does it only where `isolate` is on. Without it a module that says `afterAll` as it is loaded, such as the one
 * that drops the databases of a hundred files (`database/src/testing/testing.ts`), says so in a process's first file alone.
 */
import { vi } from 'vitest';

vi.resetModules();
