/**
 * `REDIS_URL`: one Redis, a set watched by Sentinels, or a Redis Cluster.
 *
 * ```
 * redis://[user:password@]host[:port][/database]
 * redis-sentinel://[user:password@]host[:port],host[:port],…[/database]?master=NAME[&sentinel_username=…&sentinel_password=…]
 * redis-cluster://[user:password@]host[:port],host[:port],…
 * ```
 *
 * `rediss…` for TLS. The hosts are those to ask first; the others are learned from them.
 */
import { AppError } from '@sluice/domain/values/errors';

export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

export interface RedisLogin {
  readonly username?: string;
  readonly password?: string;
}

interface RedisServers extends RedisLogin {
  /** At least one. */
  readonly hosts: readonly RedisHost[];
  readonly isTls: boolean;
}

export type RedisAddress =
  | { readonly kind: 'single'; readonly url: string }
  | (RedisServers & {
      readonly kind: 'sentinel';
      /** Name of the set at the Sentinels. */
      readonly master: string;
      readonly database: number;
      /** For the Sentinels themselves. */
      readonly sentinelLogin: RedisLogin;
    })
  | (RedisServers & { readonly kind: 'cluster' });

const MANY_HOSTS =
  /^(?<tls>rediss?)-(?<kind>sentinel|cluster):\/\/(?:(?<login>[^@/?]*)@)?(?<hosts>[^@/?]+)(?:\/(?<database>\d*))?(?:\?(?<query>.*))?$/;
const HOST = /^(?<host>\[[\da-f:.]+\]|[^:[\]]+)(?::(?<port>\d{1,5}))?$/i;
const DEFAULT_PORT = { sentinel: 26_379, cluster: 6_379 };
const PORT_MAX = 65_535;

/** @throws AppError CONFIG_INVALID with the problem alone: the text may hold a password. */
export function parseRedisUrl(text: string): RedisAddress {
  if (/^rediss?:\/\/[^/]/.test(text) && URL.canParse(text)) return { kind: 'single', url: text };
  const found = MANY_HOSTS.exec(text)?.groups;
  if (!found)
    throw invalid(
      'must begin with redis://, redis-sentinel:// or redis-cluster:// and name hosts; characters like # / ? of a password are percent-encoded',
    );
  const kind = found['kind'] as 'sentinel' | 'cluster';
  const servers = {
    hosts: (found['hosts'] ?? '').split(',').map((host) => parseHost(host, DEFAULT_PORT[kind])),
    isTls: found['tls'] === 'rediss',
    ...parseLogin(found['login'] ?? ''),
  };
  const database = Number(found['database'] || '0');
  if (kind === 'cluster') {
    if (database !== 0)
      throw invalid('a Redis Cluster has only database 0; remove the database number from the URL');
    return { kind, ...servers };
  }
  const query = new URLSearchParams(found['query'] ?? '');
  const master = query.get('master');
  if (!master) throw invalid('redis-sentinel:// needs ?master=NAME');
  const username = query.get('sentinel_username');
  const password = query.get('sentinel_password');
  const sentinelLogin = { ...(username && { username }), ...(password && { password }) };
  return { kind, ...servers, master, database, sentinelLogin };
}

/** If a replica may take a master's place, a commit batch on the master alone may be lost with it. */
export const defaultReplicasMin = (address: RedisAddress): number =>
  address.kind === 'single' ? 0 : 1;

function parseHost(text: string, defaultPort: number): RedisHost {
  const found = HOST.exec(text)?.groups;
  const port = Number(found?.['port'] ?? defaultPort);
  if (!found || port < 1 || port > PORT_MAX)
    throw invalid('has a host that is not host or host:port');
  return { host: (found['host'] ?? '').replace(/^\[|\]$/g, ''), port };
}

function parseLogin(text: string): RedisLogin {
  const [username = '', password = ''] = text.split(/:(.*)/s);
  try {
    return {
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
    };
  } catch {
    throw invalid('has a user or password that is not percent-encoded');
  }
}

const invalid = (problem: string): AppError => new AppError('CONFIG_INVALID', problem);
