/**
 * Publishing side of the live tail: events of this process, for readers anywhere in the fleet.
 *
 * ```
 *   API ── "workspace 7 is read, with these filters, for 6 s" ──▶ every intake and worker
 *   API ◀── lines that a filter wants ── intake, worker
 * ```
 *
 * While a workspace has no reader, publishing costs one look into an empty map. A reader that
 * vanishes is forgotten when its time is up. Lines beyond the capacity are dropped and counted: the
 * pipeline never waits for a reader, nor for the channel.
 *
 * The reading side: `api/src/events/tail-hub.ts`.
 */
import { matchesTail, type TailFilter, type TailLine } from '@sluice/domain/operations/tail';
import type { Logger } from '../process/logger.ts';
import type { TailChannel } from './tail-channel.ts';
import { ANNOUNCEMENT_TOPIC, lineTopic, readAnnouncement } from './tail-messages.ts';

/** Lines gather for so long: ten messages a second of a process at most. */
const GATHER_MS = 100;
/** `{"dropped":9007199254740991,"lines":[]}`. */
const MESSAGE_FRAME_SIZE_BYTES = 64;

interface Watcher {
  readonly filters: readonly TailFilter[];
  readonly timer: NodeJS.Timeout;
}

interface Gathered {
  lines: string[];
  sizeBytes: number;
  dropped: number;
}

export class TailSource {
  readonly #channel: TailChannel;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #watchers = new Map<number, Map<string, Watcher>>();
  readonly #gathered = new Map<number, Gathered>();
  #timer: NodeJS.Timeout | undefined;
  #isSending = false;

  constructor(channel: TailChannel, logger: Pick<Logger, 'warn'>) {
    this.#channel = channel;
    this.#logger = logger;
  }

  /** Subscribes to announcements of readers. Does not wait for the channel, which may be away. */
  start(): void {
    this.#channel
      .listen(ANNOUNCEMENT_TOPIC, (text) => this.#hear(text))
      .catch((error: unknown) =>
        this.#logger.warn(
          { error },
          'the live tail could not subscribe to its readers; this process does not publish to it until it connects again',
        ),
      );
  }

  /** Asked for every call, so that lines are made only for workspaces that are watched. */
  isTailed(environmentId: number): boolean {
    return this.#watchers.size !== 0 && this.#watchers.has(environmentId);
  }

  /** Publishes lines to the readers whose filters they match. Never waits. */
  publish(environmentId: number, lines: readonly TailLine[]): void {
    const watchers = this.#watchers.get(environmentId);
    if (!watchers) return;
    for (const line of lines) {
      for (const { filters } of watchers.values()) {
        if (!filters.some((filter) => matchesTail(filter, line))) continue;
        this.#gather(environmentId, JSON.stringify(line));
        break;
      }
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
    for (const watchers of this.#watchers.values())
      for (const { timer } of watchers.values()) clearTimeout(timer);
    this.#watchers.clear();
  }

  #hear(text: string): void {
    const said = readAnnouncement(text);
    if (said === undefined) {
      // Without its text: people are named in filters.
      const details = { length: text.length };
      this.#logger.warn(
        details,
        'an announcement of a live tail cannot be read and is ignored; all processes need the same version',
      );
      return;
    }
    const { hub, environmentId, filters, forMs } = said;
    const watchers = this.#watchers.get(environmentId) ?? new Map<string, Watcher>();
    clearTimeout(watchers.get(hub)?.timer);
    watchers.delete(hub);
    if (filters.length > 0) {
      const timer = setTimeout(() => this.#forget(environmentId, hub), forMs).unref();
      watchers.set(hub, { filters, timer });
    }
    if (watchers.size > 0) this.#watchers.set(environmentId, watchers);
    else this.#watchers.delete(environmentId);
  }

  #forget(environmentId: number, hub: string): void {
    const watchers = this.#watchers.get(environmentId);
    watchers?.delete(hub);
    if (watchers?.size === 0) this.#watchers.delete(environmentId);
  }

  #gather(environmentId: number, line: string): void {
    const gathered = this.#gathered.get(environmentId) ?? { lines: [], sizeBytes: 0, dropped: 0 };
    this.#gathered.set(environmentId, gathered);
    const sizeBytes = Buffer.byteLength(line) + 1;
    const isTooLarge = sizeBytes + MESSAGE_FRAME_SIZE_BYTES > this.#channel.messageSizeBytesMax;
    if (isTooLarge || gathered.sizeBytes + sizeBytes > this.#channel.burstSizeBytesMax) {
      gathered.dropped++;
    } else {
      gathered.lines.push(line);
      gathered.sizeBytes += sizeBytes;
    }
    this.#timer ??= setTimeout(() => void this.#send(), GATHER_MS).unref();
  }

  /** One at a time: while the channel is slow the next lines gather, up to their bound. */
  async #send(): Promise<void> {
    this.#timer = undefined;
    if (this.#isSending) return;
    this.#isSending = true;
    const all = [...this.#gathered];
    this.#gathered.clear();
    for (const [environmentId, gathered] of all) await this.#sendOf(environmentId, gathered);
    this.#isSending = false;
    if (this.#gathered.size > 0)
      this.#timer ??= setTimeout(() => void this.#send(), GATHER_MS).unref();
  }

  async #sendOf(environmentId: number, gathered: Gathered): Promise<void> {
    let { dropped } = gathered;
    for (const lines of inMessages(gathered.lines, this.#channel.messageSizeBytesMax)) {
      try {
        const text = `{"dropped":${dropped},"lines":[${lines.join(',')}]}`;
        await this.#channel.publish(lineTopic(environmentId), text);
        dropped = 0;
      } catch {
        dropped += lines.length;
      }
    }
    if (dropped === 0 || !this.isTailed(environmentId)) return;
    const waiting = this.#gathered.get(environmentId);
    if (waiting) waiting.dropped += dropped;
    else this.#gathered.set(environmentId, { lines: [], sizeBytes: 0, dropped });
  }
}

/** At least one message, so that a count alone gets through too. */
function inMessages(lines: readonly string[], sizeBytesMax: number): string[][] {
  const messages: string[][] = [[]];
  let sizeBytes = MESSAGE_FRAME_SIZE_BYTES;
  for (const line of lines) {
    const lineSizeBytes = Buffer.byteLength(line) + 1;
    if (sizeBytes + lineSizeBytes > sizeBytesMax) {
      messages.push([]);
      sizeBytes = MESSAGE_FRAME_SIZE_BYTES;
    }
    messages.at(-1)?.push(line);
    sizeBytes += lineSizeBytes;
  }
  return messages;
}
