/** The fields for the events of a webhook or a feed. An endpoint has a part of them. */
import { formText } from '../forms/form-text.ts';
import {
  type Condition,
  conditionLines,
  conditionsOf,
  INCOMING_TYPES,
  isIncoming,
  linesOf,
  type Subscription,
  typesOf,
} from '../sentences/subscription-text.ts';

export function SubscriptionFields({
  subscription,
  types,
  onTypes,
}: {
  /** Absent: of something new. */
  readonly subscription: Subscription | undefined;
  /** The chosen ones of `INCOMING_TYPES`. */
  readonly types: readonly string[];
  readonly onTypes: (types: readonly string[]) => void;
}) {
  const others = subscription?.events.filter((type) => !isIncoming(type)) ?? [];
  return (
    <>
      <TypeChoice types={types} onChange={onTypes} />
      <label htmlFor="webhook-others">Types of messages, subscriptions and alerts</label>
      <input
        id="webhook-others"
        name="others"
        autoComplete="off"
        spellCheck={false}
        placeholder="email_sent, customer_unsubscribed"
        defaultValue={others.join(', ')}
      />
      <FilterFields
        subscription={subscription}
        names="Only tracked events and messages with these names, one a line"
        example={['order_placed', 'data.properties.total gte 100']}
      />
      <fieldset>
        <legend>With it</legend>
        <Choice
          name="person"
          isOn={subscription?.with_person_attributes}
          text="The person's attributes"
        />
        <Choice name="imports" isOn={subscription?.with_imports} text="Rows of imports" />
        <Choice
          name="late"
          isOn={subscription?.with_late}
          text="Events of more than 72 hours ago"
        />
        <Choice name="content" isOn={subscription?.with_content} text="The content of messages" />
        <Choice
          name="resolution"
          isOn={subscription?.full_resolution}
          text="Each open and click, not only the first"
        />
      </fieldset>
    </>
  );
}

/** Names and conditions alone: all that an endpoint of an application decides. */
export function FilterFields({
  subscription,
  names,
  example: [name, condition],
}: {
  readonly subscription: Subscription | undefined;
  /** Label of the field for names. */
  readonly names: string;
  readonly example: readonly [name: string, condition: string];
}) {
  return (
    <>
      <label htmlFor="webhook-names">{names}</label>
      <textarea
        id="webhook-names"
        name="names"
        rows={2}
        spellCheck={false}
        placeholder={name}
        defaultValue={subscription?.event_names?.join('\n') ?? ''}
      />
      <label htmlFor="webhook-conditions">Conditions that all must fit, one a line</label>
      <textarea
        id="webhook-conditions"
        name="conditions"
        rows={2}
        spellCheck={false}
        placeholder={condition}
        defaultValue={conditionLines(subscription?.attribute_filters ?? null)}
      />
    </>
  );
}

function TypeChoice({
  types,
  onChange,
}: {
  readonly types: readonly string[];
  readonly onChange: (types: readonly string[]) => void;
}) {
  return (
    <fieldset>
      <legend>Incoming calls</legend>
      {Object.entries(INCOMING_TYPES).map(([type, text]) => (
        <label key={type}>
          <input
            type="checkbox"
            checked={types.includes(type)}
            onChange={(event) =>
              onChange(
                event.currentTarget.checked
                  ? [...types, type]
                  : types.filter((each) => each !== type),
              )
            }
          />{' '}
          {text}
        </label>
      ))}
    </fieldset>
  );
}

function Choice({
  name,
  isOn = false,
  text,
}: {
  readonly name: string;
  readonly isOn?: boolean | undefined;
  readonly text: string;
}) {
  return (
    <label>
      <input type="checkbox" name={name} defaultChecked={isOn} /> {text}
    </label>
  );
}

/** The request of a form with {@link SubscriptionFields}. */
export const subscriptionOf = (
  form: HTMLFormElement,
  types: readonly string[],
  subscription: Subscription | undefined,
) => ({
  events: typesOf([...types, formText(form, 'others')].join(' ')),
  ...filtersOf(form, subscription),
  with_person_attributes: formText(form, 'person') !== '',
  with_imports: formText(form, 'imports') !== '',
  with_late: formText(form, 'late') !== '',
  with_content: formText(form, 'content') !== '',
  full_resolution: formText(form, 'resolution') !== '',
});

/** The request of a form with {@link FilterFields}. */
export function filtersOf(
  form: HTMLFormElement,
  subscription: Subscription | undefined,
): { readonly event_names: readonly string[]; readonly attribute_filters: readonly Condition[] } {
  const given = formText(form, 'conditions');
  const before = subscription?.attribute_filters ?? [];
  return {
    event_names: linesOf(formText(form, 'names')),
    // Also if a value has a line break: then a line is no condition.
    attribute_filters: given === conditionLines(before) ? before : conditionsOf(given, before),
  };
}
