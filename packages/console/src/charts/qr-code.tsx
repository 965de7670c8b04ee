/** A QR code of a text, drawn as elements: the page makes no HTML of a library's text. */
import { useEffect, useState } from 'react';

/** Light modules around the code: a reader needs them to find it (ISO/IEC 18004). */
const BORDER = 4;

type Modules = readonly (readonly boolean[])[];

/** Its text stands beside it, so a code that does not come is only left out. */
export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const [modules, setModules] = useState<Modules | 'failed'>();
  useEffect(() => {
    let isLeft = false;
    const show = (made: Modules | 'failed'): void => {
      if (!isLeft) setModules(made);
    };
    // A file of its own, for the few screens that show a code.
    void import('uqr').then(
      ({ encode }) => show(encode(text, { ecc: 'M', border: BORDER }).data),
      () => show('failed'),
    );
    return () => {
      isLeft = true;
    };
  }, [text]);
  if (modules === 'failed') return null;
  const size = modules?.length ?? 1;
  return (
    <svg className="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label}>
      <rect width={size} height={size} fill="#fff" />
      {modules && <path d={outlineOf(modules)} fill="#000" shapeRendering="crispEdges" />}
    </svg>
  );
}

/** A square for each dark module, as the commands of a path. */
const outlineOf = (modules: Modules): string =>
  modules
    .flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
    .join('');
