/**
 * The page of the portal: the webhooks of one link, for the engineers of a customer, by itself or in a frame of the
 * product that they use. It only has the console's parts about webhooks, and the types of messages that are published
 * to them.
 *
 * The code of the link is in the fragment, which no server and no `Referer` sees. It leaves the address before the
 * first call of the API, and is used once.
 */
import { useCallback, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { callAsPortal, own, request, RequestFailed, watchSignedOut } from './client/request.ts';
import { forgetResources } from './client/resource.ts';
import { type Capability, ReachContext } from './client/session.ts';
import { Announcer } from './parts/announcer.tsx';
import { ScreenFailure } from './parts/screen-failure.tsx';
import { Empty, Gathered, Waiting } from './parts/states.tsx';
import { Time } from './parts/time.tsx';
import { type Route, Router, useRouting } from './routing/router.tsx';
import { visibleText } from './sentences/visible-text.ts';
import { eventTypeRoute } from './event-types/event-type-detail.tsx';
import { eventTypesRoute } from './event-types/event-types.tsx';
import { webhookRoute } from './webhooks/webhook.tsx';
import { Webhooks } from './webhooks/webhooks.tsx';

interface PortalSession {
  readonly for: string;
  readonly capabilities: readonly Capability[];
  readonly event_types: readonly string[] | null;
  readonly is_of_application: boolean;
  readonly return_url: string | null;
  readonly expires_at: string;
  readonly theme: {
    readonly name?: string;
    readonly accent?: string;
    /** Of text on the accent. */
    readonly on_accent?: string;
    readonly color_scheme: 'light' | 'dark' | 'auto';
    readonly logo?: string;
  };
  readonly origins: readonly string[];
}

const portalRoute: Route = {
  pattern: '/',
  title: () => 'Webhooks',
  query: {},
  screen: () => <Webhooks />,
};
const ROUTES: readonly Route[] = [portalRoute, webhookRoute, eventTypesRoute, eventTypeRoute];

type Standing =
  | { readonly is: 'asking' }
  | { readonly is: 'open'; readonly session: PortalSession }
  | { readonly is: 'over'; readonly message: string };

const [, base = '', link = ''] = /^(\/portal\/([^/]+\/[^/]+))/.exec(location.pathname) ?? [];
let code = /^#c=([\w-]{43})$/.exec(location.hash)?.[1];
if (location.hash !== '') history.replaceState(null, '', `${location.pathname}${location.search}`);
const isFramed = window.parent !== window;

async function openPortal(): Promise<PortalSession> {
  if (code !== undefined) {
    const given = code;
    code = undefined;
    await request(own('post', '/portal/session', { link, code: given }));
  }
  return request(own<PortalSession>('get', '/portal/session'));
}

function Portal() {
  const [standing, setStanding] = useState<Standing>({ is: 'asking' });
  const open = useCallback(async () => {
    try {
      setStanding({ is: 'open', session: await openPortal() });
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      setStanding({ is: 'over', message: error.message });
    }
  }, []);
  useEffect(() => {
    callAsPortal(link);
    void open();
    watchSignedOut(() => {
      forgetResources();
      setStanding({
        is: 'over',
        message: 'The link is over: open it anew from the page that you came from.',
      });
    });
  }, [open]);
  switch (standing.is) {
    case 'asking':
      return <Waiting />;
    case 'over':
      return (
        <main className="sign-in">
          <div className="card">
            <h1>Webhooks</h1>
            <p role="alert">{standing.message}</p>
            {isFramed && (
              <p>
                A browser that keeps no cookies of a frame cannot show it here: have it opened in a
                tab of its own.
              </p>
            )}
          </div>
        </main>
      );
    case 'open':
      return <OpenPortal session={standing.session} />;
  }
}

function OpenPortal({ session }: { readonly session: PortalSession }) {
  useEffect(() => wear(session), [session]);
  useEffect(() => tellHeight(session.origins), [session]);
  const { theme, return_url: returnUrl } = session;
  const reach = {
    // Named by the link, which each call names.
    workspaceId: 0,
    capabilities: session.capabilities,
    notAllowed: 'This link does not allow it',
    eventTypes: session.event_types ?? [],
    isOfApplication: session.is_of_application,
    isPortal: true,
  };
  return (
    <ReachContext.Provider value={reach}>
      <Router routes={ROUTES} base={base} product={theme.name ?? 'Portal'}>
        <a className="skip" href="#screen">
          Skip to the screen
        </a>
        <div className="portal">
          <header className="bar">
            <p className="brand">
              {theme.logo !== undefined && <img src={theme.logo} alt="" height="24" />}
              {visibleText(theme.name ?? 'Webhooks')}
            </p>
            <span className="grow" />
            <span className="faint">
              Open until <Time atMs={Date.parse(session.expires_at)} isWhole />
            </span>
            {returnUrl !== null && (
              <a className="button" href={returnUrl} target={isFramed ? '_top' : undefined}>
                Back
              </a>
            )}
          </header>
          <main id="screen" tabIndex={-1}>
            <Screen />
          </main>
        </div>
        <Announcer />
      </Router>
    </ReachContext.Provider>
  );
}

function Screen() {
  const { route, place } = useRouting();
  if (!route) return <Empty title="There is no such screen" />;
  return (
    <ScreenFailure key={`${route.pattern} ${JSON.stringify(place.params)}`}>
      <Gathered>
        <route.screen place={place} />
      </Gathered>
    </ScreenFailure>
  );
}

/** The colours of the link. By the object model, since the policy admits no style of the page's own. */
function wear({ theme }: PortalSession): void {
  const { dataset, style } = document.documentElement;
  if (theme.color_scheme !== 'auto') dataset['theme'] = theme.color_scheme;
  if (theme.accent === undefined) return;
  style.setProperty('--accent-fill', theme.accent);
  style.setProperty('--on-accent', theme.on_accent ?? '');
}

/** Sends the page that has this one in a frame, if it is allowed, the height for the frame. It sends only that. */
function tellHeight(origins: readonly string[]): (() => void) | undefined {
  if (!isFramed) return undefined;
  const tell = (): void => {
    const { height } = document.body.getBoundingClientRect();
    for (const origin of origins)
      window.parent.postMessage({ type: 'sluice.height', height: Math.ceil(height) }, origin);
  };
  const observer = new ResizeObserver(tell);
  observer.observe(document.body);
  return () => observer.disconnect();
}

const root = document.querySelector('#root');
if (root) createRoot(root).render(<Portal />);
