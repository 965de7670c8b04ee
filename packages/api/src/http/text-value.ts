/** Values that a call writes as text. They are read before the handler sees them. */
import { z } from 'zod';

/** An int32 in a query. The message distinguishes a value out of range from one that is no integer. */
export const integerInQuery = (min: number, max: number) =>
  z
    .string()
    .regex(/^-?\d{1,15}$/, 'must be an integer')
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .meta({ type: 'integer', format: 'int32', minimum: min, maximum: max });

/**
 * A day or a time.
 *
 * @param read - undefined if the text is not one.
 * @param format - the one that the text breaks, as zod names it.
 */
export const readFromText = <Value>(
  read: (text: string) => Value | undefined,
  format: 'date' | 'datetime',
  message: string,
) =>
  z
    .string()
    .transform((text, context) => {
      const value = read(text);
      if (value !== undefined) return value;
      context.addIssue({ code: 'invalid_format', format, message });
      return z.NEVER;
    })
    .meta({ type: 'string', format: format === 'date' ? 'date' : 'date-time' });
