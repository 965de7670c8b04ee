/**
 * A usual server in our place: Fastify, one statement through `pg`, its rows as JSON. It has no
 * other part.
 */
import { findAccount } from '@sluice/database/accounts/accounts';
import { listAuditLogs } from '@sluice/database/audit/audit-log-reads';
import type { Database } from '@sluice/database/connection/connection';
import Fastify from 'fastify';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 10 });
const app = Fastify();

interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

/** The same statement that our API sends, with its values. */
async function statementOf(use: (database: Database) => Promise<unknown>): Promise<Statement> {
  let sent: Statement | undefined;
  const recording = {
    transformQuery: <Node>(node: Node) => node,
    compileQuery: (...given: unknown[]) => compiler.compileQuery(...given),
    executeQuery: async (query: { sql: string; parameters: unknown[] }) => {
      sent = { text: query.sql, values: query.parameters };
      return { rows: [] };
    },
  };
  const { PostgresQueryCompiler } = await import('kysely');
  const compiler = new PostgresQueryCompiler() as unknown as {
    compileQuery: (...given: unknown[]) => unknown;
  };
  await use({ getExecutor: () => recording } as unknown as Database);
  if (!sent) throw new Error('no statement was sent');
  return sent;
}

const ACCOUNT = await statementOf((database) => findAccount(database, 1));
const PAGE = await statementOf((database) =>
  listAuditLogs(database, 1, {}, { order: 'desc', cursor: 2, limit: 101 }),
);

app.get<{ Params: { id: string } }>('/v1/accounts/:id', async (request) => {
  const { rows } = await pool.query(ACCOUNT.text, [Number(request.params.id)]);
  return { account: rows[0] };
});
app.get<{ Params: { id: string }; Querystring: { cursor: string } }>(
  '/v1/accounts/:id/audit_logs',
  async (request) => {
    const values = PAGE.values.map((value) => (value === 2 ? Number(request.query.cursor) : value));
    const { rows } = await pool.query(PAGE.text, values);
    return { audit_logs: rows.slice(0, 100), has_more: rows.length > 100 };
  },
);
await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT']) });
