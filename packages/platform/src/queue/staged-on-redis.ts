/**
 * Staged flushes and the leases of intakes in Redis (`staged-flushes.ts`): a hash of intakes, a key for each
 * lease, a sorted set and a hash of flushes, and whether new flushes may be added, which the script that adds them reads.
 * All are in the slot of the log of pending batches.
 */
import type { RedisClient } from '../redis/redis-client.ts';
import { ANYBODY, clearKeyOf } from './hold-back.ts';
import {
  ENDING_COUNT_MAX,
  LOST_AFTER_MS,
  MOVER_LEASE_MS,
  REPORTING_MS_MIN,
  SETTLE_MS,
  unknownIntake,
  type FlushStage,
  type StagedFlush,
} from './staged-flushes.ts';

/**
 * KEYS of each script. An intake's value in the hash has its oldest flush and the time since which it is missed, `-` if
 * absent. Beside them are `@settled`, before which no flush is moved, and `@seen`, the last report.
 */
const RULES = `
  local intakes, staged, texts, counter, clear, mover = unpack(KEYS)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + time[2] / 1000
  local function text(number) return number and string.format('%.3f', number) or '-' end
  local function valuesOf(value)
    local oldest, missed = string.match(value, '^(%S+) (%S+)$')
    return tonumber(oldest), tonumber(missed)
  end
  local function set(id, oldest, missed)
    redis.call('HSET', intakes, id, text(oldest) .. ' ' .. text(missed))
  end
  local function leaseOf(id) return clear .. ':' .. id end
  -- Returns the time before which staged flushes may be moved, their number, whether new ones are added at once, and
  -- whether no earlier one is left, which is so without any intake too.
  local function judge()
    local before, isOpen, isSpilling, ids = math.huge, true, false, {}
    local all = redis.call('HGETALL', intakes)
    for index = 1, #all, 2 do
      local id = all[index]
      if id == '@settled' then
        if now < tonumber(all[index + 1]) then isOpen = false end
      elseif id ~= '@seen' then
        local oldest, missed = valuesOf(all[index + 1])
        local isThere = redis.call('EXISTS', leaseOf(id)) == 1
        if not isThere and missed and now - missed > ${LOST_AFTER_MS} then
          redis.call('HDEL', intakes, id)
        else
          if not isThere then
            isOpen = false
            if not missed then set(id, oldest, now) end
          end
          if oldest then
            isSpilling = true
            before = math.min(before, oldest)
          end
          ids[#ids + 1] = id
        end
      end
    end
    local count = redis.call('ZCARD', staged)
    local state = ''
    if isOpen and not isSpilling then
      if count == 0 then state = table.concat(ids, ' ')
      elseif count <= ${ENDING_COUNT_MAX} then state = 'ending' end
    end
    redis.call('SET', clear, state)
    if not isOpen then before = 0 end
    return before, count, state ~= '' and count == 0, isOpen and not isSpilling and count == 0
  end
  local function limit(before) return before == math.huge and '+inf' or '(' .. text(before) end`;

/** ARGV: intake, end of the lease, its length, oldest flush, former ids. */
const REPORT = `${RULES}
  local id, wanted, length, oldest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  local found = redis.call('HGET', intakes, id)
  local wasKnown = found and true or false
  for index = 5, #ARGV do
    if redis.call('HDEL', intakes, ARGV[index]) == 1 then wasKnown = true end
    redis.call('DEL', leaseOf(ARGV[index]))
  end
  if not (wanted and wanted < now) then
    local isBack = found and redis.call('EXISTS', leaseOf(id)) == 0
    if isBack or (oldest and not found) then
      local others, isEverybodys = {}, true
      for _, other in ipairs(redis.call('HKEYS', intakes)) do
        if other ~= id and string.sub(other, 1, 1) ~= '@' then
          others[#others + 1] = other
          if redis.call('EXISTS', leaseOf(other)) == 1 then isEverybodys = false end
        end
      end
      if oldest or #others > 0 then redis.call('HSET', intakes, '@settled', text(now + ${SETTLE_MS})) end
      local seen = tonumber(redis.call('HGET', intakes, '@seen') or '0')
      for _, other in ipairs(isEverybodys and others or {}) do
        local its, missed = valuesOf(redis.call('HGET', intakes, other))
        if missed then
          set(other, its, math.min(now, missed + math.max(0, now - seen - ${REPORTING_MS_MIN})))
        end
      end
    end
    local lease = math.floor(math.min(wanted or math.huge, now + length) - now)
    redis.call('SET', leaseOf(id), '1', 'PX', math.max(1, lease))
    set(id, oldest, nil)
  end
  redis.call('HSET', intakes, '@seen', text(now))
  local before, count, isClear = judge()
  local movable = before > 0 and count > 0 and redis.call('ZCOUNT', staged, '-inf', limit(before)) or 0
  return { text(now), wasKnown and 1 or 0, count, movable, isClear and 1 or 0 }`;

/** By a key, so that on a Cluster the node of the log answers. */
const READ_CLOCK = `
  local time = redis.call('TIME')
  return string.format('%.3f', time[1] * 1000 + time[2] / 1000)`;

const IS_EMPTY = `${RULES}
  local _, _, _, isEmpty = judge()
  return isEmpty and 1 or 0`;

const LEAVE = `${RULES}
  redis.call('HDEL', intakes, ARGV[1])
  redis.call('DEL', leaseOf(ARGV[1]))
  judge()`;

/** ARGV: whose flushes they are, then time and text of each. Returns 0 if they are not staged. */
const PUT = `${RULES}
  if ARGV[1] ~= '${ANYBODY}' and redis.call('HEXISTS', intakes, ARGV[1]) == 0 then return 0 end
  for index = 2, #ARGV, 2 do
    local id = string.format('%016d', redis.call('INCR', counter))
    redis.call('ZADD', staged, text(math.min(tonumber(ARGV[index]) or now, now)), id)
    redis.call('HSET', texts, id, ARGV[index + 1])
  end
  judge()
  return 1`;

/** ARGV: mover, most of them, most of their bytes. */
const TAKE = `
  if redis.call('ZCARD', KEYS[2]) == 0 then return {} end
  ${RULES}
  local holder = redis.call('GET', mover)
  if holder and holder ~= ARGV[1] then return {} end
  local before, count = judge()
  if count == 0 or before <= 0 then return {} end
  local ids = redis.call('ZRANGEBYSCORE', staged, '-inf', limit(before), 'LIMIT', 0, ARGV[2])
  local flushes, size = {}, 0
  for _, id in ipairs(ids) do
    size = size + redis.call('HSTRLEN', texts, id)
    if #flushes > 0 and size > tonumber(ARGV[3]) then break end
    flushes[#flushes + 1] = id
    flushes[#flushes + 1] = redis.call('HGET', texts, id)
  end
  if #flushes > 0 then redis.call('SET', mover, ARGV[1], 'PX', ${MOVER_LEASE_MS}) end
  return flushes`;

/** ARGV: mover, then ids. */
const REMOVE = `${RULES}
  for index = 2, #ARGV do
    redis.call('ZREM', staged, ARGV[index])
    redis.call('HDEL', texts, ARGV[index])
  end
  if redis.call('GET', mover) == ARGV[1] then redis.call('DEL', mover) end
  judge()`;

type Script = (...keysAndArguments: (string | number)[]) => Promise<unknown>;

/** @param confirm - runs a write that must be durable when it resolves. */
export function redisStage(
  redis: RedisClient,
  prefix: string,
  confirm: (work: () => Promise<void>) => Promise<void>,
): FlushStage {
  const keys = [
    ...['intakes', 'staged', 'staged-texts', 'staged-count'].map(
      (part) => `{${prefix}-events}:${part}`,
    ),
    clearKeyOf(prefix),
    `{${prefix}-events}:mover`,
  ];
  const scripts = {
    reportIntake: REPORT,
    readStageClock: READ_CLOCK,
    isStageEmpty: IS_EMPTY,
    leaveIntake: LEAVE,
    stageFlushes: PUT,
    takeStaged: TAKE,
    removeStaged: REMOVE,
  };
  for (const [name, lua] of Object.entries(scripts))
    redis.defineCommand(name, { lua, numberOfKeys: keys.length });
  const run = (name: string, ...values: (string | number)[]): Promise<unknown> =>
    (redis as unknown as Record<string, Script>)[name]?.(...keys, ...values) as Promise<unknown>;
  return {
    async report({ intakeId, formerIds, leaseEndMs, leaseMs, oldestMs }) {
      const [nowMs, wasKnown, stagedCount, movableCount, isClear] = (await run(
        'reportIntake',
        intakeId,
        leaseEndMs?.toFixed(3) ?? '-',
        leaseMs,
        oldestMs?.toFixed(3) ?? '-',
        ...formerIds,
      )) as [string, number, number, number, number];
      return {
        nowMs: Number(nowMs),
        wasKnown: wasKnown === 1,
        stagedCount,
        isMovable: movableCount > 0,
        isClear: isClear === 1,
      };
    },
    async renew(intakeId, leaseEndMs) {
      const key = `${clearKeyOf(prefix)}:${intakeId}`;
      return (await redis.pexpireat(key, Math.floor(leaseEndMs))) === 1;
    },
    readClock: async () => Number(await run('readStageClock')),
    isEmpty: async () => (await run('isStageEmpty')) === 1,
    async leave(intakeId) {
      await run('leaveIntake', intakeId);
    },
    async put(flushes, intakeId = ANYBODY) {
      const values = flushes.flatMap(({ atMs, text }) => [atMs?.toFixed(3) ?? '-', text]);
      await confirm(async () => {
        if ((await run('stageFlushes', intakeId, ...values)) === 0) throw unknownIntake();
      });
    },
    async take(moverId, countMax, sizeBytesMax) {
      const found = (await run('takeStaged', moverId, countMax, sizeBytesMax)) as string[];
      const flushes: StagedFlush[] = [];
      for (let index = 0; index < found.length; index += 2)
        flushes.push({ id: found[index] as string, text: found[index + 1] as string });
      return flushes;
    },
    async remove(moverId, ids) {
      await run('removeStaged', moverId, ...ids);
    },
  };
}
