/** Shows the screen of the address, and changes the address. The browser keeps the history and the scroll position. */
import {
  createContext,
  type ComponentType,
  type MouseEvent,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useSyncExternalStore,
} from 'react';
import type { Capability } from '../client/session.ts';
import { visibleText } from '../sentences/visible-text.ts';
import {
  linkTo,
  matchPath,
  type Place,
  type QueryRules,
  readQuery,
  writeQuery,
} from './location.ts';

export interface Route {
  /** `/webhooks/:id` */
  readonly pattern: string;
  /** Of the document, before the product's name. */
  readonly title: (params: Readonly<Record<string, string>>) => string;
  readonly query: QueryRules;
  /** Capability that the user needs for the screen. Absent: to be signed in. */
  readonly capability?: Capability;
  readonly screen: ComponentType<{ readonly place: Place }>;
}

const CHANGED = 'sluice:address';

function subscribe(listener: () => void): () => void {
  addEventListener('popstate', listener);
  addEventListener(CHANGED, listener);
  return () => {
    removeEventListener('popstate', listener);
    removeEventListener(CHANGED, listener);
  };
}

const currentAddress = (): string => `${location.pathname}${location.search}`;

/** @param isReplaced - the entry of the history is replaced: a filter that is typed is no step back. */
export function navigate(address: string, isReplaced = false): void {
  if (address === currentAddress()) return;
  history[isReplaced ? 'replaceState' : 'pushState'](null, '', address);
  if (!isReplaced) scrollTo(0, 0);
  dispatchEvent(new Event(CHANGED));
}

interface Routing {
  readonly route: Route | undefined;
  /** The screen above, such as the list of an object. Undefined: this is the highest. */
  readonly up: Route | undefined;
  /** Beginning of the paths of all screens; empty except in the portal. */
  readonly base: string;
  readonly place: Place;
}

const RoutingContext = createContext<Routing>({
  route: undefined,
  up: undefined,
  base: '',
  place: { params: {}, query: {} },
});

/** The nearest of the routes whose path is a beginning of the path, and names no object. */
const upOf = ({ pattern }: Route, routes: readonly Route[]): Route | undefined =>
  routes
    .filter(
      (each) =>
        each.pattern !== pattern &&
        !each.pattern.includes(':') &&
        `${pattern}/`.startsWith(each.pattern === '/' ? '/' : `${each.pattern}/`),
    )
    .toSorted((one, other) => other.pattern.length - one.pattern.length)[0];

export function Router({
  routes,
  base = '',
  product = 'Sluice',
  children,
}: {
  readonly routes: readonly Route[];
  readonly base?: string;
  /** End of the document's title. */
  readonly product?: string;
  readonly children: ReactNode;
}) {
  const address = useSyncExternalStore(subscribe, currentAddress);
  const routing = useMemo((): Routing => {
    const { pathname, search } = new URL(address, location.origin);
    const path = pathname.startsWith(base) ? pathname.slice(base.length) || '/' : pathname;
    for (const route of routes) {
      const params = matchPath(route.pattern, path);
      if (!params) continue;
      const place = { params, query: readQuery(search, route.query) };
      return { route, up: upOf(route, routes), base, place };
    }
    const place = { params: {}, query: readQuery(search, {}) };
    return { route: undefined, up: undefined, base, place };
  }, [address, routes, base]);

  useEffect(() => {
    const { route, place } = routing;
    // An effect of an address that was left meanwhile must not bring it back.
    if (!route || address !== currentAddress()) return;
    document.title = visibleText(`${route.title(place.params)} · ${product}`);
    const known = `${location.pathname}${writeQuery(place.query)}${location.hash}`;
    if (known !== `${currentAddress()}${location.hash}`) history.replaceState(null, '', known);
  }, [routing, address, product]);

  return <RoutingContext.Provider value={routing}>{children}</RoutingContext.Provider>;
}

export const useRouting = (): Routing => useContext(RoutingContext);

/** Changes parameters of the query; undefined takes one away. */
export function useSetQuery(): (
  change: Readonly<Record<string, string | undefined>>,
  isReplaced?: boolean,
) => void {
  const { route } = useRouting();
  // Of the address as it is by now: two filters that are typed at once must not undo each other.
  return (change, isReplaced = true) => {
    const query = readQuery(location.search, route?.query ?? {});
    navigate(`${location.pathname}${writeQuery({ ...query, ...change })}`, isReplaced);
  };
}

/** A link that stays in the page; with a modifier key it is the browser's. */
export function Link({
  to,
  query,
  children,
  ...attributes
}: {
  /** Absent: the screen that is shown, with another query. */
  readonly to?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly children: ReactNode;
  readonly className?: string;
  readonly 'aria-current'?: 'page' | undefined;
  readonly 'data-row'?: string;
}) {
  const { place, base } = useRouting();
  const path =
    to === undefined ? location.pathname : `${base}${to === '/' && base !== '' ? '' : to}`;
  const address = linkTo(path, place.query, query);
  const follow = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(address);
  };
  return (
    <a href={address} onClick={follow} {...attributes}>
      {children}
    </a>
  );
}
