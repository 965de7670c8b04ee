/**
 * The one table of the meaning of values, for every entrance: parsers, forms, rows of a file, queries of the app API.
 * An entrance decides about the verdict (an issue, a 400, an error of a row). `test/value-rules/doors.test.ts` tests
 * them all.
 * | rule | reads | refuses |
 * |---|---|---|
 * | `identifier` | text without blanks at its ends; a number as its digits | other types, U+0000, too many bytes |
 * | `email` | an identifier that is an address; compared with A–Z folded (`foldEmail`) | `N/A` and any other text |
 * | `time` | Unix seconds, milliseconds and ISO 8601, as number or text | before 1973, too far ahead, no date |
 * | `boolean` | `true`, 1, and both as text in any letter case; false likewise | anything else |
 * | `positiveInteger` | 1 to 2^31 - 1, as number or text | anything else |
 * Null, undefined and blank text are absent by every rule. The fast path of intake reads the simplest values by itself
 * and declines all others (`intake/assembly/`).
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
