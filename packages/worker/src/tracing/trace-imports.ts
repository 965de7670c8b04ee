/**
 * Traces of imports, if they are on (`platform/src/telemetry/tracing.ts`).
 *
 * An import has a span each time that a worker takes it up, under the call that asked for it, and one a batch. The
 * batch's place goes with its claim, so that deliveries of its events are in the same trace.
 *
 * ```
 *   POST /v1/imports ─▶ (in Postgres) import file ─▶ import rows, … ─▶ (in Postgres) POST {endpoint}, …
 * ```
 */
import { inSpan, type Tracer } from '@sluice/platform/telemetry/tracing';
import type { BatchOutcome } from '../imports/import-rows.ts';
import { UNTRACED, type ImportTrace, type TraceImport } from '../imports/run-import.ts';

export const createImportTracing =
  (tracer: Tracer): TraceImport =>
  async (row, run) => {
    const { environmentId, importId, traceparent: parent } = row;
    if (parent === null) return run(UNTRACED);
    const attributes = { 'sluice.environment_id': environmentId, 'sluice.import_id': importId };
    const start = { name: 'import file', kind: 'internal', parent, attributes } as const;
    return inSpan(tracer, start, async ({ traceparent }) => {
      const result = await run(
        traceparent === undefined ? UNTRACED : createImportTrace(tracer, traceparent),
      );
      return { result, attributes: { 'sluice.state': result } };
    });
  };

const createImportTrace = (tracer: Tracer, parent: string): ImportTrace => ({
  batch(rowCount, write) {
    const attributes = { 'sluice.rows': rowCount };
    const start = { name: 'import rows', kind: 'internal', parent, attributes } as const;
    return inSpan<BatchOutcome>(tracer, start, async ({ traceparent = null }) => {
      const result = await write(traceparent);
      return { result, attributes: { 'sluice.outcome': result.outcome } };
    });
  },
});
