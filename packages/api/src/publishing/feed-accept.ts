/** Reads `Accept` of a feed's reader: as a page, or as server-sent events. */

/**
 * Media types have no case, and a weight of 0 excludes one (RFC 9110 §12.5.1). Wildcards mean a page.
 *
 * @returns whether the reader asks for server-sent events.
 */
export const asksForStream = (accept = ''): boolean =>
  accept
    .toLowerCase()
    .split(',')
    .some((range) => {
      const [type, ...parameters] = range.split(';').map((part) => part.trim());
      return (
        type === 'text/event-stream' && !parameters.some((each) => /^q=0(?:\.0*)?$/.test(each))
      );
    });
