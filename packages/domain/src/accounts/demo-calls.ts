/**
 * Allowed origins of a call with a credential of the demo. The demo's tokens and keys are in the documentation. So they
 * are refused for a call that comes through a proxy or a tunnel, or for a host that is not this machine (a name that a web
 * page made lead here).
 */

/** In lower case. A proxy or a tunnel adds one of them to a call; the last three are of Cloudflare, Akamai and Fly. */
export const FORWARDING_HEADERS = [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-real-ip',
  'forwarded',
  'via',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-envoy-external-address',
  'cf-connecting-ip',
  'true-client-ip',
  'fly-client-ip',
] as const;

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * @param host - the header `Host`; empty if the call has no such header.
 * @param isForwarded - whether the call has one of the {@link FORWARDING_HEADERS}.
 * @param demoHosts - names, in lower case and without ports, that are always allowed (`DEMO_HOSTS`).
 */
export function mayUseDemo(
  host: string,
  isForwarded: boolean,
  demoHosts: readonly string[],
): boolean {
  return demoHosts.includes(nameOf(host)) || (!isForwarded && isOfThisMachine(host));
}

/** @param host - the header `Host`, with its port or without. */
export const isOfThisMachine = (host: string): boolean => LOOPBACK.test(nameOf(host));

const nameOf = (host: string): string => host.toLowerCase().replace(/:\d*$/, '');

/** The answer to a call that {@link mayUseDemo} refuses. */
export const DEMO_ELSEWHERE_MESSAGE =
  'the tokens of the demo work only for direct calls to this machine; to allow another host, name it in DEMO_HOSTS';
