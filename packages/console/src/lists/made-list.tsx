/**
 * A list of objects that users make: a screen or a section.
 *
 * It has a title, pages, a text for the empty list, and a button for another object. The button is locked if the user
 * may not make one.
 */
import { type ReactNode, useId, useState } from 'react';
import type { Call } from '../client/call.ts';
import { useResource } from '../client/resource.ts';
import { type Capability, useReach } from '../client/session.ts';
import { Shown } from '../parts/states.tsx';
import { useSetQuery } from '../routing/router.tsx';
import { PageButtons } from './page-buttons.tsx';

const INTERVAL_MS = 5_000;
const SECTION_LINES = 2;

export interface MadeListProps<Answer> {
  readonly title: string;
  /** Of the list; asked again every 5 seconds. */
  readonly call: Call<Answer>;
  readonly isSection?: boolean;
  readonly lead?: ReactNode;
  /** The way back, above the title. */
  readonly above?: ReactNode;
  /** Beside the button. */
  readonly links?: ReactNode;
  readonly filters?: ReactNode;
  /** Absent if users cannot make one here. */
  readonly making?: {
    readonly what: string;
    readonly capability: Capability;
    /** The dialog. `onMade` closes it and asks for the list again. */
    readonly form: (ends: {
      readonly onClose: () => void;
      readonly onMade: () => void;
    }) => ReactNode;
  };
  readonly isEmpty: (answer: Answer) => boolean;
  readonly empty: ReactNode;
  readonly table: (answer: Answer) => ReactNode;
  /** Absent: the list has one page. */
  readonly pages?: {
    readonly start: string | undefined;
    readonly nextOf: (answer: Answer) => string;
  };
}

export function MadeList<Answer>({
  title,
  call,
  isSection = false,
  lead,
  above,
  links,
  filters,
  making,
  isEmpty,
  empty,
  table,
  pages,
}: MadeListProps<Answer>) {
  const { workspaceId, capabilities, notAllowed } = useReach();
  const setQuery = useSetQuery();
  const headingId = useId();
  const [isMaking, setIsMaking] = useState(false);
  const resource = useResource(call, { workspaceId, intervalMs: INTERVAL_MS });
  const isAllowed = making !== undefined && capabilities.includes(making.capability);
  const button = making && (
    <button
      type="button"
      className="main"
      disabled={!isAllowed}
      title={isAllowed ? undefined : notAllowed}
      onClick={() => setIsMaking(true)}
    >
      {making.what}
    </button>
  );
  const body = (
    <>
      {filters}
      <Shown resource={resource} {...(isSection && { lines: SECTION_LINES })}>
        {(answer) => (
          <>
            {isEmpty(answer) ? empty : table(answer)}
            {pages && (
              <PageButtons
                start={pages.start}
                next={pages.nextOf(answer)}
                names={['First', 'Next']}
                onStart={(to) => setQuery({ start: to }, false)}
              />
            )}
          </>
        )}
      </Shown>
      {isMaking &&
        making?.form({
          onClose: () => setIsMaking(false),
          onMade: () => {
            setIsMaking(false);
            void resource.reload();
          },
        })}
    </>
  );
  if (isSection)
    return (
      <section aria-labelledby={headingId}>
        <div className="row">
          <h2 id={headingId}>{title}</h2>
          <span className="grow" />
          {button}
        </div>
        {body}
      </section>
    );
  return (
    <>
      <header className="title">
        {above && <p className="above">{above}</p>}
        <h1>{title}</h1>
        {lead && <p className="lead">{lead}</p>}
        {(Boolean(links) || button) && (
          <div className="actions">
            {links}
            {button}
          </div>
        )}
      </header>
      {body}
    </>
  );
}
