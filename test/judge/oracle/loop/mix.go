package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const (
	zoneKey  = corev1.LabelTopologyZone
	hostKey  = corev1.LabelHostname
	provider = "disk.example.com"
)

// Mix is what one seed asks for: groups to buy from, machines that are there already,
// and pods.
type Mix struct {
	Seed    uint64
	Groups  []cluster.NodeGroup
	Nodes   []int // the group of each machine that is there from the start
	Pods    []*corev1.Pod
	Claims  []*corev1.PersistentVolumeClaim
	Classes []*storagev1.StorageClass
	// Impossible counts the pods that no group can help.
	Impossible int
}

type maker struct {
	*rand.Rand
	m     *Mix
	ns    string
	zones []string
}

// NewMix makes the mix of a seed, its objects in a namespace of their own.
func NewMix(seed uint64, namespace string) *Mix {
	g := &maker{Rand: rand.New(rand.NewPCG(seed, 0x100f)), m: &Mix{Seed: seed}, ns: namespace, zones: []string{"a", "b", "c"}[:1]}
	g.zones = []string{"a", "b", "c"}[:1+g.IntN(3)]
	for _, zone := range g.zones {
		for i := range 1 + g.IntN(2) {
			g.m.Groups = append(g.m.Groups, g.group(zone, i))
		}
	}
	for range g.IntN(4) {
		g.m.Nodes = append(g.m.Nodes, g.IntN(len(g.m.Groups)))
	}
	later := storagev1.VolumeBindingWaitForFirstConsumer
	for _, zone := range append([]string{""}, g.zones...) {
		c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: g.ns + "-any"}, Provisioner: provider, VolumeBindingMode: &later}
		if zone != "" {
			c.Name = g.ns + "-" + zone
			c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zoneKey, Values: []string{zone}}}}}
		}
		g.m.Classes = append(g.m.Classes, c)
	}
	for i := range 3 + g.IntN(5) {
		g.workload(i)
	}
	g.Shuffle(len(g.m.Pods), func(i, j int) { g.m.Pods[i], g.m.Pods[j] = g.m.Pods[j], g.m.Pods[i] })
	return g.m
}

func (g *maker) group(zone string, i int) cluster.NodeGroup {
	cpu := []int64{2, 4, 8}[g.IntN(3)]
	name := fmt.Sprintf("%s-%s%d", g.ns, zone, i)
	t := cluster.Template{
		Spec:         name,
		Labels:       map[string]string{zoneKey: zone, corev1.LabelTopologyRegion: "r", "disk": []string{"ssd", "hdd"}[g.IntN(2)], corev1.LabelOSStable: "linux"},
		Allocatable:  cluster.Resources{MilliCPU: cpu*1000 - 80, Memory: cpu << 31, Pods: []int64{110, 110, 8}[g.IntN(3)]},
		VolumeLimits: map[string]int64{provider: int64(2 + g.IntN(4))},
	}
	if g.IntN(5) == 0 {
		t.Taints = []cluster.Taint{{Key: "dedicated", Value: "x", Effect: "NoSchedule"}}
	}
	t.Capacity = t.Allocatable
	return cluster.NodeGroup{ID: cluster.GroupID(name), Max: 30, Template: t, Price: float64(cpu) * (0.04 + 0.02*g.Float64())}
}

// workload adds replicas of one kind of pod.
func (g *maker) workload(i int) {
	app := fmt.Sprintf("app%d", i)
	spec := corev1.PodSpec{
		AutomountServiceAccountToken:  new(false),
		TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse([]string{"100m", "250m", "500m", "900m"}[g.IntN(4)]),
			corev1.ResourceMemory: resource.MustParse([]string{"64Mi", "256Mi", "1Gi"}[g.IntN(3)]),
		}}}},
	}
	n := 1 + g.IntN(8)
	impossible := g.features(&spec, app, &n)
	if impossible {
		g.m.Impossible += n
	}
	for k := range n {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.ns, Name: fmt.Sprintf("%s-%d", app, k), Labels: map[string]string{"app": app, "version": fmt.Sprint(1 + g.IntN(2))}}, Spec: *spec.DeepCopy()}
		g.m.Pods = append(g.m.Pods, p)
		for v := range p.Spec.Volumes {
			if c := p.Spec.Volumes[v].PersistentVolumeClaim; c != nil && c.ClaimName == "own" {
				c.ClaimName = "own-" + p.Name
				g.m.Claims = append(g.m.Claims, g.claim(c.ClaimName, corev1.ReadWriteOnce))
			}
		}
	}
}

// features gives a workload up to two of the features that tie pods to places and to
// each other. It tells whether no machine can be had for the pods.
func (g *maker) features(spec *corev1.PodSpec, app string, n *int) (impossible bool) {
	mine := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	if g.IntN(4) == 0 {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists})
	}
	for range g.IntN(3) {
		switch g.IntN(12) {
		case 0, 1:
			g.spread(spec, zoneKey, mine)
		case 2:
			g.spread(spec, hostKey, mine)
		case 3:
			anti(spec, corev1.PodAffinityTerm{TopologyKey: hostKey, LabelSelector: mine})
		case 4: // one of each zone at most
			anti(spec, corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: mine})
			*n = min(*n, 1+g.IntN(4))
		case 5:
			near(spec, corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: mine})
		case 6:
			near(spec, corev1.PodAffinityTerm{TopologyKey: []string{zoneKey, hostKey}[g.IntN(2)], LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app0"}}})
		case 7:
			anti(spec, corev1.PodAffinityTerm{TopologyKey: hostKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app1"}}, NamespaceSelector: &metav1.LabelSelector{}})
		case 8:
			spec.NodeSelector = map[string]string{"disk": []string{"ssd", "hdd"}[g.IntN(2)]}
		case 9:
			spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8080 + g.IntN(2))}}
			*n = min(*n, 4)
		case 10:
			g.volumes(spec, app)
		case 11:
			if g.IntN(3) == 0 {
				spec.NodeSelector = map[string]string{"nowhere": "at-all"}
				impossible = true
			}
		}
	}
	return impossible
}

func (g *maker) spread(spec *corev1.PodSpec, key string, sel *metav1.LabelSelector) {
	for _, c := range spec.TopologySpreadConstraints {
		if c.TopologyKey == key {
			return
		}
	}
	c := corev1.TopologySpreadConstraint{MaxSkew: int32(1 + g.IntN(2)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: sel.DeepCopy()}
	if g.IntN(3) == 0 {
		c.MinDomains = new(int32(1 + g.IntN(3)))
	}
	if g.IntN(3) == 0 {
		c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
	}
	if g.IntN(4) == 0 {
		c.MatchLabelKeys = []string{"version"}
	}
	spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
}

func anti(spec *corev1.PodSpec, t corev1.PodAffinityTerm) {
	a := affinity(spec)
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, t)
}

func near(spec *corev1.PodSpec, t corev1.PodAffinityTerm) {
	a := affinity(spec)
	if a.PodAffinity == nil {
		a.PodAffinity = &corev1.PodAffinity{}
	}
	a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, t)
}

func affinity(spec *corev1.PodSpec) *corev1.Affinity {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	return spec.Affinity
}

// volumes: a claim for each pod, or one that all share. A workload that has such a claim already gets no second one.
func (g *maker) volumes(spec *corev1.PodSpec, app string) {
	name, shared := "own", (*corev1.PersistentVolumeClaim)(nil)
	if g.IntN(2) == 0 {
		name = "shared-" + app
		shared = g.claim(name, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod}[g.IntN(3)])
	}
	if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
		return
	}
	if shared != nil {
		g.m.Claims = append(g.m.Claims, shared)
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
}

func (g *maker) claim(name string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	class := g.ns + "-" + append([]string{"any"}, g.zones...)[g.IntN(1+len(g.zones))]
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.ns, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{mode},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
}

// node is the Node object of a machine of a group.
func node(g *cluster.NodeGroup, name string) *corev1.Node {
	t := &g.Template
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hostKey: name}}}
	for k, v := range t.Labels {
		n.Labels[k] = v
	}
	n.Spec.ProviderID = "loop:///" + name
	for _, x := range t.Taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: x.Key, Value: x.Value, Effect: corev1.TaintEffect(x.Effect)})
	}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(t.Allocatable.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(t.Allocatable.Memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(t.Allocatable.Pods, resource.DecimalSI),
	}
	n.Status.Capacity = n.Status.Allocatable
	now := metav1.Now()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now}}
	return n
}

// csiNode is what the kubelet of a machine says of the volumes that it can attach.
func csiNode(g *cluster.NodeGroup, name string) *storagev1.CSINode {
	c := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for driver, limit := range g.Template.VolumeLimits {
		c.Spec.Drivers = append(c.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: name, TopologyKeys: []string{zoneKey}, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(limit))}})
	}
	return c
}
