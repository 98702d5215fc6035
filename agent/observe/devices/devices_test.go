package devices

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const driver = "gpu.example.com"

func expression(text string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: text}}}
}

// aSlice is a pool of node n with devices d0, d1 and so on.
func aSlice(devices int, change func(*resourcev1.ResourceSliceSpec)) *resourcev1.ResourceSlice {
	node, model := "n", "a100"
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: "n", Generation: 1, ResourceSliceCount: 1}}}
	for i := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: "d" + string(rune('0'+i)), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("40Gi")}}})
	}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

func exactly(change func(*resourcev1.ExactDeviceRequest)) resourcev1.ResourceClaimSpec {
	e := &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
	if change != nil {
		change(e)
	}
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: e}}}}
}

func aClaim(name string, spec resourcev1.ResourceClaimSpec, devices ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: spec}
	if len(devices) > 0 {
		c.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"n"}}}}}}}
		for _, d := range devices {
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Driver: driver, Pool: "n", Device: d})
		}
	}
	return c
}

func index(do ...func(*Index)) *Index {
	x := NewIndex()
	x.SetUnread("")
	x.PutClass(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{Selectors: expression(`device.driver == "` + driver + `"`)}})
	for _, f := range do {
		f(x)
	}
	return x
}

// pod names a claim, or with "template:" a template; made is the claim that was made from that.
func pod(name, of, made, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node, ResourceClaims: []corev1.PodResourceClaim{{Name: "c"}}}}
	if template, is := strings.CutPrefix(of, "template:"); is {
		p.Spec.ResourceClaims[0].ResourceClaimTemplateName = &template
		if made != "" {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c", ResourceClaimName: &made}}
		}
	} else {
		p.Spec.ResourceClaims[0].ResourceClaimName = &of
	}
	return p
}

func classOf(x *Index, p *corev1.Pod) cluster.PodClass {
	class := cluster.PodClass{NotUnderstood: []string{"resourceClaims"}}
	x.SetPod(cluster.PodKey("ns/"+p.Name), PodUse(p), &class)
	return class
}

// TestWhatAPodAsksFor: of each kind of claim what is judged, and of what is not the reason.
func TestWhatAPodAsksFor(t *testing.T) {
	put := func(c *resourcev1.ResourceClaim) func(*Index) { return func(x *Index) { x.PutClaim(c) } }
	template := func(x *Index) {
		x.PutTemplate(&resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: exactly(nil)}})
	}
	several := func(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
		c.Status.ReservedFor = make([]resourcev1.ResourceClaimConsumerReference, 2)
		return c
	}
	shared := func(change func(*resourcev1.ResourceSliceSpec)) func(*Index) {
		return func(x *Index) { x.PutSlice(aSlice(1, change)) }
	}
	one, everywhere := cluster.DeviceClaim{Requests: []cluster.DeviceRequest{{Name: "r", Alternatives: []cluster.DeviceAsk{{Selectors: []string{`device.driver == "gpu.example.com"`}, Count: 1}}}}}, true
	pinned := cluster.DeviceClaim{On: []cluster.NodeTerm{{Fields: []cluster.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{"n"}}}}}}
	for name, c := range map[string]struct {
		in   *Index
		pod  *corev1.Pod
		want cluster.DeviceClaim
		why  string
	}{
		"a template whose claim is not made yet":    {in: index(template), pod: pod("p", "template:t", "", ""), want: one},
		"the claim that was made from it":           {in: index(template, put(aClaim("p-c", exactly(nil)))), pod: pod("p", "template:t", "p-c", ""), want: one},
		"that is allocated before its pod is bound": {in: index(template, put(aClaim("p-c", exactly(nil), "d0"))), pod: pod("p", "template:t", "p-c", ""), want: pinned},
		"a bound pod asks as the one after it will": {in: index(template, put(aClaim("p-c", exactly(nil), "d0"))), pod: pod("p", "template:t", "p-c", "n"), want: one},
		"a named claim":              {in: index(put(aClaim("c", exactly(nil)))), pod: pod("p", "c", "", ""), want: one},
		"that a bound pod has alone": {in: index(put(aClaim("c", exactly(nil), "d0"))), pod: pod("p", "c", "", "n"), want: one},
		"that a bound pod shares":    {in: index(put(several(aClaim("c", exactly(nil), "d0")))), pod: pod("p", "c", "", "n"), want: pinned},
		"no such claim":              {in: index(), pod: pod("p", "c", "", ""), want: cluster.DeviceClaim{Refused: `could not find ResourceClaim "ns/c"`}},
		"no such template":           {in: index(), pod: pod("p", "template:t", "", ""), want: cluster.DeviceClaim{Refused: `could not find ResourceClaimTemplate "ns/t"`}},
		"capacity": {in: index(put(aClaim("c", exactly(func(e *resourcev1.ExactDeviceRequest) {
			e.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": {}}}
		})))), pod: pod("p", "c", "", ""), why: "request r asks for capacity"},
		"a device of several nodes":  {in: index(shared(func(s *resourcev1.ResourceSliceSpec) { s.NodeName, s.AllNodes = nil, &everywhere }), put(aClaim("c", exactly(nil)))), pod: pod("p", "c", "", ""), why: "request r may take devices of gpu.example.com that several nodes share"},
		"a device of several claims": {in: index(shared(func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].AllowMultipleAllocations = &everywhere }), put(aClaim("c", exactly(nil)))), pod: pod("p", "c", "", ""), why: "request r may take devices of gpu.example.com that several claims may share"},
		"the objects are not read":   {in: NewIndex(), pod: pod("p", "c", "", ""), why: "the objects of resource.k8s.io/v1 are being read"},
	} {
		got := classOf(c.in, c.pod)
		if c.why != "" {
			if len(got.NotUnderstood) != 1 || !strings.Contains(got.NotUnderstood[0], "resourceClaims: ") || !strings.Contains(got.NotUnderstood[0], c.why) || got.Claims != nil {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got.NotUnderstood) > 0 || !reflect.DeepEqual(got.Claims, []cluster.DeviceClaim{c.want}) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
	x := index(put(aClaim("c", exactly(nil))))
	classOf(x, pod("p", "c", "", ""))
	x.TakeChangedPods()
	if got := classOf(x, pod("q", "c", "", "")); !slices.ContainsFunc(got.NotUnderstood, func(s string) bool { return strings.Contains(s, "several pods share") }) {
		t.Errorf("the second pod of a claim: %+v", got)
	}
	if got := x.TakeChangedPods(); !reflect.DeepEqual(got, map[cluster.PodKey]cluster.NodeName{"ns/p": ""}) {
		t.Errorf("the first pod is not judged anew: %v", got)
	}
	if got := classOf(x, pod("p", "c", "", "")); len(got.NotUnderstood) > 0 || !reflect.DeepEqual(got.Claims, []cluster.DeviceClaim{one}) {
		t.Errorf("the first pod of a claim is the one that is helped: %+v", got)
	}
}

// TestOnNode: what a node offers changes with slices, claims and selectors, and says which nodes have changed.
func TestOnNode(t *testing.T) {
	x := index()
	state := func() (out string) {
		x.TakeChangedPods()
		for _, n := range x.TakeChangedNodes() {
			out += string(n) + " "
		}
		d := x.OnNode("n")
		if d == nil {
			return out + "none"
		}
		for _, v := range d.Devices {
			out += v.Name
			if v.Taken {
				out += " taken"
			}
			if len(v.Matches)+len(v.Fails) > 0 {
				out += " " + strings.Join(v.Matches, ",") + "!" + strings.Join(v.Fails, ",")
			}
			out += ";"
		}
		return out + d.Unready
	}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"nothing", func() {}, "none"},
		{"a slice", func() { x.PutSlice(aSlice(2, nil)) }, "n d0;d1;"},
		{"a claim has a device", func() { x.PutClaim(aClaim("c", exactly(nil), "d1")) }, "n d0;d1 taken;"},
		{"with a selector", func() {
			x.PutClaim(aClaim("e", exactly(func(e *resourcev1.ExactDeviceRequest) {
				e.Selectors = expression(`device.attributes["gpu.example.com"].model == "a100"`)
			})))
			classOf(x, pod("p", "e", "", ""))
		}, `n d0 device.attributes["gpu.example.com"].model == "a100",device.driver == "gpu.example.com"!;d1 taken device.attributes["gpu.example.com"].model == "a100",device.driver == "gpu.example.com"!;`},
		{"the pod goes, and the classes change", func() {
			x.DeletePod("ns/p")
			x.PutClass(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
		}, "n d0;d1 taken;"},
		{"the claim goes", func() { x.DeleteClaim("ns/c") }, "n d0;d1;"},
		{"half of a newer generation", func() {
			s := aSlice(1, func(s *resourcev1.ResourceSliceSpec) { s.Pool.Generation, s.Pool.ResourceSliceCount = 2, 2 })
			s.Name = "s2"
			x.PutSlice(s)
		}, "n gpu.example.com/n"},
		{"the older one goes, and so does the newer", func() { x.DeleteSlice("s"); x.DeleteSlice("s2") }, "n none"},
	} {
		step.do()
		if got := state(); got != step.want {
			t.Errorf("%s:\ngot  %s\nwant %s", step.name, got, step.want)
		}
	}
	if len(x.slices)+len(x.pools)+len(x.onNode)+len(x.taken)+len(x.pods)+len(x.users) > 0 {
		t.Errorf("left over: %+v", x)
	}
}

// TestJudge: a template's devices are as those that a driver publishes.
func TestJudge(t *testing.T) {
	x := index(func(x *Index) { x.PutSlice(aSlice(1, nil)) })
	x.PutClaim(aClaim("c", exactly(func(e *resourcev1.ExactDeviceRequest) {
		e.Selectors = expression(`device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) == 0`)
	})))
	classOf(x, pod("p", "c", "", ""))
	published := x.OnNode("n").Devices[0]
	bare := published
	bare.Matches, bare.Taken = nil, true
	if got := x.Judge(&cluster.Devices{Devices: []cluster.Device{bare}}).Devices[0]; !reflect.DeepEqual(got, published) || len(got.Matches) != 2 {
		t.Errorf("got  %+v\nwant %+v", got, published)
	}
}

// TestSelectorsAreBounded: whoever makes pods cannot have any number of selectors evaluated.
func TestSelectorsAreBounded(t *testing.T) {
	x := index()
	held := 0
	for i := range mostSelectors + 10 {
		name := "c" + strings.Repeat("x", i)
		x.PutClaim(aClaim(name, exactly(func(e *resourcev1.ExactDeviceRequest) { e.Selectors = expression("true" + strings.Repeat(" ", i)) })))
		if len(classOf(x, pod(name, name, "", "")).NotUnderstood) > 0 {
			held++
		}
	}
	if held != 11 || len(x.selectors) != mostSelectors {
		t.Errorf("%d held, %d selectors", held, len(x.selectors))
	}
}

// TestExtendedResources: the index makes a claim of the extended resources that DeviceClasses back, of several the youngest; what the pod asks for in all
// stays, for nodes whose device plug-in offers them.
func TestExtendedResources(t *testing.T) {
	x, gpus := index(), "example.com/gpu"
	back := func(class string, second int64) {
		x.PutClass(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class, CreationTimestamp: metav1.Unix(second, 0)}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &gpus, Selectors: expression("true && '" + class + "' == '" + class + "'")}})
	}
	ask := func(gpu string, more ...string) corev1.Container {
		list := corev1.ResourceList{"cpu": resource.MustParse("100m"), corev1.ResourceName(gpus): resource.MustParse(gpu)}
		for _, name := range more {
			list[corev1.ResourceName(name)] = resource.MustParse("1")
		}
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list}}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{InitContainers: []corev1.Container{ask("5"), ask("4")}, Containers: []corev1.Container{ask("1", "example.com/plugin"), ask("2", resourcev1.ResourceDeviceClassPrefix+"gpu")}}}
	requests := map[string]int64{gpus: 5, "example.com/plugin": 1, resourcev1.ResourceDeviceClassPrefix + "gpu": 1, "hugepages-2Mi": 1}
	want := func(names ...string) {
		t.Helper()
		class, got := cluster.PodClass{Requests: cluster.Resources{Extended: maps.Clone(requests)}}, []string(nil)
		x.SetPod("ns/p", PodUse(p), &class)
		for i := range 3 { // again and again
			if x.Complete("ns/p", &class); len(class.NotUnderstood) > 0 || len(class.Claims) > 1 || !maps.Equal(class.Requests.Extended, requests) {
				t.Fatalf("%d: %+v", i, class)
			}
		}
		for _, c := range class.Claims {
			for _, r := range c.Requests {
				got = append(got, fmt.Sprint(r.Name, " ", r.Resource, " ", r.Alternatives[0].Count, " ", r.Alternatives[0].Selectors[0]))
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("%q", got)
		}
	}
	implicit := "container-3-request-1 " + resourcev1.ResourceDeviceClassPrefix + `gpu 1 device.driver == "gpu.example.com"`
	want(implicit)
	back("old", 1)
	back("young", 2)
	young := " true && 'young' == 'young'"
	want("container-0-request-1 "+gpus+" 2"+young, "container-2-request-1 "+gpus+" 1"+young, implicit, "container-3-request-2 "+gpus+" 2"+young)
	if claims, perhaps := x.Wanted(); claims || !perhaps {
		t.Error("a pod without claims wants the objects only if there are classes")
	}
}

// TestTaintRules: a rule taints the devices that it is about, those of a template only where it names no pool; it goes with its taint.
func TestTaintRules(t *testing.T) {
	x, of, pool, other := index(func(x *Index) { x.PutSlice(aSlice(2, nil)) }), driver, "n", "other.example.com"
	rule := func(name string, effect resourcev1beta2.DeviceTaintEffect, s *resourcev1beta2.DeviceTaintSelector) {
		x.PutRule(&resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1beta2.DeviceTaintRuleSpec{DeviceSelector: s, Taint: resourcev1beta2.DeviceTaint{Key: name, Effect: effect}}})
	}
	d1 := "d1"
	rule("a-driver", "NoSchedule", &resourcev1beta2.DeviceTaintSelector{Driver: &of})
	rule("b-pool", "NoExecute", &resourcev1beta2.DeviceTaintSelector{Driver: &of, Pool: &pool})
	rule("c-device", "NoExecute", &resourcev1beta2.DeviceTaintSelector{Pool: &pool, Device: &d1})
	rule("d-other", "NoExecute", &resourcev1beta2.DeviceTaintSelector{Driver: &other})
	rule("e-none", "None", nil)
	ruled := func(d *cluster.Devices) (out []string) {
		for _, d := range d.Devices {
			keys := ""
			for _, t := range d.Ruled {
				keys += t.Key + " "
			}
			out = append(out, keys)
		}
		return out
	}
	x.TakeChangedNodes()
	if got := ruled(x.OnNode("n")); !slices.Equal(got, []string{"a-driver b-pool ", "a-driver b-pool c-device "}) {
		t.Errorf("%q", got)
	}
	if got := ruled(x.Judge(&cluster.Devices{Devices: []cluster.Device{{Driver: driver, Name: "d1"}}})); !slices.Equal(got, []string{"a-driver "}) {
		t.Errorf("%q", got)
	}
	x.DeleteRule("a-driver")
	if got := ruled(x.OnNode("n")); !x.Changed() || got[0] != "b-pool " {
		t.Errorf("%q", got)
	}
}
