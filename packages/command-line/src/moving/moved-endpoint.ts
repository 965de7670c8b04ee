/** An endpoint of another product, in the words of `POST /v1/applications/{id}/endpoints`. */
import type { components } from '@sluice/client';
import { AppError } from '@sluice/domain/values/errors';
import { isJsonObject, type Json, type JsonObject } from '@sluice/domain/values/json';

export interface MovedApplication {
  readonly id: string;
  readonly name: string;
}

export type MovedSettings = components['schemas']['NewEndpointInput'];

/** An application before its endpoints, or an endpoint of an application. */
export type Moved =
  | { readonly application: MovedApplication; readonly settings?: never }
  | MovedEndpoint;

export interface MovedEndpoint {
  readonly application: MovedApplication;
  /** The body of the call. */
  readonly settings: MovedSettings;
  readonly isDisabled: boolean;
  /** Secret with which its receiver verifies. Undefined: the product shows no secret. */
  readonly secret: string | undefined;
  /** Settings that it has there and does not get here. Each is set by hand. */
  readonly byHand: readonly string[];
}

/** Reads a path of the other product. @throws AppError if it does not answer with an object. */
export type ReadSource = (path: string) => Promise<JsonObject>;

/** The objects of a list; other members are left out. */
export const objectsOf = (list: Json | undefined): readonly JsonObject[] =>
  (Array.isArray(list) ? list : []).filter(isJsonObject);

/** The texts of a list. */
export const textsOf = (list: Json | undefined): readonly string[] =>
  (Array.isArray(list) ? list : []).filter((each) => typeof each === 'string');

/** The value if it is a text that is not empty. */
export const textOf = (value: Json | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** @throws AppError COMMAND_FAILED if the other product has left it out. */
export function neededText(value: Json | undefined, what: string): string {
  const text = textOf(value);
  if (text === undefined)
    throw new AppError(
      'COMMAND_FAILED',
      `an answer has no ${what}; check that --from is the API of this product`,
    );
  return text;
}

/** Characters of a name. */
const NAME_LENGTH_MAX = 200;
const HALF_PAIR = /[\uD800-\uDBFF]$/;

/** The beginning of a name, with all of the ending. */
export const cutName = (name: string, ending = ''): string =>
  `${name
    .slice(0, NAME_LENGTH_MAX - ending.length)
    .replace(HALF_PAIR, '')
    .trimEnd()}${ending}`;

/** The first of the names that is not blank, as the API keeps it: shorter, and without blanks at its ends. */
export const nameOf = (...names: readonly (string | undefined)[]): string =>
  cutName(names.map((name = '') => name.trim()).find((name) => name !== '') ?? '');
