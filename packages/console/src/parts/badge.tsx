/** A state in a word, with a sign beside the colour. */
const TONES: Readonly<Record<string, 'good' | 'bad' | 'busy' | 'quiet'>> = {
  accepted: 'good',
  delivered: 'good',
  healthy: 'good',
  mended: 'busy',
  retrying: 'busy',
  pending: 'quiet',
  warning: 'busy',
  refused: 'bad',
  rate_limited: 'bad',
  overloaded: 'bad',
  abandoned: 'bad',
  failing: 'bad',
  error: 'bad',
  disabled: 'quiet',
  active: 'good',
  imported: 'good',
  importing: 'busy',
  success: 'good',
  done: 'good',
  running: 'busy',
  declined: 'bad',
  failed: 'bad',
  invited: 'busy',
  'in force': 'good',
};

export function Badge({ state, text = state }: { readonly state: string; readonly text?: string }) {
  const tone = TONES[state] ?? 'quiet';
  return (
    <span className={`badge ${tone}`}>
      <span className="sign" aria-hidden="true" />
      {text.replaceAll('_', ' ')}
    </span>
  );
}
