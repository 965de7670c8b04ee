/**
 * A JSON value: as a tree, as it came, or by the paths of its parts. Texts of others stay text: no part of them becomes
 * HTML, and control characters are shown as JSON writes them.
 */
import { useEffect, useMemo, useState } from 'react';
import { CopyButton } from '../parts/copy-button.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { isExactNumber, parseExact } from './exact-json.ts';
import { type JsonPath, pathsOf } from './json-paths.ts';
import { type FilterOf, JsonTree } from './json-tree.tsx';
import { type ReadJson, readJson } from './read-json.ts';

/** Beyond it the text is shown as it came until a user asks for its parts, since parsing would hold up the page. */
const PRETTY_SIZE_MAX = 200_000;
const PATHS_SHOWN_MAX = 100;

export function JsonView({
  value,
  label,
  filterOf,
}: {
  /** A text is shown pretty if it is JSON. */
  readonly value: unknown;
  /** Name of the value, for users of screen readers. */
  readonly label: string;
  /** Absent: the list that shows the value has no filter by its parts. */
  readonly filterOf?: FilterOf;
}) {
  const [isRaw, setIsRaw] = useState(false);
  const [isByPath, setIsByPath] = useState(false);
  const [isWrapped, setIsWrapped] = useState(false);
  const texts = useMemo(() => textsOf(value), [value]);
  const { raw, pretty } = texts;
  const { asked, ask, read } = useLongJson(raw);
  const problem = read && 'problem' in read ? read.problem : undefined;
  const parsed = read && 'value' in read ? read.value : texts.parsed;
  const hasParts = typeof parsed === 'object' && parsed !== null && !isExactNumber(parsed);
  return (
    <div className="json">
      <div className="row">
        <span>{label}</span>
        <span className="grow" />
        {raw.length > PRETTY_SIZE_MAX && !read && (
          <button type="button" className="small" disabled={asked} onClick={ask}>
            {asked ? 'Reading' : 'Show its parts'}
          </button>
        )}
        {(raw !== pretty || (hasParts && read)) && !isByPath && (
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
        {hasParts && (
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
      {problem !== undefined && <p role="status">It is shown as it came: {visibleText(problem)}</p>}
      {isByPath ? (
        <Paths value={parsed} label={label} />
      ) : hasParts && !isRaw ? (
        <JsonTree
          value={parsed}
          label={label}
          lineCount={read ? Infinity : pretty.split('\n').length}
          isWrapped={isWrapped}
          filterOf={filterOf}
        />
      ) : (
        <pre
          tabIndex={0}
          role="region"
          aria-label={label}
          className={isWrapped ? 'wrapped' : undefined}
        >
          {visibleText(isRaw ? raw : pretty)}
        </pre>
      )}
    </div>
  );
}

/** A long text, whose parts a worker reads once a user asks for them. */
function useLongJson(raw: string): {
  readonly asked: boolean;
  readonly ask: () => void;
  /** Of this text; undefined until it was read. */
  readonly read: ReadJson | undefined;
} {
  const [askedText, setAskedText] = useState<string>();
  const [done, setDone] = useState<{ readonly text: string; readonly read: ReadJson }>();
  useEffect(() => {
    if (askedText === undefined) return;
    const leaving = new AbortController();
    void readJson(askedText, leaving.signal).then((read) => setDone({ text: askedText, read }));
    return () => leaving.abort();
  }, [askedText]);
  return {
    asked: askedText === raw,
    ask: () => setAskedText(raw),
    read: done?.text === raw ? done.read : undefined,
  };
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
    const parsed = typeof value === 'string' ? parseExact(value) : value;
    return { raw, pretty: JSON.stringify(parsed, null, 2), parsed };
  } catch {
    return { raw, pretty: raw };
  }
}
