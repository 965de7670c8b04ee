/** Whom an identify names: the call itself first, then its attributes. Pure. */
import type { IdentifyPerson, PersonIdentifier } from './operation.ts';
import { identifierIn } from './state-keys.ts';

/** The identifiers of the call and of its attributes, without values that cannot identify a person. */
export function namedIdentifiers({
  person,
  attributes,
}: Pick<IdentifyPerson, 'person' | 'attributes'>): PersonIdentifier[] {
  const named: PersonIdentifier[] = [person];
  for (const kind of ['id', 'email'] as const) {
    const value = identifierIn(attributes[kind]);
    if (value !== undefined) named.push({ kind, value });
  }
  return named;
}
