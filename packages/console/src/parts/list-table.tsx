/** The table of a list, with its caption and its heads. */
import type { ReactNode } from 'react';

/** The head of a column. */
export type Head =
  | string
  | {
      readonly text: string;
      /** `right`: of a number. `unseen`: for screen readers, over buttons. */
      readonly form: 'right' | 'unseen';
    };

export function ListTable({
  caption,
  heads,
  children,
}: {
  readonly caption: string;
  readonly heads: readonly Head[];
  /** The rows. */
  readonly children: ReactNode;
}) {
  return (
    <table className="list">
      <caption className="unseen">{caption}</caption>
      <thead>
        <tr>
          {heads.map((head) => {
            const { text, form } = typeof head === 'string' ? { text: head, form: '' } : head;
            return (
              <th key={text} scope="col" className={form === 'right' ? 'right' : ''}>
                {form === 'unseen' ? <span className="unseen">{text}</span> : text}
              </th>
            );
          })}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}
