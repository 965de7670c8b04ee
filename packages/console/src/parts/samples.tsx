/**
 * Samples of code: one alone, or in one language of several. The query of the page names the language; the default is
 * `curl`.
 */
import { useSetQuery } from '../routing/router.tsx';
import { sampleOf } from '../sentences/code-samples.ts';
import { CopyButton } from './copy-button.tsx';

/** One that is pasted as it is. */
function Sample({
  label,
  sample,
}: {
  /** Purpose of the sample, for its heading and for users of screen readers. */
  readonly label: string;
  readonly sample: string;
}) {
  return (
    <div className="json">
      <div className="row">
        <span>{label}</span>
        <span className="grow" />
        <CopyButton text={sample} label={`Copy: ${label}`}>
          Copy
        </CopyButton>
      </div>
      <pre tabIndex={0} role="region" aria-label={label}>
        {sample}
      </pre>
    </div>
  );
}

/** A call of the API as it is pasted into a shell, with the key from the environment. */
export function CallSample({
  label,
  path,
  method = 'GET',
  body,
  intakeUrl,
}: {
  readonly label: string;
  readonly path: string;
  readonly method?: string;
  readonly body?: unknown;
  /** Of a call of intake, which takes the site id and an API key. */
  readonly intakeUrl?: string;
}) {
  const call =
    intakeUrl === undefined
      ? ({ url: `${location.origin}${path}`, auth: 'bearer', variable: 'SLUICE_KEY' } as const)
      : ({ url: `${intakeUrl}${path}`, auth: 'pair', variable: 'SLUICE_SITE_KEY' } as const);
  return (
    <div className="stack">
      <Sample label={label} sample={sampleOf('curl', { method, body, ...call })} />
      <p className="faint">
        {intakeUrl === undefined
          ? 'SLUICE_KEY is a key of the app API.'
          : 'SLUICE_SITE_KEY is a site id and its API key, with a colon between.'}
      </p>
    </div>
  );
}

export function Samples({
  languages,
  language,
  sample,
}: {
  /** By its id, the name that is shown. */
  readonly languages: Readonly<Record<string, string>>;
  readonly language: string;
  readonly sample: string;
}) {
  const setQuery = useSetQuery();
  return (
    <section className="card">
      <div className="tabs" role="group" aria-label="Language">
        {Object.entries(languages).map(([id, name]) => (
          <button
            key={id}
            type="button"
            aria-pressed={id === language}
            onClick={() => setQuery({ language: id === 'curl' ? undefined : id })}
          >
            {name}
          </button>
        ))}
        <span className="grow" />
        <CopyButton text={sample} label="Copy the sample">
          Copy
        </CopyButton>
      </div>
      <pre tabIndex={0} role="region" aria-label="Sample">
        {sample}
      </pre>
    </section>
  );
}
