/** Records the statements of all of this process's connections to Postgres. */
import pg from 'pg';

export interface SentStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * Does `use` and gives the statements that it sent, in order.
 *
 * @returns without the statements that only open or end a transaction.
 */
export async function statementsSentBy(use: () => Promise<unknown>): Promise<SentStatement[]> {
  const sent: SentStatement[] = [];
  const prototype = pg.Client.prototype as unknown as Record<
    'query',
    (...all: unknown[]) => unknown
  >;
  const { query } = prototype;
  prototype.query = function (this: unknown, ...all: unknown[]) {
    const [given, values] = all as [string | { text: string; values?: unknown[] }, unknown];
    const text = typeof given === 'string' ? given : given.text;
    const list = Array.isArray(values) ? values : typeof given === 'string' ? [] : given.values;
    if (!/^(begin|start transaction|commit|rollback)/i.test(text))
      sent.push({ text, values: list ?? [] });
    return Reflect.apply(query, this, all);
  };
  try {
    await use();
  } finally {
    prototype.query = query;
  }
  return sent;
}
