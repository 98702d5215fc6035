package store

import (
	"reflect"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Every field of a class must part classes: an encoding that forgot one would give
// pods each other's requirements.
func TestClassKeyTellsEveryFieldApart(t *testing.T) {
	variants := []cluster.PodClass{
		{}, {Namespace: "a"}, {Labels: map[string]string{"a": "b"}}, {Labels: map[string]string{"ab": ""}},
		{Requests: cluster.Resources{MilliCPU: 1}}, {Requests: cluster.Resources{Memory: 1}}, {Requests: cluster.Resources{EphemeralStorage: 1}},
		{Requests: cluster.Resources{Pods: 1}}, {Requests: cluster.Resources{Extended: map[string]int64{"x/y": 1}}},
		{HostPorts: []cluster.HostPort{{IP: "0.0.0.0", Protocol: "TCP", Port: 80}}}, {HostPorts: []cluster.HostPort{{IP: "0.0.0.0", Protocol: "UDP", Port: 80}}},
		{NodeSelector: map[string]string{"a": "b"}}, {Affinity: []cluster.NodeTerm{}}, {Affinity: []cluster.NodeTerm{{}}},
		{Affinity: []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: "k", Operator: "In", Values: []string{"v"}}}}}},
		{Affinity: []cluster.NodeTerm{{Fields: []cluster.Requirement{{Key: "k", Operator: "In", Values: []string{"v"}}}}}},
		{Tolerations: []cluster.Toleration{{}}}, {Tolerations: []cluster.Toleration{{Key: "k"}}}, {Tolerations: []cluster.Toleration{{Value: "k"}}},
		{Priority: 1}, {NodeName: "n"}, {NotUnderstood: []string{"x"}},
	}
	for _, term := range []cluster.PodTerm{
		{}, {TopologyKey: "k"}, {Selector: &cluster.Selector{}}, {NamespaceSelector: &cluster.Selector{}}, {Namespaces: []string{"k"}},
		{Selector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "k", Operator: "Exists"}}}},
		{NamespaceSelector: &cluster.Selector{Requirements: []cluster.Requirement{{Key: "k", Operator: "Exists"}}}},
	} {
		variants = append(variants, cluster.PodClass{PodAffinity: []cluster.PodTerm{term}}, cluster.PodClass{PodAntiAffinity: []cluster.PodTerm{term}})
	}
	for _, s := range []cluster.Spread{{}, {TopologyKey: "k"}, {MaxSkew: 1}, {MinDomains: 1}, {Selector: &cluster.Selector{}}, {IgnoreNodeAffinity: true}, {HonorTaints: true}} {
		variants = append(variants, cluster.PodClass{Spread: []cluster.Spread{s}})
	}
	terms := []cluster.NodeTerm{{Labels: []cluster.Requirement{{Key: "k", Operator: "Exists"}}}}
	for _, v := range []cluster.Volume{{}, {Claim: "c"}, {Affinity: terms}, {Affinity: []cluster.NodeTerm{}}, {Zones: terms[0].Labels}, {Topologies: terms},
		{Topologies: []cluster.NodeTerm{}}, {Driver: "c"}, {Handle: "c"}, {OnePod: true}, {Refused: "c"}} {
		variants = append(variants, cluster.PodClass{Volumes: []cluster.Volume{v}})
	}
	var c classes
	for i, v := range variants {
		if at, fresh := c.intern(v); !fresh || at != i {
			t.Errorf("variant %d (%+v) is taken for %d", i, v, at)
		}
	}
	for i, v := range variants {
		if at, fresh := c.intern(v); fresh || at != i {
			t.Errorf("variant %d again is %d, fresh %v", i, at, fresh)
		}
		c.release(i)
		c.release(i)
	}
	if len(c.free) != len(variants) || len(c.index) != 0 {
		t.Errorf("%d rows free, %d keys left after every release", len(c.free), len(c.index))
	}
	if n := reflect.TypeFor[cluster.PodClass]().NumField(); n != 14 {
		t.Errorf("PodClass has %d fields: add the new one to appendClass and to this test", n)
	}
}

// The nouns below a class are part of its key too.
func TestClassKeyKnowsEveryFieldBelow(t *testing.T) {
	for typ, want := range map[reflect.Type]int{
		reflect.TypeFor[cluster.PodTerm](): 4, reflect.TypeFor[cluster.Spread](): 6, reflect.TypeFor[cluster.Volume](): 8, reflect.TypeFor[cluster.Selector](): 1,
		reflect.TypeFor[cluster.NodeTerm](): 2, reflect.TypeFor[cluster.Requirement](): 3, reflect.TypeFor[cluster.Toleration](): 4, reflect.TypeFor[cluster.HostPort](): 3,
	} {
		if n := typ.NumField(); n != want {
			t.Errorf("%s has %d fields, not %d: add it to appendClass and its test", typ, n, want)
		}
	}
}
