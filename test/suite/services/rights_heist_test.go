package services

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

// mole is the Node of the thief's own.
const mole = "mole-400"

// heist is what the thief's calls are about: two workers with room, and on them a pod whose service account
// is as powerful as an administrator, and a pod whose budget allows no disruption.
type heist struct {
	*stolen
	ctx             context.Context
	chosen, guarded *corev1.Pod
	csr             *certv1.CertificateSigningRequest
	byNode          kubernetes.Interface
}

func (h *heist) prepare(t *testing.T) {
	t.Helper()
	h.ctx = t.Context()
	node(t, h.cp, "plain2", "", corev1.ConditionTrue) // without a Lease
	for _, name := range []string{"home", "spare"} {
		node(t, h.cp, name, "aws:///a/i-"+name, corev1.ConditionTrue)
		h.kubelet(t, name)
		if err := reports(h.ctx, h.admin, name, "4"); err != nil {
			t.Fatal(err)
		}
	}
	budget, none := metav1.ObjectMeta{Name: "guarded"}, intstr.FromInt32(0)
	_, err1 := h.admin.CoreV1().ServiceAccounts("default").Create(h.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "powerful"}}, metav1.CreateOptions{})
	_, err2 := h.admin.RbacV1().ClusterRoleBindings().Create(h.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "powerful"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "powerful"}}}, metav1.CreateOptions{})
	_, err3 := h.admin.CoreV1().Secrets("default").Create(h.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "guarded"}}, metav1.CreateOptions{})
	_, err4 := h.admin.PolicyV1().PodDisruptionBudgets("default").Create(h.ctx, &policyv1.PodDisruptionBudget{ObjectMeta: budget,
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}}}, metav1.CreateOptions{})
	_, err5 := h.admin.CoreV1().Services("kube-system").Create(h.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"k8s-app": "kube-dns"}, Ports: []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}}}}, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	h.chosen, h.guarded = h.deploy(t, "powerful"), h.deploy(t, "guarded")
	await.True(t, "the budget counts its pod", func() bool {
		b, err := h.admin.PolicyV1().PodDisruptionBudgets("default").Get(h.ctx, budget.Name, metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 1 && b.Status.ObservedGeneration == b.Generation
	})
}

// deploy makes a Deployment of one pod, with a service account and a Secret of its name where there are such,
// and reports the pod Ready as its kubelet would.
func (h *heist) deploy(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	labels, one, now := map[string]string{"app": name}, int32(1), int64(0)
	spec := corev1.PodSpec{TerminationGracePeriodSeconds: &now, Containers: []corev1.Container{{Name: "c", Image: "nginx",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}}
	if name == "powerful" {
		spec.ServiceAccountName = name
	} else {
		spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}
	}
	_, err := h.admin.AppsV1().Deployments("default").Create(h.ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &one,
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := h.comes(t, name, "home", "spare")
	patch := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	if p, err = h.admin.CoreV1().Pods(p.Namespace).Patch(h.ctx, p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	return p
}

// comes waits until kube-scheduler has bound a pod of a Deployment to one of the Nodes.
func (h *heist) comes(t *testing.T, deployment string, nodes ...string) (found *corev1.Pod) {
	t.Helper()
	await.True(t, "a pod of "+deployment+" is bound", func() bool {
		pods, err := h.admin.CoreV1().Pods("default").List(h.ctx, metav1.ListOptions{LabelSelector: "app=" + deployment})
		for i := range pods.Items {
			if p := &pods.Items[i]; p.DeletionTimestamp == nil && slices.Contains(nodes, p.Spec.NodeName) {
				found = p
			}
		}
		return err == nil && found != nil
	})
	return found
}

// reports patches a Node's status as its kubelet does. An update would carry the taints that were read, and be refused
// where kube-controller-manager has changed them since.
func reports(ctx context.Context, by kubernetes.Interface, name, cpu string) error {
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": capacity, "allocatable": capacity, "conditions": []corev1.NodeCondition{ready}}})
	if err == nil {
		_, err = by.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	return err
}

// client is a client that has nothing but the API server's address, its CA and a token.
func (h *heist) client(t *testing.T, token string) kubernetes.Interface {
	t.Helper()
	cfg := rest.AnonymousClientConfig(h.config)
	cfg.BearerToken = token
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask makes the request for the client certificate of the thief's Node.
func (h *heist) ask(t *testing.T, by kubernetes.Interface) (*certv1.CertificateSigningRequest, error) {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + mole, Organization: []string{"system:nodes"}}}, ecKey)
	if err != nil {
		t.Fatal(err)
	}
	return by.CertificatesV1().CertificateSigningRequests().Create(h.ctx, &certv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "mole-"},
		Spec: certv1.CertificateSigningRequestSpec{Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: clientSigner,
			Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageClientAuth}}}, metav1.CreateOptions{})
}

// certified waits for the certificate, and is a client that has it.
func (h *heist) certified(t *testing.T) kubernetes.Interface {
	t.Helper()
	await.True(t, "kube-controller-manager signs the certificate", func() bool {
		csr, err := h.thief.CertificatesV1().CertificateSigningRequests().Get(h.ctx, h.csr.Name, metav1.GetOptions{})
		if err == nil {
			h.csr = csr
		}
		return len(h.csr.Status.Certificate) > 0
	})
	key, err := x509.MarshalPKCS8PrivateKey(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(h.config)
	cfg.CertData, cfg.KeyData = h.csr.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// register makes the Node as a kubelet does.
func (h *heist) register(labels map[string]string) error {
	_, err := h.byNode.CoreV1().Nodes().Create(h.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: mole, Labels: labels}}, metav1.CreateOptions{})
	return err
}

// mint asks for a token of a pod's service account, as the kubelet that runs the pod does.
func (h *heist) mint(by kubernetes.Interface, pod *corev1.Pod) (string, error) {
	got, err := by.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(h.ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return got.Status.Token, nil
}
