package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
)

// machine is what checkLeader asks of the machine that it runs on.
type machine struct {
	name       string   // its host name, or AUTOSCALER_NODE_NAME
	addresses  []string // of its interfaces
	advertised string   // the address for which kubeadm set its API server up; empty: unknown
	lookup     func(ctx context.Context, host string) ([]string, error)
	dial       func(ctx context.Context, address string, settings *tls.Config) error
}

func thisMachine(cfg config.Config) machine {
	m := machine{lookup: net.DefaultResolver.LookupHost, dial: dialKubelet}
	m.name, _ = cfg.Identity() // no name is a name of no Node
	m.advertised = advertised(serverManifest)
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			m.addresses = append(m.addresses, n.IP.String())
		}
	}
	return m
}

// serverManifest is kubeadm's static pod of the API server.
const serverManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"

// advertised reads the address of a manifest's --advertise-address. Only root may read kubeadm's.
func advertised(manifest string) string {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return ""
	}
	return flagsOf(strings.Fields(string(text)))["advertise-address"]
}

// checkLeader looks at what docs/install.md asks of the cluster and of this machine.
func checkLeader(ctx context.Context, cfg config.Config, client *kube.Client, kubeconfig *rest.Config, serving func(context.Context) (*x509.Certificate, error), m machine) []Finding {
	out := checkOwnCertificate(kubeconfig, time.Now())
	if cfg.CSR.Enabled || cfg.Bootstrap.Enabled {
		out = append(out, checkManager(ctx, cfg, client)...)
		out = append(out, checkName(ctx, client, m)...)
	}
	if cfg.Bootstrap.Enabled {
		out = append(out, checkEndpoint(ctx, cfg, client, serving, m)...)
	}
	return out
}

// checkOwnCertificate tells when the agent's client certificate ends.
func checkOwnCertificate(kubeconfig *rest.Config, now time.Time) []Finding {
	const about, remedy = "own certificate", "autoscaler-agent install --renew, and see why autoscaler-agent-renew.timer did not: journalctl -u autoscaler-agent-renew"
	data := kubeconfig.CertData
	if len(data) == 0 && kubeconfig.CertFile != "" {
		var err error
		if data, err = os.ReadFile(kubeconfig.CertFile); err != nil {
			return []Finding{{Level: LevelError, About: about, Text: err.Error(), Remedy: remedy}}
		}
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil // a token, or a program that makes one
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return []Finding{{Level: LevelError, About: about, Text: err.Error(), Remedy: remedy}}
	}
	text := fmt.Sprintf("user %s until %s", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
	switch left := cert.NotAfter.Sub(now); {
	case left <= 0:
		return []Finding{{Level: LevelError, About: about, Text: text + ": it has ended", Remedy: remedy}}
	case left < certificateWarning && left < cert.NotAfter.Sub(cert.NotBefore)/4:
		return []Finding{{Level: LevelWarning, About: about, Text: text + ": it ends soon", Remedy: remedy}}
	}
	return []Finding{{Level: LevelOK, About: about, Text: text}}
}

// checkManager reads what the controller manager was started with, by its pod.
func checkManager(ctx context.Context, cfg config.Config, client *kube.Client) []Finding {
	const about, name = "controller manager", "kube-controller-manager"
	remedy := "mend /etc/kubernetes/manifests/kube-controller-manager.yaml"
	list, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return []Finding{unasked(LevelWarning, about, "", err)}
	}
	var out []Finding
	seen := 0
	for _, pod := range list.Items {
		if !strings.HasPrefix(pod.Name, name+"-") || len(pod.Spec.Containers) == 0 {
			continue
		}
		seen++
		flags := flagsOf(slices.Concat(pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args))
		var wrong []string
		if cfg.Bootstrap.Enabled {
			for controller, why := range map[string]string{"bootstrapsigner": "cluster-info is not signed, and no machine can join", "tokencleaner": "join tokens are not removed when they end"} {
				if !controllerOn(flags["controllers"], controller) {
					wrong = append(wrong, fmt.Sprintf("--controllers has no %s: %s", controller, why))
				}
			}
		}
		if cfg.CSR.Enabled && !signs(flags) {
			wrong = append(wrong, "it has no CA to sign with (--cluster-signing-cert-file, --cluster-signing-key-file): approved certificates are never issued")
		}
		slices.Sort(wrong)
		for _, w := range wrong {
			out = append(out, Finding{Level: LevelError, About: about, Text: pod.Name + ": " + w, Remedy: remedy})
		}
	}
	switch {
	case seen == 0:
		return []Finding{{Level: LevelOK, About: about, Text: "it runs in no pod of kube-system, so that its flags cannot be seen: it needs the controllers bootstrapsigner and tokencleaner and the signing CA"}}
	case len(out) == 0:
		return []Finding{{Level: LevelOK, About: about, Text: "it signs certificates and cluster-info, and removes ended join tokens"}}
	}
	return out
}

// flagsOf reads --NAME=VALUE and --NAME VALUE; a later one wins.
func flagsOf(args []string) map[string]string {
	out := map[string]string{}
	for i, a := range args {
		name, value, ok := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !strings.HasPrefix(a, "-") {
			continue
		}
		if !ok && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		out[name] = value
	}
	return out
}

// controllerOn follows kube-controller-manager: these controllers are off unless they are named.
func controllerOn(controllers, name string) bool {
	return slices.Contains(strings.Split(controllers, ","), name)
}

// signs: one CA for all, or one for each signer of kubelets' certificates.
func signs(flags map[string]string) bool {
	pair := func(prefix string) bool { return flags[prefix+"-cert-file"] != "" && flags[prefix+"-key-file"] != "" }
	return pair("cluster-signing") || pair("cluster-signing-kubelet-client") && pair("cluster-signing-kubelet-serving")
}

const addressRemedy = "give the machine its fixed address back, or carry out docs/leader.md, \"Another address\""

// checkName looks whether this machine still bears the name and an address of its Node.
func checkName(ctx context.Context, client *kube.Client, m machine) []Finding {
	const about = "leader"
	leaders, err := clients.Leaders(ctx, client)
	if err != nil {
		return []Finding{{Level: LevelWarning, About: about, Text: err.Error()}}
	}
	if len(leaders) == 0 {
		return []Finding{{Level: LevelOK, About: about, Text: "no Node is labelled " + cluster.LabelControlPlane}}
	}
	var others []string
	for i := range leaders {
		n := &leaders[i]
		addresses := nodeAddresses(n)
		here := slices.ContainsFunc(addresses, func(a string) bool { return slices.Contains(m.addresses, a) })
		switch {
		case n.Name == m.name && here:
			return []Finding{{Level: LevelOK, About: about, Text: fmt.Sprintf("this machine is Node %s (%s)", n.Name, strings.Join(addresses, ", "))}}
		case n.Name == m.name:
			return []Finding{{Level: LevelError, About: about, Text: fmt.Sprintf("Node %s has the addresses %s, and this machine has none of them: it came back with another address, or another machine bears its name", n.Name, strings.Join(addresses, ", ")),
				Remedy: addressRemedy}}
		case here:
			return []Finding{{Level: LevelWarning, About: about, Text: fmt.Sprintf("this machine is called %s, and its address is that of Node %s: it came back with another host name, or the Node has a name of its own; until the agent knows it, the certificate of its kubelet is held (R16)", cmp.Or(m.name, "nothing"), n.Name),
				Remedy: "set " + config.Prefix + "_NODE_NAME=" + n.Name + ", or hostnamectl set-hostname " + n.Name}}
		}
		others = append(others, fmt.Sprintf("%s (%s)", n.Name, strings.Join(addresses, ", ")))
	}
	return []Finding{{Level: LevelWarning, About: about, Text: fmt.Sprintf("this machine, %s, is no Node of the control plane, which are %s", cmp.Or(m.name, "without a name"), strings.Join(others, ", ")),
		Remedy: "run the agent on one of them, or set " + config.Prefix + "_NODE_NAME"}}
}

// checkServer is for an API server that does not answer: a leader that came back with another
// address is not found by the name in its own kubeconfig.
func checkServer(ctx context.Context, server string, m machine) []Finding {
	if m.advertised != "" && !slices.Contains(m.addresses, m.advertised) {
		return []Finding{{Level: LevelError, About: "leader", Text: fmt.Sprintf("kubeadm set API server and etcd of this machine up for %s, and it has only %s: it came back with another address", m.advertised, strings.Join(m.addresses, ", ")), Remedy: addressRemedy}}
	}
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	remedy := "if this is the leader and it came back with another address, point " + u.Hostname() + " to it; this machine has " + strings.Join(m.addresses, ", ")
	found, err := m.lookup(ctx, u.Hostname())
	if err != nil {
		return []Finding{{Level: LevelError, About: "leader", Text: err.Error(), Remedy: remedy}}
	}
	if slices.ContainsFunc(found, func(a string) bool { return slices.Contains(m.addresses, a) }) {
		return nil
	}
	return []Finding{{Level: LevelWarning, About: "leader", Text: fmt.Sprintf("%s leads to %s, which is no address of this machine", u.Hostname(), strings.Join(found, ", ")), Remedy: remedy}}
}

func nodeAddresses(n *corev1.Node) (out []string) {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
			out = append(out, a.Address)
		}
	}
	return out
}

// checkEndpoint compares the address that workers join with the API server's certificate, with
// DNS and with what answers there.
func checkEndpoint(ctx context.Context, cfg config.Config, client *kube.Client, serving func(context.Context) (*x509.Certificate, error), m machine) []Finding {
	const about = "endpoint"
	e, err := bootstrap.ReadEndpoint(ctx, client, cfg.Bootstrap)
	if err != nil {
		return []Finding{{Level: LevelError, About: about, Text: err.Error()}}
	}
	cert, err := serving(ctx)
	if err == nil {
		err = e.Covers(cert)
	}
	if err != nil {
		return []Finding{{Level: LevelError, About: about, Text: err.Error(), Remedy: "kubeadm init phase certs apiserver, with the name in apiServer.certSANs, makes it anew"}}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.CA)
	addresses := []string{e.Address}
	if u, err := url.Parse(e.Server); err == nil && u.Host != e.Address && u.Port() != "" {
		addresses = append(addresses, u.Host) // a kubelet keeps cluster-info's
	}
	for _, address := range addresses {
		if f, wrong := reach(ctx, address, e.Source, roots, m); wrong {
			return []Finding{f}
		}
	}
	return []Finding{{Level: LevelOK, About: about, Text: fmt.Sprintf("%s (%s) is in the API server's certificate, and this cluster's API server answers there", strings.Join(addresses, " and "), e.Source)}}
}

// reach resolves an address and shakes hands there, as a worker will.
func reach(ctx context.Context, address, source string, roots *x509.CertPool, m machine) (Finding, bool) {
	const about = "endpoint"
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return Finding{Level: LevelError, About: about, Text: fmt.Sprintf("%s (%s): %v", address, source, err)}, true
	}
	found, err := m.lookup(ctx, host)
	if err != nil {
		return Finding{Level: LevelError, About: about, Text: fmt.Sprintf("%s (%s) does not resolve: %v", address, source, err),
			Remedy: "make a DNS record for " + host + " that leads to this machine (" + strings.Join(m.addresses, ", ") + ")"}, true
	}
	for _, a := range found {
		if err := m.dial(ctx, net.JoinHostPort(a, port), &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}); err != nil {
			return Finding{Level: LevelError, About: about, Text: fmt.Sprintf("%s (%s) leads to %s, and this cluster's API server does not answer there: %v", address, source, a, shortCause(err)),
				Remedy: "if the leader came back with another address, point " + host + " to it; this machine has " + strings.Join(m.addresses, ", ")}, true
		}
	}
	return Finding{}, false
}
