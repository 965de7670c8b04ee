/**
 * The second factor of a program's user.
 *
 * A program acts for a user, so it needs the factors that the account requires of the user.
 */
import { sql } from 'kysely';

/**
 * True if the account requires two factors and the user of the program has only one. For a statement whose tables of
 * credentials and accounts are `c` and `a`; false for a credential of no user. The user's identity provider counts as
 * the second factor if `counts_as_two_factors` is set. Index: primary keys.
 */
export const IS_FACTOR_MISSING = sql`
  (a.is_two_factor_required and c.for_user_id is not null
   and not exists (
     select from users f
      where f.account_id = c.account_id and f.user_id = c.for_user_id and f.is_two_factor_enabled)
   and not exists (
     select from user_identities i
       join identity_providers p on p.account_id = i.account_id and p.issuer = i.issuer
      where i.account_id = c.account_id and i.user_id = c.for_user_id and p.counts_as_two_factors))`;
