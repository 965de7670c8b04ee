/** Bars of equal width for the values of consecutive steps. Hidden from screen readers, which read a table beside. */

const WIDTH = 720;
const HEIGHT = 120;

export interface Bar {
  readonly key: string;
  readonly value: number;
}

export function Bars({
  bars,
  tone = 'good',
}: {
  readonly bars: readonly Bar[];
  readonly tone?: 'good' | 'bad';
}) {
  const most = Math.max(1, ...bars.map(({ value }) => value));
  const width = WIDTH / Math.max(1, bars.length);
  return (
    <svg
      className={`bars ${tone}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {bars.map(({ key, value }, index) => {
        const height = (Math.max(0, value) / most) * HEIGHT;
        return (
          <rect
            key={key}
            x={index * width}
            y={HEIGHT - height}
            width={Math.max(1, width - 2)}
            height={height}
          />
        );
      })}
    </svg>
  );
}
