package rules_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// A kubelet asks for a serving certificate. The cloud vouches for its name and for one of
// its two addresses.
func ExampleDecide() {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	id := cluster.InstanceID("aws:///us-east-1a/i-0a")
	request := rules.Request{
		Name: "csr-x", Signer: rules.ServingSigner, Username: rules.UserPrefix + "worker-1", Created: now,
		Groups: []string{rules.NodesGroup, rules.AuthGroup}, Usages: []string{"digital signature", "server auth"},
		Parsed: rules.Parsed{CommonNames: []string{rules.UserPrefix + "worker-1"}, Organizations: []string{rules.NodesGroup}, Key: "ECDSA P-256",
			DNS: []string{"worker-1"}, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("10.0.0.9")}, SANExtensions: 1},
	}
	worker := cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: now.Add(-time.Minute),
		NodeNames: []string{"worker-1"}, Names: []string{"worker-1"}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.5")}}
	groups := []cluster.NodeGroup{{ID: "workers", ReadAt: now, Instances: []cluster.Instance{worker}}}
	facts := rules.Facts{
		Now: now, MaxExpiration: time.Hour, MaxAge: 30 * time.Second,
		Forbidden: &rules.Forbidden{Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, DNSDomain: "cluster.local"},
		Node:      &rules.Node{Name: "worker-1", ProviderID: string(id)},
		Inventory: rules.Sources{}.Witness(groups, string(id), "worker-1", request.Parsed),
	}

	v := rules.Decide(request, facts)
	fmt.Printf("%s by %s: %s\n", v.Do, v.Rule, v.Why)

	request.Parsed.IPs = request.Parsed.IPs[:1]
	v = rules.Decide(request, facts)
	fmt.Printf("%s by %s: %s\n", v.Do, v.Rule, v.Why)
	// Output:
	// later by R14: address 10.0.0.9 is none of the addresses of aws:///us-east-1a/i-0a ([10.0.0.5])
	// approve by serving: aws:///us-east-1a/i-0a of group workers vouches for every name and address
}
