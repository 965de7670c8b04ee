/** Goes to anything that is typed or pasted: an event's id, a person, a webhook's number, a screen. */
import { type KeyboardEvent, useMemo, useState } from 'react';
import { linkTo, segment } from '../routing/location.ts';
import { isPathStep, peopleAddress, personAddress } from '../routing/person-address.ts';
import { navigate, useRouting } from '../routing/router.tsx';
import { Dialog } from './dialog.tsx';
import { areKeysOn, toggleKeys } from './preferences.ts';
import { KEYS } from './use-keys.ts';
import { FOCUSED } from './focused.ts';

interface Target {
  readonly name: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
}

const SCREENS: readonly Target[] = [
  { name: 'Overview', path: '/' },
  { name: 'Start', path: '/start' },
  { name: 'Live', path: '/live' },
  { name: 'Refused calls, live', path: '/live', query: { outcome: 'refused' } },
  { name: 'Issues', path: '/issues' },
  { name: 'Webhooks', path: '/webhooks' },
  { name: 'People', path: '/people' },
  { name: 'Objects', path: '/objects' },
  { name: 'Imports', path: '/imports' },
  { name: 'Keys', path: '/keys' },
  { name: 'Users', path: '/users' },
  { name: 'Audit log', path: '/audit' },
  { name: 'Billing', path: '/billing' },
  { name: 'Settings', path: '/settings' },
  { name: 'Fleet', path: '/fleet' },
];

/** Found by their names alone: a list of all would be longer than the dialog. */
const FURTHER: readonly Target[] = [
  { name: 'Deliveries of all webhooks', path: '/deliveries' },
  { name: 'Portal links', path: '/portal-links' },
  { name: 'Event types', path: '/event-types' },
  { name: 'Applications', path: '/applications' },
  { name: 'Feeds', path: '/feeds' },
  { name: 'Reference', path: '/docs/all' },
];

/** Possible targets of a text, the likeliest first. */
function targetsOf(given: string): Target[] {
  const text = given.trim();
  if (text === '') return [...SCREENS];
  const screens = [...SCREENS, ...FURTHER].filter(({ name }) =>
    name.toLowerCase().includes(text.toLowerCase()),
  );
  const person: Target = {
    name: `Person ${text}`,
    ...personAddress(text, text.includes('@') ? 'email' : 'id'),
  };
  // Also by a svc_id, which looks like an id.
  const people: Target = { name: `People who begin with ${text}`, ...peopleAddress(text) };
  const event: Target = { name: `Event ${text}`, path: `/events/${segment(text)}` };
  const webhook: Target = { name: `Webhook ${text}`, path: `/webhooks/${text}` };
  if (isPathStep(text)) return [people, ...screens];
  if (text.includes('@')) return [person, event, people, ...screens];
  if (/^[1-9]\d{0,9}$/.test(text)) return [webhook, person, event, people, ...screens];
  return [...screens, event, person, people];
}

export function Palette({ onClose }: { readonly onClose: () => void }) {
  const { place } = useRouting();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const targets = useMemo(() => targetsOf(text), [text]);
  const go = (target: Target | undefined): void => {
    if (!target) return;
    onClose();
    navigate(linkTo(target.path, place.query, target.query));
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setChosen((chosen + step + targets.length) % Math.max(1, targets.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      go(targets[chosen]);
    }
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="Id of an event, a person, a number of a webhook, or a screen"
        aria-expanded="true"
        aria-controls="palette-targets"
        aria-activedescendant={targets.length > 0 ? `palette-${chosen}` : undefined}
        placeholder="Paste an id, an email, or type a screen"
        {...FOCUSED}
        spellCheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKey}
      />
      <div id="palette-targets" role="listbox" aria-label="Targets" className="targets">
        {targets.map((target, index) => (
          <div
            key={target.name}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => go(target)}
          >
            {target.name}
          </div>
        ))}
      </div>
    </Dialog>
  );
}

export function KeyList({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="pairs">
        {KEYS.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <div className="actions">
        <KeySwitch />
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

/** Switches the keys of one letter off and on, in this browser. */
export function KeySwitch() {
  const [isOn, setIsOn] = useState(areKeysOn);
  return (
    <button type="button" aria-pressed={!isOn} onClick={() => setIsOn(toggleKeys())}>
      No keys of one letter
    </button>
  );
}
