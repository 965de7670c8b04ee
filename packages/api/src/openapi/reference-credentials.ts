/** Credentials on the reference page: of each call, and a table. Pure. */
import { escape, prose, table } from './reference-markup.ts';

export interface Credentials {
  /** Alternatives; each names the schemes that belong together. An empty list: the call is open. */
  readonly security: readonly Readonly<Record<string, unknown>>[] | undefined;
  /** By name. */
  readonly schemes: Readonly<
    Record<
      string,
      { readonly type: string; readonly scheme?: string; readonly description?: string }
    >
  >;
}

const PLACE = 'credentials';

/** A line under the call; empty if the document has no `security` for it. */
export function credentialsText(security: Credentials['security']): string {
  if (security === undefined) return '';
  const alternatives = security.map((each) =>
    Object.keys(each)
      .map((name) => `<a href="#${PLACE}">${escape(name)}</a>`)
      .join(' and '),
  );
  return `<p>Credentials: ${alternatives.join(' or ') || 'none'}</p>`;
}

/** Empty without schemes. */
export function credentialsTable(schemes: Credentials['schemes']): string {
  const rows = Object.entries(schemes).map(([name, { type, scheme, description }]) => [
    `<code>${escape(name)}</code>`,
    escape([type, scheme].filter((part) => part !== undefined).join(', ')),
    prose(description),
  ]);
  if (rows.length === 0) return '';
  return `<h2 id="${PLACE}">Credentials</h2>${table(['name', 'kind', 'meaning'], rows)}`;
}
