package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
)

// fleet are the machines of the instances, each with a kubelet: a model that joins with certificate requests, as kubeadm
// and the kubelet do, and reports its Node.
type fleet struct {
	world *World

	mu       sync.Mutex // of the table alone: whoever holds the API server's lock may look
	machines map[string]*machine
	conns    map[*oneConn]bool    // to the API server, beside the agents' requests
	silence  map[string]time.Time // since when no kubelet of a name has reported
}

// machine is an instance that runs. The fields behind name are guarded by the fleet's lock.
type machine struct {
	aws.Instance
	name   string
	alive  bool // it runs, and its kubelet does
	since  time.Time
	key    *ecdsa.PrivateKey
	node   bool // it has registered
	ready  bool
	sick   bool // its kubelet has stopped; the instance runs
	never  bool // it never joins
	took   bool // its Node is of another machine, as somebody has approved it by hand
	serves bool // it has its serving certificate
}

func (m *machine) providerID() string { return "aws:///" + m.Zone + "/" + m.ID }

// onState is told of the states of EC2 instances.
func (f *fleet) onState(i aws.Instance, old, now string) {
	w := f.world
	switch now {
	case "running":
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.closed {
			return
		}
		m := &machine{Instance: i, name: i.PrivateDNS, alive: true, since: time.Now()}
		m.never = w.faults.bootFails()
		f.mu.Lock()
		f.machines[i.ID] = m
		f.mu.Unlock()
		w.Tell("machine %s (%s) boots in %s", i.ID, i.PrivateDNS, i.GroupName)
		if !m.never {
			w.after(w.between(15*time.Second, 40*time.Second)+w.faults.bootDelay(), func() { f.join(m, 0) })
			return
		}
		w.Tell("machine %s never joins", i.ID)
	case "shutting-down", "terminated", "stopping":
		f.mu.Lock()
		m := f.machines[i.ID]
		was := m != nil && m.alive
		if was {
			m.alive = false
		}
		if now == "terminated" {
			delete(f.machines, i.ID)
		}
		f.mu.Unlock()
		if was {
			w.Tell("machine %s (%s) ends", i.ID, i.PrivateDNS)
			w.watch.machineEnds(m)
		}
	}
}

func (f *fleet) lives(m *machine) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.alive && !m.sick
}

// list are the machines that live, by their IDs' order in time.
func (f *fleet) list() (out []*machine) {
	for _, i := range f.world.Cloud.Instances() {
		f.mu.Lock()
		if m := f.machines[i.ID]; m != nil && m.alive {
			out = append(out, m)
		}
		f.mu.Unlock()
	}
	return out
}

// join asks for the client certificate, and tries again until it has it.
func (f *fleet) join(m *machine, tries int) {
	w := f.world
	if !f.lives(m) {
		return
	}
	again := func() { w.after(min(5*time.Second<<min(tries, 4), time.Minute), func() { f.join(m, tries+1) }) }
	id, groups := w.joinToken()
	if id == "" {
		again()
		return
	}
	if m.key == nil {
		m.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	t := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + m.name, Organization: []string{"system:nodes"}}}
	name := w.request(m, t, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, "system:bootstrap:"+id, append([]string{"system:bootstrappers"}, groups...))
	if time.Now().Before(w.faults.byHandUntil) {
		w.after(5*time.Second, func() { w.approve(name) })
	}
	f.await(m, name, 0, func() { f.register(m) }, again)
}

// approve is kubectl certificate approve.
func (w *World) approve(name string) {
	csr := apiserver.Get[*certificatesv1.CertificateSigningRequest](w.API, "certificates.k8s.io/certificatesigningrequests", "", name)
	if csr == nil || len(csr.Status.Conditions) > 0 {
		return
	}
	next := csr.DeepCopy()
	next.Status.Conditions = append(next.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubectlApprove"})
	_ = w.API.Update("certificates.k8s.io/certificatesigningrequests", next, "approval")
	w.Tell("user: approves %s", name)
}

// request makes a certificate request and returns its name.
func (w *World) request(m *machine, t *x509.CertificateRequest, signer string, usage certificatesv1.KeyUsage, user string, groups []string) string {
	der, err := x509.CreateCertificateRequest(rand.Reader, t, m.key)
	if err != nil {
		panic(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage}, Username: user, Groups: append(groups, "system:authenticated")}}
	if err := w.API.Create("certificates.k8s.io/certificatesigningrequests", csr); err != nil {
		panic(err)
	}
	return csr.Name
}

// patience is how long kubeadm join waits for its certificate.
const patience = 5 * time.Minute

// await looks for the certificate of a request.
func (f *fleet) await(m *machine, name string, waited time.Duration, got, lost func()) {
	w := f.world
	if !f.lives(m) {
		return
	}
	csr := apiserver.Get[*certificatesv1.CertificateSigningRequest](w.API, "certificates.k8s.io/certificatesigningrequests", "", name)
	switch {
	case csr != nil && len(csr.Status.Certificate) > 0:
		got()
	case csr == nil || waited >= patience:
		lost()
	default:
		pause := time.Second
		if waited > 20*time.Second {
			pause = 5 * time.Second
		}
		w.after(pause, func() { f.await(m, name, waited+pause, got, lost) })
	}
}

// register makes the Node, or takes the one of its name.
func (f *fleet) register(m *machine) {
	w := f.world
	if !f.lives(m) {
		return
	}
	node := w.nodeOf(m)
	old := apiserver.Get[*corev1.Node](w.API, "/nodes", "", m.name)
	put := func() error { return w.API.Create("/nodes", node) }
	if old != nil {
		next := old.DeepCopy()
		next.Status = node.Status // the spec stays, with a provider ID that is another machine's
		put = func() error { return w.API.Update("/nodes", next, "status") }
		w.Tell("machine %s takes the Node %s of %s", m.ID, m.name, old.Spec.ProviderID)
	}
	if put() != nil {
		w.after(time.Second, func() { f.register(m) })
		return
	}
	f.mu.Lock()
	m.node, m.took = true, old != nil && old.Spec.ProviderID != m.providerID()
	f.mu.Unlock()
	if old != nil && time.Now().Before(w.faults.silentUntil) {
		w.watch.spare(m)
		w.after(20*time.Second, func() { f.sicken(m, 6*time.Minute) })
	}
	w.after(w.faults.readyDelay(), func() {
		f.mu.Lock()
		m.ready = true
		f.mu.Unlock()
		f.report(m)
	})
	w.after(w.between(time.Second, 30*time.Second), func() { w.started(m) })
	w.after(w.between(time.Second, 3*time.Second), func() { f.serving(m) })
	w.after(w.between(4*time.Minute, 5*time.Minute), func() { f.beat(m) })
}

// startTaint is on each Node when it registers, until the network plugin takes it off.
const startTaint = "network.example.com/agent-not-ready"

// started is what the network plugin and feature discovery do with a new Node.
func (w *World) started(m *machine) {
	n := apiserver.Get[*corev1.Node](w.API, "/nodes", "", m.name)
	if n == nil || !w.fleet.lives(m) {
		return
	}
	next := n.DeepCopy()
	next.Spec.Taints = slices.DeleteFunc(next.Spec.Taints, func(t corev1.Taint) bool { return t.Key == startTaint })
	next.Labels["feature.example.com/kind"] = "x"
	_ = w.API.Update("/nodes", next, "")
}

// serving is the request for its serving certificate, with further names.
func (m *machine) serving(names ...string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + m.name, Organization: []string{"system:nodes"}}, DNSNames: append(names, m.name), IPAddresses: []net.IP{net.ParseIP(m.PrivateIP)}}
}

// serving asks for the serving certificate.
func (f *fleet) serving(m *machine) {
	w := f.world
	if !f.lives(m) {
		return
	}
	name := w.request(m, m.serving(), certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth, "system:node:"+m.name, []string{"system:nodes"})
	f.await(m, name, 0, func() { m.serves = true }, func() { w.after(time.Minute, func() { f.serving(m) }) })
}

// beat reports the Node every few minutes.
func (f *fleet) beat(m *machine) {
	if f.lives(m) {
		f.report(m)
		f.world.after(f.world.between(4*time.Minute+50*time.Second, 5*time.Minute+10*time.Second), func() { f.beat(m) })
	}
}

// report writes the Node's status; a Node that was deleted stays so until the kubelet starts again.
func (f *fleet) report(m *machine) {
	w := f.world
	if !f.lives(m) {
		return
	}
	old := apiserver.Get[*corev1.Node](w.API, "/nodes", "", m.name)
	if old == nil {
		return
	}
	next := old.DeepCopy()
	next.Status = w.nodeOf(m).Status
	for i := range next.Status.Conditions {
		for _, c := range old.Status.Conditions {
			if n := &next.Status.Conditions[i]; n.Type == c.Type && n.Status == c.Status {
				n.LastTransitionTime = c.LastTransitionTime
			}
		}
	}
	_ = w.API.Update("/nodes", next, "status")
	w.models.kick("kubelets") // what was asked of it while it was silent
}

// nodeOf is the Node as the machine's kubelet reports it.
func (w *World) nodeOf(m *machine) *corev1.Node {
	r := w.Env.Kubelet.Reservation()
	capacity := cluster.Resources{MilliCPU: int64(m.Spec.VCPU) * 1000, Memory: int64(float64(int64(m.Spec.MemoryMiB)<<20) * 0.925), EphemeralStorage: 20 << 30, Pods: r.MaxPods}
	left := r.Allocatable(capacity)
	list := func(v cluster.Resources) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(v.MilliCPU, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(v.Memory, resource.BinarySI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(v.EphemeralStorage, resource.BinarySI), corev1.ResourcePods: *resource.NewQuantity(v.Pods, resource.DecimalSI)}
	}
	now := metav1.NewTime(time.Now()).Rfc3339Copy()
	status, reason := corev1.ConditionFalse, "KubeletNotReady"
	if m.ready {
		status, reason = corev1.ConditionTrue, "KubeletReady"
	}
	conditions := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
		{Type: corev1.NodeReady, Status: status, Reason: reason},
	}
	for i := range conditions {
		conditions[i].LastHeartbeatTime, conditions[i].LastTransitionTime = now, now
	}
	taints := []corev1.Taint{{Key: startTaint, Value: "true", Effect: corev1.TaintEffectNoExecute}}
	if !m.ready {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{corev1.LabelHostname: m.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			corev1.LabelInstanceTypeStable: m.Type, corev1.LabelTopologyZone: m.Zone, corev1.LabelTopologyRegion: m.Region}},
		Spec: corev1.NodeSpec{ProviderID: m.providerID(), Taints: taints},
		Status: corev1.NodeStatus{Capacity: list(capacity), Allocatable: list(left), Conditions: conditions,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: m.PrivateIP}, {Type: corev1.NodeHostName, Address: m.name}, {Type: corev1.NodeInternalDNS, Address: m.PrivateDNS}},
			NodeInfo:  corev1.NodeSystemInfo{MachineID: strings.ReplaceAll(m.ID, "-", ""), SystemUUID: "ec2" + fmt.Sprintf("%032x", m.ID)[:29], BootID: "boot-" + m.ID, KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64"}},
	}
}

// renewed writes the Lease of a kubelet when somebody is about to read it, as the kubelet has renewed it every ten seconds until
// now or until its end.
func (w *World) renewed(resource, namespace, name string) {
	if resource != "leases" || namespace != corev1.NamespaceNodeLease {
		return
	}
	node := apiserver.Get[*corev1.Node](w.API, "/nodes", "", name)
	if node == nil {
		_ = w.API.Delete("coordination.k8s.io/leases", namespace, name, nil)
		return
	}
	silent := w.fleet.silent(name)
	at := metav1.NewMicroTime(time.Now().Add(-silent).Truncate(10 * time.Second))
	seconds := int32(40)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &at}}
	if w.API.Create("coordination.k8s.io/leases", lease) != nil {
		_ = w.API.Update("coordination.k8s.io/leases", lease, "")
	}
}
