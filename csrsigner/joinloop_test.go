package csrsigner

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// closing switches the closed join on.
func closing(dir string) func(*Config, *Deps) {
	return func(c *Config, d *Deps) {
		c.Join, c.JoinWindow = JoinClosed, 2*time.Hour
		d.TokenGroup, d.StateDir = workersGroup, dir
		d.Token = func(_ context.Context, id string) (rules.Token, error) {
			if id != "abcdef" {
				return rules.Token{Problem: "token " + id + " was not minted by the agent"}, nil
			}
			return rules.Token{}, nil
		}
	}
}

// joining is the request of a machine that comes, with a new key each time.
func joining(t *testing.T, name, node string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	raw := request(t, func(r *x509.CertificateRequest) {
		*r = x509.CertificateRequest{Subject: pkix.Name{CommonName: rules.UserPrefix + node, Organization: []string{rules.NodesGroup}}}
	})
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Now())},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: raw, SignerName: rules.ClientSigner, Username: rules.TokenPrefix + "abcdef",
			Groups: []string{rules.TokensGroup, workersGroup, rules.AuthGroup}, Usages: []certificatesv1.KeyUsage{"digital signature", "client auth"}},
	}
}

func TestJoinOncePerInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c := &cloud{}
		c.launch()
		first := joining(t, "first", host)
		loop(t, c, closing(dir), func(client *fake.Clientset, s *Service) {
			create(t, client, first)
			wait(time.Second)
			if got := condition(t, client, "first"); got != "approved" {
				t.Fatalf("the first is %q", got)
			}
			// units/admission-policy.yaml asks for the name.
			csr, err := client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "first", metav1.GetOptions{})
			if err != nil || !strings.HasPrefix(csr.Status.Conditions[0].Message, "node "+host+": ") {
				t.Errorf("the approval says %+v, %v", csr.Status.Conditions, err)
			}
			second := joining(t, "second", host)
			other := joining(t, "other-name", "i-0a.ec2.internal") // the same instance under its other name
			again := first.DeepCopy()
			again.Name, again.UID, again.CreationTimestamp = "again", "u-again", metav1.NewTime(time.Now().Add(10*time.Second))
			create(t, client, second, other)
			wait(10 * time.Second)
			create(t, client, again)
			wait(10 * time.Second)
			for name, want := range map[string]string{"second": "", "other-name": "", "again": "approved"} {
				if got := condition(t, client, name); got != want {
					x, err := s.Explain(t.Context(), name)
					t.Errorf("%s is %q, want %q: %s %s %v", name, got, want, x.Rule, x.Why, err)
				}
			}
		})
		loop(t, c, closing(dir), func(client *fake.Clientset, _ *Service) {
			create(t, client, joining(t, "after-restart", host))
			wait(10 * time.Second)
			if got := condition(t, client, "after-restart"); got != "" {
				t.Errorf("after a restart another key is %q", got)
			}
		})
		info, err := os.Stat(filepath.Join(dir, "joined.json"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("ledger: %v %v", info, err)
		}
	})
}

// TestJoinTwoNamesAtOnce: two requests under two names of one instance are judged at the
// same time; never do both get in, and one does when a person has refused the other.
func TestJoinTwoNamesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		loop(t, c, closing(""), func(client *fake.Clientset, _ *Service) {
			create(t, client, joining(t, "a", host), joining(t, "b", "i-0a.ec2.internal"))
			wait(time.Minute)
			a, b := condition(t, client, "a"), condition(t, client, "b")
			if a == "approved" && b == "approved" {
				t.Error("both are approved")
			}
			if a == "" {
				say(t, client, "b", certificatesv1.CertificateDenied)
				wait(time.Minute)
			}
			if a, b := condition(t, client, "a"), condition(t, client, "b"); a == b {
				t.Errorf("a is %q, b is %q: want exactly one approved", a, b)
			}
		})
	})
}

// TestJoinAfterTheRivalWent: two keys ask for one name, or for two names of one instance,
// and are held; the other joins within a second of a denial, or a deletion, of the one.
func TestJoinAfterTheRivalWent(t *testing.T) {
	for how, end := range map[string]func(*testing.T, *fake.Clientset){
		"denied": func(t *testing.T, client *fake.Clientset) { say(t, client, "b", certificatesv1.CertificateDenied) },
		"deleted": func(t *testing.T, client *fake.Clientset) {
			if err := client.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, name := range []string{host, "i-0a.ec2.internal"} {
			t.Run(how+" for "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &cloud{}
					loop(t, c, closing(""), func(client *fake.Clientset, s *Service) {
						create(t, client, joining(t, "b", name), joining(t, "a", host))
						wait(time.Second)
						c.launch()
						wait(5 * time.Minute)
						if a, b := condition(t, client, "a"), condition(t, client, "b"); a != "" || b != "" {
							t.Fatalf("of two keys a is %q, b is %q", a, b)
						}
						end(t, client)
						wait(time.Second)
						if got := condition(t, client, "a"); got != "approved" {
							x, err := s.Explain(t.Context(), "a")
							t.Errorf("without its rival a is %q: %s %s %v", got, x.Rule, x.Why, err)
						}
					})
				})
			})
		}
	}
}

// TestJoinByAnotherAgent: what another agent approved is seen in the API, too.
func TestJoinByAnotherAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		loop(t, c, closing(""), func(client *fake.Clientset, _ *Service) {
			old := joining(t, "by-another", host)
			old.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
			create(t, client, old)
			wait(time.Second)
			create(t, client, joining(t, "late", host))
			wait(10 * time.Second)
			if got := condition(t, client, "late"); got != "" {
				t.Errorf("late is %q", got)
			}
		})
	})
}

func TestJoinRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		loop(t, c, func(cfg *Config, d *Deps) {
			closing("")(cfg, d)
			d.OwnNode = "leader"
			d.Self = func() rules.Self { return rules.Self{Node: "leader", Names: []string{"leader"}} }
		}, func(client *fake.Clientset, _ *Service) {
			foreign := joining(t, "foreign-token", host)
			foreign.Spec.Username = rules.TokenPrefix + "zzzzzz"
			kubeadm := joining(t, "kubeadm-token", host)
			kubeadm.Spec.Groups = []string{rules.TokensGroup, "system:bootstrappers:kubeadm:default-node-token", rules.AuthGroup}
			c.mu.Lock()
			boss := *ownInstance()
			boss.ID, boss.NodeNames, boss.Created = nextID, []string{"leader"}, time.Now()
			c.group.Instances = append(c.group.Instances, boss)
			c.mu.Unlock()
			create(t, client, foreign, kubeadm, joining(t, "nobody", "nobody"), joining(t, "as-leader", "leader"))
			wait(20 * time.Minute)
			for name, want := range map[string]string{"foreign-token": "", "kubeadm-token": "", "nobody": "", "as-leader": "denied"} {
				if got := condition(t, client, name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	})
}

// TestJoinOpenLeavesAll: an open join is kubeadm's own.
func TestJoinOpenLeavesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		loop(t, c, func(cfg *Config, d *Deps) { closing("")(cfg, d); cfg.Join = JoinOpen }, func(client *fake.Clientset, _ *Service) {
			create(t, client, joining(t, "a", host))
			wait(time.Minute)
			if got := condition(t, client, "a"); got != "" {
				t.Errorf("%q", got)
			}
		})
	})
}

// TestJ14ReapStale: a dead machine's Node of the same name goes first, and never
// while it is Ready.
func TestJ14ReapStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		var client *fake.Clientset
		var asked atomic.Int32
		var proven atomic.Bool
		reap := func(ctx context.Context, node string) error {
			if asked.Add(1); node != host {
				t.Errorf("asked to delete %s", node)
			}
			if !proven.Load() {
				<-ctx.Done()
				return errors.New("G2: its instance was seen gone once")
			}
			return client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
		}
		loop(t, c, func(cfg *Config, d *Deps) { closing("")(cfg, d); d.ReapStale = reap }, func(cl *fake.Clientset, _ *Service) {
			client = cl
			old := ownNode()
			old.UID, old.Spec.ProviderID = "old", "aws:///us-east-1a/i-dead"
			old.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			create(t, client, old, joining(t, "a", host))
			wait(10 * time.Second)
			if asked.Load() != 0 || condition(t, client, "a") != "" {
				t.Errorf("%d askings for a Ready Node, request %q", asked.Load(), condition(t, client, "a"))
			}
			old.Status.Conditions[0].Status = corev1.ConditionUnknown
			if _, err := client.CoreV1().Nodes().Update(t.Context(), old, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			wait(10 * time.Second)
			if asked.Load() == 0 || condition(t, client, "a") != "" {
				t.Errorf("%d askings, request %q", asked.Load(), condition(t, client, "a"))
			}
			proven.Store(true)
			wait(2 * time.Minute)
			if got := condition(t, client, "a"); got != "approved" {
				t.Errorf("%q after the Node was deleted", got)
			}
		})
	})
}

// TestJoinNeedsItsLedger: what cannot be written down is not approved.
func TestJoinNeedsItsLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		dir := filepath.Join(t.TempDir(), "state")
		if err := os.WriteFile(dir, []byte("a file where the directory should be"), 0o600); err != nil {
			t.Fatal(err)
		}
		loop(t, c, closing(dir), func(client *fake.Clientset, _ *Service) {
			create(t, client, joining(t, "a", host))
			wait(time.Minute)
			if got := condition(t, client, "a"); got != "" {
				t.Errorf("%q without a ledger", got)
			}
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			wait(2 * time.Minute)
			if got := condition(t, client, "a"); got != "approved" {
				t.Errorf("%q when the ledger can be written", got)
			}
		})
	})
}

// TestSlim: what is kept is bounded, is enough, and stays when it is slimmed twice, as a
// reflector does with a streamed list. Annotations of the requester's own mean nothing.
func TestSlim(t *testing.T) {
	s := &Service{deps: Deps{TokenGroup: workersGroup}}
	csr := joining(t, "a", host)
	csr.Annotations = map[string]string{slimNode: "leader", slimKey: "k"}
	once, err := s.slim(csr)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := s.slim(once.(*certificatesv1.CertificateSigningRequest).DeepCopy())
	if err != nil || !reflect.DeepEqual(once, twice) {
		t.Errorf("slimmed twice: %v\n%+v\n%+v", err, once, twice)
	}
	if keys, _ := s.indexKey(twice); len(keys) != 1 || keys[0] != joinPrefix+host {
		t.Errorf("key %v", keys)
	}
	kubeadm := joining(t, "b", host)
	kubeadm.Spec.Groups, kubeadm.Annotations = []string{rules.TokensGroup, rules.AuthGroup}, map[string]string{slimNode: host, slimKey: "k"}
	o, _ := s.slim(kubeadm)
	if keys, _ := s.indexKey(o); len(keys) != 0 {
		t.Errorf("a token that is not ours has key %v", keys)
	}
	junk := joining(t, "c", strings.Repeat("x", 300))
	o, _ = s.slim(junk)
	if keys, _ := s.indexKey(o); len(keys) != 1 || keys[0] != junkPrefix+junk.Spec.Username {
		t.Errorf("a name that cannot be has key %v", keys)
	}
}

// TestJoinFlood: thousands of names that nobody expects, by a stolen token, hold up no
// machine that is expected, are not read, and ring the alarm.
func TestJoinFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, told := &cloud{}, &events{}
		c.launch()
		loop(t, c, func(cfg *Config, d *Deps) {
			closing("")(cfg, d)
			cfg.AlarmPending, d.Events = 100, told
		}, func(client *fake.Clientset, s *Service) {
			evil := joining(t, "evil", "evil")
			for n := range 400 {
				e := joining(t, fmt.Sprintf("evil-%04d", n), "evil")
				e.UID = types.UID(fmt.Sprint(n))
				if n%2 == 0 {
					e.Spec.Request = evil.Spec.Request
				} else {
					e.Spec.Request = request(t, func(r *x509.CertificateRequest) {
						*r = x509.CertificateRequest{Subject: pkix.Name{CommonName: fmt.Sprintf("%sevil-%d", rules.UserPrefix, n), Organization: []string{rules.NodesGroup}}}
					})
				}
				create(t, client, e)
			}
			create(t, client, joining(t, "honest", host))
			wait(2 * time.Second)
			if got := condition(t, client, "honest"); got != "approved" {
				t.Errorf("the honest machine is %q after two seconds", got)
			}
			wait(2 * countEvery)
			if s.Alarm() == "" || told.count("CertificateRequestFlood") != 1 {
				t.Errorf("alarm %q, %d events", s.Alarm(), told.count("CertificateRequestFlood"))
			}
			gets := 0
			for _, a := range client.Actions() {
				if a.Matches("get", "certificatesigningrequests") {
					gets++
				}
			}
			if gets > 50 {
				t.Errorf("%d requests were read for names that nobody expects", gets)
			}
			wait(20 * time.Minute)
			if told.count("Held") > 0 {
				t.Errorf("%d Events about a flood's requests", told.count("Held"))
			}
			for n := range 400 {
				_ = client.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), fmt.Sprintf("evil-%04d", n), metav1.DeleteOptions{})
				synctest.Wait()
			}
			wait(2 * countEvery)
			if s.Alarm() != "" {
				t.Errorf("alarm %q when the flood is over", s.Alarm())
			}
		})
	})
}

// counter counts by name and labels.
type counter struct{ by map[string]int }

func (c *counter) Count(name string, labels ...string) { c.by[name+" "+strings.Join(labels, " ")]++ }

// lines keeps the journal.
type lines struct{ entries []*logrus.Entry }

func (l *lines) Levels() []logrus.Level { return logrus.AllLevels }
func (l *lines) Fire(e *logrus.Entry) error {
	l.entries = append(l.entries, e)
	return nil
}
func (l *lines) with(message string) logrus.Fields {
	for _, e := range l.entries {
		if e.Message == message {
			return e.Data
		}
	}
	return nil
}
