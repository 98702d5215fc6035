package bootstrap

import (
	"fmt"
	"strings"
	"time"
)

// Join is everything a worker needs. Token is a secret: String leaves it out.
type Join struct {
	Token      string // id.secret; empty: there is none now
	CAHashes   []string
	Endpoint   string // host:port
	Expires    time.Time
	Kubernetes string // version of the API server, "v1.36.3"
}

// String names the token by its ID only.
func (j Join) String() string {
	if j.Token == "" {
		return fmt.Sprintf("join %s, without a token until machines come", j.Endpoint)
	}
	id, _, _ := strings.Cut(j.Token, ".")
	return fmt.Sprintf("join %s with token %s until %s", j.Endpoint, id, j.Expires.UTC().Format(time.RFC3339))
}

// GoString keeps the token out of %#v.
func (j Join) GoString() string { return j.String() }

// Render writes the environment file: plain KEY=VALUE lines that a POSIX shell and
// systemd's EnvironmentFile= read alike. It is an error if a value holds anything
// that either of them would not take literally. Without a token JOIN_TOKEN and
// JOIN_TOKEN_EXPIRES are empty.
func Render(j Join) ([]byte, error) {
	var b strings.Builder
	for _, line := range []struct{ key, value string }{
		{"JOIN_TOKEN", j.Token},
		{"JOIN_CERT_HASH", strings.Join(j.CAHashes, ",")},
		{"JOIN_ENDPOINT", j.Endpoint},
		{"JOIN_TOKEN_EXPIRES", j.expiry()},
		{"JOIN_KUBERNETES_VERSION", j.Kubernetes},
	} {
		if line.value == "" && (j.Token != "" || !strings.HasPrefix(line.key, "JOIN_TOKEN")) {
			return nil, fmt.Errorf("render join information: %s is empty", line.key)
		}
		if strings.IndexFunc(line.value, notLiteral) >= 0 {
			return nil, fmt.Errorf("render join information: %s has characters that an environment file cannot hold", line.key)
		}
		b.WriteString(line.key + "=" + line.value + "\n")
	}
	return []byte(b.String()), nil
}

// expiry is empty where there is no token.
func (j Join) expiry() string {
	if j.Token == "" {
		return ""
	}
	return j.Expires.UTC().Format(time.RFC3339)
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

// ReadJoin reads an environment file, the agent's own or one that somebody wrote by hand
// with the same names, and says what it lacks.
func ReadJoin(data []byte) (j Join, lacks []string) {
	values := map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export ")), "=")
		if ok {
			values[key] = strings.Trim(value, `"'`)
		}
	}
	j = Join{Token: values["JOIN_TOKEN"], Endpoint: values["JOIN_ENDPOINT"], Kubernetes: values["JOIN_KUBERNETES_VERSION"]}
	if h := values["JOIN_CERT_HASH"]; h != "" {
		j.CAHashes = strings.Split(h, ",")
	}
	lack := func(name, what string) {
		if values[name] == "" {
			lacks = append(lacks, fmt.Sprintf("%s is missing: %s", name, what))
		}
	}
	lack("JOIN_ENDPOINT", "host:port of the API server")
	lack("JOIN_CERT_HASH", "sha256: and the hash of the cluster's CA")
	lack("JOIN_KUBERNETES_VERSION", "userdata render takes --kubernetes-version instead")
	if j.Token != "" {
		lack("JOIN_TOKEN_EXPIRES", "whether the token ends cannot be seen")
		if id, secret, _ := strings.Cut(j.Token, "."); !idPattern.MatchString(id) || !secretPattern.MatchString(secret) {
			j.Token, lacks = "", append(lacks, "JOIN_TOKEN is no bootstrap token")
		}
	} else if _, there := values["JOIN_TOKEN"]; !there {
		lacks = append(lacks, "JOIN_TOKEN is missing: kubeadm token create, or the agent's own")
	}
	if at, err := time.Parse(time.RFC3339, values["JOIN_TOKEN_EXPIRES"]); err == nil {
		j.Expires = at
	}
	return j, lacks
}
