/**
 * Finds the patterns of hard English in one passage: a paragraph, a cell, a comment.
 *
 * The rules are word lists and counts, so they need no grammar and some are stricter than English. Used by `check-prose.ts`.
 */

/** A piece of text that is read by itself. Code in it is one placeholder a piece. */
export interface Passage {
  /** Of its first character, from 1. */
  readonly line: number;
  readonly text: string;
  readonly kind: 'page' | 'comment' | 'header' | 'message';
}

/** One place that breaks a rule. */
export interface Finding {
  readonly line: number;
  readonly rule: string;
  /** The words that break it, or the start of the sentence. */
  readonly quote: string;
}

/** Words of a sentence of a page, at most. */
const SENTENCE_WORDS_MAX = 30;
/** Words of the first sentence of a file's header, at most. */
const HEADER_WORDS_MAX = 12;
/** Lines of a file's header, at most. */
const HEADER_LINES_MAX = 12;

/** Stands for a piece of code in a passage. It has no letter, so no rule matches it, and it counts as a word. */
export const CODE = '`…`';

/** `where` is right after a place. After anything else it is an "if", a "when" or a clause. */
const PLACES =
  'places?|points?|pages?|folders?|files?|lines?|rows?|columns?|hosts?|machines?|clusters?|nodes?|regions?|sections?|tables?|positions?|networks?|directory|directories|lists?|screens?|fields?';

const WORD_RULES: readonly { readonly name: string; readonly pattern: RegExp }[] = [
  {
    name: 'a clause as a noun: name the thing',
    // A question may begin with `what`: `findingsOf` leaves it out.
    pattern:
      /\bwhat\b|^who\b|\b(?:of|to|for|by|from|with|and|or|than|on|in|shows?|names?|knows?|decides?|is|are|find|see)\s+who\b|\b(?:from|to|is|shows?|names?|knows?|finds?|find)\s+where\b|^which\b/gi,
  },
  {
    name: '"where" without a place: write "if" or "when"',
    pattern: new RegExp(
      `(?<!\\b(?:${PLACES})[,)]?\\s+)(?<!\\b(?:from|to|is|shows?|names?|knows?|finds?|find)\\s+)\\bwhere\\b`,
      'gi',
    ),
  },
  {
    name: 'a negative subject or object: write a positive sentence',
    pattern: /\b(?:nobody|nothing|none|no\s+one)\b/gi,
  },
  {
    name: '"whoever": write "any client", "each process" or "if"',
    pattern: /\b(?:whoever|whatever|wherever|whichever|whomever|whose\s+ever)\b/gi,
  },
  {
    name: 'a program that talks: write "send", "publish", "report", "return" or "log"',
    pattern: /\b(?:tells?|telling|told|says?|saying|said|knock(?:s|ed|ing)?)\b/gi,
  },
  {
    name: '"that of": repeat the noun',
    pattern: /\b(?:that|those)\s+of\b|\bthose\s+(?:who|that|which|in|from|with|without)\b/gi,
  },
];

const PAGE_RULES: readonly { readonly name: string; readonly pattern: RegExp }[] = [
  {
    name: 'a word that ages: remove it',
    pattern: /\b(?:today|nowadays|now|so\s+far)\b(?!\()/gi,
  },
];

/** @returns every place of `passage` that breaks a rule of its kind, in order of the rules. */
export function findingsOf(passage: Passage): Finding[] {
  const isPage = passage.kind === 'page';
  const findings = sentencesOf(passage.text).flatMap(({ text, offset }) => {
    const at = (index: number): number => lineAt(passage, offset + index);
    const words = [...WORD_RULES, ...(isPage ? PAGE_RULES : [])].flatMap(({ name, pattern }) =>
      text.trimEnd().endsWith('?') && name.startsWith('a clause')
        ? []
        : [...text.matchAll(pattern)].map((match) => ({
            line: at(match.index),
            rule: name,
            quote: quoteAround(text, match.index),
          })),
    );
    const whole = { line: at(0), quote: quoteAround(text, 0) };
    const colons = [...text.matchAll(/:(?=\s|$)/g)].length;
    if (colons > 1 || (colons === 1 && /;(?=\s)/.test(text)))
      words.push({ ...whole, rule: 'two colons, or a colon and a semicolon: write two sentences' });
    const count = wordCount(text);
    if (isPage && count > SENTENCE_WORDS_MAX)
      words.push({ ...whole, rule: `${count} words in a sentence: at most ${SENTENCE_WORDS_MAX}` });
    return words;
  });
  return passage.kind === 'header' ? [...findings, ...headerFindings(passage)] : findings;
}

function headerFindings(header: Passage): Finding[] {
  const { line, text } = header;
  const findings: Finding[] = [];
  const first = text.trim().split(/[.:;](?=\s|$)|\n\s*\n/)[0] ?? '';
  const found = { line, quote: quoteAround(first, 0) };
  const count = wordCount(first);
  if (/^(?:what|how|which|where|who|when|whether)\b/i.test(first))
    findings.push({
      ...found,
      rule: 'a header that begins with a clause: a noun phrase or a verb',
    });
  if (count > HEADER_WORDS_MAX)
    findings.push({ ...found, rule: `${count} words begin a header: at most ${HEADER_WORDS_MAX}` });
  const lines = text.trim().split('\n').length;
  if (lines > HEADER_LINES_MAX)
    findings.push({ ...found, rule: `${lines} lines in a header: at most ${HEADER_LINES_MAX}` });
  return findings;
}

/** Ends at `.`, `!` or `?` before anything but a lower-case letter, and at an empty line. */
function sentencesOf(text: string): { text: string; offset: number }[] {
  const sentences: { text: string; offset: number }[] = [];
  let start = 0;
  const push = (end: number): void => {
    const skipped = /^[\s("'*_]*/.exec(text.slice(start, end))?.[0].length ?? 0;
    const sentence = text.slice(start + skipped, end);
    if (sentence.trim() !== '') sentences.push({ text: sentence, offset: start + skipped });
    start = end;
  };
  for (const { 0: end, index } of text.matchAll(/[.!?][)"'*_]*\s+(?=[^\sa-z])|\n\s*\n/g))
    push(index + end.length);
  push(text.length);
  return sentences;
}

function lineAt(passage: Passage, offset: number): number {
  return passage.line + passage.text.slice(0, offset).split('\n').length - 1;
}

function wordCount(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}…]/u.test(word)).length;
}

function quoteAround(text: string, index: number): string {
  const flat = (part: string): string => part.replaceAll(/\s+/g, ' ');
  return flat(
    `${text.slice(Math.max(0, index - 25), index)}${text.slice(index, index + 45)}`,
  ).trim();
}
