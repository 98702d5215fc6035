package csrsigner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// cloud is an inventory that counts its reads.
type cloud struct {
	mu     sync.Mutex
	group  cluster.NodeGroup
	reads  int
	broken error
}

func (c *cloud) Groups(_ context.Context, maxAge time.Duration) ([]cluster.NodeGroup, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		c.reads++
		return nil, c.broken
	}
	if time.Since(c.group.ReadAt) > maxAge {
		c.group.ReadAt = time.Now()
		c.reads++
	}
	g := c.group
	g.Instances = slices.Clone(g.Instances)
	return []cluster.NodeGroup{g}, nil
}

func (c *cloud) launch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := *ownInstance()
	i.Created = time.Now().Add(-time.Minute)
	c.group.ID, c.group.Instances = "workers", append(c.group.Instances, i)
}

// events keeps what was told.
type events struct {
	mu   sync.Mutex
	told []string
}

func (e *events) Event(_ runtime.Object, kind, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, kind+" "+reason+" "+message)
}

func (e *events) count(reason string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, s := range e.told {
		if strings.Contains(s, reason) {
			n++
		}
	}
	return n
}

func pending(t *testing.T, name, user string) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Now())},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: selfSigned(t), SignerName: rules.ServingSigner, Username: user,
			Groups: []string{rules.NodesGroup, rules.AuthGroup}, Usages: []certificatesv1.KeyUsage{"digital signature", "server auth"}},
	}
}

// loop runs the service in a bubble of fake time.
func loop(t *testing.T, c *cloud, change func(*Config, *Deps), story func(client *fake.Clientset, s *Service)) {
	t.Helper()
	client := fake.NewClientset()
	log := logrus.New()
	log.SetOutput(io.Discard)
	api := kubetest.Client(client)
	shared := kube.NewInformers(api, nil)
	cfg := Config{InventoryMaxAge: 30 * time.Second, MaxExpiration: time.Hour, PerNodeHour: 6, WarnAfter: 15 * time.Minute}
	deps := Deps{Client: api, Informers: shared, Inventory: c, Log: log.WithField("service", "csrsigner"),
		Forbidden: func(context.Context) (*rules.Forbidden, error) { return clusterNames(), nil }}
	if change != nil {
		change(&cfg, &deps)
	}
	s := New(cfg, deps)
	ctx, cancel := context.WithCancel(t.Context())
	shared.Start(ctx)
	done := make(chan error, 1)
	beats := 0
	go func() { done <- s.Run(ctx, func() { beats++ }) }()
	synctest.Wait()
	story(client, s)
	cancel()
	if err := <-done; err != nil || beats == 0 {
		t.Errorf("Run: %v after %d beats", err, beats)
	}
	shared.Wait()
	synctest.Wait()
}

func create(t *testing.T, client *fake.Clientset, objects ...runtime.Object) {
	t.Helper()
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *corev1.Node:
			_, err = client.CoreV1().Nodes().Create(t.Context(), o, metav1.CreateOptions{})
		case *certificatesv1.CertificateSigningRequest:
			_, err = client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), o, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func condition(t *testing.T, client *fake.Clientset, name string) string {
	t.Helper()
	csr, err := client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return settled(csr)
}

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func ownNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host, UID: "n1"}, Spec: corev1.NodeSpec{ProviderID: string(ownID)}}
}

func TestLoopApprovesWhenNodeAndInstanceHaveCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, told := &cloud{group: cluster.NodeGroup{ID: "workers"}}, &events{}
		loop(t, c, func(_ *Config, d *Deps) { d.Events = told }, func(client *fake.Clientset, _ *Service) {
			create(t, client, pending(t, "a", rules.UserPrefix+host))
			wait(10 * time.Second)
			if c.reads != 0 {
				t.Errorf("%d reads of the cloud for a request without a Node", c.reads)
			}
			create(t, client, ownNode())
			wait(30 * time.Second)
			if got := condition(t, client, "a"); got != "" {
				t.Errorf("%s without an instance", got)
			}
			c.launch()
			wait(time.Minute)
			if got := condition(t, client, "a"); got != "approved" || told.count("ServingCertificateApproved") != 1 {
				t.Errorf("%q, events %v", got, told.told)
			}
		})
	})
}

func TestLoopWarnsOnceOfWhatWaitsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, told := &cloud{broken: errors.New("throttled")}, &events{}
		loop(t, c, func(_ *Config, d *Deps) { d.Events = told }, func(client *fake.Clientset, _ *Service) {
			create(t, client, ownNode(), pending(t, "a", rules.UserPrefix+host))
			wait(14 * time.Minute)
			if n := told.count("Held"); n != 0 {
				t.Errorf("%d warnings before the time", n)
			}
			wait(3 * time.Hour)
			if n := told.count("Held"); n != 1 || condition(t, client, "a") != "" {
				t.Errorf("%d warnings, condition %q: want one, and pending", n, condition(t, client, "a"))
			}
			if c.reads > 100 {
				t.Errorf("%d reads of a broken cloud in three hours", c.reads)
			}
			c.mu.Lock()
			c.broken = nil
			c.mu.Unlock()
			c.launch()
			wait(6 * time.Minute)
			if got := condition(t, client, "a"); got == "denied" {
				t.Error("a cloud error led to a denial")
			}
		})
	})
}

// TestR18Conflict: a request that changed meanwhile is judged again.
func TestR18Conflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		loop(t, c, nil, func(client *fake.Clientset, _ *Service) {
			conflicts := 2
			client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if conflicts == 0 || a.GetSubresource() != "approval" {
					return false, nil, nil
				}
				conflicts--
				return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "certificatesigningrequests"}, "a", errors.New("changed"))
			})
			create(t, client, ownNode(), pending(t, "a", rules.UserPrefix+host))
			wait(time.Second)
			if got := condition(t, client, "a"); got != "approved" || conflicts != 0 {
				t.Errorf("%q with %d conflicts left", got, conflicts)
			}
		})
	})
}

// TestR17Flood: a thousand requests of one Node are one entry of the queue, cost its
// allowance and hold nobody up.
func TestR17Flood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		loop(t, c, nil, func(client *fake.Clientset, s *Service) {
			evil := pending(t, "evil", rules.UserPrefix+"evil") // R3: asks for another's name
			for n := range 1000 {
				e := evil.DeepCopy()
				e.Name, e.UID = fmt.Sprintf("evil-%04d", n), types.UID(fmt.Sprint(n))
				create(t, client, e)
			}
			create(t, client, ownNode(), pending(t, "honest", rules.UserPrefix+host))
			wait(2 * time.Second)
			if got := condition(t, client, "honest"); got != "approved" {
				t.Errorf("the honest request is %q after two seconds", got)
			}
			wait(30 * time.Second)
			denied := 0
			for n := range 1000 {
				if condition(t, client, fmt.Sprintf("evil-%04d", n)) == "denied" {
					denied++
				}
			}
			if denied != 6 {
				t.Errorf("%d decisions for the flood, want the allowance of 6", denied)
			}
			if n := s.queue.Len(); n > 2 {
				t.Errorf("%d entries in the queue", n)
			}
		})
	})
}

func TestLoopDoesNothingWhileAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		var lead sync.Map
		mayAct := func() (bool, string) { _, ok := lead.Load("yes"); return ok, "another agent leads" }
		loop(t, c, func(_ *Config, d *Deps) { d.MayAct = mayAct }, func(client *fake.Clientset, _ *Service) {
			create(t, client, ownNode(), pending(t, "a", rules.UserPrefix+host))
			wait(time.Minute)
			if got := condition(t, client, "a"); got != "" || c.reads != 0 {
				t.Errorf("%q with %d reads of the cloud", got, c.reads)
			}
			lead.Store("yes", true)
			wait(2 * time.Second)
			if got := condition(t, client, "a"); got != "approved" {
				t.Errorf("%q two seconds after taking the lead", got)
			}
		})
	})
}

// TestTellsWhileTheServerIsSilent: what the status line and the socket ask the service for is told while its read of what belongs to the API
// server is not answered.
func TestTellsWhileTheServerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{protecting: make(chan struct{}, 1), log: logrus.NewEntry(logrus.New()), deps: Deps{Forbidden: func(ctx context.Context) (*rules.Forbidden, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}}
		ctx, stop := context.WithCancel(t.Context())
		for range 2 {
			go s.protected(ctx, time.Now())
		}
		synctest.Wait()
		if !s.mu.TryLock() {
			t.Fatal("the lock that Alarm takes is held over a request")
		}
		s.mu.Unlock()
		stop()
	})
}
