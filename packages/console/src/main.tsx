/** The page: asks whether somebody is signed in, and shows the console or the sign-in. */
import { useCallback, useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Shell } from './shell.tsx';
import { notifyOtherTabs, watchOtherTabs } from './client/other-tabs.ts';
import { own, request, RequestFailed, watchSignedOut } from './client/request.ts';
import { forgetResources } from './client/resource.ts';
import type { Session } from './client/session.ts';
import { watchUserInput } from './client/user-input.ts';
import { applyTheme } from './parts/preferences.ts';
import { Failure, Waiting } from './parts/states.tsx';
import { SecondFactorStep } from './account/second-factor.tsx';
import { giveProviderAnswer, takeProviderAnswer } from './account/provider-answer.ts';
import { SignIn } from './account/sign-in.tsx';

type Standing =
  | { readonly is: 'asking' }
  | { readonly is: 'signed_in'; readonly session: Session }
  | { readonly is: 'incomplete'; readonly standing: 'needs_code' | 'needs_setup' }
  | {
      readonly is: 'signed_out';
      readonly hasDemo: boolean;
      readonly isOver: boolean;
      readonly refusal: string | undefined;
    }
  | { readonly is: 'failed'; readonly failure: RequestFailed };

async function askStanding(isOver: boolean, refusal?: string): Promise<Standing> {
  try {
    // Answered to anybody, so that a page without a session shows no failed call.
    const answer = await request(
      own<{
        is_signed_in: boolean;
        has_demo: boolean;
        second_factor: 'needs_code' | 'needs_setup' | null;
      }>('get', '/console/session'),
    );
    if (answer.second_factor) return { is: 'incomplete', standing: answer.second_factor };
    if (!answer.is_signed_in)
      return { is: 'signed_out', hasDemo: answer.has_demo, isOver, refusal };
    return { is: 'signed_in', session: await request(own<Session>('get', '/console/me')) };
  } catch (error) {
    if (error instanceof RequestFailed) return { is: 'failed', failure: error };
    throw error;
  }
}

interface Return {
  /** The reason why no session was opened; undefined on any other page too. */
  readonly refusal: string | undefined;
  readonly isOpened: boolean;
}

/** If an identity provider opened the page, hands in its answer. */
async function returnFromProvider(): Promise<Return> {
  const answer = takeProviderAnswer();
  if (!answer) return { refusal: undefined, isOpened: false };
  try {
    const refusal = await giveProviderAnswer(answer);
    return { refusal, isOpened: refusal === undefined };
  } catch (error) {
    if (error instanceof RequestFailed) return { refusal: error.message, isOpened: false };
    throw error;
  }
}

/** True if both are of one session, or signed out. */
function isSameSession(one: Standing, other: Standing): boolean {
  if (one.is === 'signed_in' && other.is === 'signed_in')
    return one.session.session.id === other.session.session.id;
  return one.is === 'signed_out' && other.is === 'signed_out';
}

function Page() {
  const [standing, setStanding] = useState<Standing>({ is: 'asking' });
  const shown = useRef(standing);
  shown.current = standing;
  const ask = useCallback(async (refusal?: string) => {
    forgetResources();
    setStanding(await askStanding(false, refusal));
  }, []);
  useEffect(() => {
    void returnFromProvider().then(async ({ refusal, isOpened }) => {
      await ask(refusal);
      if (isOpened) notifyOtherTabs();
    });
    // A screen of the same session stays as it is, with its half-filled forms.
    const look = async (isOver: boolean): Promise<void> => {
      const next = await askStanding(isOver);
      if (next.is === 'failed' || isSameSession(shown.current, next)) return;
      forgetResources();
      setStanding(next);
    };
    watchSignedOut(() => {
      if (shown.current.is === 'signed_in') void look(true);
    });
    const unwatch = watchOtherTabs(() => void look(shown.current.is === 'signed_in'));
    // A page that Back brings out of the browser's memory may be of a session that is over.
    const onShown = ({ persisted }: PageTransitionEvent): void => {
      if (!persisted) return;
      // Its data disappears until the answer, and its screens subscribe anew.
      setStanding({ is: 'asking' });
      void ask();
    };
    addEventListener('pageshow', onShown);
    return () => {
      removeEventListener('pageshow', onShown);
      unwatch();
    };
  }, [ask]);
  const askAfterChange = async (): Promise<void> => {
    notifyOtherTabs();
    await ask();
  };

  const signOut = async (): Promise<void> => {
    let left: { readonly url: string } | undefined;
    try {
      left = await request(own<typeof left>('delete', '/console/session'));
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      // The session may still be open: a user who leaves the machine must see that.
      setStanding({ is: 'failed', failure: error });
      return;
    }
    await askAfterChange();
    // The session at the identity provider ends too, on a page of the provider. The screen is gone before: the browser
    // keeps the page as it is left, and Back would show the data to the next person.
    if (left) location.assign(left.url);
  };
  switch (standing.is) {
    case 'asking':
      return <Waiting />;
    case 'failed':
      return (
        <main className="sign-in">
          <div className="card">
            <h1>Sluice</h1>
            <Failure failure={standing.failure} onRetry={() => void ask()} />
          </div>
        </main>
      );
    case 'incomplete':
      return (
        <SecondFactorStep
          standing={standing.standing}
          onDone={() => void askAfterChange()}
          onSignOut={() => void signOut()}
        />
      );
    case 'signed_out':
      return (
        <SignIn
          hasDemo={standing.hasDemo}
          isOver={standing.isOver}
          refusal={standing.refusal}
          onSignedIn={() => void askAfterChange()}
        />
      );
    case 'signed_in':
      return (
        <Shell key={standing.session.session.id} session={standing.session} onSignOut={signOut} />
      );
  }
}

applyTheme();
watchUserInput(window);
const root = document.querySelector('#root');
if (root) createRoot(root).render(<Page />);
