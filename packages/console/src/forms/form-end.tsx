/** End of a form or a question: the last refusal, the button that does it, and the one that does not. */
import { useHeldDialog } from '../parts/dialog.tsx';

/** Reason for the refusal of the last call; empty if it was not refused. */
export function Refusal({ problem }: { readonly problem: string | undefined }) {
  if (problem === undefined) return null;
  return (
    <p className="refusal" role="alert">
      {problem}
    </p>
  );
}

export function FormEnd({
  problem,
  isRunning,
  isReady = true,
  hasSecret = false,
  what,
  onWish,
  onClose,
}: {
  readonly problem: string | undefined;
  readonly isRunning: boolean;
  /** False: something is missing yet. */
  readonly isReady?: boolean;
  /** The answer has a secret that is shown once: the dialog stays until the answer is there. */
  readonly hasSecret?: boolean;
  /** Action of the button. */
  readonly what: string;
  /** Absent: the button submits the form that it stands in. */
  readonly onWish?: () => void;
  readonly onClose: () => void;
}) {
  const isHeld = hasSecret && isRunning;
  useHeldDialog(isHeld);
  return (
    <>
      <Refusal problem={problem} />
      <div className="actions">
        <button
          type={onWish ? 'button' : 'submit'}
          className="main"
          disabled={isRunning || !isReady}
          onClick={onWish}
        >
          {what}
        </button>
        <button type="button" disabled={isHeld} onClick={onClose}>
          Cancel
        </button>
      </div>
    </>
  );
}
