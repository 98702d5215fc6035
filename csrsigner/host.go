package csrsigner

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// readSelf asks this host for its names and addresses: the witness of the leader's own
// kubelet (R16). node is the name of this machine's Node, more are further names and
// addresses that the operator vouches for. DNS is not asked.
func readSelf(node string, more []string) rules.Self {
	self := rules.Self{Node: node, Names: []string{node}}
	if host, err := os.Hostname(); err == nil && host != "" {
		name := rules.CanonicalName(host)
		short, _, _ := strings.Cut(name, ".")
		self.Names = append(self.Names, name, short)
	}
	for _, m := range more {
		if a, err := netip.ParseAddr(m); err == nil {
			self.Addresses = append(self.Addresses, rules.CanonicalAddress(a))
		} else {
			self.Names = append(self.Names, rules.CanonicalName(m))
		}
	}
	// Absent on hosts without systemd: one binding less, not a fault.
	if id, err := os.ReadFile("/etc/machine-id"); err == nil {
		self.MachineID = strings.TrimSpace(string(id))
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		self.Problem = err.Error()
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				self.Addresses = append(self.Addresses, rules.CanonicalAddress(ip))
			}
		}
	}
	slices.Sort(self.Names)
	self.Names = slices.Compact(self.Names)
	slices.SortFunc(self.Addresses, netip.Addr.Compare)
	self.Addresses = slices.Compact(self.Addresses)
	return self
}
