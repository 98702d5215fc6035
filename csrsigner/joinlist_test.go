package csrsigner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
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
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// listServer answers for the list of joins as an API server with the policies of
// units/admission-policy.yaml does.
type listServer struct {
	mu      sync.Mutex
	data    map[string]string
	version int
	writes  int           // updates that were stored
	tries   int           // updates that were sent
	slow    time.Duration // an update takes that long
	lag     time.Duration // for so long an approval does not see a new list
	changed time.Time
	leases  map[string]bool
	before  func(*listServer) // runs before the next update
}

func refuses(policy string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: policy + " denied request"}}
}

// serve puts the server behind a client.
func (l *listServer) serve(client *fake.Clientset) {
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return true, l.object(), nil
	})
	client.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		u, ok := a.(clienttesting.UpdateAction)
		if !ok {
			return false, nil, nil
		}
		got, ok := u.GetObject().(*corev1.ConfigMap)
		if !ok {
			return false, nil, nil
		}
		time.Sleep(l.slow)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tries++
		if l.before != nil {
			l.before(l)
			l.before = nil
		}
		if got.ResourceVersion != strconv.Itoa(l.version) {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, JoinListName, errors.New("changed"))
		}
		for node, uid := range got.Data {
			if l.leases[node] && l.data[node] != uid {
				return true, nil, refuses(listPolicy)
			}
		}
		if len(got.Data) > joinListSize {
			return true, nil, refuses("ValidatingAdmissionPolicy 'autoscaler-agent-names'")
		}
		l.data, l.changed = maps.Clone(got.Data), time.Now()
		l.version++
		l.writes++
		return true, l.object(), nil
	})
	client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
		u, ok := a.(clienttesting.UpdateAction)
		if !ok || a.GetSubresource() != "approval" {
			return false, nil, nil
		}
		csr, ok := u.GetObject().(*certificatesv1.CertificateSigningRequest)
		if !ok {
			return false, nil, nil
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if node, _ := whoAsks(csr.Spec.Request); l.data[node] != string(csr.UID) || time.Since(l.changed) < l.lag {
			return true, nil, refuses(approvalPolicy)
		}
		return false, nil, nil
	})
}

func (l *listServer) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: JoinListName, Namespace: "kube-system", ResourceVersion: strconv.Itoa(l.version)}, Data: maps.Clone(l.data)}
}

// put is a change by somebody else.
func (l *listServer) put(node, uid string) {
	if l.data == nil {
		l.data = map[string]string{}
	}
	l.data[node] = uid
	l.version++
}

func (l *listServer) want(t *testing.T, want map[string]string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !maps.Equal(l.data, want) {
		t.Errorf("the list is %v, want %v", l.data, want)
	}
}

// agentOn is the list as one agent writes it. pending is what its cache has.
func agentOn(server *listServer, pending map[joinEntry]bool) *joinList {
	client := fake.NewClientset()
	server.serve(client)
	log := logrus.New()
	log.SetOutput(io.Discard)
	return newJoinList(kubetest.Client(client), logrus.NewEntry(log), func(e joinEntry) bool { return pending[e] })
}

func enters(t *testing.T, l *joinList, node, uid string) {
	t.Helper()
	if listed, err := l.enter(t.Context(), joinEntry{node, uid}, false); !listed || err != nil {
		t.Errorf("%s: %v %v", node, listed, err)
	}
}

// TestJoinListShares: what is judged while an update is under way shares the next one.
func TestJoinListShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &listServer{slow: time.Second}
		l := agentOn(server, nil)
		want := map[string]string{}
		for i := range 8 {
			node := fmt.Sprintf("worker-%d", i)
			want[node] = "u"
			go enters(t, l, node, "u")
			if i == 0 {
				synctest.Wait() // the update of the first is under way
			}
		}
		time.Sleep(time.Minute)
		server.want(t, want)
		if server.writes != 2 {
			t.Errorf("%d updates for 8 requests at once, want 2", server.writes)
		}
		enters(t, l, "worker-1", "u")
		if server.tries != 2 {
			t.Error("an entry that is there is written again")
		}
		for node := range want {
			l.leave(joinEntry{node, "u"}, true)
		}
		enters(t, l, "worker-9", "u")
		server.want(t, map[string]string{"worker-9": "u"})
		enters(t, l, "worker-10", "u")
		if n := len(l.own); n != 2 {
			t.Errorf("%d entries of its own are remembered, want 2", n)
		}
	})
}

// TestJoinListConflict: another agent writes in between, and nobody's entry is lost.
func TestJoinListConflict(t *testing.T) {
	server := &listServer{before: func(l *listServer) { l.put("other", "o") }}
	l := agentOn(server, nil)
	enters(t, l, "mine", "m")
	server.want(t, map[string]string{"other": "o", "mine": "m"})
	if server.tries != 2 || server.writes != 1 {
		t.Errorf("%d updates, %d stored", server.tries, server.writes)
	}
}

// TestJoinListTwoAgents: after a change of leaders the new one keeps what the old one has
// just put there, whatever its own cache knows, and drops what nobody asks for any more.
func TestJoinListTwoAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &listServer{}
		pending := map[joinEntry]bool{{"waits", "w"}: true}
		old, next := agentOn(server, nil), agentOn(server, pending)
		enters(t, old, "fresh", "f")
		enters(t, old, "waits", "w")
		old.leave(joinEntry{"fresh", "f"}, true) // it was approved, and the cache of next does not know
		enters(t, next, "first", "1")
		server.want(t, map[string]string{"fresh": "f", "waits": "w", "first": "1"})
		next.leave(joinEntry{"first", "1"}, true)
		time.Sleep(othersKept - time.Second)
		enters(t, next, "second", "2")
		server.want(t, map[string]string{"fresh": "f", "waits": "w", "second": "2"})
		time.Sleep(time.Minute)
		enters(t, next, "third", "3")
		server.want(t, map[string]string{"waits": "w", "second": "2", "third": "3"})
		// The old one leads again, with a list in its memory that is long gone.
		enters(t, old, "fourth", "4")
		server.want(t, map[string]string{"waits": "w", "second": "2", "third": "3", "fourth": "4"})
	})
}

// TestJoinListLease: one request of a batch is refused for a Lease that stays, and the
// others do not wait for it.
func TestJoinListLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &listServer{slow: time.Second, leases: map[string]bool{"worker-3": true}}
		l := agentOn(server, nil)
		for i := range 5 {
			go func() {
				listed, err := l.enter(t.Context(), joinEntry{fmt.Sprintf("worker-%d", i), "u"}, false)
				if refused := refusedBy(err, listPolicy); refused != (i == 3) || listed == (i == 3) {
					t.Errorf("worker-%d: %v %v", i, listed, err)
				}
			}()
		}
		time.Sleep(time.Minute)
		server.want(t, map[string]string{"worker-0": "u", "worker-1": "u", "worker-2": "u", "worker-4": "u"})
	})
}

// TestJoinListFull: entries of nobody make room, also where a thief has filled the list.
func TestJoinListFull(t *testing.T) {
	server := &listServer{}
	pending := map[joinEntry]bool{}
	for i := range joinListSize {
		server.put(fmt.Sprintf("a-%02d", i), "x")
	}
	pending[joinEntry{"a-31", "x"}] = true
	l := agentOn(server, pending)
	enters(t, l, "mine", "m")
	if len(server.data) != joinListSize || server.data["mine"] != "m" || server.data["a-31"] != "x" {
		t.Errorf("%v", server.data)
	}
}

// TestJoinListImpatient: the end of one caller's time is not that of the others.
func TestJoinListImpatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &listServer{slow: 3 * time.Second}
		l := agentOn(server, nil)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		server.before = func(l *listServer) { l.version++ } // the first has to write again, and has no time left
		go func() {
			if _, err := l.enter(short, joinEntry{"impatient", "i"}, false); err == nil {
				t.Error("no error after the end")
			}
		}()
		synctest.Wait()
		go func() {
			if _, err := l.enter(short, joinEntry{"behind", "b"}, false); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("behind another: %v", err)
			}
		}()
		go enters(t, l, "patient", "p")
		time.Sleep(time.Minute)
		server.want(t, map[string]string{"patient": "p"})
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.waiting) != 0 {
			t.Errorf("%d still wait", len(l.waiting))
		}
	})
}

// TestJoinBehindTheList: an approval is tried again until the API server sees the list,
// and held by J14 while a Lease of the name is there.
func TestJoinBehindTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		server := &listServer{lag: 300 * time.Millisecond, leases: map[string]bool{host: true}}
		told := &events{}
		loop(t, c, func(cfg *Config, d *Deps) { closing("")(cfg, d); d.Events = told }, func(client *fake.Clientset, s *Service) {
			server.serve(client)
			create(t, client, joining(t, "a", host))
			wait(10 * time.Second)
			if got := condition(t, client, "a"); got != "" {
				t.Errorf("%q while a Lease of the name is there", got)
			}
			server.mu.Lock()
			server.leases = nil
			server.mu.Unlock()
			wait(time.Minute)
			if got := condition(t, client, "a"); got != "approved" {
				t.Errorf("%q after the Lease went", got)
			}
			server.want(t, map[string]string{host: "uid-a"})
		})
	})
}

// TestJoinOwnNode: the machine itself asks again while its Node is there. Only a person
// can let it in, and is told at once.
func TestJoinOwnNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		c.launch()
		told := &events{}
		key := newKey(t)
		reap := func(context.Context, string) error { t.Error("the machine's own Node was to go"); return nil }
		loop(t, c, func(cfg *Config, d *Deps) { closing("")(cfg, d); d.Events, d.ReapStale = told, reap }, func(client *fake.Clientset, s *Service) {
			create(t, client, joiningWith(t, "first", host, key))
			wait(time.Second)
			n := ownNode()
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
			create(t, client, n)
			wait(time.Second)
			create(t, client, joiningWith(t, "again", host, key))
			wait(10 * time.Second)
			held(t, client, s, "again", "J14", "kubectl certificate approve again")
			if told.count("ClientCertificateHeld again (J14)") != 1 {
				t.Errorf("%q", told.told)
			}
		})
	})
}
