package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// pool is a node group of its own for one case: its nodes carry case=<name>, in the
// tags and in the kubelets' labels, and nothing else is scheduled there.
type pool struct {
	name, typ string
	max       int
	labels    map[string]string
	taints    []string // key=value:effect
	tags      map[string]string
	zones     []string // default all
	spot      bool     // bought on the spot market
}

const nodeTemplate = "k8s.io/cluster-autoscaler/node-template/"

// pool makes the group and waits until the agent knows it.
func (s *scene) pool(p pool) {
	s.t.Helper()
	tags := map[string]string{"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/demo": ""}
	args := []string{"userdata", "render", "--join-file", s.w.WorkerEnv()}
	labels := map[string]string{"case": p.name}
	for k, v := range p.labels {
		labels[k] = v
	}
	for k, v := range labels {
		tags[nodeTemplate+"label/"+k] = v
		args = append(args, "--label", k+"="+v)
	}
	for _, t := range p.taints {
		key, rest, _ := strings.Cut(t, "=")
		tags[nodeTemplate+"taint/"+key] = rest
		args = append(args, "--taint", t)
	}
	for k, v := range p.tags {
		tags[k] = v
	}
	data, err := exec.CommandContext(s.t.Context(), s.binary, args...).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	if p.typ == "" {
		p.typ = "m5.xlarge"
	}
	s.w.Cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: p.name, InstanceType: p.typ, UserData: string(data), HTTPTokens: "required", HopLimit: 1, Spot: p.spot})
	err = s.w.Cloud.PutGroup(aws.Group{Name: p.name, Max: p.max, LaunchTemplate: p.name, Zones: p.zones,
		ProtectNew: true, KeepTags: true, Tags: tags, SuspendedProcesses: []string{"AZRebalance"}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.w.WaitForGroup(s.t.Context(), s.binary, p.name); err != nil {
		s.t.Fatal(err)
	}
}

// desired is the target of a group.
func (s *scene) desired(name string) int {
	g, _ := s.w.Cloud.Group(name)
	return g.Desired
}

// asked are the targets that the agent asked for, of one group and in order.
func (s *scene) asked(group string) []string {
	var out []string
	for _, c := range s.resizes() {
		if c.Params["AutoScalingGroupName"] == group {
			out = append(out, c.Params["DesiredCapacity"])
		}
	}
	return out
}

// wants checks the targets that the agent asked for.
func (s *scene) wants(group string, targets ...string) {
	s.t.Helper()
	if got := s.asked(group); !slices.Equal(got, targets) {
		s.t.Errorf("group %s: the agent asked for %v, want %v", group, got, targets)
	}
}

// putOn makes a deployment whose pods go to the nodes of a case.
func (s *scene) putOn(name, group string, n int, cpu, memory string, mutate ...func(*corev1.PodSpec)) {
	s.t.Helper()
	spec := s.spec(group, cpu, memory, mutate...)
	replicas := int32(n)
	labels := map[string]string{"app": name}
	_, err := s.client.AppsV1().Deployments("default").Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.remove(name) })
}

func (s *scene) spec(group, cpu, memory string, mutate ...func(*corev1.PodSpec)) corev1.PodSpec {
	grace := int64(0)
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers:                    []corev1.Container{{Name: "c", Image: "nginx", Resources: requests(cpu, memory)}},
	}
	if group != "" {
		spec.NodeSelector = map[string]string{"case": group}
	}
	for _, m := range mutate {
		m(&spec)
	}
	return spec
}

func (s *scene) remove(name string) {
	p := metav1.DeletePropagationBackground
	_ = s.client.AppsV1().Deployments("default").Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &p})
}

// waiting counts the pods of a deployment that kube-scheduler has found no place for.
func (s *scene) waiting(name string) (n int) {
	s.t.Helper()
	pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range pods.Items {
		if unschedulable(&pods.Items[i]) {
			n++
		}
	}
	return n
}

func (s *scene) runs(name string, n int) time.Duration {
	s.t.Helper()
	return s.until(fmt.Sprintf("%s: %d Running", name, n), func() bool { return s.running(name) == n })
}

// TestScaleUpCases are scale-ups as clusters have them, in one world. Each case has
// groups and nodes of its own.
func TestScaleUpCases(t *testing.T) {
	t.Parallel()         // it mostly waits
	var thin atomic.Bool // machines whose kernel shows less memory than the agent assumes
	root := newScene(t, func(o *world.Options) {
		o.Tune = func(c *machine.Config) {
			if thin.Load() {
				c.Capacity.Memory -= c.Capacity.Memory / 20
			}
		}
	})
	root.start("AUTOSCALER_SCALING_UNNEEDED_FOR=1h", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=2s", "AUTOSCALER_SCALING_BACKOFF_INITIAL=20s", "AUTOSCALER_OBSERVE_SLOW=2s")
	if _, err := root.w.RenderUserData(t.Context(), root.binary); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		run  func(*scene)
	}{
		{"a mixed burst", mixedBurst},
		{"operators and taints", operatorsAndTaints},
		{"at the maximum, then the next group", maximumThenNext},
		{"no capacity, then the next group", stockoutThenNext},
		{"a quota", quotaHolds},
		{"DaemonSets and host ports", daemonsAndPorts},
		{"init containers and sidecars", initAndSidecars},
		{"a second burst while the first is coming", secondBurst},
		{"what is held does not block", heldDoesNotBlock},
		{"replicas keep away from each other", keepAway},
		{"replicas are spread over zones", spreadOverZones},
		{"a claim waits for its first consumer", claimWaits},
		{"somebody changes the target", somebodyElse},
		{"the cloud takes a machine back", takenBack},
		{"nodes are not what the tags say", wrongTags},
		{"a machine is smaller than assumed", func(s *scene) {
			thin.Store(true)
			defer thin.Store(false)
			smallerThanAssumed(s)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := *root
			s.t = t
			s.w.Cloud.ResetCalls()
			tc.run(&s)
		})
	}
}

// mixedBurst: several deployments at once are one call of the fewest machines, as an
// exhaustive search finds them, or of one more: the scheduler places pods one by one and
// leaves some on the tightest packing, so that the purchase is judged by what it binds. The group comes when all pods wait: on a
// busy host the agent would decide between two deployments.
func mixedBurst(s *scene) {
	sizes, counts := [][2]int{{1900, 1024}, {1300, 3072}, {600, 512}, {100, 9216}}, []int{5, 6, 8, 4}
	for i, n := range counts {
		s.putOn(fmt.Sprintf("mixed-%d", i), "mixed", n, fmt.Sprintf("%dm", sizes[i][0]), fmt.Sprintf("%dMi", sizes[i][1]))
	}
	for i, n := range counts {
		s.until(fmt.Sprintf("mixed-%d: %d wait", i, n), func() bool { return s.waiting(fmt.Sprintf("mixed-%d", i)) == n })
	}
	s.pool(pool{name: "mixed", max: 30})
	for i, n := range counts {
		s.runs(fmt.Sprintf("mixed-%d", i), n)
	}
	// m5.xlarge: 4 cores less 200m, 16 GiB less 7.5 % and what is reserved.
	want := fewest(sizes, counts, [2]int{3800, 14500})
	got := s.asked("mixed")
	if len(got) == 0 || got[0] != strconv.Itoa(want) && (len(got) > 1 || got[0] != strconv.Itoa(want+1)) {
		s.t.Errorf("the agent asked for %v, want %d first, or %d once", got, want, want+1)
	}
}

// fewest is the least number of machines of one room for pods of some sizes, by
// exhaustive search with memory. It shares nothing with the agent.
func fewest(sizes [][2]int, counts []int, room [2]int) int {
	known := map[string]int{}
	var solve func(left []int) int
	solve = func(left []int) int {
		key := fmt.Sprint(left)
		if n, ok := known[key]; ok {
			return n
		}
		if !slices.ContainsFunc(left, func(n int) bool { return n > 0 }) {
			return 0
		}
		best := 1 << 30
		var fill func(i int, rest []int, cpu, memory int, any bool)
		fill = func(i int, rest []int, cpu, memory int, any bool) {
			if i == len(sizes) {
				if any {
					best = min(best, 1+solve(rest))
				}
				return
			}
			for n := 0; n <= left[i] && n*sizes[i][0] <= cpu && n*sizes[i][1] <= memory; n++ {
				next := slices.Clone(rest)
				next[i] -= n
				fill(i+1, next, cpu-n*sizes[i][0], memory-n*sizes[i][1], any || n > 0)
			}
		}
		fill(0, slices.Clone(left), room[0], room[1], false)
		known[key] = best
		return best
	}
	return solve(counts)
}

func needs(rs ...corev1.NodeSelectorRequirement) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: rs}}}}}
	}
}

func needsField(op corev1.NodeSelectorOperator, node string) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: op, Values: []string{node}}}}}}}}
	}
}

// operatorsAndTaints: one machine for all pods that may go there; the others are held
// by name with the scheduler's words.
func operatorsAndTaints(s *scene) {
	s.pool(pool{name: "aff", max: 5, labels: map[string]string{"cores": "8", "disk": "ssd"}, taints: []string{"dedicated=batch:NoSchedule"}})
	may := func(p *corev1.PodSpec) {
		p.Tolerations = append(p.Tolerations, corev1.Toleration{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule})
	}
	r := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	s.putOn("aff-between", "aff", 1, "500m", "16Mi", may, needs(r("cores", "Gt", "4"), r("cores", "Lt", "9")))
	s.putOn("aff-in", "aff", 1, "500m", "16Mi", may, needs(r("disk", "In", "nvme", "ssd"), r("gpu", "DoesNotExist"), r("disk", "Exists")))
	s.putOn("aff-field", "aff", 1, "500m", "16Mi", may, needsField("NotIn", "other"))
	s.putOn("aff-notin", "aff", 1, "500m", "16Mi", may, needs(r("disk", "NotIn", "ssd")))
	s.putOn("aff-gt", "aff", 1, "500m", "16Mi", may, needs(r("cores", "Gt", "8")))
	s.putOn("aff-other", "aff", 1, "500m", "16Mi", may, needsField("In", "other"))
	s.putOn("aff-taint", "aff", 1, "500m", "16Mi")
	for _, name := range []string{"aff-between", "aff-in", "aff-field"} {
		s.runs(name, 1)
	}
	for _, name := range []string{"aff-notin", "aff-gt", "aff-other"} {
		s.journal("held pod default/"+name, "didn't match")
	}
	s.journal("held pod default/aff-taint", "untolerated taint {dedicated: batch}")
	s.wants("aff", "1")
}

// maximumThenNext: what the best group may not hold goes to the next in the same
// round; what none may hold is held with the names of both.
func maximumThenNext(s *scene) {
	s.pool(pool{name: "max-a", max: 2, labels: map[string]string{"pair": "max"}})
	s.pool(pool{name: "max-b", max: 3, typ: "m5.2xlarge", labels: map[string]string{"pair": "max"}})
	s.putOn("max", "", 20, "1500m", "16Mi", func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pair": "max"} })
	s.runs("max", 19) // 2 on each m5.xlarge, 5 on each m5.2xlarge
	s.journal("held pod default/max", "group max-a: at its maximum of 2", "group max-b: at its maximum of 3")
	s.wants("max-a", "2")
	s.wants("max-b", "3")
}

func stockoutThenNext(s *scene) {
	s.pool(pool{name: "cap-a", max: 5, typ: "c5.xlarge", labels: map[string]string{"pair": "cap"}})
	s.pool(pool{name: "cap-b", max: 5, labels: map[string]string{"pair": "cap"}})
	s.w.Cloud.NoCapacity("*", "c5.xlarge")
	s.putOn("cap", "", 6, "1500m", "3Gi", func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pair": "cap"} })
	s.journal("held group cap-a", "backed off", "capacity", "c5.xlarge")
	s.runs("cap", 6)
	s.wants("cap-a", "3")
	s.wants("cap-b", "3")
}

func quotaHolds(s *scene) {
	s.pool(pool{name: "quota", max: 20})
	used := 0
	for _, i := range s.w.Cloud.Instances() {
		if i.State == "running" || i.State == "pending" {
			used += i.Spec.VCPU
		}
	}
	s.w.Cloud.Quota(used + 8)
	s.putOn("quota", "quota", 100, "100m", "16Mi") // 3 machines, of which 2 may start
	s.journal("held group quota", "quota", "vCPU limit")
	s.runs("quota", 76)
	s.w.Cloud.Quota(0)
	s.runs("quota", 100)
	s.wants("quota", "3")
}

func hostPort(port int32) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: port}}
	}
}

// daemonsAndPorts: a DaemonSet's share and port are counted for machines that do not
// exist yet.
func daemonsAndPorts(s *scene) {
	labels := map[string]string{"app": "daemon"}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "daemon"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: s.spec("daemon", "800m", "1Gi", hostPort(9100))}}}
	if _, err := s.client.AppsV1().DaemonSets("default").Create(s.t.Context(), set, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.pool(pool{name: "daemon", max: 10})
	s.putOn("beside", "daemon", 9, "1", "16Mi") // 3 on a machine of 3.8 less 0.8 cores
	s.putOn("port", "daemon", 2, "0", "16Mi", hostPort(9200))
	s.putOn("taken", "daemon", 1, "0", "16Mi", hostPort(9100))
	s.runs("beside", 9)
	s.runs("port", 2)
	s.journal("held pod default/taken", "free ports")
	s.wants("daemon", "3")
}

func initAndSidecars(s *scene) {
	s.pool(pool{name: "init", max: 10})
	always := corev1.ContainerRestartPolicyAlways
	s.putOn("init", "init", 6, "500m", "16Mi", func(p *corev1.PodSpec) {
		p.InitContainers = []corev1.Container{
			{Name: "side", Image: "x", RestartPolicy: &always, Resources: requests("200m", "16Mi")},
			{Name: "first", Image: "x", Resources: requests("1500m", "16Mi")},
		}
	}) // 200m + max(500m, 1500m): 2 on a machine
	s.runs("init", 6)
	s.wants("init", "3")
}

// secondBurst: what is coming is counted once, and what is there is used first.
func secondBurst(s *scene) {
	s.pool(pool{name: "second", max: 20})
	s.putOn("second-1", "second", 50, "100m", "16Mi")
	s.until("the first call", func() bool { return s.desired("second") == 2 })
	s.putOn("second-2", "second", 60, "100m", "16Mi") // 110 of 38 on each
	s.runs("second-1", 50)
	s.runs("second-2", 60)
	s.putOn("second-3", "second", 4, "100m", "16Mi")
	s.runs("second-3", 4)
	s.wants("second", "2", "3")
}

// takenBack: a spot machine gets its notice. Its pods have left before it ends, the agent
// neither terminates it nor buys another one, and they run on the one in its place.
func takenBack(s *scene) {
	s.pool(pool{name: "spot", max: 4, spot: true})
	s.putOn("spot-web", "spot", 2, "2500m", "16Mi") // one on each
	s.runs("spot-web", 2)
	on := func(node string) (pods int) {
		list, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=spot-web", FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return -1
		}
		return len(list.Items)
	}
	var node corev1.Node
	for _, n := range s.nodes() {
		if n.Labels["case"] == "spot" {
			node = n
		}
	}
	id := node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:]
	if on(node.Name) != 1 {
		s.t.Fatalf("%d pods on node %q", on(node.Name), node.Name)
	}
	s.w.Cloud.ResetCalls()
	if err := s.w.Cloud.Interrupt(id); err != nil {
		s.t.Fatal(err)
	}
	took := s.until("its pod has left", func() bool { return on(node.Name) == 0 })
	s.t.Logf("the pod had left %s after the notice", took.Round(10*time.Millisecond))
	s.journal("evict default/spot-web", node.Name)
	s.journal("cordon "+node.Name, "D23", "marked-for-termination")
	now, err := s.client.CoreV1().Nodes().Get(s.t.Context(), node.Name, metav1.GetOptions{})
	if err != nil || !now.Spec.Unschedulable || !slices.ContainsFunc(now.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "ToBeDeletedByClusterAutoscaler" }) {
		s.t.Errorf("%v, %+v", err, now.Spec)
	}
	s.explains("explain node "+node.Name, "it goes", "D23", "spot interruption notice")
	if err := s.w.Cloud.TerminateInstance(id); err != nil { // which fails for one that is gone
		s.t.Fatal(err)
	}
	s.until("both run again", func() bool { return s.running("spot-web") == 2 && on(node.Name) == 0 })
	if n := len(s.calls("TerminateInstanceInAutoScalingGroup")); n != 0 || s.desired("spot") != 2 || len(s.asked("spot")) != 0 {
		s.t.Errorf("%d terminations, target %d, asked for %v", n, s.desired("spot"), s.asked("spot"))
	}
}

// heldDoesNotBlock: what the agent does not judge, and what no machine would help, is
// held by name and keeps nothing else waiting.
func heldDoesNotBlock(s *scene) {
	s.pool(pool{name: "held", max: 20})
	none := "none"
	_, err := s.client.ResourceV1().ResourceClaims("default").Create(s.t.Context(), &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: none},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.net"}}}}}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.putOn("held-device", "held", 1, "100m", "16Mi", func(p *corev1.PodSpec) {
		p.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &none}}
	})
	s.putOn("held-volume", "held", 1, "100m", "16Mi", func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{claimed(none)} })
	s.putOn("held-gated", "held", 3, "1", "16Mi", func(p *corev1.PodSpec) {
		p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.net/wait"}}
	})
	s.putOn("held-big", "held", 2, "3900m", "16Mi")
	s.putOn("plain", "held", 3, "1", "16Mi")
	s.runs("plain", 3)
	s.journal("held pod default/held-device", "device class gpu.example.net does not exist")
	s.journal("held pod default/held-volume", "persistentvolumeclaim", "not found")
	s.journal("held pod default/held-big", "insufficient cpu")
	if said := s.said("held pod default/held-device", "not serve"); said != "" {
		s.t.Errorf("while the objects are being read: %s", said)
	}
	s.wants("held", "1")
}

// somebodyElse raises the target in between: what comes by it is counted.
func somebodyElse(s *scene) {
	s.pool(pool{name: "human", max: 20})
	human := func(target int) {
		g, _ := s.w.Cloud.Group("human")
		g.Group.Desired = target
		if err := s.w.Cloud.PutGroup(g.Group); err != nil {
			s.t.Fatal(err)
		}
	}
	s.putOn("human-1", "human", 30, "100m", "16Mi")
	s.runs("human-1", 30)
	human(3)
	s.putOn("human-2", "human", 60, "100m", "16Mi") // 90 fit the three
	s.runs("human-2", 60)
	s.wants("human", "1")
	s.putOn("human-3", "human", 60, "100m", "16Mi") // 150 need a fourth
	s.until("the fourth", func() bool { return s.desired("human") == 4 })
	s.runs("human-3", 60)
	s.wants("human", "1", "4")
}

// wrongTags: a label that is promised and not there, and a taint that is there and
// not promised, cost one purchase and end in a message, not at the maximum.
func wrongTags(s *scene) {
	const soon = nodeTemplate + "autoscaling-options/maxnodeprovisiontime" // what nodes show is passing until then
	s.pool(pool{name: "label", max: 8, tags: map[string]string{nodeTemplate + "label/promised": "yes", soon: "20s"}})
	s.pool(pool{name: "taint", max: 8, taints: []string{"silent=x:NoSchedule"}, tags: map[string]string{soon: "20s"}})
	s.w.Cloud.RemoveTag("taint", nodeTemplate+"taint/silent")
	<-time.After(4 * time.Second) // until the agent has read the tags
	s.putOn("label", "label", 2, "1", "16Mi", func(p *corev1.PodSpec) { p.NodeSelector["promised"] = "yes" })
	s.putOn("taint", "taint", 2, "1", "16Mi")
	s.journal("group=label", "promised=yes", "--label")
	s.journal("group=taint", "silent=x:NoSchedule", "add the tag")
	<-time.After(5 * time.Second) // in which an agent that does not learn buys again
	s.wants("label", "1")
	s.wants("taint", "1")
}

// smallerThanAssumed: a pod that fits the assumed size and not the real one buys one
// machine, and none again when that machine has gone.
func smallerThanAssumed(s *scene) {
	s.pool(pool{name: "thin", max: 8, tags: map[string]string{nodeTemplate + "autoscaling-options/scaledownunneededtime": "2s"}})
	s.putOn("thin", "thin", 1, "10m", "14300Mi")
	s.until("the machine", func() bool { return s.desired("thin") == 1 })
	s.until("the machine to go", func() bool { return s.desired("thin") == 0 })
	<-time.After(10 * time.Second) // in which an agent that forgets buys again
	s.wants("thin", "1")
	s.journal("held pod default/thin", "insufficient memory")
}

// TestJobsAndStatefulSetsAreOneCall: with the default rate limits of a real controller
// manager the pods of a Job come over many seconds; they are one call all the same.
func TestJobsAndStatefulSetsAreOneCall(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, func(o *world.Options) { o.Fast = false })
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=1h", "AUTOSCALER_OBSERVE_SLOW=2s")
	if _, err := s.w.RenderUserData(t.Context(), s.binary); err != nil {
		t.Fatal(err)
	}
	s.pool(pool{name: "job", max: 20})
	s.pool(pool{name: "set", max: 20})
	n := int32(100)
	template := func(name string, mutate ...func(*corev1.PodSpec)) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: s.spec(name, "100m", "16Mi", mutate...)}
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{Parallelism: &n, Completions: &n,
		Template: template("job", func(p *corev1.PodSpec) { p.RestartPolicy = corev1.RestartPolicyNever })}}
	if _, err := s.client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.runs("job", 100)
	s.wants("job", "3")
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}, Spec: appsv1.StatefulSetSpec{Replicas: &n, PodManagementPolicy: appsv1.ParallelPodManagement,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "set"}}, Template: template("set")}}
	if _, err := s.client.AppsV1().StatefulSets("default").Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.runs("set", 100)
	s.wants("set", "3")
}
