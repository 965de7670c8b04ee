/**
 * `sluice secrets lost [--replace <key-id>]`: secrets of webhooks, users and identity providers in `DATABASE_URL` that the keys of
 * `SEALING_KEYS` do not open, without which no API and no worker starts. A program of the operator's and not of
 * the API, which does not run then. Runbook: `docs/operations/runbooks/sealing-key-lost.md`.
 */
import { randomBytes } from 'node:crypto';
import type { Database } from '@sluice/database/connection/connection';
import { printable, printableJson } from '@sluice/domain/values/printable';
import { encryptionSettings } from '@sluice/platform/settings/config';
import { createEncryptedText, type EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import {
  findLostSecrets,
  replaceLostSecrets,
  type LostSecret,
  type ReplacedSecret,
} from '@sluice/worker/maintenance/lost-secrets';
import { actOnDatabase, databaseSettings, readWords } from './act-on-database.ts';
import { startProgress } from './progress.mjs';

const settingsSchema = databaseSettings.extend(encryptionSettings.shape);
const USAGE = 'usage: sluice secrets lost [--replace <key-id>]';
const SECRET_SIZE_BYTES = 32;
const WHAT = {
  environment: 'signing key',
  webhook: 'signing key',
  next: 'next signing key',
  headers: 'headers',
  credentials: 'client certificate and OAuth2 client',
  second_factor: 'second factor',
  client_secret: 'client secret',
} as const;

const { values, positionals } = readWords(USAGE, {
  options: { json: { type: 'boolean', default: false }, replace: { type: 'string' } },
  allowPositionals: true,
});
if (positionals.length !== 1 || positionals[0] !== 'lost') {
  console.error(USAGE);
  process.exit(2);
}
await actOnDatabase('secrets', settingsSchema, async (database, settings) => {
  const encryptedText = createEncryptedText(settings.SEALING_KEYS);
  if (values.replace !== undefined) await replace(database, encryptedText, values.replace);
  const progress = startProgress('decrypting the secrets', 'secrets', { silentMs: 2_000 });
  const { lost, count } = await findLostSecrets(database, encryptedText).finally(() =>
    progress.end(),
  );
  if (values.replace === undefined) {
    if (values.json) console.log(printableJson(lost.map(shown)));
    else for (const each of lost) console.log(`${nameOf(each)}  encrypted with "${each.keyId}"`);
  }
  if (lost.length > 0) tellWhatToDo(lost, count);
  else if (!values.json) console.log(`all ${count} secrets can be decrypted with SEALING_KEYS`);
});

async function replace(
  database: Database,
  encryptedText: EncryptedText,
  keyId: string,
): Promise<void> {
  console.error(
    'Each new key is shown just before it is in force. If the command is interrupted, the last key shown is in force only if ' +
      '`sluice secrets lost` no longer lists its secret.',
  );
  // `print` reports the line that was not read.
  process.stdout.on('error', () => undefined);
  const newSecret = () => randomBytes(SECRET_SIZE_BYTES).toString('hex');
  const tell = (replaced: ReplacedSecret) =>
    print(values.json ? printableJson(shown(replaced)) : becameOf(replaced));
  const deps = { database, encryptedText, newSecret, tell, now: Date.now };
  if ((await replaceLostSecrets(deps, keyId)) === 0)
    throw new Error(`no lost secret is encrypted with "${keyId}"`);
}

/**
 * Returns once the line has left this process, so that no end of it takes the line back. Throws if the reader is gone.
 */
async function print(line: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  process.stdout.write(`${line}\n`, (error) => (error ? reject(error) : resolve()));
  await promise;
}

function tellWhatToDo(lost: readonly LostSecret[], count: number): void {
  const keyIds = [...new Set(lost.map(({ keyId }) => keyId))];
  console.error(
    `${lost.length} of ${count} secrets cannot be decrypted. Add their encryption key to SEALING_KEYS, after the others. ` +
      `If the key is lost, replace the secrets listed above, one key at a time:\n${keyIds
        .map((keyId) => `  sluice secrets lost --replace ${keyId}`)
        .join('\n')}`,
  );
  process.exitCode = 1;
}

function nameOf(secret: LostSecret): string {
  return `${ownerOf(secret)} (${printable(secret.name)})  ${WHAT[secret.place]}`;
}

function ownerOf({ place, environmentId, webhookId, accountId, userId }: LostSecret): string {
  if (place === 'second_factor') return `account ${accountId}  user ${userId}`;
  if (place === 'client_secret') return `account ${accountId}  identity provider`;
  return place === 'environment'
    ? `workspace ${environmentId} `
    : `workspace ${environmentId}  webhook ${webhookId}`;
}

function becameOf(replaced: ReplacedSecret): string {
  const before = nameOf(replaced);
  switch (replaced.change) {
    case 'key_replaced':
      return replaced.place === 'environment'
        ? `${before}: webhooks made from now on sign with ${replaced.secret}`
        : `${before}: ${replaced.secret} from now on, to be given to its receiver`;
    case 'rotation_promoted':
      return `${before}: the next one of its rotation from now on`;
    case 'rotation_cancelled':
      return `${before}: given up, and with it the rotation`;
    case 'second_factor_removed':
      return `${before}: removed, and the user's sessions ended; the user sets up another at the next sign-in`;
    case 'client_secret_removed':
      return `${before}: removed; set it again: PUT /v1/accounts/${replaced.accountId}/identity_provider`;
    case 'headers_removed':
    case 'credentials_removed':
      return `${before}: removed; set them again: PUT /v1/reporting_webhooks/${replaced.webhookId}`;
  }
}

/** Without the stored text. */
function shown<Secret extends LostSecret>({ stored: _, ...rest }: Secret): Omit<Secret, 'stored'> {
  return rest;
}
