/** The address of a person. Pure. */
import { segment } from './location.ts';

export interface ScreenAddress {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

/** A URL takes these for steps, also percent-encoded, and leads to another path. */
export const isPathStep = (text: string): boolean => text === '.' || text === '..';

/** The screen of the person with the identifier. An identifier that no path can name leads to the list that finds it. */
export function personAddress(identifier: string, by: 'id' | 'email' | 'svc_id'): ScreenAddress {
  if (isPathStep(identifier)) return peopleAddress(identifier);
  return { path: `/people/${segment(identifier)}`, query: by === 'id' ? {} : { by } };
}

/** The list of people whose id or email begins with the text, or whose svc_id is the text. */
export const peopleAddress = (text: string): ScreenAddress => ({
  path: '/people',
  query: { begins: text },
});
