/** The fields for a webhook's requests: its signature, its pace, its order, and when it is given up. */
import { formText } from '../forms/form-text.ts';
import {
  numberOrNull,
  type Sending,
  type Signature,
  sendingText,
  SIGNATURES,
  signatureOf,
  signingOf,
} from '../sentences/sending-text.ts';

const UNSET: Sending = {
  signing: 'sluice',
  standard_webhooks: false,
  disable_after_days: null,
  rate_limit_per_second: null,
  window_max: null,
  ordering: 'person',
};

export function SendingFields({
  sending = UNSET,
}: {
  /** Absent: of a new webhook. */
  readonly sending?: Sending | undefined;
}) {
  return (
    <details className="stack" open={sendingText(sending) !== sendingText(UNSET)}>
      <summary>How it is sent: signature, pace, order, failure</summary>
      <div className="stack">
        <label htmlFor="sending-signature">Signature</label>
        <select id="sending-signature" name="signature" defaultValue={signatureOf(sending)}>
          {Object.entries(SIGNATURES).map(([signature, text]) => (
            <option key={signature} value={signature}>
              {text}
            </option>
          ))}
        </select>
        <NumberField
          name="rate"
          label="Requests a second at most, 1 to 10,000 (empty: as fast as it goes)"
          value={sending.rate_limit_per_second}
        />
        <NumberField
          name="window"
          label="Requests at the same time at most, 1 to 1,000 (empty: no bound of its own)"
          value={sending.window_max}
        />
        <label htmlFor="sending-ordering">Order</label>
        <select id="sending-ordering" name="ordering" defaultValue={sending.ordering}>
          <option value="person">about one person in order</option>
          <option value="strict">all in order, one request at a time</option>
        </select>
        <NumberField
          name="days"
          label="Disable it after so many days of failure, 1 to 30 (empty: never)"
          value={sending.disable_after_days}
        />
      </div>
    </details>
  );
}

/** A field of text: the API refuses a text that is no number, with a message that stays beside the form. */
function NumberField({
  name,
  label,
  value,
}: {
  readonly name: string;
  readonly label: string;
  readonly value: number | null;
}) {
  const id = `sending-${name}`;
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        name={name}
        inputMode="numeric"
        autoComplete="off"
        defaultValue={value === null ? '' : String(value)}
      />
    </>
  );
}

/** The request of a form with these fields. */
export const sendingOf = (form: HTMLFormElement) => ({
  ...signingOf(formText(form, 'signature') as Signature),
  rate_limit_per_second: numberOrNull(formText(form, 'rate')),
  window_max: numberOrNull(formText(form, 'window')),
  ordering: formText(form, 'ordering') as Sending['ordering'],
  disable_after_days: numberOrNull(formText(form, 'days')),
});
