package csrsigner

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestElder: of two Nodes of one machine the younger finds the older one, while that one lives; a Node's own word on its
// system UUID and addresses counts only where it has no provider ID.
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
		by     string
	}{
		"another machine":      {func(*corev1.Node) {}, ""},
		"the same provider ID": {func(n *corev1.Node) { n.Spec.ProviderID = string(ownID) }, "provider ID"},
		"the same provider ID, not Ready": {func(n *corev1.Node) {
			n.Spec.ProviderID, n.Status.Conditions[0].Status = string(ownID), corev1.ConditionFalse
		}, "provider ID"},
		"it is younger":                  {func(n *corev1.Node) { n.Spec.ProviderID, n.CreationTimestamp = string(ownID), at(2) }, ""},
		"of the same second":             {func(n *corev1.Node) { n.Spec.ProviderID, n.CreationTimestamp = string(ownID), at(1) }, "provider ID"},
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
		if (got == nil) != (c.by == "") || got != nil && !strings.HasPrefix(got.By, c.by) {
			t.Errorf("%s: %+v, want %q", name, got, c.by)
		}
	}
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
		"dead, and no node controller works":    {corev1.ConditionTrue, time.Hour, time.Hour, false, false},
		"its Lease is gone":                     {corev1.ConditionTrue, never, time.Hour, false, false},
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
