/** Leaves options that were not given out of a call. */

/** The members that are not undefined. */
export const givenMembers = <Members extends object>(members: Members): Given<Members> =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined),
  ) as Given<Members>;

type Given<Members> = { [Name in keyof Members]?: Exclude<Members[Name], undefined> };
