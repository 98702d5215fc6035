package csrsigner

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestElder: of two Nodes of one machine the younger finds the older one, while that one lives; a Node's own word on its
// system UUID and addresses counts only where it has no provider ID, and after the provider ID of another.
func TestElder(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	older := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "older", CreationTimestamp: at(0)}, Spec: corev1.NodeSpec{ProviderID: string(nextID)},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		change(n)
		return n
	}
	asking := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host, CreationTimestamp: at(1)}, Spec: corev1.NodeSpec{ProviderID: string(ownID)},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: "EC2A-1"}}}
	req := rules.Request{Parsed: rules.Parsed{IPs: []netip.Addr{addr("10.0.0.5")}}}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		by     string // with a "!" behind it: it holds
	}{
		"another machine":      {func(*corev1.Node) {}, ""},
		"the same provider ID": {func(n *corev1.Node) { n.Spec.ProviderID = string(ownID) }, "provider ID!"},
		"the same provider ID, not Ready": {func(n *corev1.Node) {
			n.Spec.ProviderID, n.Status.Conditions[0].Status = string(ownID), corev1.ConditionFalse
		}, "provider ID!"},
		"it is younger":                  {func(n *corev1.Node) { n.Spec.ProviderID, n.CreationTimestamp = string(ownID), at(2) }, ""},
		"of the same second":             {func(n *corev1.Node) { n.Spec.ProviderID, n.CreationTimestamp = string(ownID), at(1) }, "provider ID!"},
		"it is being deleted":            {func(n *corev1.Node) { now := at(1); n.Spec.ProviderID, n.DeletionTimestamp = string(ownID), &now }, ""},
		"the same UUID, no provider ID":  {func(n *corev1.Node) { n.Spec.ProviderID, n.Status.NodeInfo.SystemUUID = "", "ec2a-1" }, "system UUID"},
		"the same UUID, another machine": {func(n *corev1.Node) { n.Status.NodeInfo.SystemUUID = "EC2A-1" }, ""},
		"the address, no provider ID": {func(n *corev1.Node) {
			n.Spec.ProviderID, n.Status.Addresses = "", []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "::ffff:10.0.0.5"}}
		}, "address"},
		"the address, another machine": {func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
		}, ""},
	} {
		index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		for _, n := range []*corev1.Node{asking, older(c.change)} {
			if err := index.Add(n); err != nil {
				t.Fatal(err)
			}
		}
		s := &Service{nodes: corelisters.NewNodeLister(index), deps: Deps{Client: kubetest.Client(fake.NewClientset(kubeletLease("older", time.Second)))}}
		got := s.elder(t.Context(), asking, req)
		by, holds := strings.CutSuffix(c.by, "!")
		if (got == nil) != (by == "") || got != nil && (!strings.HasPrefix(got.By, by) || got.Instance != holds) {
			t.Errorf("%s: %+v, want %q", name, got, c.by)
		}
	}
}

// TestElderOfTheInstanceFirst: a Node that only says to be the machine does not hide one of the same instance.
func TestElderOfTheInstanceFirst(t *testing.T) {
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	asking := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host}, Spec: corev1.NodeSpec{ProviderID: string(ownID)}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: "EC2A-1"}}}
	for _, n := range []*corev1.Node{asking, {ObjectMeta: metav1.ObjectMeta{Name: "a-liar"}, Status: corev1.NodeStatus{Conditions: ready, NodeInfo: asking.Status.NodeInfo}},
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: asking.Spec, Status: corev1.NodeStatus{Conditions: ready}}} {
		if err := index.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	s := &Service{nodes: corelisters.NewNodeLister(index), deps: Deps{Client: kubetest.Client(fake.NewClientset())}}
	if got := s.elder(t.Context(), asking, rules.Request{}); got == nil || got.Name != "other" || !got.Instance {
		t.Errorf("%+v", got)
	}
}

// TestLoopApprovesBesideALiar: a Node that reports the address of a machine delays its certificate by nothing, and the
// Event names it; one of the same instance holds it until it is gone.
func TestLoopApprovesBesideALiar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, told := &cloud{group: cluster.NodeGroup{ID: "workers"}}, &events{}
		c.launch()
		loop(t, c, func(_ *Config, d *Deps) { d.Events = told }, func(client *fake.Clientset, _ *Service) {
			status := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}}
			create(t, client, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "liar"}, Status: status}, ownNode())
			wait(time.Second) // the watch of Nodes may be behind that of requests
			create(t, client, pending(t, "a", rules.UserPrefix+host))
			wait(10 * time.Second)
			if got := condition(t, client, "a"); got != "approved" || told.count("Warning ServingCertificateApproved") != 1 || told.count("kubectl delete node liar") != 1 {
				t.Errorf("%q, events %v", got, told.told)
			}
			create(t, client, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "same"}, Spec: ownNode().Spec, Status: status})
			wait(time.Second)
			create(t, client, pending(t, "b", rules.UserPrefix+host))
			wait(10 * time.Second)
			if got := condition(t, client, "b"); got != "" || told.count("Held b (R20)") != 1 {
				t.Errorf("%q, events %v", got, told.told)
			}
			if err := client.CoreV1().Nodes().Delete(t.Context(), "same", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			wait(5 * time.Minute)
			if got := condition(t, client, "b"); got != "approved" {
				t.Errorf("%q, events %v", got, told.told)
			}
		})
	})
}

// kubeletLease is the Lease of a kubelet that renewed it so long ago.
func kubeletLease(node string, ago time.Duration) *coordinationv1.Lease {
	at := metav1.NewMicroTime(time.Now().Add(-ago))
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
}

// TestElderLives: a machine that joins anew under another name is not held by its own dead Node, and one
// whose kubelet renews its Lease holds also while its condition is late.
func TestElderLives(t *testing.T) {
	const never = -time.Hour
	for name, c := range map[string]struct {
		ready corev1.ConditionStatus // empty: no condition
		lease time.Duration          // since it was renewed; never: there is none
		made  time.Duration
		fail  bool
		want  bool
	}{
		"it lives":                              {corev1.ConditionTrue, time.Second, time.Hour, false, true},
		"it lives and is not Ready":             {corev1.ConditionFalse, time.Second, time.Hour, false, true},
		"it lives, the condition is late":       {corev1.ConditionUnknown, time.Second, time.Hour, false, true},
		"a clock ahead":                         {corev1.ConditionTrue, -10 * time.Minute, time.Hour, false, true},
		"a clock ahead, dead":                   {corev1.ConditionUnknown, -10 * time.Minute, time.Hour, false, false},
		"a clock behind":                        {corev1.ConditionTrue, 2 * time.Minute, time.Hour, false, true},
		"dead, and the node controller says so": {corev1.ConditionUnknown, 2 * time.Minute, time.Hour, false, false},
		"a clock behind by ten minutes":         {corev1.ConditionTrue, 10 * time.Minute, time.Hour, false, true},
		"a clock behind by a year, not Ready":   {corev1.ConditionFalse, 366 * 24 * time.Hour, time.Hour, false, true},
		"dead, its clock was behind":            {corev1.ConditionUnknown, 10 * time.Minute, time.Hour, false, false},
		"its Lease is gone":                     {corev1.ConditionTrue, never, time.Hour, false, true},
		"its Lease is gone, dead":               {corev1.ConditionUnknown, never, time.Hour, false, false},
		"it has just registered":                {corev1.ConditionFalse, never, time.Second, false, true},
		"it never reported":                     {"", never, time.Hour, false, false},
		"the Lease cannot be read":              {corev1.ConditionTrue, time.Hour, time.Hour, true, true},
		"the Lease cannot be read, dead":        {corev1.ConditionUnknown, time.Second, time.Hour, true, false},
	} {
		client := fake.NewClientset()
		if c.lease != never {
			client = fake.NewClientset(kubeletLease("older", c.lease))
		}
		if c.fail {
			client.PrependReactor("get", "leases", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "older", CreationTimestamp: metav1.NewTime(time.Now().Add(-c.made))}}
		if c.ready != "" {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: c.ready}}
		}
		s := &Service{deps: Deps{Client: kubetest.Client(client)}}
		if got := s.lives(t.Context(), n); got != c.want {
			t.Errorf("%s: lives %v", name, got)
		}
	}
}
