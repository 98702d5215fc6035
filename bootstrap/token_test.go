package bootstrap

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func settings() Config {
	return Config{File: "/etc/worker.env", TokenTTL: 24 * time.Hour, TokenGroups: []string{"system:bootstrappers:kubeadm:default-node-token"}}
}

// mints makes names differ.
var mints int

func minted(t *testing.T) *corev1.Secret {
	t.Helper()
	s, err := mint(poolID(mints%poolSize), noon, settings())
	mints++
	if err != nil {
		t.Fatal(err)
	}
	s.CreationTimestamp = metav1.NewTime(noon)
	return s
}

func TestMint(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		s := minted(t)
		if why := usable(s, noon, settings()); why != "" {
			t.Fatalf("a new token is not usable: %s", why)
		}
		if got := string(s.Data[keyExpiration]); got != "2026-11-22T12:00:00Z" {
			t.Fatalf("expires %s", got)
		}
		if seen[string(s.Data[keySecret])] {
			t.Fatalf("the same secret twice")
		}
		seen[string(s.Data[keySecret])] = true
	}
}

func TestUsable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Secret, *Config)
		want   string
	}{
		"no expiry":    {func(s *corev1.Secret, _ *Config) { delete(s.Data, keyExpiration) }, "no readable expiration"},
		"bad expiry":   {func(s *corev1.Secret, _ *Config) { s.Data[keyExpiration] = []byte("soon") }, "no readable expiration"},
		"expired":      {func(s *corev1.Secret, _ *Config) { s.Data[keyExpiration] = expiry(noon) }, "expired"},
		"in 49 hours":  {func(s *corev1.Secret, _ *Config) { s.Data[keyExpiration] = expiry(noon.Add(49 * time.Hour)) }, ""},
		"in 68 years":  {func(s *corev1.Secret, _ *Config) { s.Data[keyExpiration] = expiry(noon.AddDate(68, 0, 0)) }, "somebody else wrote its end"},
		"deleting":     {func(s *corev1.Secret, _ *Config) { n := metav1.NewTime(noon); s.DeletionTimestamp = &n }, "deleted"},
		"another type": {func(s *corev1.Secret, _ *Config) { s.Type = corev1.SecretTypeOpaque }, "malformed"},
		"another name": {func(s *corev1.Secret, _ *Config) { s.Name = "bootstrap-token-aaaaaa" }, "malformed"},
		"short secret": {func(s *corev1.Secret, _ *Config) { s.Data[keySecret] = []byte("short") }, "malformed"},
		"no signing":   {func(s *corev1.Secret, _ *Config) { delete(s.Data, keySigning) }, "not for signing"},
		"past its age": {func(s *corev1.Secret, c *Config) {
			c.TokenMaxAge = time.Hour
			s.CreationTimestamp = metav1.NewTime(noon.Add(-2 * time.Hour))
		}, "older"},
		"within an age": {func(_ *corev1.Secret, c *Config) { c.TokenMaxAge = time.Hour }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, cfg := minted(t), settings()
			c.change(s, &cfg)
			if got := usable(s, noon, cfg); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestChooseIsTheSameForAll(t *testing.T) {
	a, b, c := minted(t), minted(t), minted(t)
	b.CreationTimestamp = metav1.NewTime(noon.Add(time.Minute))
	c.CreationTimestamp, c.Data[keyExpiration] = metav1.NewTime(noon.Add(time.Hour)), expiry(noon)
	for _, list := range [][]corev1.Secret{{*a, *b, *c}, {*c, *b, *a}, {*b, *c, *a}} {
		if got := choose(list, noon, settings()); got == nil || got.Name != b.Name {
			t.Errorf("chose %v, want %s", got, b.Name)
		}
	}
	if got := choose([]corev1.Secret{*c}, noon, settings()); got != nil {
		t.Errorf("chose the expired %s", got.Name)
	}
}

// TestVerify signs as RFC 7515 appendix F says; test/suite/services lets the real
// controller manager sign.
func TestVerify(t *testing.T) {
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"abcdef"}`))
	mac := hmac.New(sha256.New, []byte("0123456789abcdef"))
	mac.Write([]byte(header + "." + base64.RawURLEncoding.EncodeToString([]byte("payload"))))
	good := header + ".." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	if err := verify(good, "payload", "abcdef", "0123456789abcdef"); err != nil {
		t.Error(err)
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"abcdef"}`))
	for name, c := range map[string][4]string{
		"another payload": {good, "payloae", "abcdef", "0123456789abcdef"},
		"another secret":  {good, "payload", "abcdef", "1123456789abcdef"},
		"another key":     {good, "payload", "abcdeg", "0123456789abcdef"},
		"no algorithm":    {none + "..", "payload", "abcdef", "0123456789abcdef"},
		"not detached":    {strings.Replace(good, "..", ".cGF5bG9hZA.", 1), "payload", "abcdef", "0123456789abcdef"},
		"empty":           {"", "payload", "abcdef", "0123456789abcdef"},
		"garbage":         {"a..b", "payload", "abcdef", "0123456789abcdef"},
	} {
		if err := verify(c[0], c[1], c[2], c[3]); err == nil {
			t.Errorf("%s verifies", name)
		}
	}
}

// TestLookup: a token that the closed join lets in is ours, and lives.
func TestLookup(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"ours": {func(*corev1.Secret) {}, ""},
		"for a machine": {func(s *corev1.Secret) {
			s.Annotations = map[string]string{InstanceAnnotation: "aws:///a/i-1", MachineAnnotation: "w-1"}
		}, ""},
		"kubeadm's": {func(s *corev1.Secret) { s.Labels = nil }, "not minted by the agent"},
		"expired":   {func(s *corev1.Secret) { s.Data[keyExpiration] = expiry(now.Add(-time.Second)) }, "expired"},
		"for ever":  {func(s *corev1.Secret) { delete(s.Data, keyExpiration) }, "expiration"},
		"no login":  {func(s *corev1.Secret) { s.Data[keyAuth] = []byte("false") }, "authentication"},
		"going":     {func(s *corev1.Secret) { at := metav1.Now(); s.DeletionTimestamp = &at }, "deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := mint(poolID(0), now, settings())
			if err != nil {
				t.Fatal(err)
			}
			c.change(s)
			got := judged(s, string(s.Data[keyID]), now)
			if (c.want == "") != (got.Problem == "") || !strings.Contains(got.Problem, c.want) {
				t.Errorf("problem %q, want %q", got.Problem, c.want)
			}
			if c.want == "" && (got.Instance != s.Annotations[InstanceAnnotation] || got.Machine != s.Annotations[MachineAnnotation]) {
				t.Errorf("%+v of %v", got, s.Annotations)
			}
		})
	}
}
