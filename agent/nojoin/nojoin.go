// Package nojoin tells why a machine never joined: it reads the consoles of the machines
// that a plan gives up for that, before they are gone with them.
//
// It refuses to change what the plan does, to hold a round up for longer than a few seconds,
// and to read the console of any other machine.
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

// Explain adds to the reason of each termination of a machine that never joined the diagnosis
// of its console. A console that cannot be read adds nothing; a nil Console reads none.
func (read Console) Explain(ctx context.Context, p decision.Plan, log *logrus.Entry) decision.Plan {
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
			text, err := read(ctx, t.Instance)
			if err != nil {
				log.WithError(err).WithField("instance", string(t.Instance)).Debug("the console of a machine that never joined cannot be read")
				return
			}
			t.Why += "; console: " + console.Diagnose(text, false).String()
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
