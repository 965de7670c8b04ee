/**
 * `POST /v1/event_types/{name}/check`: whether publishing would take a payload of the type, or of a schema that is not
 * stored yet. It publishes and stores no data.
 */
import type { Database } from '@sluice/database/connection/connection';
import { findEventType } from '@sluice/database/webhooks/event-types';
import { readSchema } from '@sluice/domain/event-schemas/schema-document';
import { StepBudget } from '@sluice/domain/event-schemas/step-budget';
import { validatePayload, type Violation } from '@sluice/domain/event-schemas/validate-payload';
import { MESSAGE_STEP_COUNT_MAX } from '@sluice/domain/publish/parse-publish';
import { isJsonObject, type Json, type JsonObject } from '@sluice/domain/values/json';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { badBody, badRequest, commonFailures, missing } from '../http/fields.ts';
import { notFound } from '../http/problem.ts';
import { eventTypeName, eventTypeSchema } from './event-type-fields.ts';

const body = z
  .strictObject({
    payload: z
      .custom<JsonObject>((payload) => isJsonObject(payload), 'must be an object')
      // Without it, types that are made from the description admit only an empty object.
      .meta({ type: 'object', additionalProperties: true }),
    /** In place of the stored one. */
    schema: eventTypeSchema,
  })
  .meta({ id: 'PayloadToCheck', requestExamples: [{ payload: { total: 100 } }] });
const verdict = z.object({
  fits: z.boolean(),
  version: z.int().nullable().meta({ description: 'Null if the schema of the call was checked.' }),
  errors: z.array(
    z.object({
      pointer: z.string().meta({ description: 'JSON pointer into the payload (RFC 6901).' }),
      message: z.string(),
    }),
  ),
});

export function registerPayloadCheck(
  app: ApiServer,
  { database }: { readonly database: Database },
): void {
  app.post(
    '/v1/event_types/:name/check',
    {
      config: { capability: 'workspace.read' },
      schema: {
        tags: ['event types'],
        summary: 'Check a payload',
        description: 'Tests whether publishing would take the payload, without publishing it.',
        params: z.object({ name: eventTypeName }),
        body,
        response: { 200: verdict, ...badRequest, ...missing, ...badBody, ...commonFailures },
      },
    },
    async (request, reply) => {
      const { payload, schema: draft } = request.body;
      const { name } = request.params;
      const stored =
        draft === null && (await findEventType(database, environmentOf(request), name));
      if (stored === undefined) return sendProblem(request, reply, notFound('the event type was'));
      const errors =
        stored && stored.isArchived
          ? [{ pointer: '', message: 'is of an archived event type; restore the type first' }]
          : violationsOf(stored ? stored.schema : draft, payload);
      return reply.send({
        fits: errors.length === 0,
        version: stored ? stored.version : null,
        errors,
      });
    },
  );
}

/** As publishing checks a payload against a schema. A schema that this version cannot read has no rules, as there. */
function violationsOf(schema: string | null, payload: JsonObject): Violation[] {
  const read = schema === null ? undefined : readSchema(JSON.parse(schema) as Json);
  if (read?.outcome !== 'read') return [];
  const checked = validatePayload(read.schema, payload, new StepBudget(MESSAGE_STEP_COUNT_MAX));
  switch (checked.outcome) {
    case 'valid':
      return [];
    case 'invalid':
      return [...checked.violations];
    case 'too_complex':
      return [{ pointer: '', message: 'is too much work to check; send a smaller one' }];
  }
}
