package machine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/keyutil"
)

// errRefused tells that a request was denied or failed for good.
var errRefused = errors.New("certificate request refused")

// keyPair is a certificate with its key, as PEM.
type keyPair struct{ cert, key []byte }

// newKey makes a key.
func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

// keyFile is where a kubelet keeps its key until its request is granted, so that it asks
// with the same one after a restart.
func (m *Machine) keyFile() string { return filepath.Join(m.pkiDir(), "kubelet-client.key.tmp") }

// clientKey is the key that an earlier attempt or the user data left for the kubelet, else a
// new one, which is left there.
func (m *Machine) clientKey() (*ecdsa.PrivateKey, error) {
	text, _, err := keyutil.LoadOrGenerateKeyFile(m.keyFile()) // as the kubelet does
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's key: %w", err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's key: %w", err)
	}
	found, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read the kubelet's key: it is a %T", key)
	}
	return found, nil
}

// request asks for a certificate for a key and waits until it is issued, refused, or ctx ends.
func request(ctx context.Context, client certificatesv1client.CertificatesV1Interface, template *x509.CertificateRequest, key *ecdsa.PrivateKey,
	signer string, usages []certificatesv1.KeyUsage, prefix string) (keyPair, error) {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return keyPair{}, fmt.Errorf("make certificate request: %w", err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: signer,
			Usages:     usages,
		},
	}
	csr, err = client.CertificateSigningRequests().Create(ctx, csr, metav1.CreateOptions{})
	if err != nil {
		return keyPair{}, fmt.Errorf("create certificate request for %s: %w", signer, err)
	}
	cert, err := waitIssued(ctx, client, csr.Name)
	if err != nil {
		return keyPair{}, fmt.Errorf("certificate request %s for %s: %w", csr.Name, signer, err)
	}
	return keyPair{cert: cert, key: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})}, nil
}

func waitIssued(ctx context.Context, client certificatesv1client.CertificatesV1Interface, name string) ([]byte, error) {
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return client.CertificateSigningRequests().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return client.CertificateSigningRequests().Watch(ctx, o)
		},
	}
	var issued []byte
	_, err := watchtools.UntilWithSync(ctx, lw, &certificatesv1.CertificateSigningRequest{}, nil, func(e watch.Event) (bool, error) {
		csr, ok := e.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted {
			return false, fmt.Errorf("deleted: %w", errRefused)
		}
		for _, c := range csr.Status.Conditions {
			if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
				return false, fmt.Errorf("%s: %s: %s: %w", c.Type, c.Reason, c.Message, errRefused)
			}
		}
		issued = csr.Status.Certificate
		return len(issued) > 0, nil
	})
	return issued, err
}

// clientRequest is what a kubelet asks for with its bootstrap token.
func clientRequest(node string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}
}

// servingRequest has the Node's own addresses as subject alternative names, as in
// the kubelet's certificate manager.
func servingRequest(node string, addresses []corev1.NodeAddress) *x509.CertificateRequest {
	r := clientRequest(node)
	seen := map[string]bool{}
	for _, a := range addresses {
		if seen[a.Address] {
			continue
		}
		seen[a.Address] = true
		switch a.Type {
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			r.IPAddresses = append(r.IPAddresses, net.ParseIP(a.Address))
		default:
			r.DNSNames = append(r.DNSNames, a.Address)
		}
	}
	return r
}

func (p keyPair) tls() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return &pair, nil
}
