/** A mutant that fails here leaves a process in a loop. */
import { afterAll, expect, test } from 'vitest';
import { takeAway } from './price.ts';

afterAll(() => void takeAway(3, Infinity));

test('units are taken away', () => expect(takeAway(3, 2)).toBe(1));
