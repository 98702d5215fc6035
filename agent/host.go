package agent

import (
	"net"
	"os"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// thisHost is what this machine's kubelet reports of it, beside the name of its Node.
// Addresses of bridges are in it: no kubelet of another machine reports one.
func thisHost() nodecleaner.Host {
	h := nodecleaner.Host{
		MachineID:  firstLine("/etc/machine-id", "/var/lib/dbus/machine-id"), // the kubelet's own order (cadvisor)
		BootID:     firstLine("/proc/sys/kernel/random/boot_id"),
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
