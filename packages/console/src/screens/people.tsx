/** Looks a person up by an identifier. */
import type { FormEvent } from 'react';
import { formText } from '../forms/form-text.ts';
import { Empty } from '../parts/states.tsx';
import { linkTo, segment } from '../routing/location.ts';
import { navigate, type Route, useRouting } from '../routing/router.tsx';

export const ID_TYPES = { id: 'id', email: 'email', svc_id: 'svc_id' } as const;

export const peopleRoute: Route = {
  pattern: '/people',
  title: () => 'People',
  query: { by: Object.keys(ID_TYPES) },
  screen: () => <People />,
};

/** What an identifier looks like; a person may have an id that looks like another kind. */
function idTypeOf(text: string): keyof typeof ID_TYPES {
  if (text.includes('@')) return 'email';
  return /^(?:svc|cio)_/.test(text) ? 'svc_id' : 'id';
}

function People() {
  const { place } = useRouting();
  const open = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = formText(event.currentTarget, 'identifier');
    const chosen = formText(event.currentTarget, 'by');
    const by = chosen === '' ? idTypeOf(text) : chosen;
    if (text !== '')
      navigate(linkTo(`/people/${segment(text)}`, place.query, by === 'id' ? {} : { by }));
  };
  return (
    <>
      <header className="title">
        <h1>People</h1>
      </header>
      <form className="filters" role="search" aria-label="Find a person" onSubmit={open}>
        <label>
          Identifier{' '}
          <input type="search" name="identifier" data-filter="" required spellCheck={false} />
        </label>
        <label>
          Kind{' '}
          <select name="by" defaultValue="">
            <option value="">as it looks</option>
            {Object.keys(ID_TYPES).map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" className="main">
          Find
        </button>
      </form>
      <Empty title="Find a person by id, email or svc_id">
        <p>The whole identifier, as calls have it; letter case counts in an id.</p>
      </Empty>
    </>
  );
}
