/** A tail channel within one process, for tests that own the clock. */
import type { TailChannel } from '../../src/tail/tail-channel.ts';

export class MemoryChannel implements TailChannel {
  messageSizeBytesMax = 1_000;
  burstSizeBytesMax = 5_000;
  readonly published: { topic: string; text: string }[] = [];
  readonly #listeners = new Map<string, (text: string) => void>();
  /** Each publication waits for it. */
  gate: Promise<unknown> = Promise.resolve();

  async publish(topic: string, text: string): Promise<void> {
    await this.gate;
    this.published.push({ topic, text });
    this.#listeners.get(topic)?.(text);
  }

  async listen(topic: string, onText: (text: string) => void): Promise<void> {
    this.#listeners.set(topic, onText);
  }

  async unlisten(topic: string): Promise<void> {
    this.#listeners.delete(topic);
  }

  async close(): Promise<void> {}
}
