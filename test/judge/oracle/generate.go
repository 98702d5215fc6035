package oracle

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The labels of nodes that worlds are made of.
const (
	zone     = corev1.LabelTopologyZone
	region   = corev1.LabelTopologyRegion
	hostname = corev1.LabelHostname
	rack     = "example.com/rack"
	disk     = "disk"
	cores    = "cores"
	gpu      = "example.com/gpu"
)

var (
	zones       = []string{"a", "b", "c"}
	racks       = []string{"r1", "r2"}
	namespaces  = []string{"prod", "dev", "bare"}
	apps        = []string{"web", "db", "job"}
	topologies  = []string{zone, zone, hostname, hostname, rack, region}
	taintKeys   = []string{"team", "gpu", "spot"}
	effects     = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}
	coreNumbers = []string{"2", "4", "8", "16", "007", "many"}
)

// generator makes one world. Odds are chosen per world, so that some worlds are dense
// in one feature and others mix a little of all.
type generator struct {
	*rand.Rand
	w    *World
	odds map[string]float64
	uids int
	// inTree: some volumes are of the plugins that a CSI driver took over. Every kubelet
	// since 1.31 says so in its CSINode, and fit takes that for granted.
	inTree bool
	// alike: pods are of one namespace and mostly of one app.
	alike bool
}

// features are what the odds are drawn for.
var features = []string{
	"init", "sidecar", "overhead", "podlevel", "extended", "big", "resize",
	"ports", "selector", "affinity", "fields", "tolerations", "taints", "cordon",
	"podAffinity", "podAntiAffinity", "spread", "volumes", "ephemeral", "nominated", "nodeName", "held", "capacity",
}

// Generate makes the world of a seed.
func Generate(seed uint64) *World { return generateAll(seed, false) }

// generateAll gives every second world devices, after all other draws: the worlds of seeds that found something stay what they were.
func generateAll(seed uint64, spread bool) *World {
	w := generate(seed, spread)
	if seed%2 == 1 {
		devicesOf(w, rand.New(rand.NewPCG(seed, 0xd4a)))
	}
	return w
}

// generate makes the world of a seed. With spread, nearly all pods are spread, and other filters seldom refuse one.
func generate(seed uint64, spread bool) *World {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x0bac1e)), w: &World{}, odds: map[string]float64{}}
	for _, f := range features {
		g.odds[f] = []float64{0, 0, 0, 0.02, 0.04, 0.08, 0.15, 0.3}[g.IntN(8)]
	}
	for range g.IntN(3) {
		g.odds[pick(g, features)] = 0.6
	}
	g.odds["held"] = min(g.odds["held"], 0.03)
	if g.one(5) { // spread refuses only where many pods are alike
		g.odds["spread"], g.alike = 0.6, true
	}
	if spread {
		for _, f := range features {
			g.odds[f] /= 8
		}
		g.odds["spread"], g.alike = 0.9, true
	}
	for _, rare := range []string{"big", "fields", "nodeName", "nominated", "ephemeral", "cordon", "resize", "held"} {
		g.odds[rare] /= 5
	}
	g.inTree = g.one(4)
	g.namespaces()
	for i := range 3 + g.IntN(10) {
		g.w.Nodes = append(g.w.Nodes, g.node(i))
	}
	g.storage()
	for i := range g.IntN(21) {
		p := g.pod(fmt.Sprintf("p%d", i), false)
		p.Spec.NodeName = g.w.Nodes[g.IntN(len(g.w.Nodes))].Name
		g.live(p)
		g.w.Pods = append(g.w.Pods, p)
	}
	if g.likely("nominated") {
		for i := range 1 + g.IntN(3) {
			p := g.pod(fmt.Sprintf("n%d", i), false)
			// Filters that PreFilter skipped never hear of nominated pods: whether the
			// anti-affinity or a claim of one counts depends on what else is in the world.
			// fit counts them always.
			p.Spec.Volumes = nil
			if p.Spec.Affinity != nil {
				p.Spec.Affinity.PodAntiAffinity = nil
			}
			p.Status.NominatedNodeName = g.w.Nodes[g.IntN(len(g.w.Nodes))].Name
			g.w.Nominated = append(g.w.Nominated, p)
		}
	}
	for i := range 5 + g.IntN(6) {
		p := g.pod(fmt.Sprintf("w%d", i), true)
		if g.likely("nodeName") {
			p.Spec.NodeName = g.w.Nodes[g.IntN(len(g.w.Nodes))].Name
		}
		if len(g.w.Nominated) > 0 {
			// An empty selector counts no pod, but every nominated pod (updateWithPod).
			for i := range p.Spec.TopologySpreadConstraints {
				if c := &p.Spec.TopologySpreadConstraints[i]; c.LabelSelector != nil && len(c.LabelSelector.MatchLabels)+len(c.LabelSelector.MatchExpressions) == 0 {
					c.LabelSelector.MatchLabels = map[string]string{"app": pick(g, apps)}
				}
			}
		}
		g.w.Waiting = append(g.w.Waiting, p)
	}
	g.attachments()
	return g.w
}

func (g *generator) likely(feature string) bool { return g.Float64() < g.odds[feature] }

func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

func some[T any](g *generator, from []T, least int) []T {
	n := least + g.IntN(len(from)-least+1)
	out := make([]T, 0, n)
	for _, i := range g.Perm(len(from))[:n] {
		out = append(out, from[i])
	}
	return out
}

func (g *generator) uid() types.UID {
	g.uids++
	return types.UID(fmt.Sprintf("uid-%d", g.uids))
}

func (g *generator) namespaces() {
	for _, name := range namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
		if name != "bare" {
			ns.Labels["env"] = name
		}
		if g.one(3) {
			ns.Labels["tier"] = pick(g, []string{"x", "y"})
		}
		g.w.Namespaces = append(g.w.Namespaces, ns)
	}
}

func (g *generator) node(i int) *corev1.Node {
	name := fmt.Sprintf("n%d", i)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: g.uid(), Labels: map[string]string{}}}
	set := func(odds int, key, value string) {
		if g.IntN(100) < odds {
			n.Labels[key] = value
		}
	}
	z := pick(g, zones)
	set(92, hostname, name)
	set(90, zone, z)
	set(85, region, map[string]string{"a": "east", "b": "east", "c": "west"}[z])
	set(15, corev1.LabelFailureDomainBetaZone, z)
	if g.inTree {
		set(80, ebsZone, z)
	}
	set(75, rack, pick(g, racks))
	set(60, disk, pick(g, []string{"ssd", "hdd"}))
	set(60, cores, pick(g, coreNumbers))
	set(5, hostname, "n0") // two nodes may claim one name
	for range 2 {
		if g.likely("taints") {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: pick(g, taintKeys), Value: pick(g, []string{"", "a", "b"}), Effect: pick(g, effects)})
		}
	}
	if g.likely("cordon") {
		n.Spec.Unschedulable = true
		if g.one(2) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(pick(g, []string{"1", "4", "8", "8", "3920m", "7999500u"})),
		corev1.ResourceMemory: resource.MustParse(pick(g, []string{"2Gi", "8Gi", "16Gi", "16Gi", "7500000k"})),
		corev1.ResourcePods:   resource.MustParse(pick(g, []string{"110", "110", "110", "110", "4", "1"})),
	}
	if !g.one(8) {
		n.Status.Allocatable[corev1.ResourceEphemeralStorage] = resource.MustParse(pick(g, []string{"10Gi", "50Gi"}))
	}
	if !g.one(3) {
		n.Status.Allocatable[gpu] = resource.MustParse(pick(g, []string{"0", "1", "4"}))
	}
	if g.one(2) {
		n.Status.Allocatable["hugepages-2Mi"] = resource.MustParse(pick(g, []string{"0", "64Mi", "256Mi"}))
	}
	n.Status.Capacity = n.Status.Allocatable
	return n
}

// pod makes a pod in the form in which the API server would store it.
func (g *generator) pod(name string, waiting bool) *corev1.Pod {
	from := namespaces
	if g.alike {
		from = namespaces[:1]
	}
	if g.one(200) {
		from = []string{"gone"} // a namespace that the informer does not have (any more)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(g, from), Name: name, UID: g.uid(), Labels: map[string]string{}}}
	if !g.one(6) {
		p.Labels["app"] = pick(g, apps)
		if g.alike && !g.one(4) {
			p.Labels["app"] = apps[0]
		}
	}
	if !g.one(3) {
		p.Labels["version"] = pick(g, []string{"1", "2"})
	}
	if g.one(3) {
		p.Labels["tier"] = pick(g, []string{"x", "y"})
	}
	p.Spec.SchedulerName = corev1.DefaultSchedulerName
	if g.one(4) {
		p.Spec.Priority = new(int32(g.IntN(3) * 100))
	}
	g.containers(p, waiting)
	if g.likely("held") { // features that a node must declare
		if g.one(2) {
			p.Spec.HostNetwork, p.Spec.HostUsers = true, new(false)
		} else {
			p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
		}
	}
	g.shape(p)
	g.relations(p)
	g.claims(p)
	p.Status.Phase = corev1.PodPending
	mergeLabelKeys(p)
	if g.one(20) || g.alike && g.one(4) { // labels may change when the merged selectors are stored already
		p.Labels["version"] = pick(g, []string{"1", "2", "3"})
	}
	return p
}

// live gives a bound pod a life of its own: phases, deletion, a resize under way.
func (g *generator) live(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	if g.one(12) {
		p.DeletionTimestamp = &metav1.Time{}
		p.DeletionTimestamp.Time = epoch
	}
	if g.one(15) {
		p.Status.Phase = pick(g, []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending})
	}
	if !g.likely("resize") {
		return
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, AllocatedResources: g.requests(2), Resources: &corev1.ResourceRequirements{Requests: g.requests(2)}})
	}
	if g.one(2) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: pick(g, []string{corev1.PodReasonInfeasible, corev1.PodReasonDeferred})})
	}
}

// requests draws what one container asks for; share is how many such containers a
// small node should hold.
func (g *generator) requests(share int) corev1.ResourceList {
	r := corev1.ResourceList{}
	amounts := [][2]string{{"100m", "64Mi"}, {"250m", "300M"}, {"500m", "1Gi"}, {"1", "512Mi"}, {"150500u", "1500Ki"}}
	if share > 2 {
		amounts = amounts[:2]
	}
	if !g.one(5) {
		r[corev1.ResourceCPU] = resource.MustParse(pick(g, amounts)[0])
	}
	if !g.one(4) {
		r[corev1.ResourceMemory] = resource.MustParse(pick(g, amounts)[1])
	}
	if g.one(12) {
		r[corev1.ResourceEphemeralStorage] = resource.MustParse(pick(g, []string{"1Gi", "6Gi", "20Gi"}))
	}
	if g.likely("big") {
		r[pick(g, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory})] = resource.MustParse("16G")
	}
	if g.likely("extended") {
		r[gpu] = resource.MustParse(pick(g, []string{"0", "1", "1", "2"}))
	}
	if g.likely("extended") && g.one(4) {
		r["hugepages-2Mi"] = resource.MustParse(pick(g, []string{"32Mi", "128Mi"}))
	}
	if g.likely("extended") && g.one(6) {
		r["example.com/none"] = resource.MustParse(pick(g, []string{"0", "1"}))
	}
	return r
}

func (g *generator) containers(p *corev1.Pod, waiting bool) {
	share := 2
	if !waiting {
		share = 4
	}
	always := corev1.ContainerRestartPolicyAlways
	for i := range 1 + g.IntN(2) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Resources: corev1.ResourceRequirements{Requests: g.requests(share)}}
		if g.likely("ports") {
			c.Ports = append(c.Ports, g.port())
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	for i := range 3 {
		c := corev1.Container{Name: fmt.Sprintf("i%d", i)}
		switch {
		case g.likely("sidecar"):
			c.RestartPolicy = &always
		case !g.likely("init"):
			continue
		}
		c.Resources.Requests = g.requests(share)
		if g.likely("ports") {
			c.Ports = append(c.Ports, g.port())
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if g.likely("overhead") {
		p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("120Mi")}
	}
	if g.likely("podlevel") {
		r := corev1.ResourceList{}
		if g.one(2) {
			r[corev1.ResourceCPU] = resource.MustParse(pick(g, []string{"600m", "1500m"}))
		}
		if g.one(2) {
			r[corev1.ResourceMemory] = resource.MustParse(pick(g, []string{"700Mi", "2Gi"}))
		}
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: r}
	}
}

func (g *generator) port() corev1.ContainerPort {
	return corev1.ContainerPort{
		ContainerPort: 80, HostPort: pick(g, []int32{0, 8080, 8080, 8081}),
		HostIP:   pick(g, []string{"", "", "0.0.0.0", "127.0.0.1", "10.0.0.1", "::"}),
		Protocol: pick(g, []corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP}),
	}
}
