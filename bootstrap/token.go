package bootstrap

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
)

const secretType corev1.SecretType = "bootstrap.kubernetes.io/token"

// The shape of a bootstrap token Secret (k8s.io/cluster-bootstrap token/api).
const (
	secretPrefix    = "bootstrap-token-"
	keyID           = "token-id"
	keySecret       = "token-secret"
	keyExpiration   = "expiration"
	keyDescription  = "description"
	keyGroups       = "auth-extra-groups"
	keySigning      = "usage-bootstrap-signing"
	keyAuth         = "usage-bootstrap-authentication"
	alphabet        = "0123456789abcdefghijklmnopqrstuvwxyz"
	idLength        = 6
	secretLength    = 16
	tokenLabelValue = "true"
)

// What marks a bootstrap token Secret as the agent's own. TokenLabel's value is "true" for
// the one that is published; a token that was made for a single machine has another value,
// and the machine's name under MachineAnnotation or, where it is known before the machine
// is, its provider ID under InstanceAnnotation: the closed join lets nobody else in with it.
const (
	TokenLabel         = "autoscaler-agent/join-token"
	InstanceAnnotation = "autoscaler-agent/instance"
	MachineAnnotation  = "autoscaler-agent/machine"
	// KeyAnnotation is the SHA-256, in hex, of the public key of a machine that has attested:
	// its token is good for no other key's request.
	KeyAnnotation = "autoscaler-agent/key"
)

var (
	idPattern     = lazyregexp.New(`\A[a-z0-9]{6}\z`)
	secretPattern = lazyregexp.New(`\A[a-z0-9]{16}\z`)
	groupPattern  = lazyregexp.New(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`)
)

// mint makes a new token Secret. Its secret's characters come from crypto/rand without
// bias: the signature in the public cluster-info allows guessing offline.
func mint(id string, now time.Time, cfg Config) (*corev1.Secret, error) {
	secret, err := random(secretLength)
	if err != nil {
		return nil, fmt.Errorf("mint a join token: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: secretPrefix + id,
			Labels: map[string]string{TokenLabel: tokenLabelValue}},
		Type: secretType,
		Data: map[string][]byte{
			keyID: []byte(id), keySecret: []byte(secret), keyExpiration: expiry(now.Add(cfg.TokenTTL)),
			keyDescription: []byte("autoscaler-agent: workers join with it; renewed while the agent runs"),
			keySigning:     []byte("true"), keyAuth: []byte("true"),
			keyGroups: []byte(strings.Join(cfg.TokenGroups, ",")),
		},
	}, nil
}

func random(n int) (string, error) {
	out := make([]byte, n)
	for i := range out {
		k, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			return "", err
		}
		out[i] = alphabet[k.Int64()]
	}
	return string(out), nil
}

func expiry(t time.Time) []byte { return []byte(t.UTC().Format(time.RFC3339)) }

// usable tells why a token Secret of ours cannot be used any more; empty: it can.
func usable(s *corev1.Secret, now time.Time, cfg Config) string {
	expires, err := time.Parse(time.RFC3339, string(s.Data[keyExpiration]))
	switch {
	case s.DeletionTimestamp != nil:
		return "it is being deleted"
	case s.Type != secretType || s.Name != secretPrefix+string(s.Data[keyID]) ||
		!idPattern.Match(s.Data[keyID]) || !secretPattern.Match(s.Data[keySecret]):
		return "it is malformed"
	case err != nil:
		return "it has no readable expiration"
	case !expires.After(now):
		return "it has expired"
	case expires.Sub(now) > maxTokenTTL+time.Hour: // what the policy allows; clocks differ
		return "it ends later than any token of the agent: somebody else wrote its end"
	case string(s.Data[keySigning]) != "true" || string(s.Data[keyAuth]) != "true":
		return "it is not for signing and authentication"
	case cfg.TokenMaxAge > 0 && now.Sub(s.CreationTimestamp.Time) > cfg.TokenMaxAge:
		return fmt.Sprintf("it is older than %s", cfg.TokenMaxAge)
	}
	return ""
}

// regroup tells whether a token has other groups than the configured ones. It gets these
// when it is renewed: user data that was pasted somewhere goes on working when the join
// is closed or opened.
func regroup(s *corev1.Secret, cfg Config) bool {
	return string(s.Data[keyGroups]) != strings.Join(cfg.TokenGroups, ",")
}

func expires(s *corev1.Secret) time.Time {
	t, _ := time.Parse(time.RFC3339, string(s.Data[keyExpiration]))
	return t
}

// choose picks the token that all agents would pick: the youngest usable one.
func choose(secrets []corev1.Secret, now time.Time, cfg Config) *corev1.Secret {
	good := slices.DeleteFunc(slices.Clone(secrets), func(s corev1.Secret) bool { return usable(&s, now, cfg) != "" })
	if len(good) == 0 {
		return nil
	}
	slices.SortFunc(good, func(a, b corev1.Secret) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return &good[0]
}

// verify checks the detached signature of a token over cluster-info's kubeconfig:
// a JWS in compact form whose payload is left out (RFC 7515 appendix F), HS256 with
// the token's secret, key ID the token's ID; kubeadm's own condition to trust it.
func verify(jws, payload, id, secret string) error {
	parts := strings.Split(jws, ".")
	if len(parts) != 3 || parts[1] != "" {
		return errors.New("signature is not a detached JWS")
	}
	var header struct {
		Alg string `json:"alg"`
		Kid string `json:"kid"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err == nil {
		err = json.Unmarshal(raw, &header)
	}
	if err != nil {
		return fmt.Errorf("read the signature's header: %w", err)
	}
	if header.Alg != "HS256" || header.Kid != id {
		return fmt.Errorf("signature is by %s with key %s, not by HS256 with key %s", header.Alg, header.Kid, id)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))))
	sum, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !hmac.Equal(sum, mac.Sum(nil)) {
		return errors.New("signature does not verify")
	}
	return nil
}
