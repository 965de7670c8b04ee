/** Buttons to the first page of a list. And to the next one: the API gives its start, and the URL keeps it. */
export function PageButtons({
  start,
  next,
  names: [first, further] = ['Newest', 'Older'],
  onStart,
}: {
  /** Of the page that is shown. Undefined: the first. */
  readonly start: string | undefined;
  /** Of the next page. Empty: this is the last. */
  readonly next: string;
  /** Of the buttons, if the list is in another order. */
  readonly names?: readonly [string, string];
  readonly onStart: (start: string | undefined) => void;
}) {
  return (
    <div className="actions">
      {start !== undefined && (
        <button type="button" data-newer="" onClick={() => onStart(undefined)}>
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
