package cluster

import (
	"reflect"
	"testing"
)

// Every field of a class must part classes: an encoding that forgot one would give
// pods each other's requirements.
func TestClassKeyTellsEveryFieldApart(t *testing.T) {
	variants := []PodClass{
		{}, {Namespace: "a"}, {Labels: map[string]string{"a": "b"}}, {Labels: map[string]string{"ab": ""}},
		{Requests: Resources{MilliCPU: 1}}, {Requests: Resources{Memory: 1}}, {Requests: Resources{EphemeralStorage: 1}},
		{Requests: Resources{Pods: 1}}, {Requests: Resources{Extended: map[string]int64{"x/y": 1}}},
		{HostPorts: []HostPort{{IP: "0.0.0.0", Protocol: "TCP", Port: 80}}}, {HostPorts: []HostPort{{IP: "0.0.0.0", Protocol: "UDP", Port: 80}}},
		{NodeSelector: map[string]string{"a": "b"}}, {Affinity: []NodeTerm{}}, {Affinity: []NodeTerm{{}}},
		{Affinity: []NodeTerm{{Labels: []Requirement{{Key: "k", Operator: "In", Values: []string{"v"}}}}}},
		{Affinity: []NodeTerm{{Fields: []Requirement{{Key: "k", Operator: "In", Values: []string{"v"}}}}}},
		{Tolerations: []Toleration{{}}}, {Tolerations: []Toleration{{Key: "k"}}}, {Tolerations: []Toleration{{Value: "k"}}},
		{Priority: 1}, {NodeName: "n"}, {NotUnderstood: []string{"x"}}, {TooLarge: true},
	}
	for _, term := range []PodTerm{
		{}, {TopologyKey: "k"}, {Selector: &Selector{}}, {NamespaceSelector: &Selector{}}, {Namespaces: []string{"k"}},
		{Selector: &Selector{Requirements: []Requirement{{Key: "k", Operator: "Exists"}}}},
		{NamespaceSelector: &Selector{Requirements: []Requirement{{Key: "k", Operator: "Exists"}}}},
	} {
		variants = append(variants, PodClass{PodAffinity: []PodTerm{term}}, PodClass{PodAntiAffinity: []PodTerm{term}})
	}
	for _, s := range []Spread{{}, {TopologyKey: "k"}, {MaxSkew: 1}, {MinDomains: 1}, {Selector: &Selector{}}, {IgnoreNodeAffinity: true}, {HonorTaints: true}} {
		variants = append(variants, PodClass{Spread: []Spread{s}})
	}
	terms := []NodeTerm{{Labels: []Requirement{{Key: "k", Operator: "Exists"}}}}
	for _, v := range []Volume{{}, {Claim: "c"}, {Affinity: terms}, {Affinity: []NodeTerm{}}, {Zones: terms[0].Labels}, {Topologies: terms},
		{Topologies: []NodeTerm{}}, {Driver: "c"}, {Handle: "c"}, {OnePod: true}, {Refused: "c"}} {
		variants = append(variants, PodClass{Volumes: []Volume{v}})
	}
	for _, p := range []Preferences{
		{}, {MilliCPU: 1}, {Memory: 1}, {IncomingMilliCPU: 1}, {IncomingMemory: 1}, {Nodes: []PreferredNodes{{}}}, {Nodes: []PreferredNodes{{Weight: 1}}},
		{Nodes: []PreferredNodes{{Term: terms[0]}}}, {Pods: []PreferredPods{{}}}, {Pods: []PreferredPods{{Weight: 1}}}, {Pods: []PreferredPods{{Term: PodTerm{TopologyKey: "k"}}}},
		{Spread: []Spread{{}}}, {Spread: []Spread{{MaxSkew: 1}}},
	} {
		variants = append(variants, PodClass{Prefers: &p})
	}
	for _, c := range []DeviceClaim{
		{}, {On: []NodeTerm{}}, {On: terms}, {Refused: "c"}, {Requests: []DeviceRequest{{}}}, {Requests: []DeviceRequest{{Name: "r"}}}, {Requests: []DeviceRequest{{Resource: "r"}}}, {Requests: []DeviceRequest{{Alternatives: []DeviceAsk{{}}}}},
		{Requests: []DeviceRequest{{Alternatives: []DeviceAsk{{Name: "a"}}}}}, {Requests: []DeviceRequest{{Alternatives: []DeviceAsk{{Selectors: []string{"s"}}}}}},
		{Requests: []DeviceRequest{{Alternatives: []DeviceAsk{{Count: 1}}}}}, {Requests: []DeviceRequest{{Alternatives: []DeviceAsk{{All: true}}}}},
		{Requests: []DeviceRequest{{Alternatives: []DeviceAsk{{Admin: true}}}}}, {Requests: []DeviceRequest{{Alternatives: []DeviceAsk{{Tolerations: []Toleration{{}}}}}}},
		{Constraints: []DeviceConstraint{{}}}, {Constraints: []DeviceConstraint{{Requests: []string{"r"}}}}, {Constraints: []DeviceConstraint{{Attribute: "a"}}},
		{Constraints: []DeviceConstraint{{Distinct: true}}},
	} {
		variants = append(variants, PodClass{Claims: []DeviceClaim{c}})
	}
	variants = append(variants, PodClass{Claims: []DeviceClaim{{}, {}}})
	seen := map[string]int{}
	for i, v := range variants {
		key := string(AppendClass(nil, &v))
		if at, had := seen[key]; had {
			t.Errorf("variant %d (%+v) has the key of variant %d", i, v, at)
		}
		if again := v; string(AppendClass(nil, &again)) != key {
			t.Errorf("variant %d has two keys", i)
		}
		seen[key] = i
	}
	if n := reflect.TypeFor[PodClass]().NumField(); n != 17 {
		t.Errorf("PodClass has %d fields: add the new one to AppendClass and to this test", n)
	}
}

// The nouns below a class are part of its key too.
func TestClassKeyKnowsEveryFieldBelow(t *testing.T) {
	for typ, want := range map[reflect.Type]int{
		reflect.TypeFor[PodTerm](): 4, reflect.TypeFor[Spread](): 6, reflect.TypeFor[Volume](): 8, reflect.TypeFor[Selector](): 1,
		reflect.TypeFor[NodeTerm](): 2, reflect.TypeFor[Requirement](): 3, reflect.TypeFor[Toleration](): 4, reflect.TypeFor[HostPort](): 3,
		reflect.TypeFor[Preferences](): 7, reflect.TypeFor[PreferredNodes](): 2, reflect.TypeFor[PreferredPods](): 2,
		reflect.TypeFor[DeviceClaim](): 4, reflect.TypeFor[DeviceRequest](): 3, reflect.TypeFor[DeviceAsk](): 6, reflect.TypeFor[DeviceConstraint](): 3,
	} {
		if n := typ.NumField(); n != want {
			t.Errorf("%s has %d fields, not %d: add it to AppendClass and its test", typ, n, want)
		}
	}
}
