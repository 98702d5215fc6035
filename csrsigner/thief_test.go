package csrsigner

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// The tests of this file are what a stolen token, a stolen node key, or an agent that
// takes over from another could get out of the closed join.

// newKey makes a key as a kubelet does.
func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// joiningWith is joining with a key of the caller's.
func joiningWith(t *testing.T, name, node string, key crypto.Signer) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: rules.UserPrefix + node, Organization: []string{rules.NodesGroup}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr := joining(t, name, node)
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return csr
}

// say is what an operator says of a request: kubectl certificate approve, or deny.
func say(t *testing.T, client *fake.Clientset, name string, what certificatesv1.RequestConditionType) {
	t.Helper()
	requests := client.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: what, Status: corev1.ConditionTrue})
	if _, err := requests.UpdateApproval(t.Context(), name, csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func forget(t *testing.T, client *fake.Clientset, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := client.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// held tells the rule by which a request is held, with its words.
func held(t *testing.T, client *fake.Clientset, s *Service, name, rule string, words ...string) {
	t.Helper()
	x, err := s.Explain(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if got := condition(t, client, name); got != "" || x.Do != rules.Later.String() || x.Rule != rule {
		t.Errorf("%s is %q, %s %s %q: want held by %s", name, got, x.Do, x.Rule, x.Why, rule)
	}
	for _, w := range words {
		if !strings.Contains(x.Why, w) {
			t.Errorf("%s: %q does not say %q", name, x.Why, w)
		}
	}
}

// takeOver plays a first leader, then one that knows nothing of it but what the API server
// and the cloud tell.
func takeOver(t *testing.T, first, second func(client *fake.Clientset, s *Service)) {
	t.Helper()
	c := &cloud{}
	c.launch()
	var kept []runtime.Object
	loop(t, c, closing(t.TempDir()), func(client *fake.Clientset, s *Service) {
		first(client, s)
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range nodes.Items {
			kept = append(kept, &nodes.Items[i])
		}
	})
	loop(t, c, closing(t.TempDir()), func(client *fake.Clientset, s *Service) {
		create(t, client, kept...)
		wait(time.Second)
		second(client, s)
	})
}

// TestThiefAfterFailover: the first leader let the machine in; its Node is NotReady; the
// API server has forgotten the request, and the second leader never knew it. A stolen token
// gets nothing, by the Node's name or another one of the machine.
func TestThiefAfterFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takeOver(t, func(client *fake.Clientset, _ *Service) {
			create(t, client, joining(t, "machine", host))
			wait(time.Second)
			create(t, client, ownNode())
		}, func(client *fake.Clientset, s *Service) {
			create(t, client, joining(t, "thief", host))
			wait(time.Minute)
			held(t, client, s, "thief", "J13", host, string(ownID), "kubectl certificate approve thief")
			forget(t, client, "thief")
			create(t, client, joining(t, "alias", "i-0a.ec2.internal"))
			wait(time.Minute)
			held(t, client, s, "alias", "J13", "Node "+host+" carries the provider ID")
		})
	})
}

// TestThiefBesideKubeadmsToken: the machine came with kubeadm's own token, which the
// controller manager approves. The agent's token does not get a second certificate for it.
func TestThiefBesideKubeadmsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		dir := t.TempDir()
		loop(t, c, closing(dir), func(client *fake.Clientset, s *Service) {
			kubeadm := joining(t, "by-kubeadm", host)
			kubeadm.Spec.Username, kubeadm.Spec.Groups = rules.TokenPrefix+"kubead", []string{rules.TokensGroup, "system:bootstrappers:kubeadm:default-node-token", rules.AuthGroup}
			create(t, client, kubeadm)
			wait(time.Second)
			say(t, client, "by-kubeadm", certificatesv1.CertificateApproved)
			create(t, client, joining(t, "thief", host))
			wait(time.Minute)
			held(t, client, s, "thief", "J13", "by request by-kubeadm, with another key")
			// An hour later the API server has forgotten it; the agent has not.
			forget(t, client, "by-kubeadm")
			wait(5 * time.Minute)
			held(t, client, s, "thief", "J13", "by request by-kubeadm")
		})
		loop(t, c, closing(dir), func(client *fake.Clientset, s *Service) {
			create(t, client, joining(t, "after-restart", host))
			wait(time.Minute)
			held(t, client, s, "after-restart", "J13", "by request by-kubeadm")
		})
	})
}

// TestNewLeaderHoldsWhatItCannotKnow: a leader without memory lets in no machine that was launched
// more than an hour before it began to watch, by another key than one it knows: the old leader may
// have let the machine in. A machine that was launched later joins.
func TestNewLeaderHoldsWhatItCannotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		c.group.Instances[0].Created = time.Now().Add(-70 * time.Minute)
		loop(t, c, closing(t.TempDir()), func(client *fake.Clientset, s *Service) {
			create(t, client, joining(t, "late", host))
			wait(time.Minute)
			held(t, client, s, "late", "J13", "whether another agent has let the instance in before is not known")
		})
		c.group.Instances[0].Created = time.Now().Add(-50 * time.Minute)
		loop(t, c, closing(t.TempDir()), func(client *fake.Clientset, _ *Service) {
			create(t, client, joining(t, "in-time", host))
			wait(time.Minute)
			if got := condition(t, client, "in-time"); got != "approved" {
				t.Errorf("it is %q", got)
			}
		})
	})
}

// TestStandbyLearns: a standby sees what the leader approves, and knows it when it leads,
// although it never wrote anything and the API server has forgotten it.
func TestStandbyLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		var leads atomic.Bool
		key := newKey(t)
		loop(t, c, func(cfg *Config, d *Deps) {
			closing(t.TempDir())(cfg, d)
			d.MayAct = func() (bool, string) { return leads.Load(), "another agent leads" }
		}, func(client *fake.Clientset, s *Service) {
			create(t, client, joiningWith(t, "machine", host, key))
			wait(time.Second)
			say(t, client, "machine", certificatesv1.CertificateApproved)
			wait(time.Second)
			forget(t, client, "machine")
			leads.Store(true)
			create(t, client, joining(t, "thief", host))
			wait(time.Minute)
			held(t, client, s, "thief", "J13", "by request machine, with another key")
			forget(t, client, "thief")
			create(t, client, joiningWith(t, "machine-again", host, key))
			wait(time.Minute)
			if got := condition(t, client, "machine-again"); got != "approved" {
				t.Errorf("the machine's own key is %q", got)
			}
		})
	})
}

// TestExplainKeepsNothing: a command that explains sees what was approved and leaves the
// running agent's file alone.
func TestExplainKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, dir := &cloud{}, t.TempDir()
		c.launch()
		client := fake.NewClientset()
		old := joining(t, "by-another", host)
		old.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
		create(t, client, old, joining(t, "thief", host))
		cfg, deps := Config{InventoryMaxAge: 30 * time.Second, MaxExpiration: time.Hour, PerNodeHour: 6, WarnAfter: time.Hour}, Deps{Client: kubetest.Client(client),
			Informers: kube.NewInformers(kubetest.Client(client), nil), Inventory: c, Log: logrus.NewEntry(logrus.New()),
			Forbidden: func(context.Context) (*rules.Forbidden, error) { return clusterNames(), nil }}
		closing(dir)(&cfg, &deps)
		s := New(cfg, deps)
		ctx, cancel := context.WithCancel(t.Context())
		deps.Informers.Start(ctx)
		s.Start(ctx)
		synctest.Wait()
		held(t, client, s, "thief", "J13", "by request by-another")
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("written: %v, %v", list, err)
		}
		cancel()
		deps.Informers.Wait()
		synctest.Wait()
	})
}

// TestOldMachineOfTheSameName: what was issued to a machine that had the name before the
// launch is not the new machine's.
func TestOldMachineOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		loop(t, c, closing(""), func(client *fake.Clientset, _ *Service) {
			create(t, client, joining(t, "old", host), joining(t, "posted-before", host))
			wait(time.Second)
			say(t, client, "old", certificatesv1.CertificateApproved)
			wait(5 * time.Minute)
			c.launch()
			create(t, client, joining(t, "new", host))
			wait(time.Minute)
			if got := condition(t, client, "new"); got != "approved" {
				t.Errorf("the new machine is %q", got)
			}
		})
	})
}

// TestPostedBeforeLaunch: a request that waits for a machine to come is not the machine's,
// by a second and by ten, and does not stop the machine.
func TestPostedBeforeLaunch(t *testing.T) {
	for _, early := range []time.Duration{time.Second, 8 * time.Second, 10 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c := &cloud{}
			loop(t, c, closing(""), func(client *fake.Clientset, s *Service) {
				create(t, client, joining(t, "thief", host))
				wait(early)
				c.launch()
				c.mu.Lock()
				c.group.Instances[0].Created = time.Now()
				c.mu.Unlock()
				wait(2 * time.Minute)
				held(t, client, s, "thief", "J12", "kubectl certificate approve thief")
				create(t, client, joining(t, "machine", host))
				wait(time.Minute)
				if got := condition(t, client, "machine"); got != "approved" {
					t.Errorf("%s early: the machine is %q", early, got)
				}
				held(t, client, s, "thief", "J12")
			})
		})
	}
}

// TestTwoKeysForOneName: while two ask, nobody gets in, and both are named in an Event at
// once. An operator's word decides; the same key may ask as often as it likes.
func TestTwoKeysForOneName(t *testing.T) {
	for _, word := range []certificatesv1.RequestConditionType{certificatesv1.CertificateDenied, certificatesv1.CertificateApproved} {
		synctest.Test(t, func(t *testing.T) {
			c, told, away := &cloud{}, &events{}, errors.New("throttled")
			c.launch()
			c.broken = away // so that both are pending before either is judged
			key := newKey(t)
			loop(t, c, func(cfg *Config, d *Deps) { closing("")(cfg, d); d.Events = told }, func(client *fake.Clientset, s *Service) {
				create(t, client, joining(t, "thief", host), joiningWith(t, "machine", host, key), joiningWith(t, "machine-again", host, key))
				wait(time.Second)
				c.mu.Lock()
				c.broken = nil
				c.mu.Unlock()
				wait(2 * time.Minute)
				for _, name := range []string{"thief", "machine", "machine-again"} {
					if got := condition(t, client, name); got != "" {
						t.Errorf("%s is %q while two keys ask", name, got)
					}
				}
				if told.count("ClientCertificateHeld") == 0 || told.count("thief") == 0 || told.count("machine") == 0 {
					t.Errorf("events %v", told.told)
				}
				if word == certificatesv1.CertificateDenied {
					say(t, client, "thief", word)
				} else {
					say(t, client, "machine", word)
				}
				wait(5 * time.Minute)
				want := map[string]string{"thief": "denied", "machine-again": "approved"}
				if word == certificatesv1.CertificateApproved {
					want = map[string]string{"thief": "", "machine": "approved"}
				}
				for name, want := range want {
					if got := condition(t, client, name); got != want {
						x, _ := s.Explain(t.Context(), name)
						t.Errorf("after %s: %s is %q, want %q: %s %s", word, name, got, want, x.Rule, x.Why)
					}
				}
			})
		})
	}
}

// TestTokenOfAnotherMachine: whoever has only the token of another machine, or one that
// lives no more, cannot hold a machine up by asking for its name.
func TestTokenOfAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		c.broken = errors.New("throttled")
		loop(t, c, func(cfg *Config, d *Deps) {
			closing("")(cfg, d)
			d.Token = func(_ context.Context, id string) (rules.Token, error) {
				switch id {
				case "abcdef":
					return rules.Token{}, nil
				case "others":
					return rules.Token{Instance: nextID}, nil
				case "named0":
					return rules.Token{Machine: "another-machine"}, nil
				case "broken":
					return rules.Token{}, errors.New("timeout")
				}
				return rules.Token{Problem: "token " + id + " has expired"}, nil
			}
		}, func(client *fake.Clientset, _ *Service) {
			for n, id := range []string{"others", "named0", "expird", "broken"} {
				csr := joining(t, fmt.Sprintf("thief-%d", n), host)
				csr.Spec.Username = rules.TokenPrefix + id
				create(t, client, csr)
			}
			wait(time.Second)
			create(t, client, joining(t, "machine", host))
			wait(time.Second)
			c.mu.Lock()
			c.broken = nil
			c.mu.Unlock()
			wait(2 * time.Minute)
			if got := condition(t, client, "machine"); got != "approved" {
				t.Errorf("the machine is %q", got)
			}
		})
	})
}

// TestOneKeyManyNames: one key under several names of one machine gets one certificate.
func TestOneKeyManyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		key := newKey(t)
		loop(t, c, closing(""), func(client *fake.Clientset, s *Service) {
			create(t, client, joiningWith(t, "a", host, key), joiningWith(t, "b", "i-0a.ec2.internal", key))
			wait(time.Minute)
			a, b := condition(t, client, "a"), condition(t, client, "b")
			if (a == "approved") == (b == "approved") {
				t.Errorf("a is %q, b is %q: want exactly one approved", a, b)
			}
			if b == "" {
				held(t, client, s, "b", "J13", "as Node "+host)
			} else {
				held(t, client, s, "a", "J13", "as Node i-0a.ec2.internal")
			}
		})
	})
}
