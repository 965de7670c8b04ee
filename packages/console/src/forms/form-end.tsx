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

/** Shown when the dialog is no longer held although the answer is not there. */
export function LateSecret() {
  return (
    <p className="refusal" role="alert">
      The API has not answered for a minute. The secret may have been made: if you close this, it is
      not shown.
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
  /** The answer has a secret that is shown once: the dialog stays until the answer is there, or for a minute. */
  readonly hasSecret?: boolean;
  /** Action of the button. */
  readonly what: string;
  /** Absent: the button submits the form that it stands in. */
  readonly onWish?: () => void;
  readonly onClose: () => void;
}) {
  const isWaiting = hasSecret && isRunning;
  const isHeld = useHeldDialog(isWaiting);
  return (
    <>
      <Refusal problem={problem} />
      {isWaiting && !isHeld && <LateSecret />}
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
