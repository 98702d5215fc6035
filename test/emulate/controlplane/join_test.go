package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/cluster-bootstrap/token/jws"
)

const (
	tokenID     = "07401b"
	tokenSecret = "f395accd246ae52d"
)

func testNoToken(t *testing.T, cp *ControlPlane) {
	list, err := cp.Client().CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		t.Errorf("token Secret %s stands", s.Name)
	}
	await.Nil(t, "cluster-info without signature", func(ctx context.Context) error {
		cm, err := cp.Client().CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(cm.Data) != 1 {
			return fmt.Errorf("%d keys", len(cm.Data))
		}
		return nil
	})
}

// testToken walks the way of a machine: discovery without credentials, the
// kubelet's configuration, a client certificate, a serving certificate.
func testToken(t *testing.T, cp *ControlPlane) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + tokenID, Namespace: "kube-system"},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": tokenID, "token-secret": tokenSecret,
			"usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true",
			"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
			"expiration":        time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		},
	}
	if _, err := cp.Client().CoreV1().Secrets("kube-system").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	anonymous, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(cp.RESTConfig()))
	if err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "signed cluster-info", func(ctx context.Context) error {
		cm, err := anonymous.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !strings.Contains(cm.Data["kubeconfig"], cp.Endpoint()) {
			t.Fatalf("cluster-info does not name %s: %s", cp.Endpoint(), cm.Data["kubeconfig"])
		}
		if !jws.DetachedTokenIsValid(cm.Data["jws-kubeconfig-"+tokenID], cm.Data["kubeconfig"], tokenID, tokenSecret) {
			return errors.New("no valid signature")
		}
		return nil
	})
	cfg := rest.AnonymousClientConfig(cp.RESTConfig())
	cfg.BearerToken = tokenID + "." + tokenSecret
	joiner, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	await.Nil(t, "kubelet-config for a joining machine", func(ctx context.Context) error {
		cm, err := joiner.CoreV1().ConfigMaps("kube-system").Get(ctx, "kubelet-config", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, want := range []string{"serverTLSBootstrap: true", "rotateCertificates: true", "nodeLeaseDurationSeconds: 8"} {
			if !strings.Contains(cm.Data["kubelet"], want) {
				t.Fatalf("kubelet-config lacks %q:\n%s", want, cm.Data["kubelet"])
			}
		}
		return nil
	})
	key, certificate := clientCertificate(t, joiner)
	servingCertificate(t, cp, key, certificate)
}

func request(t *testing.T, key *ecdsa.PrivateKey, addresses ...net.IP) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:worker-1", Organization: []string{"system:nodes"}},
		IPAddresses: addresses,
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func issued(t *testing.T, client kubernetes.Interface, name string) []byte {
	t.Helper()
	var out []byte
	await.Nil(t, "certificate of "+name, func(ctx context.Context) error {
		csr, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if out = csr.Status.Certificate; len(out) == 0 {
			return fmt.Errorf("conditions %+v", csr.Status.Conditions)
		}
		return nil
	})
	return out
}

// clientCertificate is approved by the controller manager, because kubeadm's phase
// bound the token's group to the role for it.
func clientCertificate(t *testing.T, joiner kubernetes.Interface) (key *ecdsa.PrivateKey, certificate []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, err = joiner.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1-client"},
		Spec: certv1.CertificateSigningRequestSpec{Request: request(t, key), SignerName: certv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageClientAuth}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return key, issued(t, joiner, "worker-1-client")
}

// servingCertificate stays pending until somebody approves it: that is the agent's
// work, here the administrator's.
func servingCertificate(t *testing.T, cp *ControlPlane, key *ecdsa.PrivateKey, certificate []byte) {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(cp.RESTConfig())
	cfg.CertData, cfg.KeyData = certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	kubelet, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubelet.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-2"}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("worker-1 made Node worker-2: %v, want forbidden by NodeRestriction", err)
	}
	csr, err := kubelet.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1-serving"},
		Spec: certv1.CertificateSigningRequestSpec{Request: request(t, key, net.IPv4(127, 0, 0, 1)), SignerName: certv1.KubeletServingSignerName,
			Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageServerAuth}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(csr.Status.Conditions) != 0 {
		t.Errorf("a serving CSR starts with %+v, want pending", csr.Status.Conditions)
	}
	csr.Status.Conditions = []certv1.CertificateSigningRequestCondition{{Type: certv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
	if _, err := cp.Client().CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(issued(t, cp.Client(), csr.Name))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(cp.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		t.Error(err)
	}
}
