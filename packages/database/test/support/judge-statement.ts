/** Tables that a statement touches without naming their tenant. */
import { TENANT_COLUMNS } from '../../src/schema/table-places.ts';
import { findUnboundTables, type TenantColumns } from '../../src/testing/statement-tenants.ts';
import { CROSS_TENANT_STATEMENTS, STATEMENTS_OF_WORKSPACES } from './cross-tenant-statements.ts';
import type { SourceStatement } from './read-statements.ts';

const BY_TENANT: TenantColumns = new Map(
  [...TENANT_COLUMNS].map(([table, column]) => [table, [column]]),
);
const BY_WORKSPACE: TenantColumns = new Map([
  ...BY_TENANT,
  ['environments', ['account_id', 'environment_id']],
]);

export const unboundIn = (text: string): string[] => findUnboundTables(text, BY_TENANT);

/** Tables whose tenant the statement does not name. Some of them may be listed. */
export const unboundAt = ({ place, text }: SourceStatement): string[] =>
  findUnboundTables(text, place in STATEMENTS_OF_WORKSPACES ? BY_WORKSPACE : BY_TENANT);

/** Tables whose tenant the statement does not name, without a listed reason. */
export function unlistedAt(statement: SourceStatement): string[] {
  const [, ...listed] = CROSS_TENANT_STATEMENTS[statement.place] ?? [''];
  return unboundAt(statement).filter((table) => !listed.includes(table));
}
