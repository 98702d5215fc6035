package nojoin

import (
	"fmt"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// Renamed is the Node as which the machine of a Node that is not Ready answers now; empty: there is
// none. Its kubelet was started under another name, as after a change of the host name. It costs the
// nodes, and nothing for a Node that is Ready.
func Renamed(nodes []*cluster.Node, old *cluster.Node) cluster.NodeName {
	if old.Ready == cluster.StatusTrue {
		return ""
	}
	for _, n := range nodes {
		if n.Name != old.Name && n.Ready == cluster.StatusTrue && sameMachine(old, n) {
			return n.Name
		}
	}
	return ""
}

// sameMachine compares provider IDs; where one is missing, the UUID of the hardware.
func sameMachine(a, b *cluster.Node) bool {
	if a.ProviderID != "" && b.ProviderID != "" {
		return rules.SameMachine(a.ProviderID, b.ProviderID)
	}
	return a.SystemUUID != "" && strings.EqualFold(a.SystemUUID, b.SystemUUID)
}

// RenamedText says so in one sentence; RenamedRemedy is what to do about it.
func RenamedText(old, now cluster.NodeName) string {
	return fmt.Sprintf("its Node %s gets no news because the machine answers under another name, as Node %s: its host name was changed", old, now)
}

// RenamedRemedy tells how the old Node comes back.
const RenamedRemedy = "give the machine its old host name again (hostnamectl) or start its kubelet with --hostname-override=OLD, and delete the Node of the other name; user data of this version always writes the override"

// Silent says of a Node that is not heard of while its machine runs what can be the cause. A kubelet
// that lost its --hostname-override and was renamed may not create a Node and makes no certificate
// request (kubelet 1.36 waits for its Node's addresses first): nothing in the cluster shows it.
const Silent = "the cloud says that its machine runs: its kubelet has stopped, does not reach the API server, or runs under another name because the host name was changed (on the machine: hostnamectl, journalctl -u kubelet)"
