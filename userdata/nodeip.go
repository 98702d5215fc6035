package userdata

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed steps/nodeip.sh
var nodeIPSteps string

// NodeIPs are the families of addresses that a kubelet can be told to register, in their order.
var NodeIPs = []string{"ipv4", "ipv6", "ipv4,ipv6", "ipv6,ipv4"}

// KubeletNodeIP is the kubelet's --node-ip for one of NodeIPs, and the shell steps that come before. Of one family it is the
// unspecified address, with which the kubelet looks for its own; of two the kubelet wants both addresses.
func KubeletNodeIP(families string) (value, steps string) {
	switch families {
	case "":
		return "", ""
	case "ipv4":
		return "0.0.0.0", ""
	case "ipv6":
		return "::", ""
	}
	return ref("NODE_IPS"), bare(nodeIPSteps) + "node_ips " + strings.ReplaceAll(families, ",", " ") + "\n"
}

// badNodeIP tells what is wrong with a choice of addresses; empty: nothing.
func badNodeIP(families string) string {
	if families == "" || slices.Contains(NodeIPs, families) {
		return ""
	}
	return "use " + strings.Join(NodeIPs, " or ")
}
