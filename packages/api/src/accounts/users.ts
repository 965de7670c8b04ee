/** `GET /v1/accounts/{account_id}/all_users`: the people of an account. */
import type { Database } from '@sluice/database/connection/connection';
import { ROLES } from '@sluice/domain/accounts/account';
import { type User, listUsers } from '@sluice/database/users/users';
import { z } from 'zod';
import { accountCallerOf } from '../auth/account-guard.ts';
import { instantOrNull } from './account-view.ts';
import { accountReadFailures, idInPath, instant } from '../http/fields.ts';
import type { ApiServer } from '../http/api-server.ts';

/** The list has no pages; `meta.total` shows if it is longer. */
const USER_COUNT_MAX = 10_000;

export const user = z
  .object({
    id: z.int(),
    email: z.string(),
    first_name: z.string(),
    last_name: z.string(),
    role: z.enum(ROLES),
    status: z.enum(['active', 'invited', 'deactivated']),
    two_factor_enabled: z.boolean(),
    sso: z.boolean(),
    environment_ids: z.array(z.int()),
    last_sign_in_at: instant.nullable(),
    created_at: instant,
  })
  .meta({ id: 'User' });

export function registerUsers(
  scope: ApiServer,
  { database }: { readonly database: Database },
): void {
  scope.get(
    '/v1/accounts/:account_id/all_users',
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['accounts'],
        summary: 'The users of an account',
        description: `By id; the first ${USER_COUNT_MAX}.`,
        params: z.object({ account_id: idInPath }),
        response: {
          200: z
            .object({ users: z.array(user), meta: z.object({ total: z.int() }) })
            .meta({ id: 'IndexAllResponse' }),
          ...accountReadFailures,
        },
      },
    },
    async (request, reply) => {
      const { users, total } = await listUsers(
        database,
        accountCallerOf(request).accountId,
        USER_COUNT_MAX,
      );
      return reply.send({ users: users.map(userToWire), meta: { total } });
    },
  );
}

export const userToWire = (row: User): z.infer<typeof user> => ({
  id: row.userId,
  email: row.email,
  first_name: row.firstName,
  last_name: row.lastName,
  role: row.role,
  status: row.status,
  two_factor_enabled: row.isTwoFactorEnabled,
  sso: row.isSso,
  environment_ids: [...row.environmentIds],
  last_sign_in_at: instantOrNull(row.lastSignInAt),
  created_at: row.createdAt.toISOString(),
});
