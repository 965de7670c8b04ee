/**
 * Credentials → workspace (step 2), from memory.
 *
 * The keys in force are read from Postgres at start and again every second (`refresh-keys.ts`), so that a
 * revoked key stops working and a key just made works soon after; when Postgres is away the last
 * known keys go on working. Secrets are kept hashed; the whole `Authorization` header of a caller
 * that got in is remembered until the next change of keys, because hashing each call would cost
 * more than parsing it does.
 *
 * A key that was shown is marked as used (`key-uses.ts`), also if the call is refused for another reason later.
 *
 * Before: `server.ts`. After: `accept.ts`.
 */
import { createHash } from 'node:crypto';
import { DEMO_SECRETS } from '@sluice/database/demo/seed-demo';
import type { TestKey, WorkspaceKey } from '@sluice/database/accounts/workspace-keys';
import { KeyUses, type UseMark } from './key-uses.ts';

export interface Workspace {
  readonly environmentId: number;
  readonly phoneIdentifies: boolean;
  /** Of the key with which the call came. */
  readonly credentialId?: number;
  /** The key is the demo's, and in the documentation: it is refused for calls from elsewhere. */
  readonly isDemo?: true;
  /** The key is a Pipelines key that is not saved yet: it opens identify calls only. */
  readonly testKey?: TestKey;
}

/**
 * `unknown` if the credentials open no workspace. `siteEnvironmentId` is set if at least the site id is one of ours.
 */
export type Authentication =
  | { readonly outcome: 'known'; readonly workspace: Workspace }
  | { readonly outcome: 'unknown'; readonly siteEnvironmentId: number | undefined };

/** A key in force, with its workspace. */
interface KnownKey {
  readonly authentication: Authentication & { readonly outcome: 'known' };
  readonly use: UseMark;
}

const REMEMBERED_HEADERS_MAX = 10_000;
/** Longer than any credentials of ours. One key has as many headers as there may be blanks in one: 10,000 of 16 KB were 160 MB. */
const REMEMBERED_HEADER_LENGTH_MAX = 512;

const UNKNOWN: Authentication = { outcome: 'unknown', siteEnvironmentId: undefined };

/** The whole headers of callers that got in. */
class KnownHeaders {
  readonly #byHeader = new Map<string, KnownKey>();
  #lastHeader = '';
  #last: KnownKey | undefined;

  get(header: string): KnownKey | undefined {
    // A source's calls come in a row, and to look a header up takes hashing it, 0.1 µs of a call's 20.
    if (header === this.#lastHeader) return this.#last;
    const found = this.#byHeader.get(header);
    if (found === undefined) return undefined;
    this.#lastHeader = header;
    this.#last = found;
    return found;
  }

  /** Keeps it if the header is short. */
  add(header: string, key: KnownKey): void {
    if (header.length > REMEMBERED_HEADER_LENGTH_MAX) return;
    if (this.#byHeader.size >= REMEMBERED_HEADERS_MAX) this.#byHeader.clear();
    this.#byHeader.set(header, key);
  }
}

export class KeyRing {
  #byKey = new Map<string, KnownKey>();
  readonly uses = new KeyUses();
  #sites = new Map<string, number>();
  #pipelinesHeaders = new KnownHeaders();
  #trackHeaders = new KnownHeaders();
  #fingerprint = '';
  /** With a key in force. */
  workspaceCount = 0;
  /** Test keys that passed in this process and were not saved yet when Postgres was last read. */
  readonly #passed = new Set<string>();

  /** Puts new keys in force. Cheap without a change. */
  replace(keys: readonly WorkspaceKey[]): void {
    const fingerprint = createHash('sha256');
    const byKey = new Map<string, KnownKey>();
    this.uses.keep(keys);
    const sites = new Map<string, number>();
    const unsaved = new Set<string>();
    for (const key of keys) {
      const { environmentId, phoneIdentifies, testCredentialId } = key;
      const credential =
        key.credentialId === undefined ? {} : { credentialId: Number(key.credentialId) };
      let workspace: Workspace = { environmentId, phoneIdentifies, ...credential };
      if (testCredentialId != null) {
        const testKey = { environmentId, credentialId: testCredentialId };
        unsaved.add(testName(testKey));
        if (!this.#passed.has(testName(testKey))) workspace = { ...workspace, testKey };
      }
      const secretHash = key.secretHash.toString('base64');
      if (DEMO_HASHES.has(secretHash)) workspace = { ...workspace, isDemo: true };
      const name = keyName(key.kind, key.siteId ?? '', secretHash);
      byKey.set(name, {
        authentication: { outcome: 'known', workspace },
        use: this.uses.markOf(key),
      });
      if (key.siteId !== null) sites.set(key.siteId, environmentId);
      fingerprint.update(
        `${name}=${environmentId},${phoneIdentifies},${key.credentialId ?? ''},${testCredentialId ?? ''};`,
      );
    }
    const digest = fingerprint.digest('base64');
    if (digest === this.#fingerprint) return;
    this.#fingerprint = digest;
    this.#byKey = byKey;
    this.workspaceCount = new Set(keys.map(({ environmentId }) => environmentId)).size;
    this.#sites = sites;
    this.#pipelinesHeaders = new KnownHeaders();
    this.#trackHeaders = new KnownHeaders();
    for (const passed of this.#passed) if (!unsaved.has(passed)) this.#passed.delete(passed);
  }

  /**
   * An identify was taken with a test key: it opens everything from now on, before the sender's next call. Other
   * processes hear of it once it is saved.
   */
  pass(key: TestKey): void {
    this.#passed.add(testName(key));
    for (const [name, { authentication, use }] of this.#byKey) {
      if (authentication.workspace.testKey === undefined) continue;
      const { testKey, ...workspace } = authentication.workspace;
      if (testName(testKey) === testName(key))
        this.#byKey.set(name, { authentication: { outcome: 'known', workspace }, use });
    }
    this.#pipelinesHeaders = new KnownHeaders();
  }

  /** `Authorization: Basic <key>:`, the password blank, or `Bearer <key>`, which newer clients send. */
  authenticatePipelines(header: string): Authentication {
    const remembered = this.#pipelinesHeaders.get(header);
    if (remembered) return useOf(remembered);
    const [user, password] = readBasic(header) ?? readBearer(header) ?? [];
    if (user === undefined || password !== '') return UNKNOWN;
    const found = this.#byKey.get(keyName('pipelines', '', hash(user)));
    if (!found) return UNKNOWN;
    this.#pipelinesHeaders.add(header, found);
    return useOf(found);
  }

  /** A Pipelines key by itself: `writeKey` in the body, or in the path of a browser's settings call. */
  authenticateWriteKey(writeKey: string): Authentication {
    const found = this.#byKey.get(keyName('pipelines', '', hash(writeKey)));
    return found ? useOf(found) : UNKNOWN;
  }

  /** `Authorization: Basic <site id>:<API key>`. */
  authenticateTrack(header: string): Authentication {
    const remembered = this.#trackHeaders.get(header);
    if (remembered) return useOf(remembered);
    const credentials = readBasic(header);
    if (!credentials) return UNKNOWN;
    const [siteId, apiKey] = credentials;
    const found = this.#byKey.get(keyName('track', siteId, hash(apiKey)));
    if (!found) return { outcome: 'unknown', siteEnvironmentId: this.#sites.get(siteId) };
    this.#trackHeaders.add(header, found);
    return useOf(found);
  }

  /** The workspace whose credentials of either API the header has; `undefined` if they are unknown. */
  environmentIdOf(header: string): number | undefined {
    if (header === '') return undefined;
    for (const found of [this.authenticatePipelines(header), this.authenticateTrack(header)])
      if (found.outcome === 'known') return found.workspace.environmentId;
    return undefined;
  }
}

function useOf({ authentication, use }: KnownKey): Authentication {
  use.isUsed = true;
  return authentication;
}

const HINT_LENGTH = 4;

/**
 * The last characters of a write key or a site id. The list of keys shows the same ones (`platform/src/secrets/secrets.ts`),
 * so that a person can compare them. `undefined` if the text is empty.
 */
export const endOfKey = (key: string): string | undefined =>
  key === '' ? undefined : key.slice(-HINT_LENGTH);

/** The same of the user of a Basic header, or of a Bearer token. `undefined` if the header has neither. */
export function hintOf(header: string): string | undefined {
  const [user = ''] = readBasic(header) ?? readBearer(header) ?? [];
  return endOfKey(user);
}

const hash = (secret: string): string => createHash('sha256').update(secret).digest('base64');

const DEMO_HASHES: ReadonlySet<string> = new Set(DEMO_SECRETS.map(hash));

const testName = ({ environmentId, credentialId }: TestKey): string =>
  `${environmentId} ${credentialId}`;

const keyName = (kind: string, siteId: string, secretHash: string): string =>
  `${kind}:${secretHash}:${siteId}`;

/** Both alphabets of base64 (some clients send the URL-safe one); undefined if it is not Basic. */
function readBasic(header: string): [user: string, password: string] | undefined {
  const match = /^basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header);
  if (!match) return undefined;
  const text = Buffer.from(match[1] as string, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)];
}

/** The token as a user without a password. */
function readBearer(header: string): [user: string, password: ''] | undefined {
  const token = /^bearer +([\w\-.~+/]+=*) *$/i.exec(header)?.[1];
  return token === undefined ? undefined : [token, ''];
}
