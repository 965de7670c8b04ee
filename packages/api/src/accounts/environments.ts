/** The settings of an account's workspaces, which the account API calls environments. */
import type { Database } from '@sluice/database/connection/connection';
import { updateEnvironment } from '@sluice/database/accounts/environments';
import { z } from 'zod';
import { updateEnvironmentInput } from './account-fields.ts';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import { sendProblem } from '../http/error-handling.ts';
import { accountFailures, badBody, idInPath } from '../http/fields.ts';
import { notFound } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';

export interface EnvironmentEffects {
  readonly database: Database;
  readonly now: () => number;
}

const environment = z
  .object({
    id: z.int(),
    name: z.string(),
    phone_identifies: z.boolean(),
    portal_origins: z.array(z.string()),
  })
  .meta({ id: 'Environment' });

export function registerEnvironments(
  scope: ApiServer,
  { database, now }: EnvironmentEffects,
): void {
  scope.put(
    '/v1/accounts/:account_id/environments/:environment_id',
    {
      config: { access: { role: 'account_admin' } },
      schema: {
        tags: ['accounts'],
        summary: 'Change settings of a workspace',
        description:
          'A field that the body leaves out keeps its value. Every intake process applies the change within a second.',
        params: z.object({ account_id: idInPath, environment_id: idInPath }),
        body: updateEnvironmentInput,
        response: { 200: z.object({ environment }), ...badBody, ...accountFailures },
      },
    },
    async (request, reply) => {
      const { name, phone_identifies: phoneIdentifies } = request.body.environment;
      const { portal_origins: portalOrigins } = request.body.environment;
      const changed = await updateEnvironment(
        database,
        accountCallerOf(request).accountId,
        request.params.environment_id,
        {
          ...(name !== undefined && { name }),
          ...(phoneIdentifies !== undefined && { phoneIdentifies }),
          ...(portalOrigins !== undefined && { portalOrigins }),
        },
        originOf(request),
        now(),
      );
      if (!changed) return sendProblem(request, reply, notFound('environment'));
      return reply.send({
        environment: {
          id: changed.environmentId,
          name: changed.name,
          phone_identifies: changed.phoneIdentifies,
          portal_origins: [...changed.portalOrigins],
        },
      });
    },
  );
}
