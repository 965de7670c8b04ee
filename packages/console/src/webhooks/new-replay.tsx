/** The dialog that sends deliveries again: of one webhook, or of all endpoints of an application. */
import { useEffect, useRef, useState } from 'react';
import type { Call } from '../client/call.ts';
import type { BodyOf } from '../client/operations.ts';
import { request } from '../client/request.ts';
import { useReach } from '../client/session.ts';
import { Refusal } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Time, useZone } from '../parts/time.tsx';
import { utcText, zoneLabel } from '../routing/field-time.ts';
import { choiceOf } from '../routing/location.ts';
import { durationText } from '../sentences/time-text.ts';
import { visibleText } from '../sentences/visible-text.ts';

export interface Plan {
  readonly count: number;
  /** False: there are at least so many. */
  readonly count_is_exact: boolean;
  /** ISO 8601. Absent: more than one webhook was counted. */
  readonly first?: string | null;
  readonly last?: string | null;
  readonly by_type?: Readonly<Record<string, number>>;
  readonly takes_about_s?: number;
}

export type WantedReplay = BodyOf<'post', '/v1/reporting_webhooks/{webhook_id}/replays'>;

/** First counts the matches, then sends the counted deliveries. */
export function NewReplay<Answer>({
  callOf,
  title,
  planOf,
  onClose,
  onStarted,
}: {
  /** It only counts if that is wanted. */
  readonly callOf: (wanted: WantedReplay) => Call<Answer>;
  readonly title: string;
  /** The counted deliveries. */
  readonly planOf: (answer: Answer) => Plan;
  readonly onClose: () => void;
  readonly onStarted: (answer: Answer) => void;
}) {
  const { workspaceId } = useReach();
  const { isLocal } = useZone();
  const [asked, setAsked] = useState<WantedReplay>();
  const [plan, setPlan] = useState<Plan>();
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const first = useRef<HTMLFormElement>(null);
  // Counts changes of the form: an answer to an earlier one is not shown, and so not sent.
  const changeCount = useRef(0);
  // How many it would be as the form is when it opens.
  useEffect(() => {
    if (first.current) count(first.current);
  }, []);
  const count = (form: HTMLFormElement): void => {
    const body = wantedOf(form, isLocal);
    const { current: change } = changeCount;
    void run(async () => {
      setPlan(undefined);
      const bounded = await boundedOf(body);
      setAsked(bounded);
      const counted = planOf(await request(callOf({ ...bounded, dry_run: true }), { workspaceId }));
      if (change === changeCount.current) setPlan(counted);
    });
  };
  const start = (wanted: WantedReplay): void =>
    void run(async () => {
      const started = await callOnce(callOf(wanted), { workspaceId });
      announce('The replay has begun');
      onStarted(started);
    });
  const rate = asked?.rate_per_second ?? 1;
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        ref={first}
        onSubmit={(event) => {
          event.preventDefault();
          count(event.currentTarget);
        }}
        onInput={() => {
          changeCount.current++;
          setPlan(undefined);
        }}
      >
        <ReplayFields zone={zoneLabel(isLocal)} />
        <div className="actions">
          <button type="submit" className={plan ? '' : 'main'} disabled={isRunning}>
            Count them
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
        <Refusal problem={problem} />
      </form>
      {plan && (
        <div role="status">
          <p>
            {plan.count_is_exact ? '' : 'At least '}
            {plan.count} {plan.count === 1 ? 'delivery matches' : 'deliveries match'}
            {plan.count > 0 &&
              `: about ${durationText((plan.takes_about_s ?? plan.count / rate) * 1000)} at this rate`}
            .
          </p>
          {asked?.until !== undefined && (
            <p className="faint">
              Logged before <Time atMs={asked.until * 1000} isWhole />
            </p>
          )}
          <Parts plan={plan} />
          {plan.count > 0 && asked && (
            <button
              type="button"
              className="main"
              disabled={isRunning}
              onClick={() => start(asked)}
            >
              Send {plan.count_is_exact ? plan.count : 'them'} again
            </button>
          )}
        </div>
      )}
    </Dialog>
  );
}

/** The period and the types of the counted deliveries. */
function Parts({ plan: { first, last, by_type: byType = {} } }: { readonly plan: Plan }) {
  if (!first || !last) return null;
  const types = Object.entries(byType).map(([type, count]) => `${count} ${type}`);
  return (
    <p className="faint">
      {visibleText(types.join(', '))}, logged from <Time atMs={Date.parse(first)} /> to{' '}
      <Time atMs={Date.parse(last)} />
    </p>
  );
}

function ReplayFields({ zone }: { readonly zone: string }) {
  return (
    <>
      <p>Deliveries that match are sent again in their order, beside new ones.</p>
      <label htmlFor="replay-since">Logged since ({zone})</label>
      <input id="replay-since" name="since" type="datetime-local" step="1" />
      <label htmlFor="replay-until">Logged before ({zone})</label>
      <input id="replay-until" name="until" type="datetime-local" step="1" />
      <label htmlFor="replay-states">Their outcome</label>
      <select id="replay-states" name="states">
        <option value="">delivered or given up</option>
        <option value="abandoned">given up</option>
        <option value="delivered">delivered</option>
      </select>
      <label htmlFor="replay-person">About the person (id or email)</label>
      <input id="replay-person" name="person" autoComplete="off" spellCheck={false} />
      <label htmlFor="replay-rate">Requests a second</label>
      <input id="replay-rate" name="rate" type="number" min="1" max="1000" defaultValue="10" />
    </>
  );
}

/**
 * A range without an end ends with the present second, so that deliveries logged after the count are not sent too. The
 * count waits for that end.
 */
async function boundedOf(wanted: WantedReplay): Promise<WantedReplay> {
  if (wanted.until !== undefined) return wanted;
  const until = Math.floor(Date.now() / 1000) + 1;
  await new Promise((resolve) => setTimeout(resolve, until * 1000 - Date.now()));
  return { ...wanted, until };
}

/** The request of a form with these fields. */
function wantedOf(form: HTMLFormElement, isLocal: boolean): WantedReplay {
  const seconds = (name: string): number | undefined => {
    const text = formText(form, name);
    return text === '' ? undefined : Math.floor(Date.parse(`${utcText(text, isLocal)}Z`) / 1000);
  };
  const state = choiceOf(['delivered', 'abandoned'], formText(form, 'states'));
  const person = formText(form, 'person');
  return {
    since: seconds('since'),
    until: seconds('until'),
    states: state ? [state] : ['delivered', 'abandoned'],
    ...(person !== '' && { person: person.includes('@') ? { email: person } : { id: person } }),
    rate_per_second: Number(formText(form, 'rate')),
  };
}
