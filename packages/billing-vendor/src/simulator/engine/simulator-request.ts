/** One request to the simulated payment provider: form bodies with brackets, and the payment provider's error shape. */

/** The payment provider's answer in place of an object. */
export class ProviderRefusal extends Error {
  readonly status: number;
  readonly type: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    status: number,
    type: string,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.name = 'VendorRefusal';
    this.status = status;
    this.type = type;
    this.details = details;
  }

  body(): Record<string, unknown> {
    return { error: { type: this.type, message: this.message, ...this.details } };
  }
}

export const invalid = (message: string, details: Readonly<Record<string, unknown>> = {}) =>
  new ProviderRefusal(400, 'invalid_request_error', message, details);

export const noSuch = (what: string, id: string) =>
  new ProviderRefusal(404, 'invalid_request_error', `No such ${what}: '${id}'`, {
    code: 'resource_missing',
    param: 'id',
  });

/** A value of a form: a text, or the fields in brackets under it. */
export type FormValue = string | Form;
export interface Form {
  [key: string]: FormValue;
}

/** `items[0][price]=p` → `{ items: { 0: { price: 'p' } } }`. */
export function parseForm(text: string): Form {
  const form: Form = Object.create(null) as Form;
  for (const [name, value] of new URLSearchParams(text)) {
    const keys = name.split(/\[|\]\[|\]/).filter((key) => key !== '');
    let at = form;
    for (const key of keys.slice(0, -1)) {
      const inner = at[key];
      at = typeof inner === 'object' ? inner : (at[key] = Object.create(null) as Form);
    }
    const last = keys.at(-1) ?? name;
    // `expand[]=a&expand[]=b`
    at[name.endsWith('[]') ? `${last}${Object.keys(at).length}` : last] = value;
  }
  return form;
}

export const textOf = (value: FormValue | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

export const formOf = (value: FormValue | undefined): Form =>
  typeof value === 'object' ? value : (Object.create(null) as Form);

export const formsOf = (value: FormValue | undefined): Form[] =>
  Object.values(formOf(value)).map((each) => formOf(each));

export const flagOf = (value: FormValue | undefined): boolean => value === 'true';

export function integerOf(value: FormValue | undefined, name: string): number | undefined {
  const text = textOf(value);
  if (text === undefined) return undefined;
  const number = Number(text);
  if (!Number.isSafeInteger(number))
    throw invalid(`Invalid integer: ${text}`, { param: name, code: 'parameter_invalid_integer' });
  return number;
}

export function required(value: FormValue | undefined, name: string): string {
  const text = textOf(value);
  if (text === undefined)
    throw invalid(`Missing required param: ${name}.`, { param: name, code: 'parameter_missing' });
  return text;
}

export const metadataOf = (value: FormValue | undefined): Record<string, string> =>
  Object.fromEntries(
    Object.entries(formOf(value)).flatMap(([key, text]) =>
      typeof text === 'string' ? [[key, text]] : [],
    ),
  );
