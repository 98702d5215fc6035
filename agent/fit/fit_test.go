package fit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func req(key, op string, values ...string) cluster.Requirement {
	return cluster.Requirement{Key: key, Operator: op, Values: values}
}

func affinity(rs ...cluster.Requirement) cluster.PodClass {
	return cluster.PodClass{Affinity: []cluster.NodeTerm{{Labels: rs}}}
}

func TestRefused(t *testing.T) {
	node := NodeInfo{Name: "n1", Labels: map[string]string{"zone": "a", "cores": "8", "word": "x"}}
	tainted := NodeInfo{Taints: []cluster.Taint{{Key: "team", Value: "x", Effect: "NoSchedule"}, {Key: "soft", Effect: "PreferNoSchedule"}}}
	evicting := NodeInfo{Taints: []cluster.Taint{{Key: "dead", Effect: "NoExecute"}}}
	cordoned := NodeInfo{Unschedulable: true}
	tol := func(ts ...cluster.Toleration) cluster.PodClass { return cluster.PodClass{Tolerations: ts} }
	for _, c := range []struct {
		name  string
		class cluster.PodClass
		shape NodeInfo
		rule  string
	}{
		{"plain", cluster.PodClass{}, node, ""},
		{"selector", cluster.PodClass{NodeSelector: map[string]string{"zone": "a"}}, node, ""},
		{"selector of another value", cluster.PodClass{NodeSelector: map[string]string{"zone": "b"}}, node, "F4"},
		{"selector of no label and no value", cluster.PodClass{NodeSelector: map[string]string{"none": ""}}, node, "F4"},
		{"In", affinity(req("zone", "In", "a", "b")), node, ""},
		{"In, absent", affinity(req("none", "In", "a")), node, "F4"},
		{"In, absent, of no value", affinity(req("none", "In", "")), node, "F4"},
		{"NotIn, absent, of no value", affinity(req("none", "NotIn", "")), node, ""},
		{"NotIn without values is invalid", affinity(req("none", "NotIn")), node, "F4"},
		{"NotIn, absent", affinity(req("none", "NotIn", "a")), node, ""},
		{"NotIn", affinity(req("zone", "NotIn", "a")), node, "F4"},
		{"Exists", affinity(req("zone", "Exists")), node, ""},
		{"Exists with values is invalid", affinity(req("zone", "Exists", "a")), node, "F4"},
		{"DoesNotExist", affinity(req("zone", "DoesNotExist")), node, "F4"},
		{"DoesNotExist, absent", affinity(req("none", "DoesNotExist")), node, ""},
		{"DoesNotExist with values is invalid", affinity(req("none", "DoesNotExist", "a")), node, "F4"},
		{"Gt, absent", affinity(req("none", "Gt", "-1")), node, "F4"},
		{"Gt of no number", affinity(req("cores", "Gt", "x")), node, "F4"},
		{"Gt of a number that is too large", affinity(req("cores", "Lt", "99999999999999999999")), node, "F4"},
		{"Gt", affinity(req("cores", "Gt", "7")), node, ""},
		{"Gt, equal", affinity(req("cores", "Gt", "8")), node, "F4"},
		{"Lt", affinity(req("cores", "Lt", "9")), node, ""},
		{"Gt, less", affinity(req("cores", "Gt", "9")), node, "F4"},
		{"Lt, more", affinity(req("cores", "Lt", "7")), node, "F4"},
		{"Lt, equal", affinity(req("cores", "Lt", "8")), node, "F4"},
		{"Lt of a word", affinity(req("word", "Lt", "9")), node, "F4"},
		{"Gt of two bounds", affinity(req("cores", "Gt", "1", "2")), node, "F4"},
		{"unknown operator", affinity(req("cores", "Near", "8")), node, "F4"},
		{"terms are or-ed", cluster.PodClass{Affinity: []cluster.NodeTerm{{Labels: []cluster.Requirement{req("zone", "In", "b")}}, {Labels: []cluster.Requirement{req("zone", "In", "a")}}}}, node, ""},
		{"an empty term matches nothing", cluster.PodClass{Affinity: []cluster.NodeTerm{{}}}, node, "F4"},
		{"no term matches nothing", cluster.PodClass{Affinity: []cluster.NodeTerm{}}, node, "F4"},
		{"field", cluster.PodClass{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{req("metadata.name", "In", "n1")}}}}, node, ""},
		{"field of two names is invalid", cluster.PodClass{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{req("metadata.name", "In", "n1", "n2")}}}}, node, "F4"},
		{"field of another name", cluster.PodClass{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{req("metadata.name", "NotIn", "n1")}}}}, node, "F4"},
		{"field that does not exist", cluster.PodClass{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{req("metadata.uid", "In", "n1")}}}}, node, "F4"},
		{"node name", cluster.PodClass{NodeName: "n1"}, node, ""},
		{"another node name", cluster.PodClass{NodeName: "n2"}, node, "F2"},
		{"cordon", cluster.PodClass{}, cordoned, "F1"},
		{"cordon tolerated", tol(cluster.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: "Exists"}), cordoned, ""},
		{"taint", cluster.PodClass{}, tainted, "F3"},
		{"taint, Equal", tol(cluster.Toleration{Key: "team", Operator: "Equal", Value: "x", Effect: "NoSchedule"}), tainted, ""},
		{"taint, no operator is Equal", tol(cluster.Toleration{Key: "team", Value: "x"}), tainted, ""},
		{"taint, another value", tol(cluster.Toleration{Key: "team", Value: "y"}), tainted, "F3"},
		{"taint, another effect", tol(cluster.Toleration{Key: "team", Operator: "Exists", Effect: "NoExecute"}), tainted, "F3"},
		{"everything is tolerated", tol(cluster.Toleration{Operator: "Exists"}), tainted, ""},
		{"NoExecute counts", cluster.PodClass{}, evicting, "F3"},
		{"not understood", cluster.PodClass{NotUnderstood: []string{"required podAntiAffinity"}}, node, "F0"},
	} {
		rule, words := Refused(&c.class, &c.shape)
		if rule != c.rule || (rule == "") != (words == "") || Passes(&c.class, &c.shape) != (rule == "") {
			t.Errorf("%s: %q %q, passes %v; want %q", c.name, rule, words, Passes(&c.class, &c.shape), c.rule)
		}
	}
}

// TestRefusedWords: the words of a refusal do not depend on the order of taints, and say whether a pod is not judged for its size.
func TestRefusedWords(t *testing.T) {
	a, b := cluster.Taint{Key: "a", Effect: "NoSchedule"}, cluster.Taint{Key: "b", Effect: "NoSchedule"}
	for _, taints := range [][]cluster.Taint{{a, b}, {b, a}} {
		if _, words := Refused(&cluster.PodClass{}, &NodeInfo{Taints: taints}); words != "node(s) had untolerated taint {a: }" {
			t.Errorf("%v: %s", taints, words)
		}
	}
	for large, want := range map[bool]string{false: "not judged: a, b", true: "not judged, for their size: b"} {
		if _, words := Refused(&cluster.PodClass{NotUnderstood: []string{"b", "a"}, TooLarge: large}, &NodeInfo{}); words != want {
			t.Errorf("too large %v: %s", large, words)
		}
	}
}

func TestStartupTaints(t *testing.T) {
	team, passing := cluster.Taint{Key: "team"}, cluster.Taint{Key: "node.kubernetes.io/not-ready"}
	if got := WithoutStartupTaints([]cluster.Taint{passing, team}); !slices.Equal(got, []cluster.Taint{team}) {
		t.Errorf("%v stay", got)
	}

	for key, want := range map[string]bool{
		"node.kubernetes.io/not-ready": true, "node.cloudprovider.kubernetes.io/uninitialized": true,
		"startup-taint.cluster-autoscaler.kubernetes.io/cilium": true, "ToBeDeletedByClusterAutoscaler": true,
		"node-role.kubernetes.io/control-plane": false, "team": false, "node.kubernetes.io/out-of-service": false,
	} {
		if got := Startup(cluster.Taint{Key: key}); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}

func TestDaemonRunsOn(t *testing.T) {
	shape := NodeInfo{Taints: []cluster.Taint{{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"}}, Unschedulable: true}
	if !DaemonRunsOn(&cluster.PodClass{}, &shape) {
		t.Error("a DaemonSet pod tolerates what the controller tolerates for it")
	}
	here := NodeInfo{Name: "n", Labels: map[string]string{"disk": "ssd"}}
	zones := NodeInfo{InZones: []NodeInfo{{Labels: map[string]string{"zone": "a"}}, {Labels: map[string]string{"zone": "b"}}}}
	selecting := func(key, value string) cluster.PodClass {
		return cluster.PodClass{NodeSelector: map[string]string{key: value}}
	}
	for name, c := range map[string]struct {
		class cluster.PodClass
		shape NodeInfo
		want  bool
	}{
		"a taint":                {cluster.PodClass{}, NodeInfo{Taints: []cluster.Taint{{Key: "gpu", Effect: "NoSchedule"}}}, false},
		"one that evicts":        {cluster.PodClass{}, NodeInfo{Taints: []cluster.Taint{{Key: "gpu", Effect: "NoExecute"}}}, false},
		"one that only advises":  {cluster.PodClass{}, NodeInfo{Taints: []cluster.Taint{{Key: "gpu", Effect: "PreferNoSchedule"}}}, true},
		"one that it tolerates":  {cluster.PodClass{Tolerations: []cluster.Toleration{{Key: "gpu", Operator: "Exists"}}}, NodeInfo{Taints: []cluster.Taint{{Key: "gpu", Effect: "NoSchedule"}}}, true},
		"the node's name":        {cluster.PodClass{NodeName: "n"}, here, true},
		"another name":           {cluster.PodClass{NodeName: "other"}, here, false},
		"the node's label":       {selecting("disk", "ssd"), here, true},
		"another label":          {selecting("disk", "hdd"), here, false},
		"one of the zones":       {selecting("zone", "b"), zones, true},
		"another zone":           {selecting("zone", "c"), zones, false},
		"what no feature judges": {cluster.PodClass{NotUnderstood: []string{"x"}}, here, true},
	} {
		if got := DaemonRunsOn(&c.class, &c.shape); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func someClass(r *rand.Rand) cluster.PodClass {
	c := cluster.PodClass{Requests: cluster.Resources{MilliCPU: int64(r.IntN(3)) * 500, Memory: int64(r.IntN(3)), EphemeralStorage: int64(r.IntN(2)), Pods: 1}}
	if r.IntN(3) == 0 {
		c.Requests.Extended = map[string]int64{[]string{"gpu", "fpga"}[r.IntN(2)]: int64(r.IntN(3))}
	}
	for range r.IntN(3) {
		c.HostPorts = append(c.HostPorts, cluster.HostPort{IP: []string{"0.0.0.0", "", "10.0.0.1", "10.0.0.2"}[r.IntN(4)], Protocol: []string{"TCP", "UDP", ""}[r.IntN(3)], Port: int32(80 + r.IntN(2))})
	}
	if r.IntN(3) == 0 {
		c.Affinity = []cluster.NodeTerm{{Labels: []cluster.Requirement{req("cores", []string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}[r.IntN(6)], fmt.Sprint(r.IntN(4)))}}}
	}
	if r.IntN(3) == 0 {
		c.Tolerations = []cluster.Toleration{{Key: []string{"team", ""}[r.IntN(2)], Operator: []string{"Exists", "Equal", ""}[r.IntN(3)], Value: []string{"", "x"}[r.IntN(2)]}}
	}
	return c
}

// conflicts is kube-scheduler's HostPortInfo.CheckConflict, written plainly.
func conflicts(used, want []cluster.HostPort) bool {
	norm := func(p cluster.HostPort) cluster.HostPort {
		if p.IP == "" {
			p.IP = "0.0.0.0"
		}
		if p.Protocol == "" {
			p.Protocol = "TCP"
		}
		return p
	}
	for _, a := range used {
		for _, b := range want {
			a, b := norm(a), norm(b)
			if a.Port == b.Port && a.Protocol == b.Protocol && (a.IP == b.IP || a.IP == "0.0.0.0" || b.IP == "0.0.0.0") {
				return true
			}
		}
	}
	return false
}

// plainFit is NodeResourcesFit and NodePorts on sums and lists.
func plainFit(alloc, used cluster.Resources, pods int64, ports []cluster.HostPort, c *cluster.PodClass) bool {
	q := c.Requests
	if pods+1 > alloc.Pods || conflicts(ports, c.HostPorts) {
		return false
	}
	if q.MilliCPU > 0 && used.MilliCPU+q.MilliCPU > alloc.MilliCPU || q.Memory > 0 && used.Memory+q.Memory > alloc.Memory || q.EphemeralStorage > 0 && used.EphemeralStorage+q.EphemeralStorage > alloc.EphemeralStorage {
		return false
	}
	for name, n := range q.Extended {
		if n > 0 && used.Extended[name]+n > alloc.Extended[name] {
			return false
		}
	}
	return true
}

// checkSpace fills one node pod by pod and compares the vectors with the plain rules.
func checkSpace(t *testing.T, r *rand.Rand) {
	var classes []cluster.PodClass
	for range 1 + r.IntN(5) {
		classes = append(classes, someClass(r))
	}
	alloc := cluster.Resources{MilliCPU: int64(r.IntN(5)) * 1000, Memory: int64(r.IntN(12)), EphemeralStorage: int64(r.IntN(4)), Pods: int64(r.IntN(8)), Extended: map[string]int64{"gpu": int64(r.IntN(3))}}
	s := NewDimensions(classes)
	room := make([]int64, s.Len())
	s.Capacity(room, alloc)
	var used cluster.Resources
	var ports []cluster.HostPort
	pods := int64(0)
	for range 20 {
		i := r.IntN(len(classes))
		c := &classes[i]
		fits := plainFit(alloc, used, pods, ports, c)
		if got := binpack.MaxFit(room, s.Class(i)) > 0; got != fits {
			t.Fatalf("class %+v on room %v: %v, plainly %v", c, room, got, fits)
		}
		if rule, words := s.Insufficient(room, s.Class(i)); (rule == "") != fits || (words == "") != fits {
			t.Fatalf("class %+v: %q %q, fits %v", c, rule, words, fits)
		}
		if fits || r.IntN(4) == 0 { // overcommitted nodes exist
			binpack.Sub(room, s.Class(i), 1)
			used = used.Add(c.Requests)
			ports = append(ports, c.HostPorts...)
			pods++
		}
		shape := NodeInfo{Name: "n", Labels: map[string]string{"cores": fmt.Sprint(r.IntN(4))}, Taints: []cluster.Taint{{Key: "team", Value: "x", Effect: []string{"NoSchedule", "NoExecute", "PreferNoSchedule"}[r.IntN(3)]}}}
		rule, words := Refused(c, &shape)
		if Passes(c, &shape) != (rule == "") || strings.Contains(words, "\n") {
			t.Fatalf("class %+v: passes %v, refused %q %q", c, Passes(c, &shape), rule, words)
		}
	}
}

func TestSpace(t *testing.T) {
	for seed := range uint64(2000) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { checkSpace(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func FuzzFit(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { checkSpace(t, rand.New(rand.NewPCG(a, b))) })
}

func TestShortWords(t *testing.T) {
	s := NewDimensions([]cluster.PodClass{{Requests: cluster.Resources{MilliCPU: 1000, Memory: 10, Pods: 1, Extended: map[string]int64{"nvidia.com/gpu": 1}}}})
	room := make([]int64, s.Len())
	s.Capacity(room, cluster.Resources{MilliCPU: 500})
	rule, words := s.Insufficient(room, s.Class(0))
	if want := "Too many pods, Insufficient cpu, Insufficient memory, Insufficient nvidia.com/gpu"; rule != RuleResources || words != want {
		t.Errorf("%s %q, want %q", rule, words, want)
	}
	for port, want := range map[int32]string{80: RulePorts, 81: ""} {
		s := NewDimensions([]cluster.PodClass{{HostPorts: []cluster.HostPort{{Port: 80}}}, {HostPorts: []cluster.HostPort{{Port: port}}, Requests: cluster.Resources{Extended: map[string]int64{"gpu": 0}}}})
		room := make([]int64, s.Len())
		s.Capacity(room, cluster.Resources{Pods: 2})
		binpack.Sub(room, s.Class(0), 1)
		if rule, words := s.Insufficient(room, s.Class(1)); rule != want || (rule == RulePorts) != (words == "node(s) didn't have free ports for the requested pod ports") {
			t.Errorf("port %d beside port 80: %s %q", port, rule, words)
		}
		if dimensions := map[int32]int{80: fixedDims + 1, 81: fixedDims + 2}[port]; s.Len() != dimensions {
			t.Errorf("%d dimensions for the ports 80 and %d, and for no gpu", s.Len(), port)
		}
	}
	var rules []string
	for _, f := range Filters {
		rules = append(rules, f.Rule)
	}
	if !slices.IsSorted(rules) {
		t.Errorf("filters out of order: %v", rules)
	}
}

// TestRequests: other requests leave the ports of a class as they are.
func TestRequests(t *testing.T) {
	class := cluster.PodClass{Requests: cluster.Resources{MilliCPU: 1, Memory: 1, EphemeralStorage: 1, Pods: 1, Extended: map[string]int64{"gpu": 1}}, HostPorts: []cluster.HostPort{{Port: 80}}}
	more := class
	more.Requests = cluster.Resources{MilliCPU: 2, Memory: 3, EphemeralStorage: 4, Pods: 1, Extended: map[string]int64{"gpu": 5}}
	s := NewDimensions([]cluster.PodClass{class, more})
	v := slices.Clone(s.Class(0))
	if s.Requests(v, more.Requests); !slices.Equal(v, s.Class(1)) {
		t.Errorf("%v, want %v", v, s.Class(1))
	}
}

// TestMatching: what package schedsim asks of the filters' own rules.
func TestMatching(t *testing.T) {
	soft := NodeInfo{Taints: []cluster.Taint{{Key: "a", Effect: "PreferNoSchedule"}, {Key: "b", Effect: "PreferNoSchedule"}, {Key: "c", Effect: "NoSchedule"}}}
	if n := Unpreferred(&cluster.PodClass{Tolerations: []cluster.Toleration{{Key: "a", Operator: "Exists"}}}, &soft); n != 1 {
		t.Errorf("%d taints are not tolerated and only advise", n)
	}
	plain, selecting, terms, tolerant := cluster.PodClass{}, cluster.PodClass{NodeSelector: map[string]string{"a": "b"}}, affinity(req("a", "Exists")), cluster.PodClass{Tolerations: []cluster.Toleration{{Key: "a"}}}
	for name, c := range map[string]struct {
		a, b             *cluster.PodClass
		affinity, taints bool
		same             bool
	}{
		"no affinity is asked for": {&plain, &selecting, false, true, true},
		"a selector":               {&plain, &selecting, true, false, false},
		"a term":                   {&plain, &terms, true, false, false},
		"no taints are asked for":  {&plain, &tolerant, true, false, true},
		"a toleration":             {&plain, &tolerant, true, true, false},
		"a class and itself":       {&terms, &terms, true, true, true},
	} {
		if same := EligibilityKey(c.a, c.affinity, c.taints) == EligibilityKey(c.b, c.affinity, c.taints); same != c.same {
			t.Errorf("%s: the same key %v", name, same)
		}
	}
	if EligibilityKey(&plain, true, false) != "" {
		t.Error("a class that asks nothing of nodes has a key")
	}
}
