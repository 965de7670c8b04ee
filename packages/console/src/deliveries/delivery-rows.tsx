/** Rows of deliveries, with a button that opens one; of a list of all webhooks with a link to it. */
import { Badge } from '../parts/badge.tsx';
import { Time } from '../parts/time.tsx';
import type { Delivery } from './delivery.ts';
import { SelectBox } from './selected-deliveries.tsx';

/** More attempts are shown by their number: a delivery may have hundreds. */
const ATTEMPTS_SHOWN_MAX = 6;

export function DeliveryHead() {
  return (
    <thead>
      <tr>
        <th scope="col">#</th>
        <th scope="col">Type</th>
        <th scope="col">State</th>
        <th scope="col">Attempts</th>
        <th scope="col">Logged</th>
      </tr>
    </thead>
  );
}

export function DeliveryRow({
  delivery,
  place,
  isOpen,
  onOpen,
}: {
  readonly delivery: Delivery;
  /** In a list of which a part is drawn: of all its rows, from 1, the head among them. */
  readonly place?: number;
  readonly isOpen: boolean;
  readonly onOpen: (sequence: number) => void;
}) {
  const { sequence } = delivery;
  return (
    <tr className={isOpen ? 'open' : ''} aria-rowindex={place} onClick={() => onOpen(sequence)}>
      <th scope="row" className="number">
        <SelectBox delivery={delivery} />
        <button
          type="button"
          className="cell"
          data-row=""
          aria-expanded={isOpen}
          onClick={(event) => {
            event.stopPropagation();
            onOpen(sequence);
          }}
        >
          {sequence}
        </button>
      </th>
      <DeliveryCells delivery={delivery} />
    </tr>
  );
}

/** All but the number. */
export function DeliveryCells({ delivery }: { readonly delivery: Delivery }) {
  const { attempts } = delivery;
  const unshownCount = Math.max(0, attempts.length - ATTEMPTS_SHOWN_MAX);
  return (
    <>
      <td>
        <code>{delivery.event_type}</code>
        {delivery.origin !== 'event' && <span className="chip">{delivery.origin}</span>}
      </td>
      <td>
        <Badge state={delivery.state} />
      </td>
      <td>
        {unshownCount > 0 && <span className="faint">{unshownCount} … </span>}
        {attempts.slice(unshownCount).map(({ attempt, status, failure }) => (
          <span key={attempt} className="chip">
            {status ?? failure ?? '–'}
          </span>
        ))}
      </td>
      <td className="number">
        <Time atMs={delivery.created_at * 1000} isWhole />
      </td>
    </>
  );
}
