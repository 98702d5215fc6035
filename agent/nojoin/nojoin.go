// Package nojoin tells in one sentence (Conclude) why a machine never joined. It reads the agent's own facts
// about the machine (Known), its user data and its console. When a plan gives such machines up, the package reads
// their consoles first: the cloud deletes a console with its machine.
//
// It refuses to change what the plan does, to hold a round up for longer than a few seconds,
// and to ask the API server.
package nojoin

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/console"
)

// limit is how long a round waits for all consoles.
const limit = 5 * time.Second

// Console reads the console of a machine.
type Console func(context.Context, cluster.InstanceID) (string, error)

// Explain adds to the reason of each termination of a machine that never joined what is known of it
// and the diagnosis of its console. A nil Console adds nothing.
func (read Console) Explain(ctx context.Context, p decision.Plan, known func(cluster.InstanceID) Known, log *logrus.Entry) decision.Plan {
	if read == nil || !slices.ContainsFunc(p.Actions, func(a decision.Action) bool { _, late := neverJoined(a); return late }) {
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p.Actions = slices.Clone(p.Actions)
	var group sync.WaitGroup
	for i, a := range p.Actions {
		t, late := neverJoined(a)
		if !late {
			continue
		}
		group.Go(func() {
			facts := Facts{Known: known(t.Instance)}
			text, err := read(ctx, t.Instance)
			if err == nil {
				d := console.Diagnose(text, false)
				facts.Console = &d
			} else {
				log.WithError(err).WithField("instance", string(t.Instance)).Debug("the console of a machine that never joined cannot be read")
			}
			t.Why += "; " + Conclude(facts).line()
			p.Actions[i] = t
		})
	}
	group.Wait()
	return p
}

func neverJoined(a decision.Action) (decision.Terminate, bool) {
	t, ok := a.(decision.Terminate)
	return t, ok && t.Rule == decision.RuleNoJoin
}
