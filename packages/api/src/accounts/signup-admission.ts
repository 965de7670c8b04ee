/**
 * Admission to sign-up: open, by invitation, or closed. On an installation that is open to a network, each sign-up is a
 * tenant that takes a share of the capacity of all.
 */
import { timingSafeEqual } from 'node:crypto';
import { AppError } from '@sluice/domain/values/errors';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import type { Problem } from '../http/problem.ts';

export type SignupAdmission =
  | { readonly admits: 'anybody' }
  | { readonly admits: 'nobody' }
  | { readonly admits: 'invited'; readonly invitation: string };

/** @throws AppError CONFIG_INVALID if an invitation is needed and not set. */
export function admissionOf({
  API_SIGNUP: mode,
  API_SIGNUP_INVITATION: invitation,
}: {
  readonly API_SIGNUP: 'open' | 'invitation' | 'off';
  readonly API_SIGNUP_INVITATION?: string | undefined;
}): SignupAdmission {
  if (mode === 'open') return { admits: 'anybody' };
  if (mode === 'off') return { admits: 'nobody' };
  if (invitation === undefined)
    throw new AppError(
      'CONFIG_INVALID',
      'API_SIGNUP_INVITATION is required with API_SIGNUP=invitation; make one with openssl rand -base64 24',
    );
  return { admits: 'invited', invitation };
}

/** Reason why a sign-up with this invitation is refused; `undefined` if it may be used. */
export function refuseSignup(
  admission: SignupAdmission,
  invitation: string | undefined,
): Problem | undefined {
  switch (admission.admits) {
    case 'anybody':
      return undefined;
    case 'nobody':
      return {
        code: 'forbidden',
        message: 'sign-up is switched off on this installation; ask its operator for an account',
      };
    case 'invited':
      // Of hashes, which have one length, so that the time shows no part of it.
      return invitation !== undefined &&
        timingSafeEqual(hashSecret(invitation), hashSecret(admission.invitation))
        ? undefined
        : {
            code: 'forbidden',
            message: 'sign-up needs an invitation of the operator; send it as `invitation`',
          };
  }
}
