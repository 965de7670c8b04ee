/**
 * Selected deliveries, which the address keeps, and their button. The part stands around all pages of a list: one that
 * began anew while it sends would offer the deliveries again that are sent already.
 */
import { createContext, type ReactNode, useContext, useEffect, useRef } from 'react';
import { RequestFailed } from '../client/request.ts';
import { useReach } from '../client/session.ts';
import { Refusal } from '../forms/form-end.tsx';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { useSetQuery } from '../routing/router.tsx';
import type { Delivery } from './delivery.ts';

/** The numbers of at most 50 deliveries, in the query of a route. */
export const SELECTED = /^[1-9]\d{0,15}(?:,[1-9]\d{0,15}){0,49}$/;
const SELECTED_COUNT_MAX = 50;
/** Other deliveries are still to be sent, and the API refuses to send them again. */
const ENDED = ['delivered', 'abandoned'];

interface Selection {
  /** They are sent now: the selection cannot be changed. */
  readonly isRunning: boolean;
  readonly sequences: readonly number[];
  readonly change: (sequences: readonly number[]) => void;
}

/** Undefined: the rows cannot be selected. */
const SelectionContext = createContext<Selection | undefined>(undefined);

/** The list with its selection. */
export function SelectedDeliveries({
  base,
  selected,
  onSent,
  children,
}: {
  /** `/v1/reporting_webhooks/1` */
  readonly base: string;
  /** As {@link SELECTED} has them. Absent: the selection is empty. */
  readonly selected: string | undefined;
  readonly onSent: () => void;
  readonly children: ReactNode;
}) {
  const { workspaceId, capabilities } = useReach();
  const setQuery = useSetQuery();
  const isShown = useRef(true);
  useEffect(() => () => void (isShown.current = false), []);
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  if (!capabilities.includes('deliveries.retry')) return children;
  const sequences = selected === undefined ? [] : selected.split(',').map(Number);
  const change = (to: readonly number[]): void => {
    // Another screen must not get the selection of this one.
    if (isShown.current)
      setQuery({ selected: to.toSorted((one, other) => one - other).join(',') || undefined });
  };
  const sendAgain = (): void =>
    void run(async () => {
      try {
        for (const [index, sequence] of sequences.entries()) {
          await callOnce(`${base}/deliveries/${sequence}/resend`, {
            method: 'POST',
            workspaceId,
          }).catch((error: unknown) => {
            if (!(error instanceof RequestFailed)) throw error;
            throw new RequestFailed(`Delivery ${sequence}: ${error.message}`, error);
          });
          // The rest stays selected if a call is refused, and no delivery is sent twice after an answer.
          change(sequences.slice(index + 1));
        }
        announce(`${sequences.length} deliveries are sent again as new deliveries`);
      } finally {
        onSent();
      }
    });
  return (
    <SelectionContext.Provider value={{ isRunning, sequences, change }}>
      {sequences.length > 0 && (
        <div className="actions" role="group" aria-label="Selected deliveries">
          <button type="button" className="main" disabled={isRunning} onClick={sendAgain}>
            Send {sequences.length} selected again
          </button>
          <button type="button" disabled={isRunning} onClick={() => change([])}>
            Select none
          </button>
        </div>
      )}
      <Refusal problem={problem} />
      {children}
    </SelectionContext.Provider>
  );
}

/** Selects the delivery of a row, in a list that has a selection. */
export function SelectBox({ delivery: { sequence, state } }: { readonly delivery: Delivery }) {
  const selection = useContext(SelectionContext);
  if (!selection) return null;
  const { isRunning, sequences, change } = selection;
  const isSelected = sequences.includes(sequence);
  return (
    <input
      type="checkbox"
      className="select-box"
      aria-label={`Select delivery ${sequence}`}
      checked={isSelected}
      disabled={
        isRunning ||
        (!isSelected && (!ENDED.includes(state) || sequences.length >= SELECTED_COUNT_MAX))
      }
      onClick={(event) => event.stopPropagation()}
      onChange={() =>
        change(
          isSelected ? sequences.filter((each) => each !== sequence) : [...sequences, sequence],
        )
      }
    />
  );
}
