package csrsigner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/servingcert"
)

// ReadForbidden gathers what rule R9 protects: the names and addresses of the API
// server's own certificate, of the "kubernetes" Service and its endpoints, of the
// control-plane endpoint, the service ranges and the cluster domain. The
// certificate, the Service and one source of service ranges must be readable;
// without them nothing is approved. What else cannot be read stands in Unread.
func ReadForbidden(ctx context.Context, client *kube.Client, config *rest.Config, cfg Config) (*rules.Forbidden, error) {
	b := &reading{rules.Forbidden{DNSDomain: cfg.DNSDomain, Ranges: prefixes(cfg.ServiceCIDRs), Allowed: prefixes(cfg.AllowedRanges)}}
	b.add(cfg.ForbiddenNames...)
	cert, err := servingcert.Fetch(ctx, config)
	if err != nil {
		return nil, err
	}
	b.add(cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		b.add(ip.String())
	}
	b.addURL(config.Host)
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Service default/kubernetes: %w", err)
	}
	b.add(service.Spec.ClusterIPs...)
	ranges, kubeadm := b.addServiceRanges(ctx, client), b.addKubeadm(ctx, client)
	slices.SortFunc(b.Ranges, netip.Prefix.Compare)
	b.Ranges = slices.Compact(b.Ranges) // ServiceCIDRs and kubeadm-config name the same ones
	if len(b.Ranges) == 0 {
		return nil, fmt.Errorf("find the service ranges: set AUTOSCALER_CSR_SERVICE_CIDRS: %w", errors.Join(ranges, kubeadm))
	}
	var unread []string
	for _, err := range []error{unlessAbsent(ranges), unlessAbsent(kubeadm), b.addEndpoints(ctx, client)} {
		if err != nil {
			unread = append(unread, err.Error())
		}
	}
	b.Unread = strings.Join(unread, "; ")
	if b.DNSDomain == "" {
		b.DNSDomain = "cluster.local"
	}
	return &b.Forbidden, nil
}

// reading is a Forbidden that is being gathered.
type reading struct{ rules.Forbidden }

// unlessAbsent passes over what a cluster need not have: ServiceCIDRs came with
// Kubernetes 1.33, and not every cluster was made by kubeadm.
func unlessAbsent(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// add takes names and addresses alike.
func (b *reading) add(values ...string) {
	for _, v := range values {
		if a, err := netip.ParseAddr(v); err == nil {
			if a = rules.CanonicalAddress(a); !slices.Contains(b.Addresses, a) {
				b.Addresses = append(b.Addresses, a)
			}
			continue
		}
		if name := rules.CanonicalName(v); name != "" && !slices.Contains(b.Names, name) {
			b.Names = append(b.Names, name)
		}
	}
}

func (b *reading) addURL(raw string) {
	if u, err := url.Parse(raw); err == nil && u.Hostname() != "" {
		b.add(u.Hostname())
	}
}

// addServiceRanges reads ServiceCIDR objects (Kubernetes 1.33 and later).
func (b *reading) addServiceRanges(ctx context.Context, client *kube.Client) error {
	list, err := client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ServiceCIDRs: %w", err)
	}
	for _, item := range list.Items {
		b.Ranges = append(b.Ranges, prefixes(item.Spec.CIDRs)...)
	}
	return nil
}

// addKubeadm reads what kubeadm init was told.
func (b *reading) addKubeadm(ctx context.Context, client *kube.Client) error {
	config, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read ConfigMap kube-system/kubeadm-config: %w", err)
	}
	var kubeadm struct {
		ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
		APIServer            struct {
			CertSANs []string `json:"certSANs"`
		} `json:"apiServer"`
		Networking struct {
			ServiceSubnet string `json:"serviceSubnet"`
			DNSDomain     string `json:"dnsDomain"`
		} `json:"networking"`
	}
	if err := yaml.Unmarshal([]byte(config.Data["ClusterConfiguration"]), &kubeadm); err != nil {
		return fmt.Errorf("read ConfigMap kube-system/kubeadm-config: %w", err)
	}
	b.Ranges = append(b.Ranges, prefixes(splitList(kubeadm.Networking.ServiceSubnet))...)
	if b.DNSDomain == "" {
		b.DNSDomain = kubeadm.Networking.DNSDomain
	}
	host, _, err := net.SplitHostPort(kubeadm.ControlPlaneEndpoint)
	if err != nil {
		host = kubeadm.ControlPlaneEndpoint
	}
	host = strings.Trim(host, "[]")
	b.add(append(kubeadm.APIServer.CertSANs, host)...)
	b.Endpoint = rules.CanonicalName(host)
	if a, err := netip.ParseAddr(host); err == nil {
		b.Endpoint = rules.CanonicalAddress(a).String()
	}
	return nil
}

func (b *reading) addEndpoints(ctx context.Context, client *kube.Client) error {
	list, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx,
		metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	if err != nil {
		return fmt.Errorf("list EndpointSlices of default/kubernetes: %w", err)
	}
	for _, item := range list.Items {
		for _, e := range item.Endpoints {
			b.add(e.Addresses...)
		}
	}
	return nil
}

func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
