/**
 * Push devices of a person (`ingestion-conventions.md` §1.6, §3.4).
 *
 * Some clients put a device's attributes flat beside its id, some under `attributes`; both are
 * attributes here, the latter winning. `_last_status` is the service's own and cannot be written.
 */
import { isAbsent, trimmed } from '../value-rules/verdict.ts';
import { joinAttributes, readAttributes } from './read-attributes.ts';
import { readRequiredText } from './identifiers.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import { DEVICE_TOKEN_SIZE_BYTES_MAX } from '../operations/limits.ts';
import type { PersonIdentifier } from '../operations/operation.ts';
import { type CallDraft, fieldIn } from './parse.ts';
import { readInstantMs } from './timestamps.ts';

const TRACK_DEVICE_CONTROL_KEYS: ReadonlySet<string> = new Set([
  'id',
  'token',
  'platform',
  'last_used',
  'attributes',
  '_last_status',
]);
const ATTRIBUTE_CONTROL_KEYS: ReadonlySet<string> = new Set(['_last_status']);

/** Takes a Track device; v1 calls the token `id`, v2 `token`. */
export function takeTrackDevice(
  draft: CallDraft,
  person: PersonIdentifier,
  device: unknown,
  tokenKey: 'id' | 'token',
): void {
  if (!isDeviceObject(draft, device)) return;
  const token = readDeviceToken(draft, device[tokenKey], fieldIn('device', tokenKey));
  const platform = readPlatform(draft, device.platform, 'device.platform');
  const lastUsedAtMs = readInstantMs(draft, device.last_used, 'device.last_used', 'it is left out');
  const flat = readAttributes(draft, device, 'device', TRACK_DEVICE_CONTROL_KEYS, 'other');
  const nested = device.attributes;
  let attributes = flat;
  if (isJsonObject(nested)) {
    attributes = joinAttributes(
      draft,
      flat,
      readAttributes(draft, nested, 'device.attributes', ATTRIBUTE_CONTROL_KEYS, 'other'),
      'device',
    );
  } else if (!isAbsent(nested)) {
    draft.refuse('invalid', 'device.attributes', 'device.attributes must be an object', nested);
  }
  if (token === undefined || platform === undefined) return;
  takeDevice(draft, person, token, platform, lastUsedAtMs, attributes);
}

/** Takes a device that is read. */
export function takeDevice(
  draft: CallDraft,
  person: PersonIdentifier,
  token: string,
  platform: string,
  lastUsedAtMs: number | undefined,
  attributes: JsonObject,
): void {
  const { environmentId, receivedAtMs } = draft.context;
  const type = 'device.add';
  draft.take(
    lastUsedAtMs === undefined
      ? { type, environmentId, receivedAtMs, person, token, platform, attributes }
      : { type, environmentId, receivedAtMs, person, token, platform, lastUsedAtMs, attributes },
  );
}

/** Takes the removal of a device by its token. */
export function takeDeviceDeletion(
  draft: CallDraft,
  person: PersonIdentifier,
  token: string,
): void {
  const { environmentId, receivedAtMs } = draft.context;
  draft.take({ type: 'device.delete', environmentId, receivedAtMs, person, token });
}

/** A token that must be there. `undefined` after an issue. */
export function readDeviceToken(
  draft: CallDraft,
  value: unknown,
  field: string,
): string | undefined {
  return readRequiredText(draft, value, field, DEVICE_TOKEN_SIZE_BYTES_MAX);
}

/** `ios` or `android`, in any letter case. `undefined` after an issue. */
export function readPlatform(draft: CallDraft, value: unknown, field: string): string | undefined {
  const platform = platformOf(value);
  if (platform !== undefined) return platform;
  if (isAbsent(value)) draft.refuse('required', field, `${field} is required`);
  else draft.refuse('invalid', field, `${field} must be ios or android`, value);
  return undefined;
}

/** The platform, if it is one. */
export function platformOf(value: unknown): 'ios' | 'android' | undefined {
  const platform = typeof value === 'string' ? trimmed(value).toLowerCase() : undefined;
  return platform === 'ios' || platform === 'android' ? platform : undefined;
}

/** True for an object; else an issue. */
export function isDeviceObject(draft: CallDraft, value: unknown): value is JsonObject {
  if (isJsonObject(value)) return true;
  if (isAbsent(value)) draft.refuse('required', 'device', 'device is required');
  else draft.refuse('invalid', 'device', 'device must be an object', value);
  return false;
}
