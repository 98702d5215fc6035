package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
)

// Manifest is units/admission-policy.yaml.
func Manifest() string { return filepath.Join(root(), "..", "units", "admission-policy.yaml") }

func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Judge is the running program.
type Judge struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	enc *json.Encoder
	dec *json.Decoder
	// Costs asks for Answer.Cost, which takes as long as the answer itself.
	Costs bool
	// First asks for no more than the first policy that refuses.
	First bool
}

// Start starts program with the policies of manifest. Close ends it.
func Start(ctx context.Context, program, manifest string) (*Judge, error) {
	j := &Judge{cmd: exec.CommandContext(ctx, program, "-manifests", manifest, "-allow", "jointokengroups/"+workersGroup+",controlplanenodes/"+publicLeader)}
	j.cmd.Stderr = os.Stderr
	var err error
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the admission program: %w", err)
	}
	j.enc, j.dec = json.NewEncoder(j.in), json.NewDecoder(out)
	return j, nil
}

// Close ends the process.
func (j *Judge) Close() error {
	j.in.Close()
	return j.cmd.Wait()
}

// The names of the fields are the contract with the program.
type request struct {
	User, Operation                       string
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
	Object, OldObject                     kruntime.Object
	Params                                []kruntime.Object
	Costs, First                          bool
}

// Answer says which validations refuse a request, and what each policy costs of the ten
// million units that it has.
type Answer struct {
	Denials []Denial
	Cost    map[string]int64
	Error   string
}

// Denial is one validation that refuses.
type Denial struct{ Policy, Message string }

func (a Answer) String() string {
	var out []string
	for _, d := range a.Denials {
		out = append(out, d.Policy+": "+d.Message)
	}
	return strings.Join(out, "; ")
}

const (
	agentUser    = "autoscaler-agent"
	workersGroup = "system:bootstrappers:autoscaler-agent:workers"
	publicLeader = "public-leader" // rbac.yaml names it: it may have names of kubeadm-config that are not like its own
)

func (j *Judge) ask(r request) (Answer, error) {
	var a Answer
	if err := j.enc.Encode(r); err != nil {
		return a, fmt.Errorf("ask the admission program: %w", err)
	}
	if err := j.dec.Decode(&a); err != nil {
		return a, fmt.Errorf("read what the admission program says: %w", err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("the admission program: %s", a.Error)
	}
	return a, nil
}

// Cluster is what the policies may look at beside the request.
type Cluster []kruntime.Object

// Kubeadm is a cluster as kubeadm makes it: the API server's Service with one API server, kubeadm's ConfigMap
// with configuration, and a control-plane Node.
func Kubeadm(configuration string, control *corev1.Node, serviceIPs ...string) Cluster {
	control.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	return Cluster{control,
		&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
			Spec: corev1.ServiceSpec{ClusterIP: serviceIPs[0], ClusterIPs: serviceIPs}},
		Servers("10.0.98.1"),
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
			Data: map[string]string{"ClusterConfiguration": configuration}},
	}
}

// Servers is an EndpointSlice of the API servers' Service.
func Servers(addresses ...string) *discoveryv1.EndpointSlice {
	family := discoveryv1.AddressTypeIPv4
	if strings.Contains(addresses[0], ":") {
		family = discoveryv1.AddressTypeIPv6
	}
	return &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, AddressType: family, Endpoints: []discoveryv1.Endpoint{{Addresses: addresses}},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes-" + strings.ToLower(string(family)), Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}}}
}

// ApproveServing asks for the agent's approval of a serving certificate that node's kubelet
// asks for with pem.
func (j *Judge) ApproveServing(c Cluster, node string, pem []byte) (Answer, error) {
	return j.approveServing(c, node, pem, nil, nil)
}

// approveServing changes the request before, and what is sent to the API server after the condition was added.
func (j *Judge) approveServing(c Cluster, node string, pem []byte, before, after func(*certv1.CertificateSigningRequest)) (Answer, error) {
	csr := &certv1.CertificateSigningRequest{TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: "asked", UID: "01234567-89ab-cdef-0123-456789abcdef"},
		Spec: certv1.CertificateSigningRequestSpec{SignerName: certv1.KubeletServingSignerName, Username: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"},
			Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageServerAuth}, Request: pem}}
	if before != nil {
		before(csr)
	}
	return j.approve(c, csr, "R0-R20: witnessed", after)
}

// ApproveJoin asks for the agent's approval of a client certificate for node. The list of
// joins names it.
func (j *Judge) ApproveJoin(c Cluster, node string, pem []byte) (Answer, error) {
	csr := &certv1.CertificateSigningRequest{TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: "asked", UID: "01234567-89ab-cdef-0123-456789abcdef"},
		Spec: certv1.CertificateSigningRequestSpec{SignerName: certv1.KubeAPIServerClientKubeletSignerName, Username: "system:bootstrap:asa001",
			Groups: []string{"system:bootstrappers", workersGroup, "system:authenticated"}, Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageClientAuth}, Request: pem}}
	return j.approve(c, csr, "node "+node+": J0-J16: witnessed", nil)
}

func (j *Judge) approve(c Cluster, csr *certv1.CertificateSigningRequest, says string, change func(*certv1.CertificateSigningRequest)) (Answer, error) {
	_, rest, _ := strings.Cut(says, "node ")
	node, _, _ := strings.Cut(rest, ": ")
	list := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "autoscaler-agent-joins"},
		Data: map[string]string{node: string(csr.UID)}}
	c = append(c[:len(c):len(c)], list)
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certv1.CertificateSigningRequestCondition{Type: certv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoscalerAgent", Message: says})
	if change != nil {
		change(approved)
	}
	return j.ask(request{User: agentUser, Operation: "UPDATE", Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests", Subresource: "approval", Name: csr.Name,
		Object: approved, OldObject: csr, Params: c, Costs: j.Costs, First: j.First})
}
