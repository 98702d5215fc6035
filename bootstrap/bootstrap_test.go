package bootstrap

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

func certificate(t *testing.T) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver"},
		DNSNames: []string{"api.example.com"}, NotAfter: time.Now().Add(time.Hour)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func infoMap(cert *x509.Certificate, server string) *corev1.ConfigMap {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{
		"kubeconfig": fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n",
			server, base64.StdEncoding.EncodeToString(ca))}}
}

// sign does the controller manager's part for every token there is.
func sign(t *testing.T, client *fake.Clientset) {
	t.Helper()
	info, err := client.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		info.Data["jws-kubeconfig-"+string(s.Data[keyID])] = signature(s, info.Data["kubeconfig"])
	}
	if _, err := client.CoreV1().ConfigMaps("kube-public").Update(t.Context(), info, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// signature is the controller manager's of one token over the kubeconfig of cluster-info.
func signature(s corev1.Secret, kubeconfig string) string {
	header := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"HS256","kid":"%s"}`, s.Data[keyID]))
	mac := hmac.New(sha256.New, s.Data[keySecret])
	mac.Write([]byte(header + "." + base64.RawURLEncoding.EncodeToString([]byte(kubeconfig))))
	return header + ".." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func tokens(t *testing.T, client *fake.Clientset) int {
	t.Helper()
	list, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// bubble runs the service in fake time and returns what it wrote to the journal.
func bubble(t *testing.T, server string, change func(*Config, *Deps), story func(*fake.Clientset, *Service)) string {
	t.Helper()
	cert := certificate(t)
	client := fake.NewClientset(infoMap(cert, server))
	client.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.36.3"}
	var journal strings.Builder
	log := logrus.New()
	log.SetOutput(&journal)
	cfg := settings()
	cfg.File = filepath.Join(t.TempDir(), "worker.env")
	deps := Deps{Client: kubetest.Client(client), Log: log.WithField("service", "bootstrap"),
		Certificate: func(context.Context) (*x509.Certificate, error) { return cert, nil }}
	if change != nil {
		change(&cfg, &deps)
	}
	s := New(cfg, deps)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, func() {}) }()
	synctest.Wait()
	story(client, s)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return journal.String()
}

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestLoopPublishesOnlyWhatIsSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var token string
		journal := bubble(t, "https://api.example.com:6443", nil, func(client *fake.Clientset, s *Service) {
			wait(10 * time.Minute)
			if _, err := os.Stat(s.cfg.File); err == nil {
				t.Error("published without a signature")
			}
			sign(t, client)
			wait(time.Minute)
			j, ok := s.Join()
			if !ok || j.Endpoint != "api.example.com:6443" || tokens(t, client) != 1 {
				t.Errorf("published %v %v, %d tokens", ok, j, tokens(t, client))
			}
			token = j.Token
			wait(5 * 24 * time.Hour)
			later, _ := s.Join()
			if later.Token != token || time.Until(later.Expires) < 11*time.Hour || tokens(t, client) != 1 {
				t.Errorf("five days later: %v, want the same token renewed", later)
			}
		})
		if _, secret, _ := strings.Cut(token, "."); secret == "" || strings.Contains(journal, secret) {
			t.Errorf("the journal tells the secret:\n%s", journal)
		}
	})
}

func TestLoopRefusesAnEndpointThatTheCertificateDoesNotCover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := bubble(t, "https://10.0.0.1:6443", nil, func(client *fake.Clientset, s *Service) {
			sign(t, client)
			wait(time.Minute)
			if j, ok := s.Join(); ok {
				t.Errorf("published %v", j)
			}
		})
		if !strings.Contains(journal, "AUTOSCALER_BOOTSTRAP_ENDPOINT") {
			t.Errorf("the journal names no remedy:\n%s", journal)
		}
	})
}

func TestLoopMintsNothingWhileAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follow := func(_ *Config, d *Deps) { d.MayAct = func() (bool, string) { return false, "another agent leads" } }
		bubble(t, "https://api.example.com:6443", follow, func(client *fake.Clientset, s *Service) {
			wait(time.Hour)
			if tokens(t, client) != 0 {
				t.Error("a follower made a token")
			}
			made, err := mint(poolID(0), time.Now(), s.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.CoreV1().Secrets("kube-system").Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			sign(t, client)
			wait(time.Minute)
			if j, ok := s.Join(); !ok || !strings.HasPrefix(j.Token, string(made.Data[keyID])) {
				t.Errorf("a follower does not publish the leader's token: %v", j)
			}
		})
	})
}

// TestLoopDeletesWhatItSupersedes: a token that a younger one has taken the place of lives
// on for machines that started with it, and no longer; what stands under the agent's names
// and is not the agent's stays.
func TestLoopDeletesWhatItSupersedes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := func(c *Config, d *Deps) {
			c.TokenMaxAge = 6 * time.Hour
			stamp(kubetest.Fake(d.Client))
			theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: secretPrefix + poolID(0)}, Type: secretType}
			if _, err := d.Client.CoreV1().Secrets("kube-system").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		bubble(t, "https://api.example.com:6443", old, func(client *fake.Clientset, s *Service) {
			sign(t, client)
			wait(time.Minute)
			first, ok := s.Join()
			if !ok {
				t.Fatal("nothing is published")
			}
			wait(6*time.Hour + time.Minute)
			sign(t, client)
			wait(time.Minute)
			second, _ := s.Join()
			if second.Token == first.Token || tokens(t, client) != 3 {
				t.Errorf("%v after %v, %d Secrets: want a new token beside the old one", second, first, tokens(t, client))
			}
			wait(overlap)
			if tokens(t, client) != 2 {
				t.Errorf("%d Secrets after the overlap, want the new token and the foreign Secret", tokens(t, client))
			}
		})
	})
}

// TestLoopFindsAnIDWhereAllAreTaken: many tokens in little time do not end the publication.
func TestLoopFindsAnIDWhereAllAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		often := func(c *Config, d *Deps) { c.TokenMaxAge = 5 * time.Minute; stamp(kubetest.Fake(d.Client)) }
		bubble(t, "https://api.example.com:6443", often, func(client *fake.Clientset, s *Service) {
			seen := map[string]bool{}
			for range 120 {
				sign(t, client)
				wait(time.Minute)
				if j, ok := s.Join(); ok {
					seen[j.Token] = true
				}
			}
			if len(seen) < 15 || tokens(t, client) > publishedSlots {
				t.Errorf("%d tokens were published in two hours, %d are there", len(seen), tokens(t, client))
			}
		})
	})
}

// stamp gives Secrets the time of their creation, as the API server does.
func stamp(client *fake.Clientset) {
	client.PrependReactor("create", "secrets", func(a k8stesting.Action) (bool, runtime.Object, error) {
		a.(k8stesting.CreateAction).GetObject().(*corev1.Secret).CreationTimestamp = metav1.Now()
		return false, nil, nil
	})
}

// TestLoopMendsWhatSomebodySpoils: a published file that is truncated, opened to
// others or removed is as it was within seconds, and a token whose expiration was
// taken away gets one again.
func TestLoopMendsWhatSomebodySpoils(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bubble(t, "https://api.example.com:6443", nil, func(client *fake.Clientset, s *Service) {
			wait(time.Second)
			sign(t, client)
			wait(time.Minute)
			good, err := os.ReadFile(s.cfg.File)
			if err != nil {
				t.Fatal(err)
			}
			for name, spoil := range map[string]func() error{
				"truncated":         func() error { return os.Truncate(s.cfg.File, 0) },
				"readable by all":   func() error { return os.Chmod(s.cfg.File, 0o644) },
				"removed":           func() error { return os.Remove(s.cfg.File) },
				"overwritten whole": func() error { return os.WriteFile(s.cfg.File, []byte("JOIN_TOKEN=x\n"), 0o600) },
			} {
				if err := spoil(); err != nil {
					t.Fatal(err)
				}
				wait(2 * lookEvery)
				now, err := os.ReadFile(s.cfg.File)
				info, _ := os.Stat(s.cfg.File)
				if err != nil || string(now) != string(good) || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %q, %v", name, info.Mode(), now, err)
				}
			}
			secrets := client.CoreV1().Secrets("kube-system")
			list, err := secrets.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			name := list.Items[0].Name
			delete(list.Items[0].Data, keyExpiration)
			if _, err := secrets.Update(t.Context(), &list.Items[0], metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			wait(2 * time.Minute)
			limited, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || usable(limited, time.Now(), s.cfg) != "" || tokens(t, client) != 1 {
				t.Errorf("the token without expiration: %v, %v, %d tokens", limited.Data, err, tokens(t, client))
			}
		})
	})
}

// TestLoopStartsAmongWhatACrashLeft: temporary files that hold a token are removed, and a
// directory in the place of the file is set aside.
func TestLoopStartsAmongWhatACrashLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crashed := func(c *Config, _ *Deps) {
			if err := os.WriteFile(filepath.Join(filepath.Dir(c.File), ".worker.env.123456"), []byte("JOIN_TOKEN=x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(c.File, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		journal := bubble(t, "https://api.example.com:6443", crashed, func(client *fake.Clientset, s *Service) {
			sign(t, client)
			wait(time.Minute)
			if _, ok := s.Join(); !ok {
				t.Error("nothing is published")
			}
			entries, err := os.ReadDir(filepath.Dir(s.cfg.File))
			if err != nil || len(entries) != 2 || entries[0].Name() != "worker.env" || !strings.HasPrefix(entries[1].Name(), "worker.env.bad-") {
				t.Errorf("left are %v, %v", entries, err)
			}
		})
		if !strings.Contains(journal, ".worker.env.123456") || !strings.Contains(journal, "set aside") {
			t.Errorf("the journal does not tell of it:\n%s", journal)
		}
	})
}

// TestLoopRegroupsTheSameToken: user data that was pasted somewhere goes on working when
// the join is closed.
func TestLoopRegroupsTheSameToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := func(c *Config, _ *Deps) { c.TokenGroups = []string{WorkersGroup} }
		bubble(t, "https://api.example.com:6443", closed, func(client *fake.Clientset, s *Service) {
			secrets := client.CoreV1().Secrets("kube-system")
			list, err := secrets.List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 {
				t.Fatal(err, len(list.Items))
			}
			open := &list.Items[0]
			open.Data[keyGroups] = []byte(KubeadmGroup)
			if _, err := secrets.Update(t.Context(), open, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			sign(t, client)
			wait(2 * time.Minute)
			now, err := secrets.Get(t.Context(), open.Name, metav1.GetOptions{})
			if err != nil || string(now.Data[keyGroups]) != WorkersGroup || tokens(t, client) != 1 {
				t.Errorf("%v: groups %q, %d tokens", err, now.Data[keyGroups], tokens(t, client))
			}
		})
	})
}

// TestANewLeaderMakesTheTokenAtOnce: an agent that begins to lead does what the last leader left
// undone within seconds, and not after its rest as a standby.
func TestANewLeaderMakesTheTokenAtOnce(t *testing.T) {
	for name, file := range map[string]bool{"with a file": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var leads atomic.Bool
				leads.Store(true)
				bubble(t, "https://api.example.com:6443", func(c *Config, d *Deps) {
					d.MayAct = func() (bool, string) { return leads.Load(), "standing by" }
					if !file {
						c.File = ""
					}
				}, func(client *fake.Clientset, _ *Service) {
					wait(time.Second)
					sign(t, client)
					wait(2 * time.Minute)
					leads.Store(false)
					wait(2*time.Minute + 5*time.Second) // in the middle of a rest of a minute
					list, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
					if err != nil || len(list.Items) != 1 {
						t.Fatalf("%d tokens, %v", len(list.Items), err)
					}
					if err := client.CoreV1().Secrets("kube-system").Delete(t.Context(), list.Items[0].Name, metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
					leads.Store(true)
					wait(2 * lookEvery)
					if n := tokens(t, client); n != 1 {
						t.Errorf("%d tokens", n)
					}
				})
			})
		})
	}
}
