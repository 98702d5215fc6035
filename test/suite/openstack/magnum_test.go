package openstack_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/magnum"
	api "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/openstack"
)

// The worker groups of a cluster here: Magnum's default one and two more.
const (
	byDefault cluster.GroupID = "default-worker"
	pool      cluster.GroupID = "pool"
	burst     cluster.GroupID = "burst"
)

// magnumWorld is one cluster of real Magnum's.
type magnumWorld struct {
	*openstack.Stack
	t    testing.TB
	name string
}

// newMagnum makes a cluster with a master node, a node of the default group, which has no
// maximum, one of "pool" (1..4) and none of "burst" (0..3, role autoscaling), and a
// provider that logs in by application credential. labels say how the driver marks nodes.
func newMagnum(t *testing.T, s *openstack.Stack, name string, labels map[string]string) *magnumWorld {
	w := &magnumWorld{Stack: s, t: t, name: name}
	if err := s.CreateCluster(t.Context(), name, labels); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.remove() })
	w.free()
	for _, g := range []openstack.NodeGroup{
		{Name: string(pool), Count: 1, Min: 1, Max: new(4), Flavor: "m1.medium", Labels: map[string]any{"nodes_told_by": labels["nodes_told_by"],
			"k8s.io/cluster-autoscaler/node-template/taint/dedicated": "web:NoSchedule", "kubelet_options": "--node-labels=tier=web"}},
		{Name: string(burst), Role: "autoscaling", Max: new(3), Flavor: "m1.small"},
	} {
		if err := s.CreateNodeGroup(t.Context(), name, g); err != nil {
			t.Fatal(err)
		}
		w.shows(g.Name)
		w.free()
	}
	return w
}

func (w *magnumWorld) connect(c magnum.Config) *magnum.Provider {
	w.t.Helper()
	session, err := api.NewSession(api.Config{Timeout: 3 * time.Minute}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	c.Cluster, c.Heat, c.RemovesByName, c.Arch = w.name, "auto", "auto", "amd64"
	if c.AutoDiscovery == nil && c.Groups == nil {
		c.AutoDiscovery = magnum.Discovery{"magnum:role=worker,autoscaling"}
	}
	p, err := magnum.New(c, session, reservation)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// until polls for a condition, which names what it waits for.
func (w *magnumWorld) until(waiting func() string) {
	w.t.Helper()
	deadline := time.Now().Add(10 * time.Minute)
	for {
		what := waiting()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("Magnum does not get there: %s", what)
		}
		pause(w.t)
	}
}

// free waits until no operation is under way. Magnum writes it to the group first, and to
// the cluster once its driver has been called.
func (w *magnumWorld) free() openstack.Cluster {
	w.t.Helper()
	var c openstack.Cluster
	w.until(func() string {
		busy, err := w.BusyCluster(w.t.Context(), w.name)
		if err != nil || busy != "0" {
			return fmt.Sprintf("%s operations are under way (%v)", busy, err)
		}
		if c, err = w.Cluster(w.t.Context(), w.name); err != nil {
			return err.Error()
		}
		if strings.HasSuffix(c.Status, "_IN_PROGRESS") || c.Status == "" {
			return c.Name + " is " + c.Status
		}
		list, err := w.NodeGroups(w.t.Context(), w.name)
		if err != nil {
			return err.Error()
		}
		for _, g := range list {
			if strings.HasSuffix(g.Status, "_IN_PROGRESS") {
				return g.Name + " is " + g.Status
			}
		}
		return ""
	})
	if c.Status == "CREATE_FAILED" {
		w.t.Fatalf("%+v", c)
	}
	return c
}

// shows waits until a group that was asked for is there.
func (w *magnumWorld) shows(group string) {
	w.t.Helper()
	w.until(func() string {
		if _, err := w.NodeGroup(w.t.Context(), w.name, group); err != nil {
			return err.Error()
		}
		return ""
	})
}

// taken waits until the conductor has taken up a resize of a group.
func (w *magnumWorld) taken(group cluster.GroupID, count int) {
	w.t.Helper()
	w.until(func() string {
		if g, err := w.NodeGroup(w.t.Context(), w.name, string(group)); err != nil || g.Count != count {
			return "the conductor takes up a resize"
		}
		return ""
	})
}

// over waits until a resize was taken up and is over.
func (w *magnumWorld) over(group cluster.GroupID, count int) openstack.Cluster {
	w.t.Helper()
	w.taken(group, count)
	return w.free()
}

func (w *magnumWorld) groups(p *magnum.Provider) map[cluster.GroupID]cluster.NodeGroup {
	w.t.Helper()
	list, err := p.Groups(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[cluster.GroupID]cluster.NodeGroup{}
	for _, g := range list {
		out[g.ID] = g
	}
	return out
}

// remove deletes the cluster and waits until it is gone with its servers.
func (w *magnumWorld) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		c, err := w.Cluster(ctx, w.name)
		if err != nil {
			return
		}
		// A resize that the conductor takes up meanwhile writes its own status over this.
		if !strings.HasPrefix(c.Status, "DELETE_") {
			_ = w.DeleteCluster(ctx, w.name)
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	w.t.Errorf("cluster %s is not gone", w.name)
}

func living(g cluster.NodeGroup) []cluster.InstanceID {
	var out []cluster.InstanceID
	for _, in := range g.Instances {
		if in.Member && in.Phase == cluster.PhaseRunning {
			out = append(out, in.ID)
		}
	}
	slices.Sort(out)
	return out
}

func wantErr(t testing.TB, err error, kind provider.Kind, words string) {
	t.Helper()
	if err == nil || provider.KindOf(err) != kind || !strings.Contains(err.Error(), words) {
		t.Errorf("%v: want kind %s and %q", err, kind, words)
	}
}

// magnumStory plays provider magnum against Magnum's real API and conductor. Where the
// servers' metadata tells their group, and where only names and addresses do.
func magnumStory(t *testing.T, s *openstack.Stack) {
	for _, by := range []string{"metadata", "names"} {
		t.Run(by, func(t *testing.T) {
			w := newMagnum(t, s, fmt.Sprintf("k8s-%s-%d", by, os.Getpid()), map[string]string{"nodes_told_by": by})
			p := w.connect(magnum.Config{})
			steps := []struct {
				name string
				run  func(*testing.T, *magnumWorld, *magnum.Provider)
			}{
				{"Discovery", magnumDiscovery}, {"OneOperationAtATime", magnumOneAtATime}, {"RemovalByName", magnumRemoval}, {"TwoGroupsInOneRound", magnumTwoGroups},
				{"Quota", magnumQuota}, {"ZeroAndBack", magnumZero}, {"Certificate", magnumCertificate},
			}
			if by == "metadata" {
				steps = append(steps, struct {
					name string
					run  func(*testing.T, *magnumWorld, *magnum.Provider)
				}{"Refusals", magnumRefusals})
			}
			for _, step := range steps {
				t.Run(step.name, func(t *testing.T) {
					w.t = t
					w.free()
					step.run(t, w, p)
				})
			}
			w.t = t
		})
	}
}

// magnumDiscovery: groups by role and by name, bounds of each by itself, flavor, labels,
// taints, and the servers.
func magnumDiscovery(t *testing.T, w *magnumWorld, p *magnum.Provider) {
	if err := p.Check(t.Context()); err != nil {
		t.Error(err)
	}
	got := w.groups(p)
	if len(got) != 2 {
		t.Fatalf("%d groups, want pool and burst: the default one has no maximum, the masters are nobody's: %v", len(got), got)
	}
	g := got[pool]
	if g.Min != 1 || g.Max != 4 || g.Target != 1 || len(living(g)) != 1 || g.Stale != "" || g.Paused != "" || g.Busy != "" {
		t.Errorf("%+v", g)
	}
	if c := g.Template.Capacity; c.MilliCPU != 2000 || c.Memory != 2048<<20 || c.EphemeralStorage != 10<<30 {
		t.Errorf("capacity %+v", c)
	}
	if l := g.Template.Labels; l["tier"] != "web" || l["node.kubernetes.io/instance-type"] != "m1.medium" || l["magnum.openstack.org/nodegroup"] != "pool" || l["topology.kubernetes.io/region"] != "RegionOne" {
		t.Errorf("labels %v", l)
	}
	if want := []cluster.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}}; !slices.Equal(g.Template.Taints, want) {
		t.Errorf("taints %v", g.Template.Taints)
	}
	for _, in := range g.Instances {
		if in.Type != "m1.medium" || len(in.Addresses) != 1 || len(in.NodeNames) == 0 {
			t.Errorf("%+v", in)
		}
	}
	if g := got[burst]; g.Min != 0 || g.Max != 3 || g.Target != 0 || len(g.Instances) != 0 || g.Stale != "" {
		t.Errorf("%+v", g)
	}
	named := w.groups(w.connect(magnum.Config{Groups: []string{"1:2:DefaultNodeGroup", "2:9:pool"}}))
	if g := named[byDefault]; g.Min != 1 || g.Max != 2 || g.Target != 1 || len(living(g)) != 1 {
		t.Errorf("%+v", g)
	}
	if g := named[pool]; len(named) != 2 || g.Min != 2 || g.Max != 4 || len(g.Warnings) == 0 {
		t.Errorf("%+v", named)
	}
}

// magnumOneAtATime: what was accepted counts at once; while Magnum is at it nothing else
// is asked for.
func magnumOneAtATime(t *testing.T, w *magnumWorld, p *magnum.Provider) {
	if err := w.Hold(true); err != nil {
		t.Fatal(err)
	}
	if err := p.Resize(t.Context(), pool, 1, 3); err != nil {
		t.Error(err)
	}
	for _, moment := range []string{"accepted", "under way"} {
		if moment == "under way" {
			w.taken(pool, 3)
		}
		got := w.groups(p)
		for id, target := range map[cluster.GroupID]int{pool: 3, burst: 0} {
			if g := got[id]; g.Target != target || g.Busy == "" || g.Paused != "" || g.Stale != "" {
				t.Errorf("%s: %s: target %d, busy %q, paused %q, stale %q", moment, id, g.Target, g.Busy, g.Paused, g.Stale)
			}
		}
		wantErr(t, p.Resize(t.Context(), pool, 3, 4), provider.Busy, "one operation at a time")
		wantErr(t, p.Resize(t.Context(), burst, 0, 1), provider.Busy, "one operation at a time")
	}
	if err := w.Hold(false); err != nil || t.Failed() {
		t.Fatal(err)
	}
	if c := w.over(pool, 3); c.Status != "UPDATE_COMPLETE" || c.NodeCount != 4 {
		t.Errorf("%+v", c)
	}
	got := w.groups(p)
	if g := got[pool]; g.Target != 3 || len(living(g)) != 3 || g.Busy != "" || len(g.Failures) != 0 {
		t.Errorf("%+v", g)
	}
	wantErr(t, p.Resize(t.Context(), pool, 1, 2), provider.Conflict, "target is 3")
	wantErr(t, p.Resize(t.Context(), pool, 3, 5), provider.Invalid, "outside 1..4")
	wantErr(t, p.Resize(t.Context(), pool, 3, 2), provider.Invalid, "never removes")
	wantErr(t, p.Resize(t.Context(), "default-master", 1, 2), provider.NotFound, "the agent does not manage this node group")
	wantErr(t, p.Resize(t.Context(), "none", 1, 2), provider.NotFound, "")
}

// magnumRemoval: the server that is named goes, not another one; a foreign one stays.
func magnumRemoval(t *testing.T, w *magnumWorld, p *magnum.Provider) {
	before := living(w.groups(p)[pool])
	foreign, err := w.CreateServer(t.Context(), "foreign", map[string]string{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.DeleteServer(context.Background(), foreign)
	wantErr(t, p.Delete(t.Context(), pool, cluster.InstanceID("openstack:///"+foreign)), provider.NotFound, "not in this node group")
	wantErr(t, p.Delete(t.Context(), pool, before...), provider.Invalid, "minimum is 1")
	w.over(pool, 1)
	// Two of three went, as many as the minimum allows: the first two that were named.
	g := w.groups(p)[pool]
	if now := living(g); len(before) != 3 || g.Target != 1 || !slices.Equal(now, before[2:]) {
		t.Fatalf("of %v are left %v", before, now)
	}
	for _, id := range before[:2] {
		if at := slices.IndexFunc(g.Instances, func(in cluster.Instance) bool { return in.ID == id }); at < 0 || g.Instances[at].Phase != cluster.PhaseGone {
			t.Errorf("%s is not told as gone: %+v", id, g.Instances)
		}
	}
	if err := p.Delete(t.Context(), pool, before[0]); err != nil {
		t.Errorf("once more: %v", err)
	}
}

// magnumTwoGroups: the second of two that are asked for at once is told that Magnum is
// busy, and is taken when the first is over.
func magnumTwoGroups(t *testing.T, w *magnumWorld, p *magnum.Provider) {
	one, two := make(chan error, 1), make(chan error, 1)
	go func() { one <- p.Resize(t.Context(), pool, 1, 2) }()
	go func() { two <- p.Resize(t.Context(), burst, 0, 1) }()
	errs := map[cluster.GroupID]error{pool: <-one, burst: <-two}
	want := map[cluster.GroupID][2]int{pool: {1, 2}, burst: {0, 1}}
	done := 0
	for id, err := range errs {
		if err == nil {
			done++
			w.over(id, want[id][1])
			delete(want, id)
		} else {
			wantErr(t, err, provider.Busy, "one operation at a time")
		}
	}
	if done != 1 {
		t.Errorf("%d of two were accepted: %v", done, errs)
	}
	for id, n := range want {
		if err := p.Resize(t.Context(), id, n[0], n[1]); err != nil {
			t.Error(err)
		}
		w.over(id, n[1])
	}
	if got := w.groups(p); len(living(got[pool])) != 2 || len(living(got[burst])) != 1 {
		t.Errorf("%+v", got)
	}
}

// magnumQuota: Magnum accepts what cannot be; what it says later is the group's failure,
// and what came is its target.
func magnumQuota(t *testing.T, w *magnumWorld, p *magnum.Provider) {
	list, err := w.Servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Stack.Quota(t.Context(), len(list)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Stack.Quota(context.Background(), 100) }()
	if err := p.Resize(t.Context(), burst, 1, 3); err != nil {
		t.Fatal(err)
	}
	if c := w.over(burst, 3); c.Status != "UPDATE_FAILED" {
		t.Errorf("%+v", c)
	}
	got := w.groups(p)
	g := got[burst]
	if len(g.Failures) != 1 || g.Failures[0].Cause != cluster.CauseQuota || !strings.Contains(g.Failures[0].Text, "UPDATE_FAILED: Quota exceeded for instances") || strings.Contains(g.Failures[0].Text, "req-") {
		t.Errorf("failures %+v", g.Failures)
	}
	if g.Paused != "" || g.Stale != "" || g.Busy != "" || len(living(g)) != 1 {
		t.Errorf("%+v", g)
	}
	if other := got[pool]; len(other.Failures) != 0 || other.Paused != "" {
		t.Errorf("%+v", other)
	}
	if err := w.Stack.Quota(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	// There is room again. Where the servers are known for sure the target is what came;
	// else it is what Magnum counts, which an operator's own resize delivers.
	if g.Target == 1 {
		if err := p.Resize(t.Context(), burst, 1, 2); err != nil {
			t.Fatal(err)
		}
	} else if err := w.ResizeNodeGroup(t.Context(), w.name, string(burst), 2); err != nil {
		t.Fatal(err)
	}
	if c := w.over(burst, 2); c.Status != "UPDATE_COMPLETE" {
		t.Errorf("%+v", c)
	}
	if g := w.groups(p)[burst]; len(living(g)) != 2 || g.Target != 2 || len(g.Failures) != 0 {
		t.Errorf("%+v", g)
	}
}

// magnumZero: to no node at all and back.
func magnumZero(t *testing.T, w *magnumWorld, p *magnum.Provider) {
	if err := p.Delete(t.Context(), burst, living(w.groups(p)[burst])...); err != nil {
		t.Fatal(err)
	}
	w.over(burst, 0)
	if g := w.groups(p)[burst]; g.Target != 0 || len(living(g)) != 0 || g.Stale != "" {
		t.Errorf("%+v", g)
	}
	if err := p.Resize(t.Context(), burst, 0, 1); err != nil {
		t.Fatal(err)
	}
	w.over(burst, 1)
	if g := w.groups(p)[burst]; g.Target != 1 || len(living(g)) != 1 || g.Stale != "" {
		t.Errorf("%+v", g)
	}
}

// magnumRefusals: Magnum's own answers, which the emulated Magnum gives word for word.
// And what it does not refuse: a resize while another is under way.
func magnumRefusals(t *testing.T, w *magnumWorld, _ *magnum.Provider) {
	resize := "/clusters/" + w.name + "/actions/resize"
	for _, c := range []struct {
		version, method, path string
		body                  any
		status                int
		words                 string
	}{
		{"1.10", "POST", resize, map[string]any{"node_count": 5, "nodegroup": "pool"}, 400, "Resizing pool outside the allowed range: min_node_count = 1, max_node_count = 4"},
		{"1.10", "POST", resize, map[string]any{"node_count": 0, "nodegroup": "pool"}, 400, "Resizing pool outside the allowed range: min_node_count = 1, max_node_count = 4"},
		{"1.10", "POST", resize, map[string]any{"node_count": -1, "nodegroup": "pool"}, 400, ""},
		{"1.9", "POST", resize, map[string]any{"node_count": 0, "nodegroup": "burst"}, 400, "Resizing a nodegroup to zero is not supported in the provided microversion."},
		{"1.10", "POST", resize, map[string]any{"node_count": 2, "nodegroup": "default-master"}, 400, "Resizing a master nodegroup is not supported."},
		{"1.10", "POST", resize, map[string]any{"node_count": 2, "nodegroup": "none"}, 404, "Nodegroup none could not be found."},
		{"1.10", "GET", "/clusters/none", nil, 404, "Cluster none could not be found."},
		{"1.10", "GET", "/clusters/" + w.name + "/nodegroups/none", nil, 404, "Nodegroup none could not be found."},
		{"1.6", "POST", resize, map[string]any{"node_count": 2}, 406, `"detail": ""`},
		{"1.8", "GET", "/clusters/" + w.name + "/nodegroups", nil, 406, `"detail": ""`},
		{"1.11", "GET", "/clusters/" + w.name, nil, 406, `"max_version": "1.10"`},
	} {
		status, header, text, err := w.RawMagnum(t.Context(), c.version, c.method, c.path, c.body)
		t.Logf("%s %s %v at %s: %d %s", c.method, c.path, c.body, c.version, status, text)
		if err != nil || status != c.status || !strings.Contains(text, c.words) {
			t.Errorf("want %d %q: %v", c.status, c.words, err)
		}
		// A version that is not there names the range; a call that is younger says nothing.
		most := map[bool]string{true: "container-infra 1.10"}[c.version == "1.11"]
		if status == http.StatusNotAcceptable && header.Get("OpenStack-API-Maximum-Version") != most {
			t.Errorf("headers %v", header)
		}
	}
	if err := w.Hold(true); err != nil {
		t.Fatal(err)
	}
	for id, count := range map[cluster.GroupID]int{pool: 3, burst: 2} {
		if err := w.ResizeNodeGroup(t.Context(), w.name, string(id), count); err != nil {
			t.Error(err)
		}
		w.taken(id, count)
	}
	if err := w.Hold(false); err != nil {
		t.Fatal(err)
	}
	w.over(pool, 3)
}

// magnumCertificate: the cluster's CA signs the agent's client certificate, as
// docs/providers/magnum.md has it.
func magnumCertificate(t *testing.T, w *magnumWorld, _ *magnum.Provider) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "autoscaler-agent"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Cluster(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	var signed, ca struct{ PEM string }
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	if err := w.Magnum(t.Context(), "POST", "/certificates", map[string]any{"cluster_uuid": c.UUID, "csr": text}, &signed); err != nil {
		t.Fatal(err)
	}
	if err := w.Magnum(t.Context(), "GET", "/certificates/"+c.UUID, nil, &ca); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(signed.PEM))
	roots := x509.NewCertPool()
	if block == nil || !roots.AppendCertsFromPEM([]byte(ca.PEM)) {
		t.Fatalf("no certificates: %q, %q", signed.PEM, ca.PEM)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil || leaf.Subject.CommonName != "autoscaler-agent" || len(leaf.Subject.Organization) != 0 {
		t.Errorf("%v, %s", err, leaf.Subject)
	}
}
