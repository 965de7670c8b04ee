/** Settings of the embedded Postgres beside the defaults, with reasons. */

/** `full`: committed data survives a power cut. `none`: for tests, all data may be lost in a crash. */
export type Durability = 'full' | 'none';

/** Beyond an eighth of the memory the services would lack it; the least is Postgres' own default. */
const SHARE_OF_MEMORY = 1 / 8;
const SHARED_BUFFERS_MIB_MIN = 128;
const SHARED_BUFFERS_MIB_MAX = 2_048;

/** @param memoryBytes - of the machine, or of the container if that is less. */
export function postgresSettings(
  port: number,
  durability: Durability,
  memoryBytes: number,
): Readonly<Record<string, string>> {
  const shareMib = Math.floor((memoryBytes * SHARE_OF_MEMORY) / 2 ** 20);
  const sharedBuffersMib = Math.min(
    SHARED_BUFFERS_MIB_MAX,
    Math.max(SHARED_BUFFERS_MIB_MIN, shareMib),
  );
  return {
    port: String(port),
    // Reached from this machine only; a password guards it from the machine's other users.
    listen_addresses: '127.0.0.1',
    // No socket file: its folder would have to be reachable by the account and by us.
    unix_socket_directories: '',
    // Intake, API and worker at their default pools need about 60; BullMQ's listeners 5 more.
    max_connections: '200',
    // The hot set: identifiers, the queue, this month's indexes. A page that is not in it costs 7 to 12 µs of CPU
    // (benchmarks/README.md, growth). Taken from the system page by page, as data is read: a small database stays small.
    // Dropping a table scans all of it, and tests drop many.
    shared_buffers: durability === 'full' ? `${sharedBuffersMib}MB` : '192MB',
    // Sorting and hashing a commit batch of 1,000 operations stays in memory.
    work_mem: '16MB',
    // At the default of 1GB a steady intake checkpoints every minute and writes full pages again each time.
    max_wal_size: '2GB',
    // Statements here touch few rows: compiling them costs more than running them.
    jit: 'off',
    // Parallel workers need /dev/shm, of which a container has 64 MB; no statement of ours gains by them.
    max_parallel_workers_per_gather: '0',
    // Rendered in one zone on every machine.
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_line_prefix: '%m [%p] %a ',
    // A line every five minutes without a fault.
    log_checkpoints: 'off',
    ...(durability === 'full' ? DURABLE : FAST),
  };
}

/** The defaults, written out because an acknowledgement relies on them. */
const DURABLE = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' };

const FAST = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  // No replica and no archive: cloning a template database then writes no WAL worth naming.
  wal_level: 'minimal',
  max_wal_senders: '0',
  // Three test files at a time, some with sixteen workers.
  max_connections: '400',
};
