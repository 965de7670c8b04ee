/**
 * A filter that is typed: it takes effect when the typing stops, or at once by Enter. A text that the route's rule does
 * not admit has no effect, and the field shows the refusal: the address would lose the text without a word.
 */
import { useId } from 'react';
import { isAdmitted } from '../routing/location.ts';
import { useRouting } from '../routing/router.tsx';
import { useTyped } from './use-typed.ts';

export function FilterText({
  label,
  name,
  takes = 'a shorter text',
  value = '',
  onChange,
}: {
  readonly label: string;
  /** Its parameter of the address. */
  readonly name: string;
  /** Description of the texts that the rule of the parameter admits. */
  readonly takes?: string;
  readonly value?: string | undefined;
  readonly onChange: (text: string | undefined) => void;
}) {
  const refusalId = useId();
  const rule = useRouting().route?.query[name];
  const fits = (typed: string): boolean =>
    rule === undefined || typed.trim() === '' || isAdmitted(rule, typed.trim());
  const { text, type, end } = useTyped(value, onChange, fits);
  const isRefused = !fits(text);
  return (
    <>
      <label>
        {label}{' '}
        <input
          type="search"
          data-filter=""
          spellCheck={false}
          value={text}
          {...(isRefused && { 'aria-invalid': true, 'aria-describedby': refusalId })}
          onInput={(event) => type(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') end();
          }}
        />
      </label>
      {isRefused && (
        <span id={refusalId} className="refusal" role="alert">
          Not applied: {label} takes {takes}.
        </span>
      )}
    </>
  );
}
