/**
 * Proves the email domains of identity providers again, each once a day.
 *
 * A domain that has another owner by now must not vouch for the people of the account. A record that is missing twice
 * in a row takes the domain out. If no name server answers, the check has no result and does not count; it runs again
 * an hour later.
 */
import type { Database } from '@sluice/database/connection/connection';
import { noteDomainMissing } from '@sluice/database/users/identity-providers';
import {
  type DueDomain,
  noteDomainProved,
  takeDueDomains,
} from '@sluice/database/users/provider-domains';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';
import { domainRecordName, domainRecordText, type ReadTextRecords } from './domain-records.ts';

export interface DomainCheckEffects {
  readonly database: Database;
  /** Makes the texts of the records (`API_SECRET`). */
  readonly secret: string;
  /** Their domains are never asked for. */
  readonly operatorAccountIds: readonly number[];
  readonly readTextRecords: ReadTextRecords;
  readonly logger: Logger;
  readonly now: () => number;
}

const INTERVAL_MS = 60_000;
/** At a time; each takes up to 4 seconds if its name servers are silent. */
const DOMAIN_COUNT_MAX = 20;

/** Looks each minute, once the process is ready, until the lifecycle ends. */
export function keepCheckingDomains(
  effects: DomainCheckEffects,
  {
    isReady,
    lifecycle,
  }: {
    readonly isReady: () => boolean;
    readonly lifecycle: Pick<Lifecycle, 'defer'>;
  },
): void {
  const checking = repeat('check email domains', INTERVAL_MS, effects.logger, async () => {
    if (isReady()) await checkDueDomains(effects);
  });
  lifecycle.defer('check of email domains', () => checking.stop());
}

/** Checks due domains, 20 at most. May be run by several processes at the same time. @returns how many were due. */
export async function checkDueDomains(effects: DomainCheckEffects): Promise<number> {
  const due = await takeDueDomains(effects.database, DOMAIN_COUNT_MAX);
  await Promise.all(due.map((each) => checkDomain(effects, each)));
  return due.length;
}

async function checkDomain(effects: DomainCheckEffects, due: DueDomain): Promise<void> {
  const { database, logger, now } = effects;
  const { accountId, domain } = due;
  const current = domainRecordText(effects.secret, accountId);
  if (effects.operatorAccountIds.includes(accountId)) return noteDomainProved(database, due);
  let texts: readonly string[];
  try {
    texts = await effects.readTextRecords(domainRecordName(domain));
  } catch (error) {
    logger.warn(
      { error, accountId, domain },
      'an email domain could not be proved again; it stays, and the API tries again in an hour',
    );
    return;
  }
  const recordText = [due.recordText, current].find(
    (each) => each !== null && texts.includes(each),
  );
  if (recordText !== undefined) return noteDomainProved(database, { ...due, recordText });
  const isOut = await noteDomainMissing(database, due, now());
  logger.warn(
    { accountId, domain },
    isOut
      ? 'an email domain was taken out: its TXT record is gone. An account_admin sets the record and adds the domain again'
      : 'the TXT record of an email domain is missing; an account_admin sets it again, or the domain is taken out tomorrow',
  );
}
