/**
 * Parses one HTTP answer from bytes as they come (RFC 9112). It has no socket. For any input it holds at most a head
 * and the first part of a body.
 *   head ──┬─ 1xx ──▶ head                                 (at most so many)
 *          ├─ 204, 304 ───────────────────────▶ complete
 *          ├─ content-length ──▶ sized ───────▶ complete
 *          ├─ chunked ──▶ size ⇄ chunk ──▶ trailers ──▶ complete
 *          └─ neither ──▶ until the end of the connection
 * It is strict about heads, because a sender of anything else is no HTTP server. It is strict about the end of the
 * answer, because the next request goes over the same connection.
 *
 * Why no library: see `http-client.ts`. Used by `http-attempt.ts`.
 */
const HEAD_BYTES_MAX = 16 * 1024;
const BODY_BYTES_MAX = 16 * 1024;
/** The size of a chunk with its extensions; each of the trailers. */
const LINE_BYTES_MAX = 1024;
const TRAILERS_MAX = 32;
/** 1xx responses before the answer. More are no answer. */
const INFORMATIONAL_MAX = 10;

const PROTOCOL = 'HTTP/1.';
const STATUS_LINE = /^HTTP\/1\.[01] \d{3}(?: [^\r\n\0]*)?(?:\r\n|$)/;
/** A status line and fields, a line each: a token, a colon, and no control character but tab. */
const HEAD =
  /^HTTP\/1\.([01]) (\d{3})(?: [^\r\n\0]*)?(?:\r\n[!#$%&'*+\-.^_`|~\w]+:[\t\x20-\x7e\x80-\xff]*)*$/;
/** The fields that decide about the end of the answer, and whether another may follow. */
const FRAMING = /\r\n(content-length|transfer-encoding|connection|keep-alive):[ \t]*([^\r]*)/gi;
const BARE_LINE_FEED = /[^\r]\n/;
const CHUNK_SIZE = /^([\da-f]{1,12})[ \t]*(?:;.*)?$/i;
const LENGTH = /^\d{1,15}$/;

export type ReadState =
  /** The answer goes on. */
  | 'reading'
  /** It is whole, or all of it that is kept has been read. */
  | 'complete'
  /** It is no answer; `fault` has the reason. */
  | 'misbehaving';

/**
 * The last head that came over a connection, and its meaning. A server's answers of one second are the same but for
 * their bodies, and reading a head takes 3 µs of the 90 of a delivery.
 */
export class LastHead {
  #said: HeadMeaning | undefined;

  /** Undefined for any other head. */
  find(text: string): HeadMeaning | undefined {
    return this.#said?.text === text ? this.#said : undefined;
  }

  note(said: HeadMeaning): void {
    if (said.text.length > KEPT_HEAD_LENGTH_MAX) return;
    // A copy: a part of a text keeps the whole of it.
    const text = Buffer.from(said.text, 'latin1').toString('latin1');
    this.#said = { ...said, text };
  }
}

/** Of an idle connection, of which there may be thousands. */
const KEPT_HEAD_LENGTH_MAX = 2_048;

/** Of a head that is well formed and no informational one. */
interface HeadMeaning {
  readonly text: string;
  readonly status: number;
  readonly head: string;
  readonly keepAliveMs: number;
  readonly part: Part;
  readonly leftBytes: number;
}

type Part = 'head' | 'sized' | 'size' | 'chunk' | 'chunk end' | 'trailers' | 'open' | 'complete';

/** For one answer; fed with `read` until that does not return `reading` any more. */
export class ResponseReader {
  /** Of the answer, once its head is read. */
  status: number | null = null;
  /** Status line and fields of the answer, a line each. */
  head = '';
  fault = '';
  /**
   * Set when complete. Time for which the connection may lie idle for the next request; 0 if it may not be used again.
   */
  keepAliveMs = 0;
  readonly #keepAliveMsMax: number;
  readonly #lastHead: LastHead;
  #part: Part = 'head';
  #informationalCount = 0;
  /** Bytes to come of the body, or of its chunk. */
  #leftBytes = 0;
  #trailerCount = 0;
  #hasBegun = false;
  #chunks: Buffer[] = [];
  /** Set if it came as one piece. */
  #body = '';
  #bodySizeBytes = 0;
  /** The beginning of a head or a line, which are read as one piece. */
  #pending: Buffer | undefined;
  #pendingSizeBytes = 0;
  /** Start of the next part in the bytes that are being read. */
  #at = 0;

  /**
   * @param keepAliveMsMax - of a connection whose other side does not state its own.
   * @param lastHead - of the connection; of readers with the same `keepAliveMsMax` alone.
   */
  constructor(keepAliveMsMax: number, lastHead: LastHead) {
    this.#keepAliveMsMax = keepAliveMsMax;
    this.#lastHead = lastHead;
  }

  /** True from the first byte on. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** As text, for any type of content. */
  get body(): string {
    return this.#chunks.length === 0 ? this.#body : Buffer.concat(this.#chunks).toString();
  }

  /** @param chunk - only within the call. */
  read(chunk: Buffer): ReadState {
    this.#hasBegun = true;
    this.#at = 0;
    let goesOn = true;
    while (goesOn && this.#part !== 'complete' && this.#at < chunk.length)
      goesOn = this.#readPart(chunk) && this.fault === '';
    if (this.fault !== '') return 'misbehaving';
    if (this.#part !== 'complete') return 'reading';
    // No request is waiting for the bytes after this answer.
    if (this.#at < chunk.length) this.keepAliveMs = 0;
    return 'complete';
  }

  /** The other side has ended the connection. True if that completes the answer. */
  end(): boolean {
    if (this.#part !== 'open') return false;
    this.keepAliveMs = 0;
    this.#part = 'complete';
    return true;
  }

  /** False if more bytes are needed. */
  #readPart(chunk: Buffer): boolean {
    switch (this.#part) {
      case 'head': {
        const head = this.#takeUntil('\r\n\r\n', chunk, HEAD_BYTES_MAX);
        if (head !== undefined) this.#readHead(head);
        return head !== undefined;
      }
      case 'size': {
        const line = this.#takeUntil('\r\n', chunk, LINE_BYTES_MAX);
        if (line !== undefined) this.#readSize(line);
        return line !== undefined;
      }
      case 'chunk end': {
        const line = this.#takeUntil('\r\n', chunk, 0);
        if (line !== undefined) this.#part = 'size';
        return line !== undefined;
      }
      case 'trailers': {
        const line = this.#takeUntil('\r\n', chunk, LINE_BYTES_MAX);
        if (line === '') this.#part = 'complete';
        else if (line?.includes('\n') === true)
          this.fault = 'a line ends without a carriage return';
        else if (line !== undefined && ++this.#trailerCount > TRAILERS_MAX)
          this.fault = 'too many trailers';
        return line !== undefined;
      }
      case 'sized':
      case 'chunk':
        this.#readBody(chunk, Math.min(this.#leftBytes, chunk.length - this.#at));
        return true;
      case 'open':
        this.#readBody(chunk, chunk.length - this.#at);
        return true;
      case 'complete':
        return false;
    }
  }

  #readHead(text: string): void {
    const said = this.#lastHead.find(text);
    if (said) {
      this.status = said.status;
      this.head = said.head;
      this.keepAliveMs = said.keepAliveMs;
      this.#part = said.part;
      this.#leftBytes = said.leftBytes;
      return;
    }
    const [, version, digits] = HEAD.exec(text) ?? [];
    if (digits !== undefined) this.#begin(Number(digits), version === '1', text);
    else if (STATUS_LINE.test(text)) this.fault = 'a header field is not well formed';
    else this.fault = 'its answer does not begin with a status line';
    const { status, head, keepAliveMs, fault } = this;
    if (status === null || fault !== '') return;
    this.#lastHead.note({
      ...{ text, status, head, keepAliveMs },
      ...{ part: this.#part, leftBytes: this.#leftBytes },
    });
  }

  #begin(status: number, isPersistent: boolean, text: string): void {
    if (status < 200) {
      if (status < 100 || status === 101) this.fault = `status ${status} was not asked for`;
      else if (++this.#informationalCount > INFORMATIONAL_MAX)
        this.fault = `more than ${INFORMATIONAL_MAX} informational responses`;
      return;
    }
    this.status = status;
    this.head = text.replaceAll('\r\n', '\n');
    let length: string | undefined;
    let coding: string | undefined;
    let isKept = isPersistent;
    let keepAliveMs = this.#keepAliveMsMax;
    FRAMING.lastIndex = 0;
    for (let field = FRAMING.exec(text); field; field = FRAMING.exec(text)) {
      const [, name = '', value = ''] = field;
      switch (name.toLowerCase()) {
        case 'content-length':
          if (length !== undefined) this.fault = 'it gave two lengths';
          length = value.trimEnd();
          break;
        case 'transfer-encoding':
          coding = coding === undefined ? value : `${coding},${value}`;
          break;
        case 'connection': {
          const options = value.toLowerCase();
          if (/\bclose\b/.test(options)) isKept = false;
          else if (/\bkeep-alive\b/.test(options)) isKept = true;
          break;
        }
        default:
          keepAliveMs = Math.min(keepAliveMs, keepAliveMsOf(value));
      }
    }
    if (length !== undefined && coding !== undefined) this.fault = 'it gave a length and a coding';
    if (length !== undefined && !LENGTH.test(length)) this.fault = 'its length is no number';
    this.keepAliveMs = isKept ? Math.max(keepAliveMs, 0) : 0;
    if (status === 204 || status === 304) {
      // Such an answer has no body by definition; a server that declares one may send one.
      if (coding !== undefined || (length !== undefined && Number(length) > 0))
        this.keepAliveMs = 0;
      this.#part = 'complete';
    } else if (coding !== undefined && /(?:^|,)[ \t]*chunked[ \t]*$/i.test(coding)) {
      this.#part = 'size';
    } else if (length !== undefined && coding === undefined) {
      this.#leftBytes = Number(length);
      this.#part = this.#leftBytes === 0 ? 'complete' : 'sized';
    } else {
      this.#part = 'open';
    }
  }

  #readSize(line: string): void {
    const [, digits] = CHUNK_SIZE.exec(line) ?? [];
    if (digits === undefined) {
      this.fault = 'the size of a chunk is no number';
      return;
    }
    this.#leftBytes = Number.parseInt(digits, 16);
    this.#part = this.#leftBytes === 0 ? 'trailers' : 'chunk';
  }

  #readBody(chunk: Buffer, sizeBytes: number): void {
    const end = this.#at + sizeBytes;
    const capacity = BODY_BYTES_MAX - this.#bodySizeBytes;
    if (capacity > 0) {
      const pieceEnd = Math.min(end, this.#at + capacity);
      const isAll = this.#part === 'sized' && this.#leftBytes === sizeBytes;
      if (isAll && this.#chunks.length === 0)
        this.#body = chunk.toString('utf8', this.#at, pieceEnd);
      // A copy: the view would keep the whole read buffer.
      else this.#chunks.push(Buffer.from(chunk.subarray(this.#at, pieceEnd)));
    }
    this.#bodySizeBytes += sizeBytes;
    this.#at = end;
    if (this.#part !== 'open') this.#leftBytes -= sizeBytes;
    if (this.#bodySizeBytes > BODY_BYTES_MAX) {
      this.keepAliveMs = 0;
      this.#part = 'complete';
    } else if (this.#part !== 'open' && this.#leftBytes === 0) {
      this.#part = this.#part === 'sized' ? 'complete' : 'chunk end';
    }
  }

  /** The text before the next `end`, which is skipped. Undefined if `end` has not come yet; the bytes are then kept. */
  #takeUntil(end: string, chunk: Buffer, sizeBytesMax: number): string | undefined {
    const at = this.#at;
    if (!this.#pending) {
      // As text first: making a text of the bytes and searching it is faster than searching the bytes.
      const text = chunk.toString('latin1', at, at + sizeBytesMax + end.length);
      const length = text.indexOf(end);
      if (length >= 0) {
        this.#at = at + length + end.length;
        return text.slice(0, length);
      }
      this.#pending = Buffer.allocUnsafe(sizeBytesMax + end.length);
      this.#pendingSizeBytes = 0;
    }
    const pending = this.#pending;
    const before = this.#pendingSizeBytes;
    const size = before + chunk.copy(pending, before, at);
    const endAt = pending
      .subarray(0, size)
      .indexOf(end, Math.max(0, before - end.length), 'latin1');
    if (endAt >= 0) {
      this.#at = at + endAt + end.length - before;
      this.#pending = undefined;
      return pending.toString('latin1', 0, endAt);
    }
    this.#at = chunk.length;
    this.#pendingSizeBytes = size;
    // Bytes that do not begin like a head, or end their lines otherwise, are refused at once.
    const begin = pending.toString('latin1', 0, Math.min(size, PROTOCOL.length));
    if (this.#part === 'head' && !PROTOCOL.startsWith(begin))
      this.fault = 'its answer does not begin with a status line';
    else if (BARE_LINE_FEED.test(pending.toString('latin1', Math.max(before - 1, 0), size)))
      this.fault = 'a line ends without a carriage return';
    else if (size === pending.length) this.fault = `its ${this.#part} has no end`;
    return undefined;
  }
}

/** Many servers close a little before the time that they announce. */
const KEEP_ALIVE_MARGIN_MS = 2_000;

/** Of the `Keep-Alive` field's value: `timeout=5, max=100`. */
function keepAliveMsOf(value: string): number {
  const [, seconds] = /\btimeout=(\d{1,9})/i.exec(value) ?? [];
  return seconds === undefined ? Infinity : Number(seconds) * 1_000 - KEEP_ALIVE_MARGIN_MS;
}
