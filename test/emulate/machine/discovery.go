package machine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/cluster-bootstrap/token/jws"
)

// errPermanent marks what kubeadm gives up on at once instead of asking again.
var errPermanent = errors.New("not retried")

// trusted is a cluster that was found and believed: its API server and its CA.
type trusted struct {
	server string
	ca     []byte // PEM bundle
}

// discover finds the cluster as kubeadm's token discovery does: read cluster-info
// from a server that is not trusted yet, check that whoever knows the token signed
// it, check the pin, read it again over TLS that the CA in it vouches for, and
// believe it only when both are equal to the byte.
func (m *Machine) discover(ctx context.Context, c joinConfig) (trusted, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.DiscoveryTimeout, errors.New("discovery timed out"))
	defer cancel()
	wait := 250 * time.Millisecond
	for {
		t, err := discoverOnce(ctx, c)
		if err == nil || errors.Is(err, errPermanent) {
			return t, err
		}
		select {
		case <-ctx.Done():
			return t, fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		case <-time.After(wait):
		}
		wait = min(2*wait, 5*time.Second)
	}
}

func discoverOnce(ctx context.Context, c joinConfig) (trusted, error) {
	id, secret, ok := strings.Cut(c.token, ".")
	if !ok {
		return trusted{}, fmt.Errorf("discover: token is malformed: %w", errPermanent)
	}
	if !loopback(c.endpoint) {
		return trusted{}, fmt.Errorf("discover: endpoint %s is not on loopback, and a played machine dials nothing else: %w", c.endpoint, errPermanent)
	}
	insecure := &rest.Config{Host: "https://" + c.endpoint, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	first, err := clusterInfo(ctx, insecure)
	if err != nil {
		return trusted{}, err
	}
	kubeconfig := first.Data["kubeconfig"]
	signature := first.Data["jws-kubeconfig-"+id]
	if signature == "" {
		return trusted{}, fmt.Errorf("discover: cluster-info holds no signature for token ID %q (the token is unknown or has expired)", id)
	}
	if !jws.DetachedTokenIsValid(signature, kubeconfig, id, secret) {
		return trusted{}, fmt.Errorf("discover: the signature of cluster-info does not fit the token: %w", errPermanent)
	}
	t, err := parseClusterInfo(kubeconfig)
	if err != nil {
		return trusted{}, err
	}
	if err := checkPins(t.ca, c.hashes); err != nil {
		return trusted{}, fmt.Errorf("%w: %w", err, errPermanent)
	}
	second, err := clusterInfo(ctx, &rest.Config{Host: "https://" + c.endpoint, TLSClientConfig: rest.TLSClientConfig{CAData: t.ca}})
	if err != nil {
		return trusted{}, err
	}
	if server, err := url.Parse(t.server); err != nil || !loopback(server.Host) {
		return trusted{}, fmt.Errorf("discover: cluster-info names server %q, which is not on loopback: %w", t.server, errPermanent)
	}
	if second.Data["kubeconfig"] != kubeconfig {
		return trusted{}, fmt.Errorf("discover: cluster-info differs between the first and the trusted read: %w", errPermanent)
	}
	return t, nil
}

func clusterInfo(ctx context.Context, config *rest.Config) (*corev1.ConfigMap, error) {
	config.Timeout = 10 * time.Second
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	cm, err := client.ConfigMaps(metav1.NamespacePublic).Get(ctx, "cluster-info", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("discover: read cluster-info: %w", err)
	}
	return cm, nil
}

func parseClusterInfo(kubeconfig string) (trusted, error) {
	config, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		return trusted{}, fmt.Errorf("discover: parse cluster-info: %w", err)
	}
	for _, cluster := range config.Clusters {
		return trusted{server: cluster.Server, ca: cluster.CertificateAuthorityData}, nil
	}
	return trusted{}, errors.New("discover: cluster-info names no cluster")
}

// checkPins wants one certificate of the bundle to match one pin.
func checkPins(bundle []byte, hashes []string) error {
	if len(hashes) == 0 {
		return errors.New("discover: no CA pin was given")
	}
	var found []string
	for rest := bytes.TrimSpace(bundle); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("discover: parse CA: %w", err)
		}
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		hash := "sha256:" + hex.EncodeToString(sum[:])
		if slices.ContainsFunc(hashes, func(h string) bool { return strings.EqualFold(h, hash) }) {
			return nil
		}
		found = append(found, hash)
	}
	return fmt.Errorf("discover: the cluster's CA certificates %q match none of the pins", found)
}
