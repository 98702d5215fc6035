package attest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// nonceLife is how long a challenge may be answered.
const nonceLife = time.Minute

// challenges hands out nonces and takes each once. A nonce carries its end and a MAC, so
// that nobody fills the memory by asking for them; those that were used are remembered
// until they end.
type challenges struct {
	key [32]byte

	mu    sync.Mutex
	used  map[string]time.Time // until when
	swept time.Time
}

func newChallenges() (*challenges, error) {
	c := &challenges{used: map[string]time.Time{}}
	if _, err := rand.Read(c.key[:]); err != nil {
		return nil, fmt.Errorf("make the challenges' key: %w", err)
	}
	return c, nil
}

// issue returns a nonce: eight bytes of time, sixteen of chance, sixteen of MAC, in hex.
func (c *challenges) issue(now time.Time) (string, error) {
	var b [24]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.Add(nonceLife).UnixMilli()))
	if _, err := rand.Read(b[8:]); err != nil {
		return "", fmt.Errorf("make a challenge: %w", err)
	}
	return hex.EncodeToString(append(b[:], c.mac(b[:])...)), nil
}

func (c *challenges) mac(b []byte) []byte {
	h := hmac.New(sha256.New, c.key[:])
	h.Write(b)
	return h.Sum(nil)[:16]
}

// live returns when a nonce ends, or what is wrong with it. It does not check whether the nonce was used before.
func (c *challenges) live(nonce string, now time.Time) (until time.Time, why string) {
	raw, err := hex.DecodeString(nonce)
	if err != nil || len(raw) != 40 || !hmac.Equal(raw[24:], c.mac(raw[:24])) {
		return time.Time{}, "the challenge was not made by this listener"
	}
	until = time.UnixMilli(int64(binary.BigEndian.Uint64(raw[:8])))
	if now.After(until) {
		return time.Time{}, "the challenge has ended"
	}
	return until, ""
}

// use marks a nonce that lives until then as used, and says whether it was used before.
func (c *challenges) use(nonce string, until, now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.swept) > nonceLife {
		c.swept = now
		for n, end := range c.used {
			if now.After(end) {
				delete(c.used, n)
			}
		}
	}
	if _, again := c.used[nonce]; again {
		return "the challenge was used before"
	}
	c.used[nonce] = until
	return ""
}
