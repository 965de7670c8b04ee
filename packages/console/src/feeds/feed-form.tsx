/** The form that makes a feed. Or it changes the later events of one. */
import { type FormEvent, useState } from 'react';
import { put } from '../client/calls.ts';
import { useReach } from '../client/session.ts';
import { FormEnd } from '../forms/form-end.tsx';
import { formText } from '../forms/form-text.ts';
import { useCallOnce } from '../forms/use-call-once.ts';
import { useWork } from '../forms/use-work.ts';
import { announce } from '../parts/announcer.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { FOCUSED } from '../parts/focused.ts';
import { isIncoming } from '../sentences/subscription-text.ts';
import { SubscriptionFields, subscriptionOf } from '../webhooks/subscription-fields.tsx';
import type { Feed } from './feed.ts';

export function FeedForm({
  feed,
  onClose,
  onSaved,
}: {
  /** Absent: a new one. */
  readonly feed?: Feed;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const { workspaceId } = useReach();
  const [types, setTypes] = useState<readonly string[]>(
    feed?.events.filter(isIncoming) ?? ['event'],
  );
  const callOnce = useCallOnce();
  const { isRunning, problem, run } = useWork();
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const name = feed?.name ?? formText(form, 'name');
    const body = subscriptionOf(form, types, feed);
    void run(async () => {
      await callOnce(put('/v1/feeds/{name}', { path: { name }, body }), { workspaceId });
      announce(feed ? 'The feed is changed' : 'The feed is made');
      onSaved();
    });
  };
  return (
    <Dialog title={feed ? `Change ${feed.name}` : 'Make a feed'} onClose={onClose}>
      <form onSubmit={save}>
        {!feed && (
          <>
            <label htmlFor="feed-name">Name, of lower-case letters, digits, - and _</label>
            <input
              id="feed-name"
              name="name"
              required
              autoComplete="off"
              spellCheck={false}
              placeholder="warehouse"
              {...FOCUSED}
            />
          </>
        )}
        <SubscriptionFields subscription={feed} types={types} onTypes={setTypes} />
        <p className="faint">
          {feed
            ? 'Its events stay. From now on it takes the events that this form selects.'
            : 'It begins with the events that come from now on.'}
        </p>
        <FormEnd
          problem={problem}
          isRunning={isRunning}
          what={feed ? 'Change it' : 'Make the feed'}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}
