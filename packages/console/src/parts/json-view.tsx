/**
 * A JSON value: pretty, as it came, or by the paths of its parts. Texts of others stay text: no part of them becomes
 * HTML, and control characters are shown as JSON writes them.
 */
import { useMemo, useState } from 'react';
import { type JsonPath, pathsOf } from '../sentences/json-text.ts';
import { visibleText } from '../sentences/visible-text.ts';
import { CopyButton } from './copy-button.tsx';

/** Beyond it the text is shown as it came: parsing would hold up the page. */
const PRETTY_SIZE_MAX = 200_000;
const PATHS_SHOWN_MAX = 100;

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
  const [isByPath, setIsByPath] = useState(false);
  const [isWrapped, setIsWrapped] = useState(false);
  const { raw, pretty, parsed } = useMemo(() => textsOf(value), [value]);
  const text = isRaw ? raw : pretty;
  return (
    <div className="json">
      <div className="row">
        <span>{label}</span>
        <span className="grow" />
        {raw !== pretty && !isByPath && (
          <button type="button" className="small" onClick={() => setIsRaw(!isRaw)}>
            {isRaw ? 'Pretty' : 'Raw'}
          </button>
        )}
        {!isByPath && (
          <button
            type="button"
            className="small"
            aria-pressed={isWrapped}
            aria-label={`Wrap the lines of ${label}`}
            onClick={() => setIsWrapped(!isWrapped)}
          >
            Wrap
          </button>
        )}
        {typeof parsed === 'object' && parsed !== null && (
          <button
            type="button"
            className="small"
            aria-pressed={isByPath}
            aria-label={`Paths of ${label}`}
            onClick={() => setIsByPath(!isByPath)}
          >
            Paths
          </button>
        )}
        <CopyButton text={raw} label={`Copy ${label}`}>
          Copy
        </CopyButton>
      </div>
      {isByPath ? (
        <Paths value={parsed} label={label} />
      ) : (
        <pre
          tabIndex={0}
          role="region"
          aria-label={label}
          className={isWrapped ? 'wrapped' : undefined}
        >
          {visibleText(text)}
        </pre>
      )}
    </div>
  );
}

/** Each value with its path; both are copied by their buttons. */
function Paths({ value, label }: { readonly value: unknown; readonly label: string }) {
  const [sought, setSought] = useState('');
  const paths = useMemo(() => readPaths(value), [value]);
  const wanted = sought.trim().toLowerCase();
  const found = paths.filter((each) =>
    [each.path, each.value].some((text) => text.toLowerCase().includes(wanted)),
  );
  return (
    <div className="stack">
      <label className="row">
        Find{' '}
        <input
          type="search"
          aria-label={`Find in ${label}`}
          spellCheck={false}
          value={sought}
          onInput={(event) => setSought(event.currentTarget.value)}
        />
        <span role="status">
          {found.length} of {paths.length}
          {found.length > PATHS_SHOWN_MAX && `, the first ${PATHS_SHOWN_MAX} are shown`}
        </span>
      </label>
      <dl className="pairs">
        {found.slice(0, PATHS_SHOWN_MAX).map((each) => (
          <div key={each.path}>
            <dt>
              <code>{visibleText(each.path)}</code>{' '}
              <CopyButton text={each.path} label={`Copy the path ${visibleText(each.path)}`}>
                Copy
              </CopyButton>
            </dt>
            <dd>
              {visibleText(each.value)}{' '}
              <CopyButton text={each.value} label={`Copy the value of ${visibleText(each.path)}`}>
                Copy
              </CopyButton>
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** Empty for a value that is nested too deeply to be walked. */
function readPaths(value: unknown): readonly JsonPath[] {
  try {
    return pathsOf(value);
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}

function textsOf(value: unknown): { raw: string; pretty: string; parsed?: unknown } {
  const raw = typeof value === 'string' ? value : JSON.stringify(value);
  if (raw.length > PRETTY_SIZE_MAX) return { raw, pretty: raw };
  try {
    const parsed: unknown = typeof value === 'string' ? JSON.parse(value) : value;
    return { raw, pretty: JSON.stringify(parsed, null, 2), parsed };
  } catch {
    return { raw, pretty: raw };
  }
}
