/** Announces events to users of screen readers. One live region for the page. */
import { useEffect, useState } from 'react';

const ANNOUNCED = 'sluice:announce';

export function announce(text: string): void {
  dispatchEvent(new CustomEvent(ANNOUNCED, { detail: text }));
}

export function Announcer() {
  const [text, setText] = useState('');
  useEffect(() => {
    const listen = (event: Event): void => setText((event as CustomEvent<string>).detail);
    addEventListener(ANNOUNCED, listen);
    return () => removeEventListener(ANNOUNCED, listen);
  }, []);
  return (
    <div className="unseen" role="status" aria-live="polite">
      {text}
    </div>
  );
}
