/**
 * A JSON value, pretty or as it came. Texts of others stay text: no part of them becomes HTML, and control characters
 * are shown as JSON writes them.
 */
import { useMemo, useState } from 'react';
import { visibleText } from '../sentences/visible-text.ts';
import { CopyButton } from './copy-button.tsx';

/** Beyond it the text is shown as it came: parsing would hold up the page. */
const PRETTY_SIZE_MAX = 200_000;

export function JsonView({
  value,
  label,
}: {
  /** A text is shown pretty if it is JSON. */
  readonly value: unknown;
  /** Name of the value, for users of screen readers. */
  readonly label: string;
}) {
  const [isRaw, setIsRaw] = useState(false);
  const { raw, pretty } = useMemo(() => textsOf(value), [value]);
  const text = isRaw ? raw : pretty;
  return (
    <div className="json">
      <div className="row">
        <span>{label}</span>
        <span className="grow" />
        {raw !== pretty && (
          <button type="button" className="small" onClick={() => setIsRaw(!isRaw)}>
            {isRaw ? 'Pretty' : 'Raw'}
          </button>
        )}
        <CopyButton text={raw} label={`Copy ${label}`}>
          Copy
        </CopyButton>
      </div>
      <pre tabIndex={0} role="region" aria-label={label}>
        {visibleText(text)}
      </pre>
    </div>
  );
}

function textsOf(value: unknown): { raw: string; pretty: string } {
  const raw = typeof value === 'string' ? value : JSON.stringify(value);
  if (raw.length > PRETTY_SIZE_MAX) return { raw, pretty: raw };
  try {
    const parsed: unknown = typeof value === 'string' ? JSON.parse(value) : value;
    return { raw, pretty: JSON.stringify(parsed, null, 2) };
  } catch {
    return { raw, pretty: raw };
  }
}
