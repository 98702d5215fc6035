package cluster

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// fleet is a group with its Nodes. Machine 0 is old, the others are of the current source.
type fleet struct {
	group NodeGroup
	nodes map[InstanceID]*Node
	api   string
	now   time.Time
}

func newFleet(n int) *fleet {
	f := &fleet{nodes: map[InstanceID]*Node{}, api: "v1.36.3", now: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
	f.group.Template = Template{Source: Spec{"image": "ami-2", "instance type": "m5.large|m5a.large"},
		Expected: Expected(map[string]string{"pool": "batch", "kubernetes.io/arch": "amd64"}, []Taint{{Key: "dedicated", Value: "batch", Effect: "NoSchedule"}})}
	for i := range n {
		id := InstanceID(fmt.Sprint("i-", i))
		in := Instance{ID: id, Member: true, Created: f.now.Add(time.Duration(i-n) * time.Hour), Source: Spec{"image": "ami-2", "instance type": "m5.large", "user data": "sha256:1"}}
		node := &Node{Name: NodeName(id), Ready: StatusTrue, ReadySince: f.now.Add(-time.Hour), KubeletVersion: "v1.36.3",
			Labels: map[string]string{"pool": "batch"}, Taints: []Taint{{Key: "dedicated", Value: "batch", Effect: "NoSchedule"}}}
		if i == 0 {
			in.Source = Spec{"image": "ami-1"}
		}
		f.group.Instances, f.nodes[id] = append(f.group.Instances, in), node
	}
	return f
}

func (f *fleet) drift() map[InstanceID][]Difference {
	return Drift(&f.group, func(id InstanceID) *Node { return f.nodes[id] }, f.api, f.now)
}

func TestDrift(t *testing.T) {
	image := Difference{"image", "ami-1", "ami-2"}
	old := func(f *fleet) *Node { return f.nodes["i-0"] }
	bare := func(n *Node) { n.Labels, n.Taints, n.KubeletVersion = nil, nil, "v1.34.9" }
	for name, c := range map[string]struct {
		edit func(*fleet)
		want []Difference
	}{
		"as it is":           {func(*fleet) {}, []Difference{image}},
		"labels, taints":     {func(f *fleet) { bare(old(f)); f.api = "" }, []Difference{image, {"label pool", "none", "batch"}, {"taint dedicated:NoSchedule", "none", "batch"}}},
		"kubelet":            {func(f *fleet) { old(f).KubeletVersion = "v1.34.9" }, []Difference{image, {PropertyKubelet, "v1.34.9", "v1.36.3"}}},
		"a newer kubelet":    {func(f *fleet) { old(f).KubeletVersion = "v1.37.0" }, []Difference{image}},
		"another patch":      {func(f *fleet) { old(f).KubeletVersion = "v1.36.0" }, []Difference{image}},
		"no version known":   {func(f *fleet) { old(f).KubeletVersion = "" }, []Difference{image}},
		"no API version":     {func(f *fleet) { old(f).KubeletVersion, f.api = "v1.34.9", "" }, []Difference{image}},
		"newer than the API": {func(f *fleet) { old(f).KubeletVersion, f.api = "v1.34.9", "v1.35.1" }, []Difference{image}},
		"another value":      {func(f *fleet) { old(f).Labels["pool"] = "web" }, []Difference{image, {"label pool", "web", "batch"}}},
		"nobody has it": {func(f *fleet) {
			for _, n := range f.nodes {
				bare(n)
			}
		}, []Difference{image}},
		"the newest lacks it": {func(f *fleet) { bare(old(f)); f.nodes["i-2"].Labels = nil }, []Difference{image, {"taint dedicated:NoSchedule", "none", "batch"}, {PropertyKubelet, "v1.34.9", "v1.36.3"}}},
		"the newest is young": {func(f *fleet) { bare(old(f)); f.nodes["i-2"].Labels, f.nodes["i-2"].ReadySince = nil, f.now }, []Difference{image, {"label pool", "none", "batch"}, {"taint dedicated:NoSchedule", "none", "batch"}, {PropertyKubelet, "v1.34.9", "v1.36.3"}}},
		"it is young itself":  {func(f *fleet) { bare(old(f)); old(f).ReadySince = f.now }, []Difference{image}},
		"the new are young": {func(f *fleet) {
			for _, n := range f.nodes {
				n.ReadySince = f.now.Add(-time.Minute)
			}
			bare(old(f))
		}, []Difference{image}},
		"no Node":               {func(f *fleet) { delete(f.nodes, "i-0") }, []Difference{image}},
		"a stale template":      {func(f *fleet) { f.group.TemplateStale = "throttled" }, nil},
		"an unknown template":   {func(f *fleet) { f.group.Template.Unknown = "no image" }, nil},
		"a plug-in":             {func(f *fleet) { f.group.Template.Source = nil }, nil},
		"no member any more":    {func(f *fleet) { f.group.Instances[0].Member = false }, nil},
		"a provider of no fact": {func(f *fleet) { f.group.Instances[0].Source = nil; bare(old(f)) }, nil},
	} {
		f := newFleet(3)
		c.edit(f)
		got := f.drift()
		if !reflect.DeepEqual(got["i-0"], c.want) {
			t.Errorf("%s: %v, want %v", name, got["i-0"], c.want)
		}
		if len(got["i-1"])+len(got["i-2"]) > 0 {
			t.Errorf("%s: machines of the current source differ: %v", name, got)
		}
	}
}

// TestReplacementEnds: in drawn groups in which each machine that differs is replaced by one as
// the group makes them today, no machine differs in the end: whatever tags promise and whatever
// kubelet an image has, a replacement never makes another one due.
func TestReplacementEnds(t *testing.T) {
	seed := drawn.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	versions := []string{"", "v1.33.1", "v1.34.2", "v1.36.3", "v1.37.0", "what?"}
	for range 2000 {
		f := newFleet(2 + rng.IntN(6))
		f.api = versions[rng.IntN(len(versions))]
		label, taints, kubelet := []string{"batch", "web", ""}[rng.IntN(3)], f.nodes["i-0"].Taints[:rng.IntN(2)], versions[rng.IntN(len(versions))]
		for _, n := range f.nodes {
			n.KubeletVersion = versions[rng.IntN(len(versions))]
			n.Labels = map[string]string{"pool": []string{"batch", "web"}[rng.IntN(2)]}
		}
		image := []string{"ami-1", "ami-2"}[rng.IntN(2)] // all of them are of the old image, or of the new one
		for i := range f.group.Instances {
			f.group.Instances[i].Source = Spec{"image": image}
		}
		replaced := 0
		for {
			drifted := f.drift()
			if len(drifted) == 0 {
				break
			}
			for i := range f.group.Instances {
				in := &f.group.Instances[i]
				if len(drifted[in.ID]) == 0 {
					continue
				}
				if replaced++; replaced > 2*len(f.group.Instances) {
					t.Fatalf("%d replacements of %d machines; %v", replaced, len(f.group.Instances), drifted)
				}
				in.Source, in.Created = Spec{"image": "ami-2", "instance type": "m5a.large"}, f.now
				ready := f.now
				if rng.IntN(3) == 0 { // it takes a while to be settled
					ready = ready.Add(SettledAfter / 2)
				}
				f.nodes[in.ID] = &Node{Ready: StatusTrue, ReadySince: ready, KubeletVersion: kubelet, Labels: map[string]string{"pool": label}, Taints: taints}
				break
			}
			f.now = f.now.Add(SettledAfter)
		}
	}
}

func TestExpected(t *testing.T) {
	got := Expected(map[string]string{"pool": "batch", "example.com/team": "", "node-restriction.kubernetes.io/pool": "x", "kubernetes.io/os": "linux", "topology.k8s.io/x": "y", "mykubernetes.io/z": "1"},
		[]Taint{{Key: "gpu", Effect: "NoSchedule"}, {Key: "gpu", Value: "a", Effect: "NoExecute"}})
	want := Spec{"label pool": "batch", "label example.com/team": "", "label mykubernetes.io/z": "1", "taint gpu:NoSchedule": "", "taint gpu:NoExecute": "a"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	n := &Node{Labels: map[string]string{"pool": "batch", "example.com/team": "", "mykubernetes.io/z": "1"}, Taints: []Taint{{Key: "gpu", Effect: "NoSchedule"}, {Key: "gpu", Value: "a", Effect: "NoExecute"}, {Key: "other", Effect: "NoSchedule"}}}
	for _, p := range expectations(got) {
		if value, kept := p.shown(n); !kept {
			t.Errorf("%s: a Node that keeps all promises shows %q", p.name, value)
		}
		if _, kept := p.shown(&Node{}); kept {
			t.Errorf("%s: a bare Node keeps it", p.name)
		}
	}
}

func BenchmarkDrift(b *testing.B) {
	f := newFleet(5000)
	for b.Loop() {
		if n := len(f.drift()); n != 1 {
			b.Fatal(n)
		}
	}
}
