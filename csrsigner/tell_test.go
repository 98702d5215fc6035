package csrsigner

import (
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// TestR16Leader: the agent's own kubelet is served from the machine's own interfaces.
func TestR16Leader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{broken: errors.New("the cloud is away")}
		self := rules.Self{Node: "leader", Names: []string{"leader"}, Addresses: []netip.Addr{addr("10.0.0.1")}}
		loop(t, c, func(_ *Config, d *Deps) { d.OwnNode, d.Self = "Leader", func() rules.Self { return self } }, func(client *fake.Clientset, s *Service) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "leader", UID: "n9", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}
			second := node.DeepCopy()
			second.Name, second.UID = "leader-2", "n10"
			create(t, client, node, second)
			for _, name := range []string{"leader", "leader-2"} {
				csr := pending(t, name, rules.UserPrefix+name)
				csr.Spec.Request = request(t, func(r *x509.CertificateRequest) {
					r.Subject.CommonName, r.DNSNames = rules.UserPrefix+name, []string{name}
					r.IPAddresses = []net.IP{{10, 0, 0, 1}}
					if name != "leader" {
						r.IPAddresses = []net.IP{{10, 0, 0, 7}}
					}
				})
				create(t, client, csr)
			}
			wait(time.Second)
			if got := condition(t, client, "leader"); got != "approved" {
				x, err := s.Explain(t.Context(), "leader")
				t.Errorf("the leader's request is %q: %+v %v", got, x, err)
			}
			wait(time.Hour)
			if got := condition(t, client, "leader-2"); got != "" {
				t.Errorf("another control-plane node's request is %q", got)
			}
		})
	})
}

// TestR19Report: a decision is a log line with its fields, an Event on the Node and a
// count by rule.
func TestR19(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, told, counts := &cloud{}, &events{}, &counter{by: map[string]int{}}
		c.launch()
		log := &lines{}
		loop(t, c, func(_ *Config, d *Deps) {
			d.Events, d.Metrics = told, counts
			d.Log.Logger.AddHook(log)
		}, func(client *fake.Clientset, s *Service) {
			create(t, client, ownNode(), pending(t, "a", rules.UserPrefix+host))
			wait(time.Second)
			evil := pending(t, "evil", rules.UserPrefix+"evil")
			create(t, client, evil)
			wait(time.Second)
			recent := s.Recent()
			if len(recent) != 2 || recent[0].Request != "evil" || recent[0].Do != "deny" || recent[0].Rule != "R3" || recent[1].Node != host || recent[1].Kind != "serving certificate" || recent[1].At.IsZero() {
				t.Errorf("recent verdicts %+v", recent)
			}
			for range 2 * keptVerdicts {
				s.remember(rules.Request{Name: "last"}, rules.Verdict{})
			}
			if recent = s.Recent(); len(recent) != keptVerdicts || recent[keptVerdicts-1].Request != "last" {
				t.Errorf("%d verdicts are kept", len(recent))
			}
		})
		if told.count("Normal ServingCertificateApproved a (serving)") != 1 || told.count("Warning ServingCertificateDenied evil (R3)") != 1 {
			t.Errorf("events %v", told.told)
		}
		if counts.by["csr_decisions_total do approve rule serving"] != 1 || counts.by["csr_decisions_total do deny rule R3"] != 1 {
			t.Errorf("counts %v", counts.by)
		}
		e := log.with("serving certificate approved")
		if e == nil || e["csr"] != "a" || e["uid"] != "uid-a" || e["node"] != host || e["instance"] != ownID || e["rule"] != "serving" || e["names"] == nil {
			t.Errorf("journal %v", e)
		}
	})
}

// TestR18 is TestR18Conflict by the rule's plain name.
func TestR18(t *testing.T) { TestR18Conflict(t) }

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		loop(t, c, closing(""), func(client *fake.Clientset, s *Service) {
			create(t, client, ownNode(), pending(t, "a", rules.UserPrefix+host), pending(t, "evil", rules.UserPrefix+"evil"), joining(t, "nobody", "nobody"))
			wait(time.Second)
			for name, want := range map[string]string{"a": "approve serving approved", "evil": "deny R3 denied", "nobody": "later J11 "} {
				x, err := s.Explain(t.Context(), name)
				if err != nil || x.Do+" "+x.Rule+" "+x.Settled != want || len(x.Steps) == 0 {
					t.Errorf("%s: %+v, %v", name, x, err)
				}
			}
			x, _ := s.Explain(t.Context(), "a")
			if x.Facts.Instance == nil || x.Facts.Instance.ID != ownID || len(x.Facts.AskedNames) != 1 {
				t.Errorf("facts %+v", x.Facts)
			}
			if _, err := s.Explain(t.Context(), "none"); err == nil {
				t.Error("a request that is not there is explained")
			}
		})
	})
}
