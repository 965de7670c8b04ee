/** Selected deliveries, which the address keeps, and their button. The part stands around all pages of a list. */
import { createContext, type ReactNode, useContext, useEffect } from 'react';
import { post } from '../client/calls.ts';
import { useReach } from '../client/session.ts';
import { Refusal } from '../forms/form-end.tsx';
import { announce } from '../parts/announcer.tsx';
import { useSetQuery } from '../routing/router.tsx';
import type { Delivery, OfWebhook } from './delivery.ts';
import { noteSelected, resendAll, useResend } from './resends.ts';

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
  webhookId,
  selected,
  onSent,
  children,
}: OfWebhook & {
  /** As {@link SELECTED} has them. Absent: the selection is empty. */
  readonly selected: string | undefined;
  readonly onSent: () => void;
  readonly children: ReactNode;
}) {
  const { workspaceId, capabilities } = useReach();
  const setQuery = useSetQuery();
  const webhook = `${workspaceId} ${webhookId}`;
  const { isRunning, sent, problem } = useResend(webhook);
  const asked = selected === undefined ? [] : selected.split(',').map(Number);
  // A delivery is not offered again after an answer, also by an address that still has it.
  const sequences = asked.filter((each) => !sent.has(each));
  const setSelected = (to: readonly number[]): void =>
    setQuery({ selected: to.toSorted((one, other) => one - other).join(',') || undefined });
  useEffect(() => {
    // Another screen must not get the selection of this one.
    const inAddress = new URLSearchParams(location.search).get('selected');
    if (sequences.length < asked.length && inAddress === selected) setSelected(sequences);
  }, [selected, sent]);
  if (!capabilities.includes('deliveries.retry')) return children;
  const change = (to: readonly number[]): void => {
    noteSelected(webhook, to);
    setSelected(to);
  };
  const sendAgain = async (): Promise<void> => {
    const isDone = await resendAll(webhook, sequences, (callOnce, sequence) =>
      callOnce(
        post('/v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}/resend', {
          path: { webhook_id: webhookId, sequence },
        }),
        { workspaceId },
      ),
    );
    if (isDone) announce(`${sequences.length} deliveries are sent again as new deliveries`);
    onSent();
  };
  return (
    <SelectionContext.Provider value={{ isRunning, sequences, change }}>
      {sequences.length > 0 && (
        <div className="actions" role="group" aria-label="Selected deliveries">
          <button
            type="button"
            className="main"
            disabled={isRunning}
            onClick={() => void sendAgain()}
          >
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
