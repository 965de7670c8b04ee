/** Query fields of the usage log and the usage summaries: days, and a workspace of the account. */
import type { Database } from '@sluice/database/connection/connection';
import { findUsageOwners } from '@sluice/database/credits/inbox-preview-runs';
import {
  findUsageNames,
  type UsageNames,
} from '@sluice/database/credits/inbox-preview-usage-reads';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { parseUtcDay, usageRange, utcDayOf, type DayRange } from '@sluice/domain/values/utc-day';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { integerInQuery, readFromText } from '../http/text-value.ts';
import { environmentNotOwned } from './inbox-preview-runs.ts';
import { validationFailed } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';

const dayInQuery = readFromText(
  parseUtcDay,
  'date',
  'must be a UTC day from 1970 on, as in 2026-03-01',
);

/** Of both. */
export const usageQuery = {
  environment_id: integerInQuery(1, INTEGER_MAX)
    .optional()
    .meta({ description: 'One workspace of the account, also one that was deleted.' }),
  start: dayInQuery.optional().meta({
    description:
      'The first UTC day. Default: the first day of the month five months before the month of `end`.',
  }),
  end: dayInQuery.optional().meta({
    description: 'The last UTC day. Default: today. A later day counts as today.',
  }),
};

export const rangeShape = { start: z.string(), end: z.string() };

/** @throws RequestRefused 422 if it begins after it ends. */
export function rangeOf(
  given: { readonly start?: string | undefined; readonly end?: string | undefined },
  nowMs: number,
): DayRange {
  const range = usageRange(given, utcDayOf(nowMs));
  if (range) return range;
  throw refusedParameter('start', 'must not be after end or in the future');
}

export const refusedParameter = (field: string, message: string): RequestRefused =>
  new RequestRefused(
    validationFailed([
      {
        field,
        reason: 'invalid',
        message: `${field} ${message}`,
        source: { parameter: field },
      },
    ]),
  );

/** @throws RequestRefused 403 if the workspace is not, and never was, the account's. */
export async function requireOwnWorkspace(
  database: Database,
  accountId: number,
  environmentId: number | undefined,
): Promise<void> {
  if (environmentId === undefined) return;
  const found = await findUsageOwners(database, accountId, { environmentId, userId: undefined });
  if (!found.ownsEnvironment) throw environmentNotOwned();
}

const NAMELESS: UsageNames = { workspaces: new Map(), users: new Map() };

/** A failure to find names must not hide the usage: they are left out. */
export async function namesOf(
  request: FastifyRequest,
  database: Database,
  accountId: number,
  entries: readonly { readonly environmentId: number | null; readonly userId: number | null }[],
): Promise<UsageNames> {
  const given = (id: number | null): number[] => (id === null ? [] : [id]);
  const environmentIds = entries.flatMap((entry) => given(entry.environmentId));
  const userIds = entries.flatMap((entry) => given(entry.userId));
  try {
    return await findUsageNames(database, accountId, environmentIds, userIds);
  } catch (error) {
    request.log.warn(
      { error },
      'the names of users and workspaces could not be read; the usage was sent without them',
    );
    return NAMELESS;
  }
}
