package fit

import (
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const hostKey, zoneKey = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

func in(key string, values ...string) *cluster.Selector {
	return &cluster.Selector{Requirements: []cluster.Requirement{req(key, "In", values...)}}
}

func near(key string, s *cluster.Selector) cluster.PodTerm {
	return cluster.PodTerm{TopologyKey: key, Selector: s, Namespaces: []string{"n"}}
}

// named is a pod of namespace n with the label app.
func named(name string) cluster.PodClass {
	return cluster.PodClass{Namespace: "n", Labels: map[string]string{"app": name}}
}

func with(c cluster.PodClass, change func(*cluster.PodClass)) cluster.PodClass {
	change(&c)
	return c
}

func wants(terms ...cluster.PodTerm) cluster.PodClass {
	return with(named("me"), func(c *cluster.PodClass) { c.PodAffinity = terms })
}

func avoids(terms ...cluster.PodTerm) cluster.PodClass {
	return with(named("me"), func(c *cluster.PodClass) { c.PodAntiAffinity = terms })
}

func evenly(list ...cluster.Spread) cluster.PodClass {
	return with(named("me"), func(c *cluster.PodClass) { c.Spread = list })
}

func mounts(list ...cluster.Volume) cluster.PodClass {
	return with(named("me"), func(c *cluster.PodClass) { c.Volumes = list })
}

func zones(values ...string) []cluster.NodeTerm {
	return []cluster.NodeTerm{{Labels: []cluster.Requirement{req(zoneKey, "In", values...)}}}
}

// The nodes of the tables.
const (
	a1 = iota // zone a
	a2        // zone a
	b1        // zone b, tainted
	bare
	template // zone b, no name
	beta     // the old zone label: a
)

func tableNodes() []*NodeInfo {
	return []*NodeInfo{
		{Name: "a1", Labels: map[string]string{hostKey: "a1", zoneKey: "a", "disk": "ssd"}},
		{Name: "a2", Labels: map[string]string{hostKey: "a2", zoneKey: "a"}},
		{Name: "b1", Labels: map[string]string{hostKey: "b1", zoneKey: "b"}, Taints: []cluster.Taint{{Key: "team", Effect: "NoSchedule"}}},
		{Name: "bare"},
		{Labels: map[string]string{zoneKey: "b"}},
		{Name: "beta", Labels: map[string]string{"failure-domain.beta.kubernetes.io/zone": "a"}},
	}
}

type there struct {
	class   cluster.PodClass
	node, n int
	leaving bool
}

// ruleOf is the rule that says these words.
func ruleOf(words string) string {
	switch words {
	case "":
		return ""
	case wordsOnePod:
		return RuleVolumeRestrictions
	case wordsLimit:
		return RuleVolumeLimits
	case wordsZone:
		return RuleVolumeZone
	case wordsSpread, wordsSpreadLabel:
		return RuleSpread
	case wordsAffinity, wordsAntiAffinity, wordsExistingRules:
		return RuleInterPod
	}
	return RuleVolumeBinding
}

// tableCase is a pod, the pods that are there, and what is said of some nodes.
type tableCase struct {
	name  string
	me    cluster.PodClass
	there []there
	on    map[int]string // node: words; "" passes
}

func check(t *testing.T, cases []tableCase) {
	t.Helper()
	for _, c := range cases {
		classes := []cluster.PodClass{c.me}
		for _, p := range c.there {
			classes = append(classes, p.class)
		}
		s := NewState(classes, []cluster.Namespace{{Name: "n"}, {Name: "other", Labels: map[string]string{"team": "x"}}})
		for i, shape := range tableNodes() {
			s.AddNode(shape, map[int]map[string]int64{a1: {"ebs": 1}}[i])
		}
		for i, p := range c.there {
			put := s.Put
			if p.leaving {
				put = s.PutTerminating
			}
			put(i+1, p.node, p.n)
		}
		for node, want := range c.on {
			rule, words := s.Refused(0, node)
			if words != want || rule != ruleOf(want) || s.Passes(0, node) != (want == "") || (s.MaxFit(0, node) > 0) != (want == "") {
				t.Errorf("%s, node %d: %q %q, passes %v, most %d; want %q", c.name, node, rule, words, s.Passes(0, node), s.MaxFit(0, node), want)
			}
		}
	}
}

func TestStateAffinity(t *testing.T) {
	db, web := named("db"), named("web")
	other := with(db, func(c *cluster.PodClass) { c.Namespace = "other" })
	check(t, []tableCase{
		{"plain", named("me"), []there{{db, a1, 1, false}}, map[int]string{a1: "", bare: "", template: ""}},
		{"affinity, nobody there", wants(near(zoneKey, in("app", "db"))), nil, map[int]string{a1: wordsAffinity, bare: wordsAffinity}},
		{"affinity", wants(near(zoneKey, in("app", "db"))), []there{{db, a1, 1, false}}, map[int]string{a1: "", a2: "", b1: wordsAffinity, bare: wordsAffinity}},
		{"affinity to one that leaves", wants(near(zoneKey, in("app", "db"))), []there{{db, a1, 1, true}}, map[int]string{a2: ""}},
		{"affinity, another namespace", wants(near(zoneKey, in("app", "db"))), []there{{other, a1, 1, false}}, map[int]string{a1: wordsAffinity}},
		{"affinity, the first of its kind", wants(near(zoneKey, in("app", "me"))), nil, map[int]string{a1: "", bare: wordsAffinity}},
		{"affinity, the second of its kind", wants(near(zoneKey, in("app", "me"))), []there{{named("me"), a1, 1, false}}, map[int]string{a2: "", b1: wordsAffinity}},
		{"affinity, the first counts on a node with the label only", wants(near(zoneKey, in("app", "me"))), []there{{named("me"), bare, 1, false}}, map[int]string{b1: ""}},
		{"affinity to all terms at once", wants(near(zoneKey, in("app", "db")), near(zoneKey, in("app", "web"))), []there{{db, a1, 1, false}, {web, a1, 1, false}}, map[int]string{a1: wordsAffinity}},
		{"affinity of two keys", wants(near(zoneKey, in("app", "db")), near(hostKey, in("app", "db"))), []there{{db, a1, 1, false}}, map[int]string{a1: "", a2: wordsAffinity}},
		{"affinity on a template's own hostname", wants(near(hostKey, in("app", "me"))), nil, map[int]string{template: ""}},
	})
}

func TestStateAntiAffinity(t *testing.T) {
	db := named("db")
	other := with(db, func(c *cluster.PodClass) { c.Namespace = "other" })
	unknown := with(db, func(c *cluster.PodClass) { c.Namespace = "unknown" })
	hater := with(named("hater"), func(c *cluster.PodClass) { c.PodAntiAffinity = []cluster.PodTerm{near(zoneKey, in("app", "me"))} })
	labelled := func(s *cluster.Selector) cluster.PodTerm {
		return cluster.PodTerm{TopologyKey: zoneKey, Selector: in("app", "db"), NamespaceSelector: s}
	}
	check(t, []tableCase{
		{"anti-affinity", avoids(near(zoneKey, in("app", "db"))), []there{{db, a1, 1, false}}, map[int]string{a1: wordsAntiAffinity, a2: wordsAntiAffinity, b1: "", bare: ""}},
		{"anti-affinity to one that leaves", avoids(near(hostKey, in("app", "db"))), []there{{db, a1, 1, true}}, map[int]string{a1: wordsAntiAffinity, a2: ""}},
		{"anti-affinity to one that went", avoids(near(hostKey, in("app", "db"))), []there{{db, a1, 2, false}, {db, a1, -2, false}}, map[int]string{a1: ""}},
		{"anti-affinity on a template's own hostname", avoids(near(hostKey, in("app", "db"))), []there{{db, template, 1, false}}, map[int]string{template: wordsAntiAffinity, b1: "", bare: ""}},
		{"existing anti-affinity", named("me"), []there{{hater, a1, 1, false}}, map[int]string{a2: wordsExistingRules, b1: "", bare: ""}},
		{"existing anti-affinity of one that leaves", named("me"), []there{{hater, a1, 1, true}}, map[int]string{a2: wordsExistingRules}},
		{"existing anti-affinity on a node without the label", named("me"), []there{{hater, bare, 1, false}}, map[int]string{a1: "", bare: ""}},
		{"every namespace", avoids(labelled(&cluster.Selector{})), []there{{unknown, a1, 1, false}}, map[int]string{a1: wordsAntiAffinity}},
		{"namespaces by label", avoids(labelled(in("team", "x"))), []there{{other, a1, 1, false}}, map[int]string{a1: wordsAntiAffinity, b1: ""}},
		{"namespaces by another label", avoids(labelled(in("team", "y"))), []there{{other, a1, 1, false}}, map[int]string{a1: ""}},
		{"a namespace that is not known counts as one without labels, as kube-scheduler holds it", avoids(labelled(&cluster.Selector{Requirements: []cluster.Requirement{req("team", "DoesNotExist")}})), []there{{unknown, a1, 1, false}}, map[int]string{a1: wordsAntiAffinity}},
		{"a nil selector selects nobody", avoids(near(zoneKey, nil)), []there{{db, a1, 1, false}}, map[int]string{a1: ""}},
	})
}

func TestStateSpread(t *testing.T) {
	db := named("db")
	skew := func(key string, n, domains int) cluster.Spread {
		return cluster.Spread{TopologyKey: key, MaxSkew: n, MinDomains: domains, Selector: in("app", "me"), HonorTaints: true}
	}
	loose := skew(zoneKey, 1, 0)
	loose.HonorTaints = false
	open := skew(zoneKey, 1, 0)
	open.Selector = &cluster.Selector{}
	nobody := skew(zoneKey, 1, 0)
	nobody.Selector = nil
	picky := with(evenly(loose), func(c *cluster.PodClass) { c.NodeSelector = map[string]string{zoneKey: "a"} })
	ignoring := with(picky, func(c *cluster.PodClass) {
		c.Spread = []cluster.Spread{loose}
		c.Spread[0].IgnoreNodeAffinity = true
	})
	check(t, []tableCase{
		{"spread, missing label", evenly(skew(zoneKey, 1, 0)), nil, map[int]string{a1: "", bare: wordsSpreadLabel}},
		{"spread", evenly(loose), []there{{named("me"), a1, 1, false}}, map[int]string{a2: wordsSpread, b1: "", template: ""}},
		{"spread does not count who leaves", evenly(loose), []there{{named("me"), a1, 1, true}}, map[int]string{a1: ""}},
		{"spread counts its own namespace", evenly(loose), []there{{with(named("me"), func(c *cluster.PodClass) { c.Namespace = "other" }), a1, 1, false}}, map[int]string{a1: ""}},
		{"spread, skew 2", evenly(skew(zoneKey, 2, 0)), []there{{named("me"), a1, 2, false}}, map[int]string{a2: wordsSpread, template: ""}},
		{"spread, minDomains", evenly(skew(zoneKey, 1, 3)), []there{{named("me"), a1, 1, false}, {named("me"), template, 1, false}}, map[int]string{a2: wordsSpread, template: wordsSpread}},
		{"spread, taints honoured", evenly(skew(hostKey, 1, 0)), []there{{named("me"), a1, 1, false}, {named("me"), a2, 1, false}, {named("me"), template, 1, false}}, map[int]string{a1: ""}},
		{"spread, taints ignored", evenly(loose), []there{{named("me"), a1, 1, false}}, map[int]string{a1: wordsSpread}},
		{"spread, node affinity honoured", picky, []there{{named("me"), a1, 5, false}}, map[int]string{a2: ""}},
		{"spread, node affinity ignored", ignoring, []there{{named("me"), a1, 5, false}}, map[int]string{a2: wordsSpread}},
		{"spread counts where all keys are", evenly(loose, skew(hostKey, 9, 0)), []there{{named("me"), beta, 3, false}}, map[int]string{a1: ""}},
		{"spread of an empty selector counts nobody", evenly(open), []there{{db, a1, 5, false}}, map[int]string{a1: ""}},
		{"spread of a nil selector counts nobody", evenly(nobody), []there{{db, a1, 5, false}}, map[int]string{a1: "", bare: wordsSpreadLabel}},
	})
}

func TestStateVolumes(t *testing.T) {
	claim := mounts(cluster.Volume{Claim: "n/c", OnePod: true})
	ebs := func(handles ...string) cluster.PodClass {
		return with(named("me"), func(c *cluster.PodClass) {
			for _, h := range handles {
				c.Volumes = append(c.Volumes, cluster.Volume{Driver: "ebs", Handle: h})
			}
		})
	}
	check(t, []tableCase{
		{"claim free", claim, nil, map[int]string{a1: ""}},
		{"claim in use anywhere", claim, []there{{claim, a1, 1, false}}, map[int]string{a1: wordsOnePod, b1: wordsOnePod}},
		{"limit", ebs("1", "2"), nil, map[int]string{a1: wordsLimit, a2: ""}},
		{"limit, one is there already", ebs("1", "2"), []there{{ebs("1"), a1, 2, false}}, map[int]string{a1: wordsLimit}},
		{"limit, all are there already", ebs("1"), []there{{ebs("1"), a1, 2, false}, {ebs("2"), a1, 1, false}}, map[int]string{a1: ""}},
		{"limit, one user of two is left", ebs("2"), []there{{ebs("1"), a1, 2, false}, {ebs("1"), a1, -1, false}}, map[int]string{a1: wordsLimit}},
		{"limit, the last user went", ebs("2"), []there{{ebs("1"), a1, 2, false}, {ebs("1"), a1, -2, false}}, map[int]string{a1: ""}},
		{"limit, one volume twice", ebs("1", "1"), nil, map[int]string{a1: ""}},
		{"limit, a volume whose handle is not known", mounts(cluster.Volume{Driver: "ebs"}, cluster.Volume{Driver: "ebs", Handle: "1"}), nil, map[int]string{a1: ""}},
		{"limit, no pod more", ebs("1"), []there{{ebs("1"), a1, 1, false}, {ebs("2"), a1, 0, false}}, map[int]string{a1: ""}},
		{"limit, no pod more of another volume", ebs("1"), []there{{ebs("2"), a1, 0, false}}, map[int]string{a1: ""}},
		{"limit of another driver", mounts(cluster.Volume{Driver: "nfs", Handle: "1"}), []there{{ebs("1"), a1, 1, false}}, map[int]string{a1: ""}},
		{"refused claim", mounts(cluster.Volume{Refused: "pod has unbound immediate PersistentVolumeClaims"}), nil, map[int]string{a1: "pod has unbound immediate PersistentVolumeClaims"}},
		{"two refused claims", mounts(cluster.Volume{Refused: "a"}, cluster.Volume{Refused: "b"}), nil, map[int]string{a1: "a"}},
		{"volume elsewhere", mounts(cluster.Volume{Affinity: zones("b")}), nil, map[int]string{a1: wordsVolume, b1: "", bare: wordsVolume, template: ""}},
		{"volume's fields are not looked at", mounts(cluster.Volume{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{req("metadata.name", "In", "b1")}}}}), nil, map[int]string{a1: "", bare: ""}},
		{"volume's fields that exclude", mounts(cluster.Volume{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{req("metadata.name", "NotIn", "a1")}}}}), nil, map[int]string{a1: ""}},
		{"volume's invalid fields, with a value", mounts(cluster.Volume{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{req("metadata.name", "Exists", "a1")}}}}), nil, map[int]string{a1: wordsVolume}},
		{"volume's fields of two values", mounts(cluster.Volume{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{req("metadata.name", "In", "a1", "a2")}}}}), nil, map[int]string{a1: wordsVolume}},
		{"volume's invalid fields", mounts(cluster.Volume{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{req("metadata.name", "Exists")}}}}), nil, map[int]string{a1: wordsVolume}},
		{"volume of an empty term", mounts(cluster.Volume{Affinity: []cluster.NodeTerm{{}}}), nil, map[int]string{a1: wordsVolume}},
		{"claim that waits", mounts(cluster.Volume{Topologies: zones("b", "c")}), nil, map[int]string{a1: wordsTopology, b1: ""}},
		{"volume and claim elsewhere", mounts(cluster.Volume{Affinity: zones("b")}, cluster.Volume{Topologies: zones("b")}), nil, map[int]string{a1: wordsVolume + ", " + wordsTopology}},
		{"zone", mounts(cluster.Volume{Zones: []cluster.Requirement{req(zoneKey, "In", "b")}}), nil, map[int]string{a1: wordsZone, b1: "", bare: "", beta: wordsZone}},
		{"zones of a volume in several", mounts(cluster.Volume{Zones: []cluster.Requirement{req(zoneKey, "In", "a__b")}}), nil, map[int]string{a1: "", b1: ""}},
		{"zone label that cannot be read", mounts(cluster.Volume{Zones: []cluster.Requirement{req(zoneKey, "In", "c__")}}), nil, map[int]string{a1: ""}},
		{"another label is no zone", mounts(cluster.Volume{Zones: []cluster.Requirement{req("disk", "In", "hdd")}}), nil, map[int]string{a1: "", a2: ""}},
		{"old zone label", mounts(cluster.Volume{Zones: []cluster.Requirement{req("failure-domain.beta.kubernetes.io/zone", "In", "a")}}), nil, map[int]string{a1: "", beta: "", b1: wordsZone}},
	})
}

// TestPassesVolumes: a class that asks nothing goes anywhere; volumes of others that come before count with those that are there.
func TestPassesVolumes(t *testing.T) {
	s := NewState([]cluster.PodClass{named("me"), mounts(cluster.Volume{Driver: "ebs", Handle: "1"})}, nil)
	node := s.AddNode(&NodeInfo{Name: "n"}, map[string]int64{"ebs": 2})
	for before, want := range map[int]bool{0: true, 2: true, 3: false} {
		volumes := map[string]int{"ebs": before}
		if got := s.PassesVolumes(1, node, volumes); got != want {
			t.Errorf("%d volumes come, room for 2: %v, want %v", before, got, want)
		}
		if !s.PassesVolumes(0, node, volumes) {
			t.Errorf("%d volumes come: a class without volumes is refused", before)
		}
	}
}

// Judging and counting do not allocate.
func TestStateAllocates(t *testing.T) {
	classes := append(benchClasses(9), replicas(1)...)
	s := NewState(classes, nil)
	benchNodes(s, 100)
	if n := testing.AllocsPerRun(10, func() {
		for class := range 20 {
			for node := range 100 {
				s.Passes(class, node)
				s.Refused(class, node)
				s.MaxFit(class, node)
				s.Put(class, node, 1)
			}
		}
		for class := range 20 {
			for node := range 100 {
				s.Put(class, node, -1)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
