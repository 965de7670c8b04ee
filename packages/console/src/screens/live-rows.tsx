/** Rows of the live tail, and the detail of the open one. */
import type { FilterOf } from '../json/json-tree.tsx';
import { JsonView } from '../json/json-view.tsx';
import { Badge } from '../parts/badge.tsx';
import { Time } from '../parts/time.tsx';
import { segment } from '../routing/location.ts';
import { isPathStep, personAddress } from '../routing/person-address.ts';
import { Link } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import {
  detailText,
  personOf,
  personText,
  type TailLine,
  type TailRow,
} from '../tail/tail-line.ts';

export function TailRowView({
  row,
  isOpen,
  onToggle,
  filterOf,
}: {
  readonly row: TailRow;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly filterOf: FilterOf;
}) {
  if (row.kind === 'dropped')
    return (
      <tr className="gap">
        <td colSpan={5}>
          {row.count === null
            ? 'The connection was away: calls during that time are not shown.'
            : `${row.count} lines not shown: more than this page can read. A filter helps.`}
        </td>
      </tr>
    );
  return (
    <>
      <tr className={isOpen ? 'open' : ''} onClick={onToggle}>
        <td className="number">
          <Time atMs={row.at_ms} isShort />
        </td>
        <td>
          <Badge state={row.outcome} />
        </td>
        <td>
          <button
            type="button"
            className="cell"
            data-row=""
            aria-expanded={isOpen}
            onClick={(event) => {
              event.stopPropagation();
              onToggle();
            }}
          >
            {visibleText(
              row.name ?? String(row.details['type'] ?? row.details['source'] ?? row.kind),
            )}
          </button>
        </td>
        <td className="clip">{visibleText(personText(row))}</td>
        <td className="clip faint">{visibleText(detailText(row))}</td>
      </tr>
      {isOpen && (
        <tr className="detail">
          <td colSpan={5}>
            <LineDetail line={row} filterOf={filterOf} />
          </td>
        </tr>
      )}
    </>
  );
}

function LineDetail({ line, filterOf }: { readonly line: TailLine; readonly filterOf: FilterOf }) {
  const person = personOf(line);
  const { event_id: eventId, webhook_id: webhookId, sequence } = line.details;
  const address = person && personAddress(person.value, person.type);
  const { number: _, ...shown } = line as TailLine & { number: number };
  return (
    <>
      <div className="actions">
        {typeof eventId === 'string' && !isPathStep(eventId) && (
          <Link className="button" to={`/events/${segment(eventId)}`}>
            Trace
          </Link>
        )}
        {typeof webhookId === 'number' && (
          <Link
            className="button"
            to={`/webhooks/${webhookId}`}
            query={{ delivery: String(sequence) }}
          >
            Webhook {webhookId}, delivery {String(sequence)}
          </Link>
        )}
        {address && (
          <Link className="button" to={address.path} query={address.query}>
            Person {visibleText(person.value)}
          </Link>
        )}
      </div>
      <JsonView value={shown} label="The line" filterOf={filterOf} />
    </>
  );
}
