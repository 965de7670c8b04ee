/**
 * Schemas of event types in force, in memory.
 *
 * So no call that publishes waits for Postgres. They are kept as texts, and one is read when the first message of its
 * type comes: most are never used by this process. Before: `refresh-event-types.ts`. After:
 * `domain/src/publish/parse-publish.ts`, which checks payloads.
 */
import type { EventTypeRevision, SchemaInForce } from '@sluice/database/webhooks/event-types';
import { readSchema, type EventSchema } from '@sluice/domain/event-schemas/schema-document';
import type { EventTypesInForce } from '@sluice/domain/parsing/parse';
import type { Json } from '@sluice/domain/values/json';

interface KnownType {
  readonly version: number;
  /** Null: the type is archived. */
  readonly text: string | null;
  /** Undefined: not read yet. Null: this version cannot read it, and a payload is not checked. */
  schema?: EventSchema | null;
}

interface KnownSet {
  readonly revision: string;
  readonly types: ReadonlyMap<string, KnownType>;
}

export class EventTypeCache {
  readonly #sets = new Map<number, KnownSet>();

  /** The workspaces whose types have changed since they were put here. */
  staleOf(revisions: readonly EventTypeRevision[]): readonly EventTypeRevision[] {
    return revisions.filter(
      ({ environmentId, revision }) => this.#sets.get(environmentId)?.revision !== revision,
    );
  }

  /**
   * @param revisions - read before the schemas, so that a change between the two is read again.
   * @param schemas - all of these workspaces.
   */
  put(revisions: readonly EventTypeRevision[], schemas: readonly SchemaInForce[]): void {
    const byEnvironment = Map.groupBy(schemas, ({ environmentId }) => environmentId);
    for (const { environmentId, revision } of revisions) {
      const types = (byEnvironment.get(environmentId) ?? []).map(
        ({ name, version, schema, isArchived }): [string, KnownType] => [
          name,
          { version, text: isArchived ? null : schema },
        ],
      );
      this.#sets.set(environmentId, { revision, types: new Map(types) });
    }
  }

  /** Undefined: the workspace has neither schemas nor archived types. */
  ofWorkspace(environmentId: number): EventTypesInForce | undefined {
    const types = this.#sets.get(environmentId)?.types;
    if (types === undefined || types.size === 0) return undefined;
    return (name) => {
      const type = types.get(name);
      if (type === undefined) return undefined;
      if (type.text === null) return 'archived';
      if (type.schema === undefined) type.schema = schemaIn(type.text);
      return type.schema === null ? undefined : { version: type.version, schema: type.schema };
    };
  }
}

function schemaIn(text: string): EventSchema | null {
  const read = readSchema(JSON.parse(text) as Json);
  return read.outcome === 'read' ? read.schema : null;
}
