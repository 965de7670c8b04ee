/** A sample of code in one language of several; which one is in the query of the page, `curl` without. */
import { useSetQuery } from '../routing/router.tsx';
import { CopyButton } from './copy-button.tsx';

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
