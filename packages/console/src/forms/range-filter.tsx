/** The range of a list: a duration up to now or two times, and a link to the rows as they are. */
import { useZone } from '../parts/time.tsx';
import { fieldText, utcText, zoneLabel } from '../routing/field-time.ts';
import { LASTS, type RangeQuery, SINCE_UNTIL } from '../routing/time-range.ts';
import { FilterChoice } from './filter-choice.tsx';
import { RangeLink } from './range-link.tsx';
import { useTyped } from './use-typed.ts';

/** The API knows no earlier time. */
const EARLIEST = '1970-01-01T00:00';

export function RangeFilter({
  verb,
  query,
  nowMs,
  readAtMs,
  onChange,
}: {
  /** Before `since` and `before`, such as `Logged`. */
  readonly verb: string;
  readonly query: RangeQuery;
  /** The present as the list began. */
  readonly nowMs: number;
  /** Of the rows that are shown; 0 before the first. */
  readonly readAtMs: number;
  readonly onChange: (change: RangeQuery) => void;
}) {
  const { isLocal } = useZone();
  const zone = zoneLabel(isLocal);
  return (
    <>
      <FilterChoice
        label={`${verb} in the last`}
        value={query['last']}
        choices={LASTS}
        onChange={(last) => onChange({ last, since: undefined, until: undefined })}
      />
      <TimeField
        label={`${verb} since (${zone})`}
        isLocal={isLocal}
        value={query['since']}
        onChange={(since) => onChange({ since, last: undefined })}
      />
      <TimeField
        label={`${verb} before (${zone})`}
        isLocal={isLocal}
        value={query['until']}
        onChange={(until) => onChange({ until, last: undefined })}
      />
      <RangeLink form={SINCE_UNTIL} nowMs={nowMs} readAtMs={readAtMs} />
    </>
  );
}

/** The browser reports a time for each digit of the year: 0002, 0020, 0202. So it takes effect when the typing stops. */
function TimeField({
  label,
  isLocal,
  value,
  onChange,
}: {
  readonly label: string;
  readonly isLocal: boolean;
  /** Of UTC, as in the address. */
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}) {
  const isComplete = (text: string): boolean => text === '' || utcText(text, isLocal) >= EARLIEST;
  const { text, type } = useTyped(
    fieldText(value ?? '', isLocal),
    (typed) => onChange(typed && utcText(typed, isLocal)),
    isComplete,
  );
  return (
    <label>
      {label}{' '}
      <input
        type="datetime-local"
        min={fieldText(EARLIEST, isLocal)}
        value={text}
        onChange={(event) => type(event.currentTarget.value)}
      />
    </label>
  );
}
