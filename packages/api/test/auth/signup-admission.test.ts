import { expect, test } from 'vitest';
import { refuseSignup } from '../../src/accounts/signup-admission.ts';

const INVITATION = 'an invitation of the operator';

test.each([
  [{ admits: 'anybody' as const }, undefined, true],
  [{ admits: 'nobody' as const }, INVITATION, false],
  [{ admits: 'invited' as const, invitation: INVITATION }, undefined, false],
  [{ admits: 'invited' as const, invitation: INVITATION }, '', false],
  [{ admits: 'invited' as const, invitation: INVITATION }, `${INVITATION}.`, false],
  [{ admits: 'invited' as const, invitation: INVITATION }, INVITATION, true],
])('with %j the invitation %j admits: %s', (admission, invitation, isAdmitted) => {
  expect(refuseSignup(admission, invitation) === undefined).toBe(isAdmitted);
});
