/**
 * The one table of what a value means, whichever door it comes in by: the parsers of both APIs, forms, the rows of a
 * file, the queries of the app API. A door adds what it does with the verdict (an issue, a 400, an error of a row), never
 * a rule of its own; `test/value-rules/doors.test.ts` holds all doors to it, value by value.
 *
 * | rule | reads | refuses |
 * |---|---|---|
 * | `identifier` | text without blanks at its ends; a number as its digits | other types, U+0000, too many bytes |
 * | `email` | an identifier that is an address; compared with A–Z folded (`foldEmail`) | `N/A` and whatever is none |
 * | `time` | Unix seconds, milliseconds and ISO 8601, as number or text | before 1973, too far ahead, no date |
 * | `boolean` | `true`, 1, and both as text in any letter case; false likewise | anything else |
 * | `positiveInteger` | 1 to 2^31 - 1, as number or text | anything else |
 *
 * Null, undefined and blank text are absent by every rule.
 *
 * The fast path of intake reads the simplest values by itself and declines all others (`intake/assembly/`).
 */
import { judgeBoolean } from './boolean-rule.ts';
import { judgeEmail, judgeIdentifier } from './identifier-rule.ts';
import { judgePositiveInteger } from './number-rule.ts';
import { judgeTime } from './time-rule.ts';

export const VALUE_RULES = {
  identifier: judgeIdentifier,
  email: judgeEmail,
  time: judgeTime,
  boolean: judgeBoolean,
  positiveInteger: judgePositiveInteger,
} as const;
