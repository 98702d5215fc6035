package bootstrap

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestOperatorsTokens: an operator's token stays beside the service's own until it ends, is
// listed without its secret, and can be revoked; a token of others that never expires is
// named.
func TestOperatorsTokens(t *testing.T) {
	for _, mode := range []string{TokensStanding, TokensGrowth} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bubble(t, "https://api.example.com:6443", func(c *Config, d *Deps) { c.Tokens = mode; stamp(kubetest.Fake(d.Client)) }, func(client *fake.Clientset, s *Service) {
					token, until, err := Create(t.Context(), kubetest.Client(client), settings(), "", 4*time.Hour)
					if err != nil || time.Until(until).Round(time.Minute) != 4*time.Hour {
						t.Fatal(until, err)
					}
					forOne, _, err := Create(t.Context(), kubetest.Client(client), settings(), "aws:///a/i-1", time.Hour)
					if err != nil {
						t.Fatal(err)
					}
					theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: secretType,
						Data: map[string][]byte{keyID: []byte("abcdef"), keySecret: []byte("0123456789abcdef")}}
					if _, err := client.CoreV1().Secrets("kube-system").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
					sign(t, client)
					wait(2 * time.Hour)
					by := listedByFor(t, client)
					if by["standing"].ID != token[:6] && by["standing"].ID != forOne[:6] || by["others"].Problem != NeverExpires {
						t.Errorf("listed: %+v", by)
					}
					if j, ok := s.Join(); !ok || (j.Token == token) != (mode == TokensGrowth) {
						t.Errorf("published: %v", j)
					}
					if err := Revoke(t.Context(), kubetest.Client(client), "abcdef"); err == nil || !strings.Contains(err.Error(), "kubeadm token delete") {
						t.Errorf("another's token is revoked: %v", err)
					}
					wait(3 * time.Hour)
					if _, ok := listedByFor(t, client)["standing"]; ok {
						t.Error("the operator's token outlives its end")
					}
					again, _, err := Create(t.Context(), kubetest.Client(client), settings(), "", time.Hour)
					if err != nil {
						t.Fatal(err)
					}
					const other = ".0123456789abcdef"
					if err := Revoke(t.Context(), kubetest.Client(client), again[:6]+other); err == nil || !strings.Contains(err.Error(), "another secret") || strings.Contains(err.Error(), other) {
						t.Errorf("revoked by another secret: %v", err)
					}
					if err := Revoke(t.Context(), kubetest.Client(client), again); err != nil {
						t.Error(err)
					}
					if err := Revoke(t.Context(), kubetest.Client(client), again); err == nil || strings.Contains(err.Error(), again[7:]) {
						t.Errorf("revoked twice: %v", err)
					}
				})
			})
		})
	}
	if _, _, err := Create(t.Context(), kubetest.Client(fake.NewClientset()), settings(), "", 49*time.Hour); err == nil {
		t.Error("a token for longer than the policy allows")
	}
}

func listedByFor(t *testing.T, client *fake.Clientset) map[string]Listed {
	t.Helper()
	list, err := List(t.Context(), kubetest.Client(client), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Listed{}
	for _, l := range list {
		by[l.For] = l
	}
	return by
}
