/**
 * A JSON value as a tree of lines: its objects and lists are folded and unfolded. The chosen part has buttons that copy
 * its path and its value, and a link that filters the list by it.
 *
 * By keyboard the tree is one stop: arrows choose a part and fold, as the pattern of WAI-ARIA for a tree has it, and Tab
 * goes on to the buttons.
 */
import {
  type KeyboardEvent,
  type MouseEvent,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react';
import { CopyButton } from '../parts/copy-button.tsx';
import { Link } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { type JsonLine, linesOf } from './json-lines.ts';
import { copiedText } from './json-paths.ts';

/** The query of the screen that filters its list by a part of the value; undefined for a part that is no filter. */
export type FilterOf = (
  path: string,
  value: unknown,
) => Readonly<Record<string, string>> | undefined;

/** With more lines only the first level is unfolded at first. */
const UNFOLDED_LINES_MAX = 1_000;
/** Deeper levels are folded at first. */
const UNFOLDED_LEVELS_MAX = 20;
/** Members of a part that are shown at first, and then with each step. */
const STEP_COUNT = 200;

/** The place of a line: a part has several lines. */
const keyOf = ({ kind, path }: Pick<JsonLine, 'kind' | 'path'>): string =>
  `${kind === 'more' ? 'more' : 'part'} ${path}`;

export function JsonTree({
  value,
  label,
  lineCount,
  isWrapped,
  filterOf,
}: {
  readonly value: unknown;
  readonly label: string;
  /** Of the unfolded value. */
  readonly lineCount: number;
  readonly isWrapped: boolean;
  readonly filterOf: FilterOf | undefined;
}) {
  const id = useId();
  const tree = useRef<HTMLDivElement>(null);
  /** Parts that are not as they were at first. */
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const [shownCounts, setShownCounts] = useState<ReadonlyMap<string, number>>(new Map());
  const [chosen, setChosen] = useState<string>();
  const lines = useMemo(() => {
    const levelsMax = lineCount > UNFOLDED_LINES_MAX ? 1 : UNFOLDED_LEVELS_MAX;
    return linesOf(value, {
      isFolded: (path, level) => level >= levelsMax !== turned.has(path),
      shownCountOf: (path) => shownCounts.get(path) ?? STEP_COUNT,
    });
  }, [value, lineCount, turned, shownCounts]);
  const parts = useMemo(() => lines.filter(({ kind }) => kind !== 'end'), [lines]);
  const place = parts.findIndex((line) => keyOf(line) === chosen);
  const part = parts[place];

  useEffect(() => {
    if (chosen !== undefined)
      tree.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);

  const choose = (line: JsonLine | undefined): void => {
    if (line) setChosen(keyOf(line));
  };
  const turn = (line: JsonLine): void => {
    const { kind, path } = line;
    if (kind === 'more') {
      // Its line moves down or goes; the next key leads to the first of the members that come.
      choose(parts[parts.indexOf(line) - 1]);
      const shownCount = shownCounts.get(path) ?? STEP_COUNT;
      setShownCounts(new Map([...shownCounts, [path, shownCount + STEP_COUNT]]));
    } else if (kind !== 'value') {
      const next = new Set(turned);
      if (!next.delete(path)) next.add(path);
      setTurned(next);
    }
  };
  /** @returns false for a key that has no meaning here. */
  const act = (key: string, line: JsonLine): boolean => {
    const parent = (): JsonLine | undefined =>
      parts.slice(0, place).findLast(({ level }) => level < line.level);
    if (key === 'ArrowDown') choose(parts[place + 1]);
    else if (key === 'ArrowUp') choose(parts[place - 1]);
    else if (key === 'Home') choose(parts[0]);
    else if (key === 'End') choose(parts.at(-1));
    else if (key === 'Enter' || key === ' ') turn(line);
    else if (key === 'ArrowRight')
      if (line.kind === 'begin') choose(parts[place + 1]);
      else turn(line);
    else if (key === 'ArrowLeft')
      if (line.kind === 'begin') turn(line);
      else choose(parent());
    else return false;
    return true;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const line = part ?? parts[0];
    if (line && act(event.key, line)) event.preventDefault();
  };
  const onClick = (event: MouseEvent): void => {
    const clicked = (event.target as Element).closest<HTMLElement>('[data-line]');
    const line = parts[Number(clicked?.dataset['line'] ?? -1)];
    // A selection that is drawn with the mouse is no click.
    if (!line || getSelection()?.type === 'Range') return;
    choose(line);
    if (line.kind === 'more' || (event.target as Element).closest('.fold')) turn(line);
  };
  const filter = part && part.kind !== 'more' ? filterOf?.(part.path, part.value) : undefined;
  let number = 0;
  return (
    <>
      <div className={isWrapped ? 'pre wrapped' : 'pre'} role="region" aria-label={label}>
        <div
          ref={tree}
          role="tree"
          tabIndex={0}
          aria-label={`Parts of ${label}`}
          aria-activedescendant={part && `${id}${place}`}
          onKeyDown={onKeyDown}
          onFocus={({ currentTarget }) => {
            // By keyboard. A press of the mouse would scroll the tree away under the pointer.
            if (!part && currentTarget.matches(':focus-visible')) choose(parts[0]);
          }}
          onClick={onClick}
        >
          {lines.map((line) => {
            const indentation = '  '.repeat(line.level);
            if (line.kind === 'end')
              return (
                <div key={`end ${line.path}`}>
                  {indentation}
                  {line.text}
                </div>
              );
            const index = number++;
            const isFoldable = line.kind === 'begin' || line.kind === 'folded';
            return (
              <div
                key={keyOf(line)}
                id={`${id}${index}`}
                role="treeitem"
                data-line={index}
                aria-level={line.level + 1}
                aria-selected={index === place}
                {...(isFoldable && { 'aria-expanded': line.kind === 'begin' })}
              >
                {indentation}
                {isFoldable && <span className="fold" aria-hidden="true" />}
                {visibleText(line.text)}
              </div>
            );
          })}
        </div>
      </div>
      {part && part.kind !== 'more' && (
        <div className="row" role="group" aria-label={`The chosen part of ${label}`}>
          <code>{part.path === '' ? 'all of it' : visibleText(part.path)}</code>
          <span className="grow" />
          {part.path !== '' && (
            <CopyButton text={part.path} label={`Copy path ${visibleText(part.path)}`}>
              Copy path
            </CopyButton>
          )}
          <CopyButton
            text={copiedText(part.value)}
            label={`Copy value of ${part.path === '' ? label : visibleText(part.path)}`}
          >
            Copy value
          </CopyButton>
          {filter && <Link query={filter}>Filter by this</Link>}
        </div>
      )}
    </>
  );
}
