/**
 * The lines in which deliveries about one person stand: the next one starts once the one before it is finished.
 *
 *   person A   1 ◀─ 3 ◀─ 7        1 in flight, 3 and 7 wait
 *   person B   2 ◀─ 5
 *
 * When B becomes part of A, their lines become one. Deliveries that are in flight then stay so, side by side, and the
 * next one waits for all of them:
 *
 *   person A   1, 2 ◀─ 3 ◀─ 5 ◀─ 7
 */
export interface LineEntry {
  readonly state: 'waiting' | 'in_flight' | 'finished';
  /** The internal id; null if its order is free. */
  personId: number | null;
  /** How many unfinished deliveries about the same person come directly before it. */
  waitsFor: number;
  /** The next delivery about the same person. */
  follower: LineEntry | undefined;
  /** Another last one of the line, which is in flight beside it. */
  beside: LineEntry | undefined;
}

export class PersonLines<Entry extends LineEntry> {
  /** The last delivery about each person who has unfinished ones. */
  readonly #lasts = new Map<number, LineEntry>();
  #inLineCount = 0;

  /** How many wait for an earlier one about the same person. */
  get inLineCount(): number {
    return this.#inLineCount;
  }

  /** Puts an unfinished delivery at the end of its person's line. */
  join(entry: Entry): void {
    const { personId } = entry;
    if (personId === null) return;
    const last = this.#lasts.get(personId);
    if (last) this.#follow(last, entry);
    this.#lasts.set(personId, entry);
  }

  /**
   * Takes a finished delivery out of its line. One that finished before its turn, the head of a failing lane, keeps its
   * place until the ones before it are finished.
   *
   * @returns the one whose turn has come.
   */
  leave(entry: Entry): Entry | undefined {
    const { follower, personId, waitsFor } = entry;
    if (waitsFor > 0) return undefined;
    if (follower) {
      if (--follower.waitsFor > 0) return undefined;
      this.#inLineCount--;
      return follower.state === 'finished' ? this.leave(follower as Entry) : (follower as Entry);
    }
    if (personId === null) return undefined;
    const last = this.#lasts.get(personId);
    if (last !== entry) {
      for (let each = last; each; each = each.beside)
        if (each.beside === entry) each.beside = entry.beside;
    } else if (entry.beside) this.#lasts.set(personId, entry.beside);
    else this.#lasts.delete(personId);
    return undefined;
  }

  /**
   * Joins the lines of people who were merged.
   *
   * @param merges - by merged person, the person that they are part of.
   * @param entries - all that are known, by sequence.
   */
  merge(merges: ReadonlyMap<number, number>, entries: Iterable<Entry>): void {
    const lines = new Map<number, Entry[]>(
      [...merges].flatMap(([from, into]) =>
        this.#lasts.has(from) ? [[into, []] as [number, Entry[]]] : [],
      ),
    );
    if (lines.size === 0) return;
    for (const entry of entries) {
      if (entry.personId === null || (entry.state === 'finished' && entry.waitsFor === 0)) continue;
      const personId = merges.get(entry.personId) ?? entry.personId;
      lines.get(personId)?.push(entry);
    }
    for (const [personId, line] of lines) this.#form(personId, line);
  }

  #form(personId: number, line: readonly Entry[]): void {
    for (const entry of line) {
      if (entry.personId !== null) this.#lasts.delete(entry.personId);
      if (entry.waitsFor > 0) this.#inLineCount--;
      Object.assign(entry, { personId, waitsFor: 0, follower: undefined, beside: undefined });
    }
    const inFlight = line.filter(({ state }) => state === 'in_flight');
    for (const [index, entry] of inFlight.entries()) entry.beside = inFlight[index + 1];
    const [first] = inFlight;
    if (first) this.#lasts.set(personId, first);
    for (const entry of line) if (entry.state === 'waiting') this.join(entry);
  }

  #follow(last: LineEntry, entry: Entry): void {
    for (let each: LineEntry | undefined = last; each; each = each.beside) {
      each.follower = entry;
      entry.waitsFor++;
    }
    this.#inLineCount++;
  }
}
