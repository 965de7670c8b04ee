/**
 * Names that operations put together, in groups.
 *
 * Two names are in one group if an operation has both, or if other names lead from the one to the other (union by a
 * forest of parents).
 *
 * Part of step 9 of the walk, for `find-state-needs.ts`. Pure.
 */
export class NameGroups {
  /** By name: another one of its group, nearer to the one that stands for the group. */
  readonly #parents = new Map<string, string>();

  /** An operation has all of these. */
  join([first, ...others]: readonly string[]): void {
    if (first === undefined) return;
    const head = this.#headOf(first);
    for (const name of others) this.#parents.set(this.#headOf(name), head);
  }

  /** All names of the groups of these. */
  allOf(names: readonly string[]): Set<string> {
    const heads = new Set(names.map((name) => this.#headOf(name)));
    return new Set([...this.#parents.keys()].filter((name) => heads.has(this.#headOf(name))));
  }

  #headOf(name: string): string {
    let head = this.#parents.get(name) ?? name;
    for (let next = this.#parents.get(head) ?? head; next !== head;) {
      head = next;
      next = this.#parents.get(head) ?? head;
    }
    // Every name that was passed on the way gets the head as its parent, so the next look-up is one step.
    for (let passed = name; passed !== head;) {
      const next = this.#parents.get(passed) ?? head;
      this.#parents.set(passed, head);
      passed = next;
    }
    this.#parents.set(head, head);
    return head;
  }
}
