/** Frame of every screen: the menu, the bar above, the zone of times, the keys. */
import { useEffect, useMemo, useRef, useState } from 'react';
import { own, request, RequestFailed } from './client/request.ts';
import {
  type Capability,
  ReachContext,
  type Session,
  SessionContext,
  useSession,
} from './client/session.ts';
import { reportUnsentInput } from './client/user-input.ts';
import { Announcer } from './parts/announcer.tsx';
import { Empty, Gathered } from './parts/states.tsx';
import { KeyList, Palette } from './parts/palette.tsx';
import { ScreenFailure } from './parts/screen-failure.tsx';
import { ZoneContext } from './parts/time.tsx';
import { useKeys } from './parts/use-keys.ts';
import { Bar } from './bar.tsx';
import { Link, type Route, Router, useRouting } from './routing/router.tsx';
import { deviceRoute } from './account/device.tsx';
import { auditRoute } from './account/audit.tsx';
import { auditEntryRoute } from './account/audit-entry.tsx';
import { fleetRoute } from './account/fleet.tsx';
import { eventRoute } from './screens/event.tsx';
import { importRoute } from './screens/import-detail.tsx';
import { importsRoute } from './screens/imports.tsx';
import { issuesRoute } from './screens/issues.tsx';
import { billingRoute } from './billing/billing.tsx';
import { creditsRoute } from './billing/credits.tsx';
import { purchaseRoute } from './billing/purchase.tsx';
import { usageRoute } from './billing/usage.tsx';
import { keyRoute } from './account/key.tsx';
import { keysRoute } from './account/keys.tsx';
import { liveRoute } from './screens/live.tsx';
import { objectRoute } from './screens/object.tsx';
import { objectsRoute } from './screens/objects.tsx';
import { overviewRoute } from './screens/overview.tsx';
import { peopleRoute } from './screens/people.tsx';
import { personRoute } from './screens/person.tsx';
import { Mark } from './account/sign-in.tsx';
import { settingsRoute } from './account/settings.tsx';
import { startRoute } from './screens/start.tsx';
import { usersRoute } from './account/users.tsx';
import { referenceListRoute } from './reference/reference-list.tsx';
import { referenceRoute } from './reference/reference.tsx';
import { deliveriesRoute } from './deliveries/all-deliveries.tsx';
import { applicationRoute } from './applications/application-detail.tsx';
import { applicationsRoute } from './applications/applications.tsx';
import { eventTypeRoute } from './event-types/event-type-detail.tsx';
import { eventTypesRoute } from './event-types/event-types.tsx';
import { feedRoute } from './feeds/feed-detail.tsx';
import { feedsRoute } from './feeds/feeds.tsx';
import { portalLinksRoute } from './webhooks/portal-links.tsx';
import { webhookRoute } from './webhooks/webhook.tsx';
import { webhooksRoute } from './webhooks/webhooks.tsx';

const ROUTES: readonly Route[] = [
  overviewRoute,
  startRoute,
  liveRoute,
  eventRoute,
  issuesRoute,
  webhooksRoute,
  webhookRoute,
  deliveriesRoute,
  portalLinksRoute,
  eventTypesRoute,
  eventTypeRoute,
  applicationsRoute,
  applicationRoute,
  feedsRoute,
  feedRoute,
  peopleRoute,
  personRoute,
  objectsRoute,
  objectRoute,
  importsRoute,
  importRoute,
  keysRoute,
  keyRoute,
  usersRoute,
  auditRoute,
  auditEntryRoute,
  billingRoute,
  creditsRoute,
  purchaseRoute,
  usageRoute,
  settingsRoute,
  deviceRoute,
  fleetRoute,
  referenceListRoute,
  referenceRoute,
];

/** These show the account, and need no workspace. */
const OF_ACCOUNT: ReadonlySet<Route | undefined> = new Set([
  keysRoute,
  keyRoute,
  usersRoute,
  auditRoute,
  auditEntryRoute,
  billingRoute,
  creditsRoute,
  purchaseRoute,
  usageRoute,
  settingsRoute,
  deviceRoute,
  fleetRoute,
]);

/** With the capability that the user needs for the screen. Absent: to be signed in. */
const MENU: readonly { path: string; name: string; capability?: Capability }[] = [
  { path: '/', name: 'Overview' },
  { path: '/start', name: 'Start' },
  { path: '/live', name: 'Live' },
  { path: '/issues', name: 'Issues' },
  { path: '/webhooks', name: 'Webhooks' },
  { path: '/event-types', name: 'Event types' },
  { path: '/applications', name: 'Applications' },
  { path: '/feeds', name: 'Feeds' },
  { path: '/people', name: 'People' },
  { path: '/objects', name: 'Objects' },
  { path: '/imports', name: 'Imports' },
  { path: '/keys', name: 'Keys', capability: 'account.manage' },
  { path: '/users', name: 'Users', capability: 'account.manage' },
  { path: '/audit', name: 'Audit log', capability: 'account.manage' },
  { path: '/billing', name: 'Billing' },
  { path: '/settings', name: 'Settings' },
  { path: '/fleet', name: 'Fleet', capability: 'fleet.read' },
  { path: '/docs/all', name: 'Reference' },
];

export function Shell({
  session,
  onSignOut,
}: {
  readonly session: Session;
  readonly onSignOut: () => Promise<void>;
}) {
  return (
    <Router routes={ROUTES}>
      <SignedIn session={session} onSignOut={onSignOut} />
    </Router>
  );
}

function SignedIn({
  session,
  onSignOut,
}: {
  readonly session: Session;
  readonly onSignOut: () => Promise<void>;
}) {
  const { place, route } = useRouting();
  const wanted = session.workspaces.find(({ id }) => String(id) === place.query['workspace']);
  const workspaceId = (wanted ?? session.workspaces[0])?.id;
  const state = useMemo(
    () => ({ ...session, workspaceId: workspaceId ?? 0, signOut: () => void onSignOut() }),
    [session, workspaceId, onSignOut],
  );
  const reach = useMemo(
    () => ({
      workspaceId: workspaceId ?? 0,
      capabilities: session.capabilities,
      notAllowed: `Your role, ${session.user.role}, may not: ask an account_admin`,
      eventTypes: [],
      isOfApplication: false,
      isPortal: false,
    }),
    [session, workspaceId],
  );
  const [shown, setShown] = useState<'palette' | 'keys'>();
  useKeys(setShown);
  useEffect(() => reportUnsentInput(reportUse), []);
  return (
    <SessionContext.Provider value={state}>
      <ReachContext.Provider value={reach}>
        <ZoneContext.Provider
          value={place.query['tz'] === 'account' ? session.account.timezone : undefined}
        >
          <a className="skip" href="#screen">
            Skip to the screen
          </a>
          <div className="shell">
            <Menu />
            <Bar onPalette={() => setShown('palette')} />
            <main id="screen" tabIndex={-1}>
              {workspaceId === undefined && !OF_ACCOUNT.has(route) ? (
                <Empty title="You are in no workspace">
                  <p>
                    {session.session.way === 'token'
                      ? `A token of a ${session.user.role} opens the account alone: its billing and its settings.`
                      : `Ask an account_admin of ${session.account.name} to add you to one.`}
                  </p>
                </Empty>
              ) : (
                <Screen />
              )}
            </main>
          </div>
          {shown === 'palette' && <Palette onClose={() => setShown(undefined)} />}
          {shown === 'keys' && <KeyList onClose={() => setShown(undefined)} />}
          <Announcer />
        </ZoneContext.Provider>
      </ReachContext.Provider>
    </SessionContext.Provider>
  );
}

/** By any call with the session. */
const reportUse = (): void =>
  void request(own('get', '/console/me')).catch((error: unknown) => {
    if (!(error instanceof RequestFailed)) throw error;
  });

function Menu() {
  const { route } = useRouting();
  const { capabilities } = useSession();
  const shown = MENU.filter(
    ({ capability }) => capability === undefined || capabilities.includes(capability),
  );
  return (
    <nav aria-label="Screens">
      <p className="brand">
        <Mark /> Sluice
      </p>
      <ul>
        {shown.map(({ path, name }) => {
          const isCurrent = route?.pattern === path || route?.pattern.startsWith(`${path}/`);
          return (
            <li key={path}>
              <Link to={path} aria-current={isCurrent ? 'page' : undefined}>
                {name}
              </Link>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

/** A new screen gets the focus, so that the keyboard and a screen reader go on there. */
function Screen() {
  const { route, place } = useRouting();
  const { capabilities, user, workspaceId } = useSession();
  const isFirst = useRef(true);
  const key = `${route?.pattern} ${JSON.stringify(place.params)}`;
  useEffect(() => {
    if (!isFirst.current)
      document.querySelector<HTMLElement>('#screen')?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [key]);
  if (!route)
    return (
      <Empty title="There is no such screen">
        <p>
          <Link to="/start">Start</Link>
        </p>
      </Empty>
    );
  if (route.capability !== undefined && !capabilities.includes(route.capability))
    return (
      <Empty title="This is not for your role">
        <p>You are {user.role}: ask an account_admin of your account.</p>
      </Empty>
    );
  return (
    // Another workspace is another screen: no row, no number and no half-filled form of the one before is in it.
    <ScreenFailure key={`${workspaceId} ${key}`}>
      <Gathered>
        <route.screen place={place} />
      </Gathered>
    </ScreenFailure>
  );
}
