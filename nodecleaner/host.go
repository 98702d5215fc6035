package nodecleaner

import (
	"net"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/internal/bootid"
)

// Host holds the identities of a machine other than the name of its Node.
type Host struct {
	MachineID  string // /etc/machine-id
	BootID     string // of the running kernel
	SystemUUID string // of the firmware; empty where it may not be read
	Addresses  []string
}

// is reports whether the kubelet of n runs on this machine. The machine ID alone is no
// proof: machines from one image may have the same.
func (h Host) is(n *corev1.Node) bool {
	info := n.Status.NodeInfo
	if h.MachineID == "" || info.MachineID != h.MachineID {
		return false
	}
	return h.BootID != "" && info.BootID == h.BootID || h.SystemUUID != "" && strings.EqualFold(info.SystemUUID, h.SystemUUID) ||
		slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return slices.Contains(h.Addresses, a.Address) })
}

// ThisHost is what this machine's kubelet reports of it, beside the name of its Node.
// Addresses of bridges are in it: no kubelet of another machine reports one.
func ThisHost() Host {
	h := Host{
		MachineID:  firstLine("/etc/machine-id", "/var/lib/dbus/machine-id"), // the kubelet's own order (cadvisor)
		BootID:     bootid.Read(),
		SystemUUID: firstLine("/sys/class/dmi/id/product_uuid"), // root's alone on most systems
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return h // one proof less: E2 has the others
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			h.Addresses = append(h.Addresses, n.IP.String())
		}
	}
	return h
}

// firstLine is what the first of some files says that can be read.
func firstLine(paths ...string) string {
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil {
			return strings.TrimSpace(string(data))
		}
	}
	return ""
}
