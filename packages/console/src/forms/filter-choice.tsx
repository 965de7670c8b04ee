/** A filter with a few values to choose from. */
export function FilterChoice({
  label,
  value,
  choices,
  onChange,
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly choices: readonly string[];
  readonly onChange: (value: string | undefined) => void;
}) {
  return (
    <label>
      {label}{' '}
      <select
        value={value ?? ''}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      >
        <option value="">all</option>
        {choices.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}
