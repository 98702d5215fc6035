package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// identity is what a machine keeps on its disk once it has joined.
type identity struct {
	join   joinConfig
	config *kubeletv1beta1.KubeletConfiguration
	rest   *rest.Config // with the node's client certificate
	uuid   string       // systemUUID
}

// join plays `kubeadm join --config file`: discovery, kubeadm's reads with the
// bootstrap token, and the TLS bootstrap that it waits for.
func (m *Machine) join(ctx context.Context, file string) error {
	m.mark(func(t *Times) { t.Joining = time.Now() })
	c, err := readJoinConfig(file)
	if err != nil {
		return err
	}
	t, err := m.discover(ctx, c)
	if err != nil {
		return err
	}
	m.mark(func(t *Times) { t.Discovered = time.Now() })
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.BootstrapTimeout, errors.New("TLS bootstrap timed out"))
	defer cancel()
	boot := &rest.Config{Host: t.server, BearerToken: c.token, TLSClientConfig: rest.TLSClientConfig{CAData: t.ca}, QPS: 50, Burst: 100}
	config, err := m.fetchConfig(ctx, boot, c)
	if err != nil {
		return err
	}
	csrs, err := certificatesv1client.NewForConfig(protobuf(boot))
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	key, err := m.clientKey()
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	pair, err := request(ctx, csrs, clientRequest(c.name), key, certificatesv1.KubeAPIServerClientKubeletSignerName,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, "node-csr-")
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if err := os.Remove(m.keyFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("bootstrap: %w", err)
	}
	m.mark(func(t *Times) { t.ClientCert = time.Now() })
	m.setIdentity(&identity{
		join:   c,
		config: config,
		uuid:   m.cfg.SystemUUID,
		rest: protobuf(&rest.Config{
			Host: t.server, QPS: 50, Burst: 100,
			TLSClientConfig: rest.TLSClientConfig{CAData: t.ca, CertData: pair.cert, KeyData: pair.key},
		}),
	})
	return nil
}

// fetchConfig reads what kubeadm reads with the token, which proves the RBAC that
// kubeadm init leaves behind, and refuses a name that a living Node bears.
func (m *Machine) fetchConfig(ctx context.Context, boot *rest.Config, c joinConfig) (*kubeletv1beta1.KubeletConfiguration, error) {
	core, err := corev1client.NewForConfig(boot)
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	if _, err := core.ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("read kubeadm-config: %w", err)
	}
	cm, err := core.ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubelet-config", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read kubelet-config: %w", err)
	}
	node, err := core.Nodes().Get(ctx, c.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("look for a Node of this name: %w", err)
	default:
		for _, cond := range node.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue {
				return nil, fmt.Errorf("a Node with name %q and status Ready exists already", c.name)
			}
		}
	}
	return kubeletConfig(cm.Data["kubelet"], c.patches)
}

// protobuf spares both sides most of the decoding; only built-in types are spoken.
func protobuf(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return c
}
