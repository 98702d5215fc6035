package bootstrap

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// clusterInfo is the public ConfigMap kube-public/cluster-info.
type clusterInfo struct {
	kubeconfig string
	signatures map[string]string // by token ID
	server     string
	ca         []byte
}

func (s *Service) clusterInfo(ctx context.Context) (clusterInfo, error) {
	return readClusterInfo(ctx, s.deps.Client)
}

// ClusterHashes returns a reader of the hashes of the cluster's CAs, which asks the API
// server once in a while.
func ClusterHashes(client *kube.Client) func(context.Context) ([]string, error) {
	const remembered = time.Minute
	var mu sync.Mutex
	var hashes []string
	var readAt time.Time
	return func(ctx context.Context) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(readAt) < remembered {
			return hashes, nil
		}
		info, err := readClusterInfo(ctx, client)
		if err != nil {
			return nil, err
		}
		if hashes, err = caHashes(info.ca); err == nil {
			readAt = time.Now()
		}
		return hashes, err
	}
}

func readClusterInfo(ctx context.Context, client *kube.Client) (clusterInfo, error) {
	object, err := client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, "cluster-info", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return clusterInfo{}, fmt.Errorf("read cluster-info: %w: run kubeadm init phase bootstrap-token", err)
	}
	if err != nil {
		return clusterInfo{}, fmt.Errorf("read cluster-info: %w", err)
	}
	return parseClusterInfo(object)
}

func parseClusterInfo(object *corev1.ConfigMap) (clusterInfo, error) {
	info := clusterInfo{kubeconfig: object.Data["kubeconfig"], signatures: map[string]string{}}
	for key, value := range object.Data {
		if id, ok := strings.CutPrefix(key, "jws-kubeconfig-"); ok {
			info.signatures[id] = value
		}
	}
	var config clientcmdv1.Config
	if err := yaml.Unmarshal([]byte(info.kubeconfig), &config); err != nil {
		return clusterInfo{}, fmt.Errorf("read cluster-info: %w", err)
	}
	if len(config.Clusters) != 1 {
		return clusterInfo{}, fmt.Errorf("read cluster-info: it names %d clusters, not one", len(config.Clusters))
	}
	info.server, info.ca = config.Clusters[0].Cluster.Server, config.Clusters[0].Cluster.CertificateAuthorityData
	return info, nil
}

// caHashes returns "sha256:<hex>" of the public key of every certificate in a PEM
// bundle: kubeadm accepts a server whose chain matches any of them, so a CA that is
// being rotated works with both.
func caHashes(bundle []byte) ([]string, error) {
	var hashes []string
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("hash the cluster's CA: %w", err)
		}
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		if h := "sha256:" + hex.EncodeToString(sum[:]); !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
	}
	if len(hashes) == 0 {
		return nil, errors.New("hash the cluster's CA: cluster-info holds no certificate")
	}
	return hashes, nil
}

// endpoint returns the host:port to publish and where it comes from.
func (s *Service) endpoint(ctx context.Context, info clusterInfo) (endpoint, source string, err error) {
	if s.cfg.Endpoint != "" {
		return s.cfg.Endpoint, "AUTOSCALER_BOOTSTRAP_ENDPOINT", nil
	}
	server, err := url.Parse(info.server)
	if err != nil || server.Hostname() == "" {
		return "", "", fmt.Errorf("find the join endpoint: cluster-info's server %q is no URL", info.server)
	}
	port := server.Port()
	if port == "" {
		port = "443"
	}
	configured, err := s.controlPlaneEndpoint(ctx)
	if err != nil {
		return "", "", err
	}
	if configured == "" {
		return net.JoinHostPort(server.Hostname(), port), "cluster-info's server", nil
	}
	if _, _, err := net.SplitHostPort(configured); err != nil {
		configured = net.JoinHostPort(strings.Trim(configured, "[]"), port)
	}
	return configured, "kubeadm-config's controlPlaneEndpoint", nil
}

func (s *Service) controlPlaneEndpoint(ctx context.Context) (string, error) {
	object, err := s.deps.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read kubeadm-config: %w", err)
	}
	var config struct {
		ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	}
	if err := yaml.Unmarshal([]byte(object.Data["ClusterConfiguration"]), &config); err != nil {
		return "", fmt.Errorf("read kubeadm-config: %w", err)
	}
	return config.ControlPlaneEndpoint, nil
}

// covered is an error unless the API server's certificate is valid for the host of
// endpoint: a worker would refuse to talk to it.
func covered(cert *x509.Certificate, endpoint, source string) error {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return fmt.Errorf("check the join endpoint %s (%s): %w", endpoint, source, err)
	}
	if err := cert.VerifyHostname(host); err != nil {
		names := slices.Clone(cert.DNSNames)
		for _, ip := range cert.IPAddresses {
			names = append(names, ip.String())
		}
		return fmt.Errorf("check the join endpoint %s (%s): it is none of the names in the API server's certificate (%s): "+
			"set AUTOSCALER_BOOTSTRAP_ENDPOINT to one of them, or add it to apiServer.certSANs and renew the certificate",
			endpoint, source, strings.Join(names, ", "))
	}
	return nil
}
