/** Requests after an input of the user, and the page's own ones. */
import { expect, test } from 'vitest';
import { isUnattended, watchUserInput } from '../../src/client/user-input.ts';

test('the first request after an input of the user is attended, and the ones that a timer repeats are not', () => {
  const page = new EventTarget();
  watchUserInput(page);
  // The opening of the page.
  expect([isUnattended(), isUnattended()]).toEqual([false, true]);
  for (const type of ['pointerdown', 'keydown', 'click', 'wheel', 'input']) {
    page.dispatchEvent(new Event(type));
    expect([type, isUnattended(), isUnattended()]).toEqual([type, false, true]);
  }
  page.dispatchEvent(new Event('visibilitychange'));
  expect(isUnattended()).toBe(true);
});
