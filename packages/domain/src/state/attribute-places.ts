/**
 * Places of a person's writes in the order of acknowledgement.
 *
 * They keep a visitor's older trait from replacing a person's newer value when the visitor turns out to be that person,
 * and a relationship or device of the visitor away if the person removed it later.
 *
 * The writes are recorded only while their workspace has visitors with kept data, and only if the recorded place is not
 * after all of those already. So a workspace without such visitors pays no cost, and a repeated value is written once for
 * each visitor at most. Preferences are compared value by value, under their dotted names. A removed group is recorded
 * under the group's name, and all of them under the attribute's. Pure.
 */
import type { OrderPlace } from '../operations/order-place.ts';
import { isJsonObject, setKey, type Json, type JsonObject } from '../values/json.ts';
import { isRemoval } from './merge-attributes.ts';
import { namesPreferences, PREFERENCES_ATTRIBUTE } from '../parsing/read-preferences.ts';

/** Name of a leaf → place of its last write. */
export type AttributePlaces = Readonly<Record<string, OrderPlace>>;

/** Name under which a removal is recorded. It begins with a character that the name of an attribute does not have in practice. */
export const removalName = (section: 'relationships' | 'devices', key: string): string =>
  `\u0001${section} ${key}`;

/** One value as it is compared. */
export type AttributeLeaf = readonly [name: string, value: Json];

/** The attributes of a call, value by value, in their order. */
export function leavesOf(attributes: JsonObject): AttributeLeaf[] {
  const leaves: AttributeLeaf[] = [];
  for (const name in attributes) {
    const value = attributes[name] as Json;
    if (!namesPreferences(name)) leaves.push([name, value]);
    else addPreferences(leaves, name, value);
  }
  return leaves;
}

function addPreferences(leaves: AttributeLeaf[], name: string, value: Json): void {
  if (isRemoval(value)) leaves.push([name, null]);
  else if (isJsonObject(value) && depthOf(name) < 2) {
    for (const key in value) addPreferences(leaves, `${name}.${key}`, value[key] as Json);
  } else if (typeof value !== 'object' && depthOf(name) === 2) leaves.push([name, value]);
}

/** 0 for all preferences, 1 for a group, 2 for a value, whose own name may hold dots. */
function depthOf(name: string): 0 | 1 | 2 {
  if (name.length === PREFERENCES_ATTRIBUTE.length) return 0;
  return name.includes('.', PREFERENCES_ATTRIBUTE.length + 1) ? 2 : 1;
}

/** The names under which a removal takes the leaf along, itself first. */
export function namesAbove(leaf: string): string[] {
  if (!namesPreferences(leaf)) return [leaf];
  const names = [leaf];
  if (depthOf(leaf) === 2)
    names.push(leaf.slice(0, leaf.indexOf('.', PREFERENCES_ATTRIBUTE.length + 1)));
  if (depthOf(leaf) > 0) names.push(PREFERENCES_ATTRIBUTE);
  return names;
}

/** The last write of a leaf, or of a group that contains it; undefined if no write is recorded. */
export function placeOfLeaf(places: AttributePlaces | null, leaf: string): OrderPlace | undefined {
  if (!places) return undefined;
  let latest: OrderPlace | undefined;
  for (const name of namesAbove(leaf)) {
    const place = Object.hasOwn(places, name) ? places[name] : undefined;
    if (place !== undefined && (latest === undefined || place > latest)) latest = place;
  }
  return latest;
}

/**
 * The places after some writes; the very object that was given if no place need be recorded.
 *
 * @param newest - the last write of a visitor that a later comparison can meet.
 */
export function recordPlaces(
  places: AttributePlaces | null,
  names: Iterable<string>,
  place: OrderPlace,
  newest: OrderPlace,
): AttributePlaces | null {
  let recorded: Record<string, OrderPlace> | undefined;
  for (const name of names) {
    const known = places && Object.hasOwn(places, name) ? places[name] : undefined;
    // An intake of an older version keeps no log, and its places are lower.
    if (known !== undefined && (known > newest || known >= place)) continue;
    recorded ??= { ...places };
    setKey(recorded, name, place);
  }
  return recorded ? newestOf(recorded) : places;
}

/** Writes of so many names are remembered: 300 attributes, and as many removals. */
const PLACES_COUNT_MAX = 600;
/** Once the bound is reached, so that not each write sorts. */
const PLACES_COUNT_KEPT = 450;

/** Anybody with a write key of a web page could remove devices without end. */
function newestOf(places: AttributePlaces): AttributePlaces {
  const names = Object.keys(places);
  if (names.length <= PLACES_COUNT_MAX) return places;
  const entries = Object.entries(places).toSorted(([, one], [, other]) => (one < other ? 1 : -1));
  return Object.fromEntries(entries.slice(0, PLACES_COUNT_KEPT));
}
