/**
 * Code for receivers that verifies the signature of a delivery. The rule is the one of `packages/verify`, whose files
 * also give the reason of a refusal. Pure.
 */

/** The names that are shown, by their ids in the address. */
export const VERIFY_LANGUAGES = { node: 'Node', python: 'Python', go: 'Go', ruby: 'Ruby' } as const;

export type VerifyLanguage = keyof typeof VERIFY_LANGUAGES;

/** Each takes the raw body, the headers, and the secret of the webhook. */
export const VERIFY_SAMPLES: Readonly<Record<VerifyLanguage, string>> = {
  node: `import { createHmac, timingSafeEqual } from 'node:crypto';

// The raw body, before a parser reads it, and request.headers.
export function verify(body, headers, secret) {
  const timestamp = headers['x-svc-timestamp'] ?? '';
  if (!secret || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) return false;
  const expected = createHmac('sha256', secret).update(\`v0:\${timestamp}:\`).update(body).digest();
  // Two signatures while the secret is changed.
  return ['x-svc-signature', 'x-svc-signature-next'].some((name) => {
    const given = Buffer.from(headers[name] ?? '', 'hex');
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}`,
  python: `import hashlib, hmac, time

def verify(body, headers, secret):
    """Takes the raw body as bytes, and request.headers."""

    timestamp = headers.get("x-svc-timestamp") or ""
    if not secret or not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > 300:
        return False
    signed = b"v0:" + timestamp.encode() + b":" + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    # Two signatures while the secret is changed.
    given = [headers.get(name) or "" for name in ("x-svc-signature", "x-svc-signature-next")]
    return any(hmac.compare_digest(expected, each.encode()) for each in given)`,
  go: `// Takes the raw body. Imports crypto/hmac, crypto/sha256, encoding/hex, net/http, strconv, time.
func verify(body []byte, header http.Header, secret string) bool {
	timestamp := header.Get("x-svc-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if secret == "" || err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	// Two signatures while the secret is changed.
	for _, name := range []string{"x-svc-signature", "x-svc-signature-next"} {
		given, err := hex.DecodeString(header.Get(name))
		if err == nil && hmac.Equal(given, mac.Sum(nil)) {
			return true
		}
	}
	return false
}`,
  ruby: `require "openssl"

# The raw body, and headers with names in lower case.
def verify(body, headers, secret)
  timestamp = headers["x-svc-timestamp"].to_s
  return false if secret.to_s.empty? || (Time.now.to_i - timestamp.to_i).abs > 300
  expected = OpenSSL::HMAC.hexdigest("SHA256", secret, "v0:#{timestamp}:#{body}")
  # Two signatures while the secret is changed.
  ["x-svc-signature", "x-svc-signature-next"].any? do |name|
    OpenSSL.secure_compare(headers[name].to_s, expected)
  end
end`,
};
