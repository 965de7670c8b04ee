/** To the newest rows of a list, and to older ones: the list says where they start, and the URL keeps it. */
export function PageButtons({
  start,
  next,
  onStart,
}: {
  /** Of the page that is shown; undefined: the newest. */
  readonly start: string | undefined;
  /** Of the page of older rows; empty: there are none. */
  readonly next: string;
  readonly onStart: (start: string | undefined) => void;
}) {
  return (
    <div className="actions">
      {start !== undefined && (
        <button type="button" onClick={() => onStart(undefined)}>
          Newest
        </button>
      )}
      {next !== '' && (
        <button type="button" onClick={() => onStart(next)}>
          Older
        </button>
      )}
    </div>
  );
}
