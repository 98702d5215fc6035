package bootstrap

import (
	"context"
	"crypto/x509"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestLoopFollowsTheEndpoint: a leader that gets another name is published with it, once the
// API server's certificate has the name; until then what was published stays.
func TestLoopFollowsTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cert atomic.Pointer[x509.Certificate]
		cert.Store(certificate(t))
		names := func(list ...string) {
			next := *cert.Load()
			next.DNSNames = list
			cert.Store(&next)
		}
		rename := func(client *fake.Clientset, endpoint string) {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "controlPlaneEndpoint: " + endpoint + "\n"}}
			maps := client.CoreV1().ConfigMaps("kube-system")
			if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
				if _, err := maps.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		var rehearsed []string
		journal := bubble(t, "https://api.example.com:6443", func(_ *Config, d *Deps) {
			d.Certificate = func(context.Context) (*x509.Certificate, error) { return cert.Load(), nil }
			d.Rehearse = func(_ context.Context, j Join) []Step { rehearsed = append(rehearsed, j.Endpoint); return nil }
		}, func(client *fake.Clientset, s *Service) {
			published := func() string {
				text, err := os.ReadFile(s.cfg.File)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			sign(t, client)
			wait(time.Minute)
			rename(client, "new.example.com:6443")
			wait(time.Minute)
			if !strings.Contains(published(), "api.example.com:6443") {
				t.Errorf("published before the certificate has the name:\n%s", published())
			}
			names("api.example.com", "new.example.com")
			wait(time.Minute)
			if !strings.Contains(published(), "new.example.com:6443") {
				t.Errorf("not published:\n%s", published())
			}
		})
		if strings.Join(rehearsed, " ") != "api.example.com:6443 new.example.com:6443" {
			t.Errorf("rehearsed %v", rehearsed)
		}
		if !strings.Contains(journal, "new.example.com:6443 (kubeadm-config's controlPlaneEndpoint): it is none of the names") {
			t.Errorf("the journal does not name the new endpoint:\n%s", journal)
		}
	})
}
