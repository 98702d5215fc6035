package world

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cluster-bootstrap/token/jws"

	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
)

// models are the parts of a cluster beside the agent, as far as the agent sees them: kube-scheduler, the controllers of
// ReplicaSets, of Nodes, of PodDisruptionBudgets, of certificates and of bootstrap tokens, and the garbage collector. Each
// is a function of the stored objects that runs a moment after something has changed.
type models struct {
	world *World
	due   map[string]bool // by model: a run is planned; guarded by the story's lock
}

// pace is how long after a change a model looks.
var pace = map[string][2]time.Duration{
	"schedule": {5 * time.Millisecond, 60 * time.Millisecond}, "replicas": {20 * time.Millisecond, 100 * time.Millisecond}, "kubelets": {500 * time.Millisecond, 2 * time.Second},
	"nodes": {50 * time.Millisecond, 200 * time.Millisecond}, "budgets": {20 * time.Millisecond, 100 * time.Millisecond}, "certificates": {50 * time.Millisecond, 300 * time.Millisecond},
	"tokens": {100 * time.Millisecond, 500 * time.Millisecond}, "controllers": {20 * time.Millisecond, 100 * time.Millisecond},
}

func newModels(w *World) (*models, error) {
	m := &models{world: w, due: map[string]bool{}}
	kick := func(names ...string) func(watch.EventType, apiserver.Object, apiserver.Object) {
		return func(watch.EventType, apiserver.Object, apiserver.Object) {
			for _, n := range names {
				m.kick(n)
			}
		}
	}
	others := []string{"apps/deployments", "apps/daemonsets", "apps/statefulsets", "batch/jobs"}
	w.API.Told("/pods", kick("replicas", "kubelets", "schedule", "budgets"))
	w.API.Told("/nodes", kick("schedule", "nodes"))
	w.API.Told("/nodes", func(what watch.EventType, _, _ apiserver.Object) {
		if what == watch.Deleted { // its pods are collected
			m.kick("replicas")
		}
	})
	w.API.Told("apps/replicasets", kick("replicas", "budgets"))
	for _, resource := range others {
		w.API.Told(resource, kick("controllers"))
	}
	if w.controllers {
		for _, resource := range []string{"/pods", "/nodes", "apps/replicasets", "/persistentvolumeclaims", "/persistentvolumes", "/resourcequotas"} {
			w.API.Told(resource, kick("controllers"))
		}
	}
	w.API.Told("policy/poddisruptionbudgets", kick("budgets"))
	w.API.Told("certificates.k8s.io/certificatesigningrequests", kick("certificates"))
	w.API.Told("/secrets", kick("tokens"))
	w.API.Told("/configmaps", kick("tokens"))
	w.API.Told("/nodes", w.watch.nodeChanged)
	w.API.Told("/secrets", w.watch.secretChanged)
	w.API.Told("certificates.k8s.io/certificatesigningrequests", w.watch.requestChanged)
	if !w.controllers {
		w.after(5*time.Second, m.lifecycle)
	}
	w.after(time.Hour, m.collect)
	return m, m.found()
}

// kick plans a run of a model; it may be called with the API server locked.
func (m *models) kick(name string) {
	w := m.world
	w.storyMu.Lock()
	defer w.storyMu.Unlock()
	if m.due[name] {
		return
	}
	m.due[name] = true
	// The delay is drawn when the run begins, since w.random has another lock.
	time.AfterFunc(pace[name][0], func() {
		w.mu.Lock()
		d := w.between(0, pace[name][1]-pace[name][0])
		w.mu.Unlock()
		w.after(d, func() {
			w.storyMu.Lock()
			m.due[name] = false
			w.storyMu.Unlock()
			m.run(name)
		})
	})
}

func (m *models) run(name string) {
	switch name {
	case "schedule":
		m.schedule()
	case "replicas":
		m.replicas()
	case "kubelets":
		m.kubelets()
	case "nodes":
		m.taint()
	case "budgets":
		m.budgets()
	case "certificates":
		m.certificates()
	case "tokens":
		m.tokens()
	case "controllers":
		m.controllers()
	}
}

// found makes what kubeadm init leaves.
func (m *models) found() error {
	w := m.world
	kubeconfig := `apiVersion: v1
kind: Config
clusters: [{name: "", cluster: {server: "https://` + apiHost + `", certificate-authority-data: "` + base64.StdEncoding.EncodeToString(w.ca.pem) + `"}}]
`
	yes := true
	for resource, objects := range map[string][]apiserver.Object{
		"/namespaces": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-public"}}},
		"/configmaps": {
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info", Namespace: "kube-public"}, Data: map[string]string{"kubeconfig": kubeconfig}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-config", Namespace: "kube-system"}, Data: map[string]string{"ClusterConfiguration": "apiServer: {}\ncontrolPlaneEndpoint: " + apiHost +
				"\nkubernetesVersion: v1.36.3\nnetworking: {dnsDomain: cluster.local, serviceSubnet: 10.96.0.0/12}\n"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "autoscaler-agent-joins", Namespace: "kube-system"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kubelet-config", Namespace: "kube-system"}, Data: map[string]string{"kubelet": "{}\n"}},
		},
		"/services": {&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: "default"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"}}}},
		"discovery.k8s.io/endpointslices": {&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: "default", Labels: map[string]string{"kubernetes.io/service-name": "kubernetes"}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.168.0.10"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}}}},
		"networking.k8s.io/servicecidrs": {&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/12"}}}},
	} {
		for _, o := range objects {
			if err := w.API.Create(resource, o); err != nil {
				return err
			}
		}
	}
	for i := range max(w.Agents, 0) {
		name := fmt.Sprint("leader-", i)
		now := metav1.Now().Rfc3339Copy()
		if err := w.API.Create("/nodes", &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": "", corev1.LabelHostname: name}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110")},
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("192.168.0.", 11+i)}, {Type: corev1.NodeHostName, Address: name}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now}}},
		}); err != nil {
			return err
		}
	}
	return nil
}

// tokens signs cluster-info with each bootstrap token, as the bootstrapsigner does, and deletes those that have ended, as
// the tokencleaner does.
func (m *models) tokens() {
	w := m.world
	info := apiserver.Get[*corev1.ConfigMap](w.API, "/configmaps", "kube-public", "cluster-info")
	next := info.DeepCopy()
	for key := range next.Data {
		if strings.HasPrefix(key, "jws-") {
			delete(next.Data, key)
		}
	}
	for _, s := range apiserver.List[*corev1.Secret](w.API, "/secrets", "kube-system") {
		if s.Type != "bootstrap.kubernetes.io/token" {
			continue
		}
		if ended(s) {
			_ = w.API.Delete("/secrets", s.Namespace, s.Name, nil)
			continue
		}
		if string(s.Data["usage-bootstrap-signing"]) == "true" {
			id := string(s.Data["token-id"])
			if sig, err := jws.ComputeDetachedSignature(next.Data["kubeconfig"], id, string(s.Data["token-secret"])); err == nil {
				next.Data["jws-kubeconfig-"+id] = sig
			}
		}
	}
	_ = w.API.Update("/configmaps", next, "")
}

func ended(s *corev1.Secret) bool {
	at, err := time.Parse(time.RFC3339, string(s.Data["expiration"]))
	return err == nil && !time.Now().Before(at)
}

// joinToken is a token that the agent has published.
func (w *World) joinToken() (id string, groups []string) {
	for _, s := range apiserver.List[*corev1.Secret](w.API, "/secrets", "kube-system") {
		if s.Labels["autoscaler-agent/join-token"] == "true" && !ended(s) {
			return string(s.Data["token-id"]), strings.Split(string(s.Data["auth-extra-groups"]), ",")
		}
	}
	return "", nil
}

// certificates signs what is approved.
func (m *models) certificates() {
	w := m.world
	for _, csr := range apiserver.List[*certificatesv1.CertificateSigningRequest](w.API, "certificates.k8s.io/certificatesigningrequests", "") {
		approved := slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved
		})
		if !approved || len(csr.Status.Certificate) > 0 {
			continue
		}
		usage := x509.ExtKeyUsageClientAuth
		if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
			usage = x509.ExtKeyUsageServerAuth
		}
		cert, err := w.ca.issue(csr.Spec.Request, usage)
		if err != nil {
			w.Tell("a request that is approved cannot be signed: %v", err)
			continue
		}
		next := csr.DeepCopy()
		next.Status.Certificate = cert
		_ = w.API.Update("certificates.k8s.io/certificatesigningrequests", next, "status")
	}
}

// collect deletes old certificate requests and Events, as the controller manager and etcd's leases do.
func (m *models) collect() {
	w := m.world
	for _, csr := range apiserver.List[*certificatesv1.CertificateSigningRequest](w.API, "certificates.k8s.io/certificatesigningrequests", "") {
		if time.Since(csr.CreationTimestamp.Time) > time.Hour {
			_ = w.API.Delete("certificates.k8s.io/certificatesigningrequests", "", csr.Name, nil)
		}
	}
	for _, e := range apiserver.List[*corev1.Event](w.API, "/events", "") {
		if time.Since(e.CreationTimestamp.Time) > time.Hour {
			_ = w.API.Delete("/events", e.Namespace, e.Name, nil)
		}
	}
	m.kick("tokens")
	w.after(time.Hour/2, m.collect)
}

// monitorGrace is kube-controller-manager's --node-monitor-grace-period.
const monitorGrace = 50 * time.Second

// lifecycle marks the Nodes of machines that have fallen silent.
func (m *models) lifecycle() {
	w := m.world
	w.after(5*time.Second, m.lifecycle)
	for _, n := range apiserver.List[*corev1.Node](w.API, "/nodes", "") {
		if n.Spec.ProviderID == "" {
			continue
		}
		i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		if i < 0 {
			continue
		}
		silent := w.fleet.silent(n.Name)
		if silent < monitorGrace || n.Status.Conditions[i].Status == corev1.ConditionUnknown {
			if silent == 0 && n.Status.Conditions[i].Status == corev1.ConditionUnknown {
				if mm := w.fleet.named(n.Name); mm != nil {
					w.fleet.report(mm)
				}
			}
			continue
		}
		next := n.DeepCopy()
		c := &next.Status.Conditions[i]
		c.Status, c.Reason, c.Message, c.LastTransitionTime = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.", metav1.Now().Rfc3339Copy()
		_ = w.API.Update("/nodes", next, "status")
	}
}

// silent is for how long no kubelet of a name has reported; 0: one does.
func (f *fleet) silent(name string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.machines {
		if m.name == name && m.alive && !m.sick && m.node {
			delete(f.silence, name)
			return 0
		}
	}
	since, ok := f.silence[name]
	if !ok {
		since = time.Now()
		f.silence[name] = since
	}
	return max(time.Since(since), 1)
}

func (f *fleet) named(name string) *machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.machines {
		if m.name == name && m.alive && !m.sick {
			return m
		}
	}
	return nil
}

// taint keeps the taints of the Ready condition, and evicts what does not tolerate the unreachable ones after five minutes.
func (m *models) taint() {
	w := m.world
	for _, n := range apiserver.List[*corev1.Node](w.API, "/nodes", "") {
		if n.Spec.ProviderID == "" {
			continue
		}
		want := ""
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse {
				want = corev1.TaintNodeNotReady
			} else if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
				want = corev1.TaintNodeUnreachable
			}
		}
		taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
			return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) && t.Key != want || t.Key == corev1.TaintNodeUnschedulable && !n.Spec.Unschedulable
		})
		has := func(key string) bool {
			return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == key })
		}
		if want != "" && !has(want) {
			taints = append(taints, corev1.Taint{Key: want, Effect: corev1.TaintEffectNoSchedule})
			if want == corev1.TaintNodeUnreachable {
				now := metav1.Now().Rfc3339Copy()
				taints = append(taints, corev1.Taint{Key: want, Effect: corev1.TaintEffectNoExecute, TimeAdded: &now})
			}
		}
		if n.Spec.Unschedulable && !has(corev1.TaintNodeUnschedulable) {
			taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		}
		if len(taints) == len(n.Spec.Taints) {
			continue
		}
		next := n.DeepCopy()
		next.Spec.Taints = taints
		_ = w.API.Update("/nodes", next, "")
		if want == corev1.TaintNodeUnreachable {
			name := n.Name
			w.after(5*time.Minute, func() { m.evictUnreachable(name) })
		}
	}
}

func (m *models) evictUnreachable(node string) {
	w := m.world
	n := apiserver.Get[*corev1.Node](w.API, "/nodes", "", node)
	if n == nil || !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnreachable && t.TimeAdded != nil && time.Since(t.TimeAdded.Time) >= 5*time.Minute-time.Second
	}) {
		return
	}
	for _, p := range apiserver.List[*corev1.Pod](w.API, "/pods", "") {
		if p.Spec.NodeName == node && p.DeletionTimestamp == nil {
			_ = w.API.Delete("/pods", p.Namespace, p.Name, nil)
		}
	}
}

// Workload is what a user asks for: a ReplicaSet, and a budget of one pod at a time where Budget is true.
type Workload struct {
	Name     string
	Replicas int
	MilliCPU int64
	Memory   int64
	Budget   bool
	Selector map[string]string // of nodes
}

// PutWorkload makes a workload.
func (w *World) PutWorkload(v Workload) error {
	n := int32(v.Replicas)
	grace := int64(10)
	app := map[string]string{"app": v.Name}
	err := w.API.Create("apps/replicasets", &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: v.Name, Namespace: "default"}, Spec: appsv1.ReplicaSetSpec{Replicas: &n,
		Selector: &metav1.LabelSelector{MatchLabels: app}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{
			NodeSelector: v.Selector, TerminationGracePeriodSeconds: &grace, SchedulerName: corev1.DefaultSchedulerName, RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(v.MilliCPU, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(v.Memory, resource.BinarySI)}}}}}}}})
	if err != nil || !v.Budget {
		return err
	}
	one := intstr.FromInt32(1)
	return w.API.Create("policy/poddisruptionbudgets", &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: v.Name, Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: app}}})
}

// Scale changes the replicas of a workload.
func (w *World) Scale(name string, replicas int) {
	rs := apiserver.Get[*appsv1.ReplicaSet](w.API, "apps/replicasets", "default", name).DeepCopy()
	n := int32(replicas)
	rs.Spec.Replicas = &n
	if err := w.API.Update("apps/replicasets", rs, ""); err != nil {
		panic(err)
	}
	w.Tell("user: scales %s to %d", name, replicas)
}

// more scales a workload up by a tenth of its most.
func (w *World) more(v Workload) {
	is := apiserver.Get[*appsv1.ReplicaSet](w.API, "apps/replicasets", "default", v.Name)
	w.Scale(v.Name, min(v.Replicas, int(*is.Spec.Replicas)+max(1, v.Replicas/10)))
}

// replicas is the controller of ReplicaSets, and the pod garbage collector.
func (m *models) replicas() {
	w := m.world
	nodes := map[string]bool{}
	for _, n := range apiserver.List[*corev1.Node](w.API, "/nodes", "") {
		nodes[n.Name] = true
	}
	zero := int64(0)
	for _, p := range apiserver.List[*corev1.Pod](w.API, "/pods", "") {
		if p.Spec.NodeName != "" && !nodes[p.Spec.NodeName] {
			_ = w.API.Delete("/pods", p.Namespace, p.Name, &zero)
		}
	}
	of := m.owned()
	for _, rs := range apiserver.List[*appsv1.ReplicaSet](w.API, "apps/replicasets", "") {
		pods := of[string(rs.UID)]
		want := int(*rs.Spec.Replicas)
		for range want - len(pods) {
			m.pod(rs, "ReplicaSet", "apps/v1", &rs.Spec.Template, nil)
		}
		if len(pods) > want { // the ones that wait go first
			sort.SliceStable(pods, func(i, j int) bool { return pods[i].Spec.NodeName == "" && pods[j].Spec.NodeName != "" })
			for _, p := range pods[:len(pods)-want] {
				_ = w.API.Delete("/pods", p.Namespace, p.Name, nil)
			}
		}
		ready := int32(0)
		for _, p := range pods {
			if isReady(p) {
				ready++
			}
		}
		next := rs.DeepCopy()
		next.Status.Replicas, next.Status.ReadyReplicas, next.Status.AvailableReplicas, next.Status.ObservedGeneration = int32(len(pods)), ready, ready, rs.Generation
		_ = w.API.Update("apps/replicasets", next, "status")
	}
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// kubelets run the pods of their nodes and end those that are deleted.
func (m *models) kubelets() {
	w := m.world
	zero := int64(0)
	for _, p := range apiserver.List[*corev1.Pod](w.API, "/pods", "") {
		if p.Spec.NodeName == "" || w.fleet.named(p.Spec.NodeName) == nil {
			continue
		}
		switch {
		case p.DeletionTimestamp != nil:
			_ = w.API.Delete("/pods", p.Namespace, p.Name, &zero)
		case p.Status.Phase == corev1.PodPending:
			next := p.DeepCopy()
			now := metav1.Now().Rfc3339Copy()
			next.Status.Phase, next.Status.StartTime = corev1.PodRunning, &now
			next.Status.Conditions = append(next.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now})
			_ = w.API.Update("/pods", next, "status")
		}
	}
}

// budgets is the disruption controller, for pods of ReplicaSets and of nobody.
func (m *models) budgets() {
	w := m.world
	sets := map[types.UID]int{}
	for _, rs := range apiserver.List[*appsv1.ReplicaSet](w.API, "apps/replicasets", "") {
		sets[rs.UID] = int(*rs.Spec.Replicas)
	}
	for _, b := range apiserver.List[*policyv1.PodDisruptionBudget](w.API, "policy/poddisruptionbudgets", "") {
		healthy, expected := 0, 0
		next := b.DeepCopy()
		disrupted := map[string]metav1.Time{}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue
		}
		counted := map[types.UID]bool{}
		for _, p := range apiserver.List[*corev1.Pod](w.API, "/pods", b.Namespace) {
			if !selector.Matches(labels.Set(p.Labels)) {
				continue
			}
			if owner := metav1.GetControllerOf(p); owner == nil {
				expected++
			} else if !counted[owner.UID] {
				counted[owner.UID] = true
				expected += sets[owner.UID]
			}
			at, marked := b.Status.DisruptedPods[p.Name]
			switch {
			case p.DeletionTimestamp != nil:
			case marked && time.Since(at.Time) < 2*time.Minute:
				disrupted[p.Name] = at
			case isReady(p):
				healthy++
			}
		}
		least := 0
		if b.Spec.MinAvailable != nil {
			least, _ = intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, expected, true)
		} else if b.Spec.MaxUnavailable != nil {
			gone, _ := intstr.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, expected, true)
			least = max(0, expected-gone)
		}
		next.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, DisruptedPods: disrupted, DesiredHealthy: int32(least), CurrentHealthy: int32(healthy),
			ExpectedPods: int32(expected), DisruptionsAllowed: int32(max(0, min(healthy-least, expected)))}
		_ = w.API.Update("policy/poddisruptionbudgets", next, "status")
	}
}
