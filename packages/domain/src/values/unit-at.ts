/**
 * `text.charCodeAt(at)` without looking the method up. Texts from `JSON.parse` are of more kinds than V8 caches at
 * one call site, and a look-up for each unit took 4 % of a batched event (`perf` of intake).
 */
// Called with its text only, below.
// oxlint-disable-next-line typescript/unbound-method
const { charCodeAt } = String.prototype;

/** The UTF-16 unit at a place in a text; NaN outside of it. */
export const unitAt = (text: string, at: number): number => charCodeAt.call(text, at);
