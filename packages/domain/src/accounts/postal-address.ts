/**
 * The address of an account, and the parts that each country requires. Countries are ISO 3166-1 alpha-2 codes, with
 * lists of the ones that have states and the ones without postal codes.
 */

/** As the API takes and shows it, and as it is kept. */
export interface Address {
  readonly company: string | null;
  readonly line1: string;
  readonly line2: string | null;
  readonly city: string;
  readonly state: string | null;
  readonly postal_code: string | null;
  readonly country: string;
  readonly tax_id: { readonly type: string; readonly value: string } | null;
}

/** Assigned codes of ISO 3166-1. */
const COUNTRIES: ReadonlySet<string> = new Set(
  (
    'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ ' +
    'CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO ' +
    'FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE ' +
    'JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO ' +
    'MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW ' +
    'PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM ' +
    'TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW'
  ).split(' '),
);

/** Mail does not arrive without the state or province. */
const HAVE_STATES: ReadonlySet<string> = new Set(['AU', 'BR', 'CA', 'CN', 'IN', 'MX', 'US']);

/** Countries without postal codes, or without ones in use. */
const HAVE_NO_POSTAL_CODES: ReadonlySet<string> = new Set(
  (
    'AE AG AN AO AW BF BI BJ BO BS BW BZ CD CF CG CI CK CM DJ DM ER FJ GA GD GH GM GQ GY HK IE JM KI KM KN KP LC ML ' +
    'MO MR MW NR NU PA QA RW SB SC SL SR ST SY TD TG TK TL TO TT TV UG VU WS YE ZW'
  ).split(' '),
);

export const isCountry = (code: string): boolean => COUNTRIES.has(code);

/** The parts of the two that an address of this country must have. */
export function requiredParts(country: string): readonly ('state' | 'postal_code')[] {
  return [
    ...(HAVE_STATES.has(country) ? (['state'] as const) : []),
    ...(HAVE_NO_POSTAL_CODES.has(country) ? [] : (['postal_code'] as const)),
  ];
}
