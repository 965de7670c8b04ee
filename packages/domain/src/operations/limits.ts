/**
 * Bounds of clients' data, each with its source. A KB is 1,024 bytes. Sizes count the body after decompression, because
 * that is its cost in memory. The caller checks sizes of whole requests, because it has the bytes. The parsers check
 * all others, and their messages name the field, the measured value and the bound. The APIs of each bound:
 *
 * - Identifiers, event ids and event names: both. They become index keys. Postgres refuses a B-tree entry over 2,704
 *   bytes, and one such entry would fail the whole commit batch.
 * - Number of attributes: both. A person has this many at most, so a call with more would be refused later.
 * - Names and values of attributes: Track only, like every source of those bounds. `ingestion-webhooks.md` §7 lists
 *   each refusal of Pipelines, without these bounds. A refused identify would lose more than it protects, and 64 KB
 *   bounds it anyway.
 * - 100,000 bytes of event data, 100 KB of object attributes: by construction, since a call or batch item has 64 KB at
 *   most.
 */

const KB = 1_024;

/** One Track v1 or v2 call (`ingestion-webhooks.md` §8). */
export const TRACK_REQUEST_SIZE_BYTES_MAX = 32 * KB;
/** One `/v2/batch` body (`ingestion-webhooks.md` §8). */
export const TRACK_BATCH_SIZE_BYTES_MAX = 500 * KB;
/** One item of it (`ingestion-conventions.md` §1.7). */
export const TRACK_BATCH_ITEM_SIZE_BYTES_MAX = 32 * KB;
/**
 * Items of a `/v2/batch`. The bound is unpublished, so every valid batch must fit: the smallest valid item has 60 bytes
 * (`{"type":"person","action":"delete","identifiers":{"id":"1"}}`), so 500 KB hold at most 8,393. It only keeps
 * `[1,1,1,…]` from becoming a quarter of a million issues.
 */
export const TRACK_BATCH_COUNT_MAX = 10_000;

/** One Pipelines call (`ingestion-webhooks.md` §8). */
export const PIPELINES_REQUEST_SIZE_BYTES_MAX = 64 * KB;
/** The same in strict mode (`ingestion-webhooks.md` §7; the reasoning is in `ingestion-conventions.md` §3.6). */
export const PIPELINES_STRICT_REQUEST_SIZE_BYTES_MAX = 32 * KB;
/** One Pipelines `/v1/batch` body in strict mode (`ingestion-webhooks.md` §8). */
export const PIPELINES_STRICT_BATCH_SIZE_BYTES_MAX = 1_024 * KB;
/**
 * The default without strict mode (`INTAKE_BATCH_SIZE_BYTES_MAX`): RudderStack's clients send up to 4 MB. A refusal
 * would be a 200 that loses all of it, and each item has a bound of its own.
 */
export const PIPELINES_BATCH_SIZE_BYTES_MAX = 4_096 * KB;
/** One item of it: as much as the same call may have alone. */
export const PIPELINES_BATCH_ITEM_SIZE_BYTES_MAX = PIPELINES_REQUEST_SIZE_BYTES_MAX;
/** Items of a Pipelines batch (`ingestion-conventions.md` §3.6: Segment's bound). */
export const PIPELINES_BATCH_COUNT_MAX = 2_500;

/** A person's, object's, device's or delivery's id (`ingestion-conventions.md` §1.7). */
export const ID_SIZE_BYTES_MAX = 150;
/** An email address (RFC 5321: a path of 256 octets less its angle brackets). */
export const EMAIL_SIZE_BYTES_MAX = 254;
/**
 * A client's event id. A ULID has 26 bytes; ids of any other shape are taken as they are up to the
 * bound of the other ids (Segment's libraries stay under 100 characters).
 */
export const EVENT_ID_SIZE_BYTES_MAX = ID_SIZE_BYTES_MAX;
/** An event's name (`ingestion-conventions.md` §1.4). */
export const EVENT_NAME_SIZE_BYTES_MAX = 100;
/** A page's or screen's name: it is a URL if the page has no better one, and URLs reach 2,000 characters. */
export const PAGE_NAME_SIZE_BYTES_MAX = 2_000;

/** Attributes of one call (`ingestion-conventions.md` §1.7). */
export const ATTRIBUTE_COUNT_MAX = 300;
export const ATTRIBUTE_NAME_SIZE_BYTES_MAX = 150;
/** Of a text its UTF-8, of anything else its compact JSON. */
export const ATTRIBUTE_VALUE_SIZE_BYTES_MAX = 1_000;

/** A push token: opaque, and longer than an id (APNs 64, FCM about 200 today). */
export const DEVICE_TOKEN_SIZE_BYTES_MAX = ATTRIBUTE_VALUE_SIZE_BYTES_MAX;
/** Free text of a reported metric: recipient, reason, link. */
export const METRIC_TEXT_SIZE_BYTES_MAX = 2_000;
/** `POST /v1/publish`: bodies of webhooks, which products of this kind bound between 40 KB and 1 MB. */
export const PUBLISH_SIZE_BYTES_MAX = 1_024 * KB;
export const PUBLISH_COUNT_MAX = 1_000;
/** Texts, numbers, lists and objects of one call, a hundred a message: as many are read in 10 ms. */
export const PUBLISH_VALUE_COUNT_MAX = 100 * PUBLISH_COUNT_MAX;
/** Of a message: as of a Pipelines call. */
export const PUBLISH_MESSAGE_SIZE_BYTES_MAX = PIPELINES_REQUEST_SIZE_BYTES_MAX;

/** Members changed by one manual-segment call (`ingestion-conventions.md` §1.1). */
export const SEGMENT_MEMBER_COUNT_MAX = 1_000;

/**
 * Levels of objects and arrays inside traits, properties, data or attributes. Deeper is `invalid`: its later readers
 * (Postgres, a receiver of our webhooks) may recurse.
 */
export const NESTING_DEPTH_MAX = 100;
