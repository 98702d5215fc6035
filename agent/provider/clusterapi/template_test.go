package clusterapi

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

func newTest(c Config) *Provider {
	set, _ := c.parse()
	return &Provider{set: set, reservation: cluster.Reservation{
		Kube: cluster.Resources{MilliCPU: 100, Memory: 256 << 20}, Eviction: cluster.Resources{Memory: 100 << 20}, EvictionStoragePercent: 10, MaxPods: 110}}
}

func drawn(t *testing.T, p *Provider, kind string, annotations map[string]string, spec, infra string) draft {
	t.Helper()
	o := object(kind, "ns", "md", "c", nil)
	o.Annotations = annotations
	if spec != "" {
		if err := json.Unmarshal([]byte(spec), &o.Spec); err != nil {
			t.Fatal(err)
		}
	}
	answers := map[string]infraAnswer{}
	if infra != "" {
		var i capi.Infrastructure
		if err := json.Unmarshal([]byte(infra), &i); err != nil {
			t.Fatal(err)
		}
		answers[templateKey("ns", o.Spec.Template.Spec.InfrastructureRef)] = infraAnswer{object: &i}
	}
	return p.template(context.Background(), gather(o, nil), answers)
}

// TestCapacityAnnotations plays every capacity annotation by its name, with the values
// of Cluster Autoscaler's documents.
func TestCapacityAnnotations(t *testing.T) {
	all := map[string]string{
		"capacity.cluster-autoscaler.kubernetes.io/memory":         "128G",
		"capacity.cluster-autoscaler.kubernetes.io/cpu":            "16",
		"capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk": "100Gi",
		"capacity.cluster-autoscaler.kubernetes.io/gpu-type":       "nvidia.com/gpu",
		"capacity.cluster-autoscaler.kubernetes.io/gpu-count":      "2",
		"capacity.cluster-autoscaler.kubernetes.io/maxPods":        "200",
		"capacity.cluster-autoscaler.kubernetes.io/labels":         "key1=value1,key2=value2",
		"capacity.cluster-autoscaler.kubernetes.io/taints":         "key1=value1:NoSchedule,key2=value2:NoExecute",
		"capacity.cluster-autoscaler.kubernetes.io/csi-driver":     "ebs.csi.aws.com=25,nolimit.example=0",
	}
	for _, kind := range []string{kindDeployment, kindSet, kindPool} {
		d := drawn(t, newTest(Config{}), kind, all, "", "")
		c, a := d.template.Capacity, d.template.Allocatable
		if c.MilliCPU != 16000 || c.Memory != 128e9 || c.EphemeralStorage != 100<<30 || c.Extended["nvidia.com/gpu"] != 2 || c.Pods != 200 {
			t.Errorf("%s: capacity %+v", kind, c)
		}
		if a.MilliCPU != 15900 || a.Memory != 128e9-356<<20 || a.Pods != 200 || a.Extended["nvidia.com/gpu"] != 2 {
			t.Errorf("%s: allocatable %+v", kind, a)
		}
		if l := d.template.Labels; l["key1"] != "value1" || l["key2"] != "value2" || l["kubernetes.io/os"] != "linux" || l["kubernetes.io/arch"] != "amd64" {
			t.Errorf("%s: labels %v", kind, l)
		}
		want := []cluster.Taint{{Key: "key1", Value: "value1", Effect: "NoSchedule"}, {Key: "key2", Value: "value2", Effect: "NoExecute"}}
		if !slices.Equal(d.template.Taints, want) {
			t.Errorf("%s: taints %v", kind, d.template.Taints)
		}
		if !maps.Equal(d.template.VolumeLimits, map[string]int64{"ebs.csi.aws.com": 25}) {
			t.Errorf("%s: volume limits %v", kind, d.template.VolumeLimits)
		}
		if d.template.Unknown != "" || len(d.warnings) > 0 {
			t.Errorf("%s: %q %v", kind, d.template.Unknown, d.warnings)
		}
	}
	if d := drawn(t, newTest(Config{}), kindDeployment, map[string]string{keyCPU: "16000m", keyMemory: "128G"}, "", ""); d.template.Capacity.MilliCPU != 16000 || d.template.Capacity.Pods != 110 {
		t.Errorf("16000m and the default of maxPods: %+v", d.template.Capacity)
	}
}

func TestCapacityAnnotationsThatAreWrong(t *testing.T) {
	base := map[string]string{keyCPU: "4", keyMemory: "16Gi", keyDisk: "10Gi"}
	for _, c := range []struct{ key, value, want string }{
		{keyCPU, "four", keyCPU}, {keyMemory, "-1", keyMemory}, {keyDisk, "10 GB", keyDisk}, {keyMaxPods, "1.5", keyMaxPods},
		{keyGPUCount, "2", keyGPUType}, {keyGPUType, "nvidia.com/gpu", keyGPUCount}, {keyLabels, "a=b,c", keyLabels},
		{keyTaints, "a=b:Never", keyTaints}, {keyCSIDriver, "ebs", keyCSIDriver}, {keyDRADriver, "gpu.nvidia.com", keyDRADriver},
	} {
		annotations := maps.Clone(base)
		annotations[c.key] = c.value
		d := drawn(t, newTest(Config{}), kindDeployment, annotations, "", "")
		if !slices.ContainsFunc(d.warnings, func(w string) bool { return strings.Contains(w, c.want) }) {
			t.Errorf("%s=%q: warnings %v, want one about %s", c.key, c.value, d.warnings, c.want)
		}
	}
	if d := drawn(t, newTest(Config{}), kindDeployment, nil, "", ""); !strings.Contains(d.template.Unknown, keyCPU) {
		t.Errorf("nothing is known, and the template says %q", d.template.Unknown)
	}
}

// TestInfrastructureTemplateCapacity: status.capacity and status.nodeInfo of the
// infrastructure template, in both contracts' references; annotations win.
func TestInfrastructureTemplateCapacity(t *testing.T) {
	infra := `{"metadata":{"uid":"u"},"status":{"capacity":{"cpu":"2","memory":"4Gi","ephemeral-storage":"20Gi","nvidia.com/gpu":1,"pods":"50"},"nodeInfo":{"architecture":"arm64","operatingSystem":"linux"}}}`
	for contract, ref := range map[string]string{
		"v1beta1": `{"template":{"spec":{"infrastructureRef":{"kind":"FooMachineTemplate","name":"t","apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1"}}}}`,
		"v1beta2": `{"template":{"spec":{"infrastructureRef":{"kind":"FooMachineTemplate","name":"t","apiGroup":"infrastructure.cluster.x-k8s.io"}}}}`,
	} {
		d := drawn(t, newTest(Config{}), kindDeployment, map[string]string{keyCPU: "3"}, ref, infra)
		c := d.template.Capacity
		if c.MilliCPU != 3000 || c.Memory != 4<<30 || c.EphemeralStorage != 20<<30 || c.Extended["nvidia.com/gpu"] != 1 || c.Pods != 50 {
			t.Errorf("%s: capacity %+v", contract, c)
		}
		if d.template.Labels["kubernetes.io/arch"] != "arm64" {
			t.Errorf("%s: labels %v", contract, d.template.Labels)
		}
	}
}

func TestDefaultArchitecture(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64", "ppc64le", "s390x"} {
		t.Setenv("CAPI_SCALE_ZERO_DEFAULT_ARCH", arch)
		if d := drawn(t, newTest(Config{}), kindDeployment, nil, "", ""); d.template.Labels["kubernetes.io/arch"] != arch {
			t.Errorf("%s: labels %v", arch, d.template.Labels)
		}
	}
}

// TestLabelPropagation: Cluster API carries labels of three domains from a Machine to
// its Node, and those that its own flag names. They stand at spec.template.metadata.labels
// (Cluster Autoscaler read spec.template.spec.metadata.labels: kubernetes/autoscaler#9966).
func TestLabelPropagation(t *testing.T) {
	spec := `{"template":{"metadata":{"labels":{
		"node-role.kubernetes.io/worker":"", "node-restriction.kubernetes.io/a":"1", "x.node-restriction.kubernetes.io/b":"1",
		"node.cluster.x-k8s.io/c":"1", "x.node.cluster.x-k8s.io/d":"1", "example.com/team":"red", "plain":"1",
		"x.node-role.kubernetes.io/e":"1", "notnode.cluster.x-k8s.io/f":"1"}},
		"spec":{"taints":[{"key":"k","value":"v","effect":"NoSchedule"},{"key":"other","effect":"NoExecute"}]}}}`
	base := []string{"beta.kubernetes.io/arch", "beta.kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/os",
		"node-role.kubernetes.io/worker", "node-restriction.kubernetes.io/a", "x.node-restriction.kubernetes.io/b", "node.cluster.x-k8s.io/c", "x.node.cluster.x-k8s.io/d"}
	annotations := map[string]string{keyLabels: "node.cluster.x-k8s.io/c=2,cluster-api/accelerator=gfx-hardware", keyTaints: "k=w:NoSchedule"}
	d := drawn(t, newTest(Config{}), kindDeployment, annotations, spec, "")
	want := slices.Sorted(slices.Values(append(slices.Clone(base), labelAccelerator)))
	if got := slices.Sorted(maps.Keys(d.template.Labels)); !slices.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
	if l := d.template.Labels; l["node.cluster.x-k8s.io/c"] != "2" || l["cluster-api/accelerator"] != "gfx-hardware" {
		t.Errorf("the annotation does not win: %v", l)
	}
	if want := []cluster.Taint{{Key: "other", Effect: "NoExecute"}, {Key: "k", Value: "w", Effect: "NoSchedule"}}; !slices.Equal(d.template.Taints, want) {
		t.Errorf("taints %v, want %v", d.template.Taints, want)
	}
	p := newTest(Config{})
	p.set.sync = []*regexp.Regexp{regexp.MustCompile(`^example\.com/`)}
	if d := drawn(t, p, kindDeployment, nil, spec, ""); d.template.Labels["example.com/team"] != "red" || d.template.Labels["plain"] != "" {
		t.Errorf("with --additional-sync-machine-labels: %v", d.template.Labels)
	}
}

// TestSpecChangesWithTheNode: what changes the next node changes the template's key,
// and nothing else does (kubernetes/autoscaler#6452).
func TestSpecChangesWithTheNode(t *testing.T) {
	p := newTest(Config{})
	spec := func(annotations map[string]string, raw string) string {
		return drawn(t, p, kindDeployment, annotations, raw, "").template.Spec
	}
	one := spec(nil, `{"replicas":1,"template":{"spec":{"version":"v1.36.3"}}}`)
	if one != spec(map[string]string{"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "5"}, `{"replicas":7,"template":{"spec":{"version":"v1.36.3"}}}`) {
		t.Error("replicas or bounds change the template")
	}
	for name, other := range map[string]string{
		"version": spec(nil, `{"template":{"spec":{"version":"v1.37.0"}}}`), "cpu": spec(map[string]string{keyCPU: "2"}, `{"template":{"spec":{"version":"v1.36.3"}}}`),
		"bootstrap": spec(nil, `{"template":{"spec":{"version":"v1.36.3","bootstrap":{"dataSecretName":"x"}}}}`),
	} {
		if other == one {
			t.Errorf("another %s leaves the template the same", name)
		}
	}
}

func TestMachineType(t *testing.T) {
	for want, spec := range map[string]string{
		"m5.large":        `{"template":{"spec":{"instanceType":"m5.large"}}}`,
		"m1.small":        `{"template":{"spec":{"flavor":"m1.small"}}}`,
		"Standard_D2s_v3": `{"template":{"spec":{"vmSize":"Standard_D2s_v3"}}}`,
		"Standard_D4":     `{"template":{"vmSize":"Standard_D4"}}`,
		"c5.large":        `{"awsLaunchTemplate":{"instanceType":"c5.large"}}`,
		"":                `{"template":{"spec":{"flavor":{"filter":{}}}}}`,
	} {
		if got := (&capi.Infrastructure{Spec: json.RawMessage(spec)}).MachineType(); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// TestDescriptionsThatNoNodeCanHave: each is left out and named, and nothing else is lost.
func TestDescriptionsThatNoNodeCanHave(t *testing.T) {
	d := drawn(t, newTest(Config{}), kindDeployment, map[string]string{
		keyCPU: "4", keyMemory: "16Gi", keyLabels: "pool=team/a,ok=yes,a/b/c=x", keyTaints: "t=u/v:NoSchedule,fine=1:NoExecute", keyGPUType: "gpu", keyGPUCount: "1", keyDisk: "20Gi",
	}, `{"template":{"metadata":{"labels":{"node.cluster.x-k8s.io/pool":"b/c","node.cluster.x-k8s.io/ok":"yes"}},"spec":{"taints":[{"key":"x","value":"y/z","effect":"NoSchedule"},{"key":"x","effect":"NoSchedule"}]}}}`, "")
	x := d.template
	if x.Unknown != "" || x.Labels["ok"] != "yes" || x.Labels["node.cluster.x-k8s.io/ok"] != "yes" || x.Labels["pool"] != "" || len(x.Taints) != 2 || len(x.Capacity.Extended) != 0 || x.Capacity.MilliCPU != 4000 {
		t.Errorf("%+v", x)
	}
	for _, says := range []string{`"pool=team/a" is left out: "team/a" cannot be the value of a label`, `"a/b/c=x" is left out`, `"t=u/v:NoSchedule" is left out`, `label node.cluster.x-k8s.io/pool="b/c" of the machine template is left out`,
		"taint x=y/z:NoSchedule of the machine template is left out", keyGPUType + `="gpu" is left out: "gpu" is no name of a resource`} {
		if !slices.ContainsFunc(d.warnings, func(w string) bool { return strings.Contains(w, says) }) {
			t.Errorf("no %q in %q", says, d.warnings)
		}
	}
	if len(d.warnings) != 6 {
		t.Errorf("%q", d.warnings)
	}
}

// TestPoolOverSeveralDomains: the template of a MachinePool tells the zones of which one is picked.
func TestPoolOverSeveralDomains(t *testing.T) {
	size := map[string]string{keyCPU: "4", keyMemory: "16Gi"}
	d := drawn(t, newTest(Config{}), kindPool, size, `{"failureDomains":["b","a"]}`, "")
	if !slices.Equal(d.template.Zones, []string{"a", "b"}) || !slices.Equal(d.template.ZoneLabels, []string{"topology.kubernetes.io/zone"}) {
		t.Errorf("%+v", d.template)
	}
	if d := drawn(t, newTest(Config{}), kindPool, size, `{"failureDomains":["b"]}`, ""); len(d.template.Zones) != 0 {
		t.Errorf("%+v", d.template)
	}
}

// TestAcceleratorLabel: Cluster Autoscaler's label of nodes with GPUs is a label like any other. Where
// nothing tells the devices, it is named with what to add; the annotations, the infrastructure
// template or a device of another name tell them.
func TestAcceleratorLabel(t *testing.T) {
	size := map[string]string{keyCPU: "4", keyMemory: "16Gi", keyDisk: "20Gi"}
	on := func(more map[string]string) map[string]string {
		out := maps.Clone(size)
		maps.Copy(out, more)
		return out
	}
	labelled := on(map[string]string{keyLabels: labelAccelerator + "=gfx-hardware"})
	infra := `{"metadata":{"uid":"u"},"status":{"capacity":{"amd.com/gpu":1}}}`
	onTemplate := `{"template":{"metadata":{"labels":{"cluster-api/accelerator":"gfx-hardware"}}}}`
	for name, c := range map[string]struct {
		annotations map[string]string
		spec, infra string
		warns       bool
	}{
		"the label alone":                   {labelled, "", "", true},
		"on the machines' template":         {size, onTemplate, "", true},
		"the devices are annotated":         {on(map[string]string{keyLabels: labelAccelerator + "=x", keyGPUType: "nvidia.com/gpu", keyGPUCount: "2"}), "", "", false},
		"the infrastructure template tells": {labelled, "", infra, false},
		"no label":                          {size, "", "", false},
		"a count of none":                   {on(map[string]string{keyLabels: labelAccelerator + "=x", keyGPUType: "nvidia.com/gpu"}), "", "", true},
	} {
		d := drawn(t, newTest(Config{}), kindDeployment, c.annotations, c.spec, c.infra)
		told := slices.ContainsFunc(d.warnings, func(w string) bool {
			return strings.Contains(w, "label "+labelAccelerator+"=") && strings.Contains(w, keyGPUType) && strings.Contains(w, keyGPUCount)
		})
		if told != c.warns || d.template.Unknown != "" {
			t.Errorf("%s: %q, %q", name, d.warnings, d.template.Unknown)
		}
	}
	if d := drawn(t, newTest(Config{}), kindDeployment, labelled, "", ""); d.template.Labels[labelAccelerator] != "gfx-hardware" {
		t.Errorf("pods that select the label do not count on it: %v", d.template.Labels)
	}
}
