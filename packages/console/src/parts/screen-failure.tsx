/** A screen that failed by a mistake of ours costs itself alone: the menu and the other screens go on. */
import { Component, type ReactNode } from 'react';

interface Standing {
  readonly error: Error | undefined;
}

/** Give it another `key` for each screen: a new one begins without the failure. */
export class ScreenFailure extends Component<{ readonly children: ReactNode }, Standing> {
  override readonly state: Standing = { error: undefined };

  static getDerivedStateFromError(error: Error): Standing {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <div className="failure" role="alert">
        <h1>This screen failed</h1>
        <p>
          The fault is in the console, not in your data. Reload the page, or go to another screen.
        </p>
        <pre>{error.message}</pre>
      </div>
    );
  }
}
