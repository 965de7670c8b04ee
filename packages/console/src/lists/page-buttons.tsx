/** To the first rows of a list, and to those that follow: the list says where they start, and the URL keeps it. */
export function PageButtons({
  start,
  next,
  names: [first, further] = ['Newest', 'Older'],
  onStart,
}: {
  /** Of the page that is shown; undefined: the first. */
  readonly start: string | undefined;
  /** Of the page that follows; empty: there is none. */
  readonly next: string;
  /** Of the buttons, where the list is in another order. */
  readonly names?: readonly [string, string];
  readonly onStart: (start: string | undefined) => void;
}) {
  return (
    <div className="actions">
      {start !== undefined && (
        <button type="button" onClick={() => onStart(undefined)}>
          {first}
        </button>
      )}
      {next !== '' && (
        <button type="button" onClick={() => onStart(next)}>
          {further}
        </button>
      )}
    </div>
  );
}
