/** Fields of an account's bodies (`account-conventions.md` §4.1). Pure. */
import { foldEmail, isEmail } from '@sluice/domain/value-rules/identifier-rule';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { isOfThisMachine } from '@sluice/domain/accounts/demo-calls';
import { isCountry, requiredParts } from '@sluice/domain/accounts/postal-address';
import { z } from 'zod';
import { NOT_BLANK, text } from '../http/fields.ts';
import { webAddress } from '../http/url-field.ts';

const NAME_LENGTH_MAX = 100;
const LINE_LENGTH_MAX = 200;
/** RFC 5321, and the size limit of `users_by_email`. */
const EMAIL_LENGTH_MAX = 254;
/** For the description, in words of every engine of patterns. */
const ONE_LINE = String.raw`^(?=.*\S)[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$`;
/** For the description of a body whose fields are all optional. */
export const SOME_FIELD = { minProperties: 1 };

/** One line of plain text: without characters that would end a line of a mail's head or of a log. */
const line = (lengthMax: number) =>
  text(lengthMax)
    .trim()
    .min(1)
    .meta(NOT_BLANK)
    .refine((value) => !/\p{Cc}|[\u2028\u2029]/u.test(value), {
      error: 'must be one line without control characters',
    })
    .meta({ pattern: ONE_LINE });

export const name = line(NAME_LENGTH_MAX);

/** Trimmed, NFC, the domain in lower case; dots and plus signs are left alone (`account-conventions.md` §8). */
export const email = text(EMAIL_LENGTH_MAX)
  .trim()
  .normalize('NFC')
  .refine(isEmail, { error: 'must be an email address' })
  // `users_by_email` folds all of Unicode, so a mailbox that only looks like another would be the same user.
  .refine((value) => foldEmail(value) === value.toLowerCase(), {
    error: 'must have no capital letters other than A to Z',
  })
  .transform((value) => {
    const at = value.lastIndexOf('@');
    return value.slice(0, at) + value.slice(at).toLowerCase();
  })
  .meta({ type: 'string', format: 'email', maxLength: EMAIL_LENGTH_MAX });

export const int32 = z.int().min(1).max(INTEGER_MAX);

const timezone = text(64)
  .refine(isTimezone, {
    error: 'must be the name of an IANA time zone, such as Europe/Berlin',
  })
  .meta({
    pattern: '^[A-Za-z]',
    description: 'The name of an IANA time zone, such as `Europe/Berlin`.',
  });

const accountSettings = z
  .strictObject({
    name: name.optional(),
    timezone: timezone.optional(),
    website: webAddress.nullable().optional(),
    billing_email: email
      .nullable()
      .optional()
      .meta({ description: 'Address for invoices; null for no address.' }),
    owner_user_id: int32.optional().meta({ description: 'An active user of the account.' }),
  })
  .refine((given) => Object.keys(given).length > 0, {
    error: 'must have at least one field to change',
  })
  .meta(SOME_FIELD);

export const updateAccountInput = z.strictObject({ account: accountSettings }).meta({
  id: 'UpdateAccountRequest',
  requestExamples: [{ account: { name: 'Acme', timezone: 'Europe/Berlin', website: null } }],
});

const PORTAL_ORIGIN_COUNT_MAX = 20;
/** It goes into a header of the page as it is, so it may only have scheme, host and port. */
const ORIGIN = /^https?:\/\/[\w.:[\]-]+$/;
const embeddingOrigin = text(300)
  .superRefine((given, context) => {
    const url = URL.parse(given);
    const refuse = (message: string) => context.addIssue({ code: 'custom', message });
    if (url?.origin !== given || !ORIGIN.test(given))
      refuse('must be an origin in lower case, such as https://app.example.com, without a path');
    else if (url.protocol !== 'https:' && !isOfThisMachine(url.host))
      refuse('must begin with https://; http:// is for this machine alone');
  })
  .meta({ pattern: ORIGIN.source });

export const updateEnvironmentInput = z
  .strictObject({
    environment: z
      .strictObject({
        name: name.optional(),
        phone_identifies: z.boolean().optional().meta({
          description: 'Whether a phone number (E.164) names a person on the Track API v2.',
        }),
        portal_origins: z.array(embeddingOrigin).max(PORTAL_ORIGIN_COUNT_MAX).optional().meta({
          description:
            'Origins (scheme, host, port) whose pages may show the portal in a frame. An empty list allows no frame.',
        }),
      })
      .refine((given) => Object.keys(given).length > 0, {
        error: 'must have at least one field to change',
      })
      .meta(SOME_FIELD),
  })
  .meta({
    id: 'UpdateEnvironmentRequest',
    requestExamples: [{ environment: { name: 'Shop', phone_identifies: true } }],
  });

const line200 = line(LINE_LENGTH_MAX);

const addressInput = z
  .strictObject({
    company: line200.nullable().default(null),
    line1: line200,
    line2: line200.nullable().default(null),
    city: line200,
    state: line(100)
      .nullable()
      .default(null)
      .meta({ description: 'Required if addresses of the country have states.' }),
    postal_code: line(20)
      .nullable()
      .default(null)
      .meta({ description: 'Required if the country has postal codes.' }),
    country: text(2)
      .refine(isCountry, { error: 'must be an ISO 3166-1 alpha-2 code, such as US' })
      .meta({ pattern: '^[A-Z]{2}$', description: 'An ISO 3166-1 alpha-2 code, such as `US`.' }),
    tax_id: z
      .strictObject({
        type: line(30).meta({
          description: 'The payment provider’s name of the type, such as `eu_vat`.',
        }),
        value: line(50),
      })
      .nullable()
      .default(null),
  })
  .superRefine((given, context) => {
    for (const part of requiredParts(given.country)) {
      if (given[part] !== null) continue;
      context.addIssue({
        code: 'custom',
        path: [part],
        message: `is needed for an address in ${given.country}`,
      });
    }
  });

export const updateAddressInput = z.strictObject({ address: addressInput }).meta({
  id: 'UpdateAddressRequest',
  description: 'Takes the place of the whole address.',
  requestExamples: [
    {
      address: {
        line1: '1 Main Street',
        city: 'Springfield',
        state: 'IL',
        postal_code: '62701',
        country: 'US',
      },
    },
  ],
});

function isTimezone(value: string): boolean {
  // Offsets such as +01:00 are taken by Intl too, but they are no zones.
  if (!/^[A-Za-z]/.test(value)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: value }).format();
    return true;
  } catch {
    return false;
  }
}
