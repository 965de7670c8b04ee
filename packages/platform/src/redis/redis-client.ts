/** A connection to Redis, as `redis.ts` opens it. */
import type { Cluster, Redis } from 'ioredis';

/** Of one server or of Sentinels' master; of a Cluster. */
export type RedisClient = Redis | Cluster;
