/**
 * Address to which a provider sends the browser back. Each account has a path of its own, so that no provider answers
 * for another (RFC 9700 §4.4). It is a page, which hands the answer in by a call: opening the address alone makes no
 * change.
 */
import type { FastifyRequest } from 'fastify';

type Address = Pick<FastifyRequest, 'protocol' | 'host'>;

/** Origin of the browser's call, without a port that is the protocol's own. */
export const originOfCall = ({ protocol, host }: Address): string =>
  new URL(`${protocol}://${host}`).origin;

/** @param consoleUrl - `CONSOLE_URL`. Absent: the console is at the address of the call. */
export const returnOrigin = (consoleUrl: string | undefined, address: Address): string =>
  consoleUrl === undefined ? originOfCall(address) : new URL(consoleUrl).origin;

export const returnPath = (accountId: number): string => `/sign-in/${accountId}`;
