package agent

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
)

// known is what the agent has in memory of an instance and of its way to the cluster.
func (a *app) known(s *cluster.Snapshot, id string) nojoin.Known {
	k := nojoin.KnownOf(s, id, a.policy(s.Now).MaxNodeProvisionTime)
	if a.signer != nil {
		for _, j := range a.signer.Recent() { // the newest first
			if k.Asks(j.Node) {
				k.Request = &nojoin.Request{Name: j.Request, Node: j.Node, Kind: j.Kind, Do: j.Do, Rule: j.Rule, Why: j.Why, At: j.At}
				break
			}
		}
	}
	if m, ended := a.scaler.history.Ended(cluster.InstanceID(id).Last()); ended && !k.Launched.After(m.At) {
		k.Ended = &nojoin.Ended{At: m.At, Rule: m.Rule, Why: m.Why}
	}
	if _, in := nojoin.Find(s, id); in != nil && a.attest != nil {
		if last, ok := a.attest.LastAsked(in.ID.Last(), in.Addresses); ok {
			k.Attestation = &nojoin.Attestation{Rule: last.Rule, Why: last.Why, At: last.At}
		}
	}
	return k
}
