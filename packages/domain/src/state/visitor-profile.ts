/**
 * Data kept for an anonymous visitor until the id has an owner.
 *
 * They are attributes, relationships and devices, as they are after all calls under that id. Its events wait in
 * `events`.
 *
 * All data have bounds, because a visitor is not authenticated. Data beyond a bound are refused with an issue. Data
 * that were not written for 30 days are left out. Pure.
 */
import type { OrderPlace } from '../operations/order-place.ts';
import { isJsonLargerThan, jsonSizeBytes } from '../values/json-size.ts';
import { setKey, type Json, type JsonObject } from '../values/json.ts';
import type { AttributeLeaf } from './attribute-places.ts';
import { isRemoval } from './merge-attributes.ts';
import { namesPreferences } from '../parsing/read-preferences.ts';

const VISITOR_ATTRIBUTE_COUNT_MAX = 300;
const VISITOR_RELATIONSHIP_COUNT_MAX = 50;
const VISITOR_DEVICE_COUNT_MAX = 50;
/** Of all that is kept of a visitor, as JSON. */
export const VISITOR_SIZE_BYTES_MAX = 100_000;
/** As events are kept for a person who is not known yet. */
export const VISITOR_AGE_MS_MAX = 30 * 86_400_000;

interface Kept {
  /** When intake took the last call that wrote it. */
  readonly atMs: number;
}

export interface VisitorAttribute extends Kept {
  /** Null: removed. */
  readonly value: Json;
  readonly place: OrderPlace;
  /** The call's `_timestamp`. */
  readonly timestampMs?: number;
}

interface PlacedEntry extends Kept {
  /** Of the last call that added it; absent if a version before these places kept it. */
  readonly place?: OrderPlace;
}

export interface VisitorRelationship extends PlacedEntry {
  readonly attributes: JsonObject;
  readonly createdAtMs: number;
}

export interface VisitorDevice extends PlacedEntry {
  readonly platform: string;
  readonly lastUsedAtMs: number | null;
  readonly attributes: JsonObject;
  readonly createdAtMs: number;
}

export interface VisitorProfile {
  /** By leaf (`attribute-places.ts`). */
  readonly attributes: Readonly<Record<string, VisitorAttribute>>;
  /** By the object's number. */
  readonly relationships: Readonly<Record<string, VisitorRelationship>>;
  /** By token. */
  readonly devices: Readonly<Record<string, VisitorDevice>>;
}

export const EMPTY_VISITOR_PROFILE: VisitorProfile = {
  attributes: {},
  relationships: {},
  devices: {},
};

const COUNT_MAX: Readonly<Record<keyof VisitorProfile, number>> = {
  attributes: VISITOR_ATTRIBUTE_COUNT_MAX,
  relationships: VISITOR_RELATIONSHIP_COUNT_MAX,
  devices: VISITOR_DEVICE_COUNT_MAX,
};

export type VisitorSection = keyof VisitorProfile;

/** The day from which a week is counted, `2026-11-26`. Weeks are counted from 1970-01-01. */
export function weekOf(atMs: number): string {
  const weekMs = 7 * 86_400_000;
  return new Date(Math.floor(atMs / weekMs) * weekMs).toISOString().slice(0, 10);
}

/** The profile without data that were not written for 30 days. */
export function withoutOld(profile: VisitorProfile, nowMs: number): VisitorProfile {
  return withoutEarlier(profile, nowMs - VISITOR_AGE_MS_MAX);
}

/** The profile without data that were written before a time. */
export function withoutEarlier(profile: VisitorProfile, sinceMs: number): VisitorProfile {
  const isOld = ({ atMs }: Kept): boolean => atMs < sinceMs;
  const young = <Entry extends Kept>(entries: Readonly<Record<string, Entry>>) =>
    Object.values(entries).some(isOld)
      ? Object.fromEntries(Object.entries(entries).filter(([, entry]) => !isOld(entry)))
      : entries;
  return {
    attributes: young(profile.attributes),
    relationships: young(profile.relationships),
    devices: young(profile.devices),
  };
}

export interface ProfileWrite {
  readonly profile: VisitorProfile;
  /** Names that found no place. */
  readonly refused: readonly string[];
}

/**
 * Writes the attributes of one call.
 *
 * @param write - time and place of all of them.
 */
export function writeVisitorAttributes(
  profile: VisitorProfile,
  leaves: readonly AttributeLeaf[],
  write: Omit<VisitorAttribute, 'value'>,
): ProfileWrite {
  const attributes: Record<string, VisitorAttribute> = { ...profile.attributes };
  let count = Object.keys(attributes).length;
  // Added up, since a call may have a thousand attributes.
  let sizeBytes = jsonSizeBytes(profile);
  const remove = (name: string): void => {
    sizeBytes -= entrySizeBytes(name, attributes[name]);
    delete attributes[name];
    count--;
  };
  const refused: string[] = [];
  for (const [name, given] of leaves) {
    const value = isRemoval(given) ? null : given;
    if (value === null && namesPreferences(name))
      Object.keys(attributes)
        .filter((leaf) => leaf.startsWith(`${name}.`))
        .forEach(remove);
    if (Object.hasOwn(attributes, name)) remove(name);
    const entry = { ...write, value };
    const grown = sizeBytes + entrySizeBytes(name, entry);
    if (count >= VISITOR_ATTRIBUTE_COUNT_MAX || grown > VISITOR_SIZE_BYTES_MAX) {
      refused.push(name);
      continue;
    }
    setKey(attributes, name, entry);
    sizeBytes = grown;
    count++;
  }
  return { profile: { ...profile, attributes }, refused };
}

/** With the comma. */
const entrySizeBytes = (name: string, entry: unknown): number =>
  jsonSizeBytes(name) + jsonSizeBytes(entry) + 2;

/** Adds an entry, or puts it in the place of the one of its key; undefined if that exceeds a bound. */
export function putVisitorEntry<Section extends VisitorSection>(
  profile: VisitorProfile,
  section: Section,
  key: string,
  entry: VisitorProfile[Section][string],
): VisitorProfile | undefined {
  const entries = { ...profile[section] } as Record<string, typeof entry>;
  const isNew = !Object.hasOwn(entries, key);
  if (isNew && Object.keys(entries).length >= COUNT_MAX[section]) return undefined;
  setKey(entries, key, entry);
  const next = { ...profile, [section]: entries };
  return isJsonLargerThan(next, VISITOR_SIZE_BYTES_MAX) ? undefined : next;
}

export function withoutVisitorEntry(
  profile: VisitorProfile,
  section: VisitorSection,
  key: string,
): VisitorProfile {
  if (!Object.hasOwn(profile[section], key)) return profile;
  const entries = Object.entries(profile[section]).filter(([name]) => name !== key);
  return { ...profile, [section]: Object.fromEntries(entries) };
}

/** The last write; null if the profile has no entry with a place. */
export function newestPlaceIn(profile: VisitorProfile): OrderPlace | null {
  let newest: OrderPlace | null = null;
  for (const entries of Object.values(profile))
    for (const { place } of Object.values(entries as Readonly<Record<string, PlacedEntry>>))
      if (place !== undefined && (newest === null || place > newest)) newest = place;
  return newest;
}

/** The newest `_timestamp` of a call that was kept. */
export function timestampIn({ attributes }: VisitorProfile): number | undefined {
  let newest: number | undefined;
  for (const { timestampMs } of Object.values(attributes))
    if (timestampMs !== undefined && (newest === undefined || timestampMs > newest))
      newest = timestampMs;
  return newest;
}

export const isEmptyProfile = (profile: VisitorProfile): boolean =>
  Object.values(profile).every((entries) => Object.keys(entries as object).length === 0);
