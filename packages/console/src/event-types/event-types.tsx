/** The types of the messages that the workspace publishes; in the portal, the types that the customer may get. */
import { get } from '../client/calls.ts';
import type { AnswerOf } from '../client/operations.ts';
import { useReach, useSession } from '../client/session.ts';
import { MadeList, type MadeListProps } from '../lists/made-list.tsx';
import { ListTable } from '../parts/list-table.tsx';
import { CallSample } from '../parts/samples.tsx';
import { Empty } from '../parts/states.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { Link, type Route } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { EventTypeForm } from './event-type-form.tsx';
import type { EventType } from './event-type.ts';

export const eventTypesRoute: Route = {
  pattern: '/event-types',
  title: () => 'Event types',
  query: { start: /^[\w-]{1,2048}$/ },
  screen: ({ place: { query } }) => <EventTypes start={query['start']} />,
};

type EventTypePage = AnswerOf<'get', '/v1/event_types'>;

function EventTypes({ start }: { readonly start: string | undefined }) {
  const { isPortal } = useReach();
  return (
    <MadeList
      title="Event types"
      call={get('/v1/event_types', {
        query: { include: isPortal ? undefined : 'archived', start },
      })}
      above={isPortal && <Link to="/">Webhooks</Link>}
      lead={`The types of messages, and the contents of their payloads.${
        isPortal ? '' : ' A payload that does not fit the schema of its type is not published.'
      }`}
      {...(!isPortal && { making: MAKING })}
      isEmpty={({ event_types: types }) => types.length === 0}
      empty={isPortal ? <Empty title="No event type is described yet" /> : <NoEventType />}
      table={({ event_types: types }) => <EventTypeTable types={types} />}
      pages={{ start, nextOf: ({ next }) => next }}
    />
  );
}

const MAKING: NonNullable<MadeListProps<EventTypePage>['making']> = {
  what: 'Make an event type',
  capability: 'workspace.manage',
  form: ({ onClose, onMade }) => <EventTypeForm onClose={onClose} onSaved={onMade} />,
};

function EventTypeTable({ types }: { readonly types: readonly EventType[] }) {
  return (
    <ListTable caption="Event types, by name" heads={['Name', 'Description', 'Payload', 'Since']}>
      {types.map(({ name, description, schema, version, archived, created_at: createdAt }) => (
        <tr key={name}>
          <th scope="row" className="clip">
            <Link to={`/event-types/${segment(name)}`} data-row="">
              {visibleText(name)}
            </Link>
          </th>
          <td className="clip">{visibleText(description)}</td>
          <td>{archived ? 'archived' : schema === null ? 'any' : `schema, version ${version}`}</td>
          <td>
            <Time atMs={Date.parse(createdAt)} isWhole />
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

function NoEventType() {
  const { intake_url: intakeUrl } = useSession();
  return (
    <Empty title="No event type is described yet">
      <p>
        An event type is the name of messages that you publish to your customers, with a description
        that they read and a JSON Schema that payloads must fit. Messages of a type without a
        description are taken as they are.
      </p>
      <CallSample
        label="A type, by a call"
        method="PUT"
        path="/v1/event_types/invoice.paid"
        body={{
          description: 'An invoice is paid.',
          schema: {
            type: 'object',
            required: ['invoice_id'],
            properties: { total: { type: 'number', minimum: 0 } },
          },
        }}
      />
      <CallSample
        label="A message of it"
        method="POST"
        path="/v1/publish"
        intakeUrl={intakeUrl}
        body={{ event_type: 'invoice.paid', payload: { invoice_id: 'in_1', total: 9.5 } }}
      />
    </Empty>
  );
}
