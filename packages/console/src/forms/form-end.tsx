/** End of a form or a question: the last refusal, the button that does it, and the one that does not. */

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
  what,
  onWish,
  onClose,
}: {
  readonly problem: string | undefined;
  readonly isRunning: boolean;
  /** False: something is missing yet. */
  readonly isReady?: boolean;
  /** Action of the button. */
  readonly what: string;
  /** Absent: the button submits the form that it stands in. */
  readonly onWish?: () => void;
  readonly onClose: () => void;
}) {
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
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </>
  );
}
