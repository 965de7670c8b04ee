/**
 * Secrets at rest: text encrypted with AES-256-GCM under a key that the database never sees.
 *
 *   encrypted:<key id>:<base64url of nonce (12) | tag (16) | ciphertext>
 *
 * The first key of the setting encrypts; all of them open. So a key can be replaced: add the new one behind the old
 * everywhere, then put it first, and once everything is encrypted again remove the old one. A context (whose it is) is
 * authenticated with the text: an encrypted secret that is copied to another tenant's row does not open there.
 *
 * Text without the prefix opens as itself: it is from before there was a key.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { AppError } from '@sluice/domain/values/errors';

export interface EncryptionKey {
  readonly id: string;
  /** 32 bytes. */
  readonly key: Buffer;
}

export interface EncryptedText {
  /** Prefix of every newly encrypted text. */
  readonly prefix: string;
  encrypt(text: string, context: string): string;
  /** @throws AppError SECRET_UNREADABLE when its key is not there, or it was tampered with. */
  decrypt(encrypted: string, context: string): string;
}

const PREFIX = 'sealed:';
const WHERE_LOST = 'if the key is lost, follow docs/operations/runbooks/sealing-key-lost.md';
const ALGORITHM = 'aes-256-gcm';
const NONCE_SIZE_BYTES = 12;
const TAG_SIZE_BYTES = 16;

/** The id of the key that encrypted a text; empty for a plain text. */
export function encryptionKeyId(stored: string): string {
  return stored.startsWith(PREFIX) ? (stored.split(':')[1] ?? '') : '';
}

/** @param keys - at least one; the first encrypts. */
export function createEncryptedText(
  keys: readonly [EncryptionKey, ...EncryptionKey[]],
): EncryptedText {
  const [encryption] = keys;
  const keysById = new Map(keys.map(({ id, key }) => [id, key]));
  const prefix = `${PREFIX}${encryption.id}:`;
  return {
    prefix,
    encrypt(text, context) {
      const nonce = randomBytes(NONCE_SIZE_BYTES);
      const cipher = createCipheriv(ALGORITHM, encryption.key, nonce).setAAD(Buffer.from(context));
      const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return prefix + Buffer.concat([nonce, cipher.getAuthTag(), encrypted]).toString('base64url');
    },
    decrypt(encrypted, context) {
      if (!encrypted.startsWith(PREFIX)) return encrypted;
      const id = encryptionKeyId(encrypted);
      const [, , content = ''] = encrypted.split(':');
      const key = keysById.get(id);
      if (!key) {
        throw new AppError(
          'SECRET_UNREADABLE',
          `a secret of ${context} is encrypted with the key "${id}", which is missing in SEALING_KEYS. Add it after the others; ${WHERE_LOST}`,
        );
      }
      const bytes = Buffer.from(content, 'base64url');
      const tagEnd = NONCE_SIZE_BYTES + TAG_SIZE_BYTES;
      try {
        const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_SIZE_BYTES), {
          authTagLength: TAG_SIZE_BYTES,
        })
          .setAAD(Buffer.from(context))
          .setAuthTag(bytes.subarray(NONCE_SIZE_BYTES, tagEnd));
        return decipher.update(bytes.subarray(tagEnd), undefined, 'utf8') + decipher.final('utf8');
      } catch (cause) {
        throw new AppError(
          'SECRET_UNREADABLE',
          `a secret of ${context} cannot be decrypted with the key "${id}" of SEALING_KEYS, because another key with that id encrypted it; ${WHERE_LOST}`,
          { cause },
        );
      }
    },
  };
}
