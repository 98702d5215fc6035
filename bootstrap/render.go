package bootstrap

import (
	"fmt"
	"strings"
	"time"
)

// Join is everything a worker needs. Token is a secret: String leaves it out.
type Join struct {
	Token      string // id.secret
	CAHashes   []string
	Endpoint   string // host:port
	Expires    time.Time
	Kubernetes string // version of the API server, "v1.36.3"
}

// String names the token by its ID only.
func (j Join) String() string {
	id, _, _ := strings.Cut(j.Token, ".")
	return fmt.Sprintf("join %s with token %s until %s", j.Endpoint, id, j.Expires.UTC().Format(time.RFC3339))
}

// GoString keeps the token out of %#v.
func (j Join) GoString() string { return j.String() }

// Render writes the environment file: plain KEY=VALUE lines that a POSIX shell and
// systemd's EnvironmentFile= read alike. It is an error if a value holds anything
// that either of them would not take literally.
func Render(j Join) ([]byte, error) {
	var b strings.Builder
	for _, line := range []struct{ key, value string }{
		{"JOIN_TOKEN", j.Token},
		{"JOIN_CERT_HASH", strings.Join(j.CAHashes, ",")},
		{"JOIN_ENDPOINT", j.Endpoint},
		{"JOIN_TOKEN_EXPIRES", j.Expires.UTC().Format(time.RFC3339)},
		{"JOIN_KUBERNETES_VERSION", j.Kubernetes},
	} {
		if line.value == "" {
			return nil, fmt.Errorf("render join information: %s is empty", line.key)
		}
		if strings.IndexFunc(line.value, notLiteral) >= 0 {
			return nil, fmt.Errorf("render join information: %s has characters that an environment file cannot hold", line.key)
		}
		b.WriteString(line.key + "=" + line.value + "\n")
	}
	return []byte(b.String()), nil
}

// notLiteral tells whether a rune needs quoting in sh or systemd. Brackets are for
// IPv6 endpoints: a shell takes them literally in an assignment.
func notLiteral(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune(".,:-_+/@[]", r)
}
