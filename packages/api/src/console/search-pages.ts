/**
 * The search over the pages of the documentation: sections whose title, heading or text have the words of a query, best
 * first. `scripts/build-docs.mjs` makes the index. Pure.
 *
 * A word of the query counts as found if a word of the section begins with its stem, so `rotate` finds `rotation`. A rare
 * word counts more than a frequent one. A section is found if it has two thirds of the words that the best one has; each
 * missing word lowers its place.
 */

/** A heading with the text below it. */
export interface PageSection {
  /** The address of its page. */
  readonly page: string;
  /** Of the page. */
  readonly title: string;
  readonly heading: string;
  readonly anchor: string;
  /** The beginning of its text. */
  readonly excerpt: string;
}

export interface SearchIndex {
  readonly sections: readonly PageSection[];
  /** Word → the numbers of the sections that have it, each followed by its weight there. */
  readonly words: Readonly<Record<string, readonly number[]>>;
}

/** Longer queries are cut. */
export const QUERY_LENGTH_MAX = 200;
const WORD_COUNT_MAX = 8;
const RESULT_COUNT_MAX = 20;
/** The share of words that a section must have, of the most that one has. */
const WORD_SHARE_MIN = 2 / 3;
/** A word that is written as in the query, or has its stem, counts more than one that only begins like it. */
const FACTORS = { exact: 2, stem: 1.5, beginning: 0.5 };
const STEM_LENGTH_MIN = 3;

/** Words that are in nearly every section. */
const COMMON = new Set(
  'a after all an and any are at be by can do does for from get got has have how i if in into is it me much my not of on one or should so that the there this to was we what when where which who why will with you your'.split(
    ' ',
  ),
);

/** @returns at most 20 sections, best first; an empty list for a query without words */
export function searchPages(index: SearchIndex, query: string): PageSection[] {
  const all =
    query
      .slice(0, QUERY_LENGTH_MAX)
      .toLowerCase()
      .match(/[\p{L}\p{N}_]+/gu) ?? [];
  const telling = all.filter((word) => !COMMON.has(word));
  const words = [...new Set(telling.length === 0 ? all : telling)].slice(0, WORD_COUNT_MAX);
  const totals = new Map<number, { count: number; score: number }>();
  for (const word of words) {
    const weights = weightsOf(index, word);
    const rarity = Math.log(1 + index.sections.length / Math.max(1, weights.size));
    for (const [section, weight] of weights) {
      const { count, score } = totals.get(section) ?? { count: 0, score: 0 };
      totals.set(section, { count: count + 1, score: score + weight * rarity });
    }
  }
  const most = Math.max(0, ...[...totals.values()].map(({ count }) => count));
  return [...totals]
    .filter(([, { count }]) => count >= most * WORD_SHARE_MIN)
    .map(([section, { count, score }]) => [section, score * (count / words.length) ** 2] as const)
    .toSorted(([one, score], [other, otherScore]) => otherScore - score || one - other)
    .slice(0, RESULT_COUNT_MAX)
    .flatMap(([section]) => index.sections[section] ?? []);
}

/** The best weight of a word in each section that has it, or a word that begins like it. */
function weightsOf({ words }: SearchIndex, word: string): Map<number, number> {
  const stem = stemOf(word);
  const best = new Map<number, number>();
  for (const [known, places] of Object.entries(words)) {
    if (!known.startsWith(stem)) continue;
    const isStem = stemOf(known) === stem;
    const factor = known === word ? FACTORS.exact : isStem ? FACTORS.stem : FACTORS.beginning;
    for (let at = 0; at + 1 < places.length; at += 2) {
      const [section = 0, weight = 0] = [places[at], places[at + 1]];
      best.set(section, Math.max(best.get(section) ?? 0, weight * factor));
    }
  }
  return best;
}

/** Without the end of a plural or of a verb's form. */
function stemOf(word: string): string {
  const stem = word.replace(/(?:ing|ions?|ed|es|e|s)$/, '');
  return stem.length < STEM_LENGTH_MIN ? word : stem;
}
