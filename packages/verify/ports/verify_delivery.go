// Package sluice verifies that a request is a delivery of a webhook of yours: signed with its secret, just now.
//
// One file for Go 1.18 and later, without dependencies: copy it into your receiver. It has the rule of
// src/verify-delivery.cjs, and packages/verify/test/ports.test.ts runs both on the same requests.
//
//	func hook(w http.ResponseWriter, r *http.Request) {
//		body, err := io.ReadAll(r.Body)
//		if err != nil || sluice.Verify(r.Header, body, []string{os.Getenv("WEBHOOK_SECRET")}, time.Now(), sluice.Tolerance) != nil {
//			w.WriteHeader(http.StatusUnauthorized)
//			return
//		}
//		take(body)
//	}
package sluice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Tolerance is how far the time of the attempt may be from now, either way.
const Tolerance = 300 * time.Second

// Why a request is refused, for your log: never tell it to the caller.
var (
	ErrMalformedHeaders = errors.New("malformed_headers")
	ErrTooOld           = errors.New("too_old")
	ErrTooNew           = errors.New("too_new")
	ErrWrongSignature   = errors.New("wrong_signature")
	// ErrNoSecret is a mistake of the receiver: anybody could sign with an empty secret.
	ErrNoSecret = errors.New("a delivery is verified with at least one secret, and an empty secret is refused")
)

var (
	// The first of each row that is there: the second name is Customer.io's.
	timestampHeaders = []string{"x-svc-timestamp", "x-cio-timestamp"}
	signatureHeaders = [][]string{{"x-svc-signature", "x-cio-signature"}, {"x-svc-signature-next"}}
	timestampForm    = regexp.MustCompile(`\A[0-9]{1,12}\z`)
	signatureForm    = regexp.MustCompile(`\A[0-9a-f]{64}\z`)
)

// Verify takes a request's http.Header, and returns nil where the request was signed with one of the secrets, within the tolerance. The body is the raw
// body, exactly as it came; secrets has the webhook's secret, and while it is rotated the old and the new one.
func Verify(header map[string][]string, body []byte, secrets []string, now time.Time, tolerance time.Duration) error {
	if len(secrets) == 0 {
		return ErrNoSecret
	}
	for _, secret := range secrets {
		if secret == "" {
			return ErrNoSecret
		}
	}

	timestamp := first(header, timestampHeaders)
	var signatures [][]byte
	for _, names := range signatureHeaders {
		if value := first(header, names); signatureForm.MatchString(value) {
			decoded, _ := hex.DecodeString(value)
			signatures = append(signatures, decoded)
		}
	}
	if !timestampForm.MatchString(timestamp) || len(signatures) == 0 {
		return ErrMalformedHeaders
	}

	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	// Compared in seconds: the nanoseconds of a time that is far away would not fit.
	age := float64(now.UnixMilli())/1000 - float64(seconds)
	if age > tolerance.Seconds() {
		return ErrTooOld
	}
	if age < -tolerance.Seconds() {
		return ErrTooNew
	}

	// Every signature with every secret, in constant time: how long it takes says nothing about the secrets.
	isSigned := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte("v0:" + timestamp + ":"))
		mac.Write(body)
		expected := mac.Sum(nil)
		for _, signature := range signatures {
			if hmac.Equal(expected, signature) {
				isSigned = true
			}
		}
	}
	if !isSigned {
		return ErrWrongSignature
	}
	return nil
}

// first is the one value of the first of these headers that is there, in whatever letter case; empty where it is there twice.
func first(header map[string][]string, names []string) string {
	for _, name := range names {
		var found []string
		for key, values := range header {
			if strings.EqualFold(key, name) {
				found = append(found, values...)
			}
		}
		if len(found) == 1 {
			return found[0]
		}
		if len(found) > 1 {
			return ""
		}
	}
	return ""
}
