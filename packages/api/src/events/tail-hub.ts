/**
 * The reading side of the live tail: who of this process' callers reads which workspace, and the
 * lines for them from every process of the fleet.
 *
 * Announces repeatedly who reads, so that processes that start later hear of it too, and all stop by themselves once
 * the announcements end (we died). Lines are matched again here, since one announcement speaks for several readers.
 * The publishing side: `platform/src/tail/tail-source.ts`.
 */
import { matchesTail, type TailFilter, type TailLine } from '@sluice/domain/operations/tail';
import type { TailChannel } from '@sluice/platform/tail/tail-channel';
import {
  ANNOUNCEMENT_TOPIC,
  lineTopic,
  readTailMessage,
  type TailAnnouncement,
} from '@sluice/platform/tail/tail-messages';
import type { Logger } from '@sluice/platform/process/logger';

/** `droppedCount`: lines of this workspace that got lost before these, whether they match or not. */
export type TailReader = (lines: readonly TailLine[], droppedCount: number) => void;

export interface OpenTail {
  readonly close: () => void;
}

export interface TailHubOptions {
  readonly channel: TailChannel;
  /** Unique to this process. */
  readonly id: string;
  readonly logger: Pick<Logger, 'warn'>;
}

interface Reading {
  readonly filter: TailFilter;
  readonly onLines: TailReader;
}

const ANNOUNCE_INTERVAL_MS = 2_000;
/** Three announcements may get lost. */
const ANNOUNCED_FOR_MS = 7_000;
const OPEN_DEADLINE_MS = 2_000;

export class TailHub {
  readonly #options: TailHubOptions;
  readonly #readers = new Map<number, Set<Reading>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TailHubOptions) {
    this.#options = options;
  }

  /** How many read a workspace through this process. */
  readerCount(environmentId: number): number {
    return this.#readers.get(environmentId)?.size ?? 0;
  }

  /**
   * Begins to read. Resolves when this process listens and has announced it; the others hear it a moment later.
   *
   * @throws if the channel is away.
   */
  async open(environmentId: number, filter: TailFilter, onLines: TailReader): Promise<OpenTail> {
    const reading = { filter, onLines };
    const readers = this.#readers.get(environmentId) ?? new Set();
    this.#readers.set(environmentId, readers.add(reading));
    this.#timer ??= setInterval(() => this.#announceAll(), ANNOUNCE_INTERVAL_MS).unref();
    const close = () => this.#close(environmentId, reading);
    try {
      await within(OPEN_DEADLINE_MS, this.#begin(environmentId));
    } catch (error) {
      close();
      throw error;
    }
    return { close };
  }

  async #begin(environmentId: number): Promise<void> {
    await this.#listen(environmentId);
    await this.#announce(environmentId);
  }

  #listen(environmentId: number): Promise<void> {
    return this.#options.channel.listen(lineTopic(environmentId), (text) =>
      this.#hear(environmentId, text),
    );
  }

  #close(environmentId: number, reading: Reading): void {
    const readers = this.#readers.get(environmentId);
    if (!readers?.delete(reading)) return;
    if (readers.size === 0) {
      this.#readers.delete(environmentId);
      this.#options.channel
        .unlisten(lineTopic(environmentId))
        // Somebody may have come meanwhile.
        .then(() => this.#hearAgain(environmentId))
        .catch(this.#warn);
    }
    if (this.#readers.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#announce(environmentId).catch(this.#warn);
  }

  async #hearAgain(environmentId: number): Promise<void> {
    if (this.readerCount(environmentId) > 0) await this.#listen(environmentId);
  }

  #announceAll(): void {
    for (const environmentId of this.#readers.keys())
      this.#announce(environmentId).catch(this.#warn);
  }

  async #announce(environmentId: number): Promise<void> {
    const filters = [...(this.#readers.get(environmentId) ?? [])].map(({ filter }) => filter);
    const said: TailAnnouncement = {
      hub: this.#options.id,
      environmentId,
      filters,
      forMs: ANNOUNCED_FOR_MS,
    };
    const { channel } = this.#options;
    const text = JSON.stringify(said);
    // More filters than fit: other processes send all lines, and this one filters them.
    const isTooLarge = Buffer.byteLength(text) > channel.messageSizeBytesMax;
    await channel.publish(
      ANNOUNCEMENT_TOPIC,
      isTooLarge ? JSON.stringify({ ...said, filters: [{}] }) : text,
    );
  }

  #hear(environmentId: number, text: string): void {
    const message = readTailMessage(text);
    if (message === undefined) {
      // Without its text: people are named in lines.
      const details = { environmentId, length: text.length };
      this.#options.logger.warn(
        details,
        'a message of the live tail cannot be read and is ignored; all processes need the same version',
      );
      return;
    }
    const { lines, dropped } = message;
    for (const { filter, onLines } of this.#readers.get(environmentId) ?? []) {
      const wanted = lines.filter((line) => matchesTail(filter, line));
      if (wanted.length > 0 || dropped > 0) onLines(wanted, dropped);
    }
  }

  readonly #warn = (error: unknown): void =>
    this.#options.logger.warn(
      { error },
      'the live tail could not be announced to other processes; its lines may be incomplete',
    );
}

async function within<Value>(durationMs: number, work: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not in ${durationMs} ms`)), durationMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
