package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

const (
	kubeletDials   = 16 // at a time
	kubeletTimeout = 5 * time.Second
	kubeletsNamed  = 5 // in a finding
)

// kubeletDialer opens the TLS connection that an API server with
// --kubelet-certificate-authority would: to address, verified for that very address.
type kubeletDialer func(ctx context.Context, address string, settings *tls.Config) error

func dialKubelet(ctx context.Context, address string, settings *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Kubelets tells whether the API server could verify every kubelet:
// --kubelet-certificate-authority may be switched on once every Ready node serves a
// certificate of the cluster's CA for the address that the API server calls it by. It
// dials each kubelet and sends no request.
func Kubelets(ctx context.Context, cfg config.Config) []Finding {
	fail := func(err error) []Finding {
		return []Finding{{Level: LevelError, About: "kubelets", Text: err.Error()}}
	}
	kubeconfig, err := clients.Rest(cfg, true)
	if err != nil {
		return fail(err)
	}
	client, err := clients.Services(kubeconfig)
	if err != nil {
		return fail(err)
	}
	roots, err := clusterRoots(kubeconfig)
	if err != nil {
		return fail(err)
	}
	return checkKubelets(ctx, client, roots, dialKubelet)
}

// clusterRoots are the authorities that the kubeconfig trusts: with kubeadm the one that
// signs kubelets' certificates.
func clusterRoots(kubeconfig *rest.Config) (*x509.CertPool, error) {
	pem := kubeconfig.CAData
	if len(pem) == 0 && kubeconfig.CAFile != "" {
		var err error
		if pem, err = os.ReadFile(kubeconfig.CAFile); err != nil {
			return nil, fmt.Errorf("read the cluster's CA: %w", err)
		}
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("read the cluster's CA: the kubeconfig has none")
	}
	return roots, nil
}

func checkKubelets(ctx context.Context, client *kube.Client, roots *x509.CertPool, dial kubeletDialer) []Finding {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return []Finding{{Level: LevelError, About: "kubelets", Text: err.Error()}}
	}
	all := len(list.Items)
	ready := slices.DeleteFunc(list.Items, func(n corev1.Node) bool {
		return !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	})
	if len(ready) == 0 {
		return []Finding{{Level: LevelWarning, About: "kubelets",
			Text:   fmt.Sprintf("no node is Ready (of %d): nothing can be told about --kubelet-certificate-authority yet", all),
			Remedy: "ask again once nodes are Ready: kubectl get nodes"}}
	}
	slots, faults := make(chan struct{}, kubeletDials), make([]string, len(ready))
	var wait sync.WaitGroup
	for i := range ready {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := verifyKubelet(ctx, &ready[i], roots, dial); err != nil {
				faults[i] = fmt.Sprintf("%s: %v", ready[i].Name, err)
			}
		})
	}
	wait.Wait()
	faults = slices.DeleteFunc(faults, func(s string) bool { return s == "" })
	if len(faults) == 0 {
		text := fmt.Sprintf("all %d Ready nodes serve certificates of the cluster's CA: --kubelet-certificate-authority may be switched on", len(ready))
		if rest := all - len(ready); rest > 0 {
			text += fmt.Sprintf(" (%d that are not Ready were not asked)", rest)
		}
		return []Finding{{Level: LevelOK, About: "kubelets", Text: text}}
	}
	named := strings.Join(faults[:min(kubeletsNamed, len(faults))], "; ")
	if more := len(faults) - kubeletsNamed; more > 0 {
		named += fmt.Sprintf("; and %d more", more)
	}
	return []Finding{{Level: LevelWarning, About: "kubelets",
		Text:   fmt.Sprintf("%d of %d Ready nodes could not be verified: with --kubelet-certificate-authority, kubectl logs and exec would fail there: %s", len(faults), len(ready), named),
		Remedy: "set serverTLSBootstrap: true in their kubelets' configuration, and see why their requests are held: kubectl get csr, autoscaler-agent explain csr NAME"}}
}

// verifyKubelet goes by the addresses in the order of kubeadm's API server
// (--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname): it uses the first
// that the Node has.
func verifyKubelet(ctx context.Context, n *corev1.Node, roots *x509.CertPool, dial kubeletDialer) error {
	port := n.Status.DaemonEndpoints.KubeletEndpoint.Port
	if port == 0 {
		port = 10250
	}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeHostName} {
		for _, a := range n.Status.Addresses {
			if a.Type != kind {
				continue
			}
			settings := &tls.Config{RootCAs: roots, ServerName: a.Address, MinVersion: tls.VersionTLS12}
			return shortCause(dial(ctx, net.JoinHostPort(a.Address, strconv.Itoa(int(port))), settings))
		}
	}
	return errors.New("it reports no address")
}

// shortCause leaves out of a dial's error what the finding says already.
func shortCause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		if a, perr := netip.ParseAddrPort(op.Addr.String()); perr == nil {
			return fmt.Errorf("%s: %w", a, op.Err)
		}
	}
	return err
}
