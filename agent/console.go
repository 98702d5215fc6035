package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/console"
)

// consoleLimit is how long a round waits for consoles of machines that are given up: they
// are gone with them.
const consoleLimit = 5 * time.Second

// withConsoles says of each machine that is given up because it never joined what its
// console tells. A console that cannot be read changes nothing.
func (s *scaler) withConsoles(ctx context.Context, p decision.Plan) decision.Plan {
	if s.console == nil || !slices.ContainsFunc(p.Actions, func(a decision.Action) bool { _, late := neverJoined(a); return late }) {
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, consoleLimit)
	defer cancel()
	p.Actions = slices.Clone(p.Actions)
	var group sync.WaitGroup
	for i, a := range p.Actions {
		t, late := neverJoined(a)
		if !late {
			continue
		}
		group.Go(func() {
			text, err := s.console(ctx, t.Instance)
			if err != nil {
				s.log.WithError(err).WithField("instance", string(t.Instance)).Debug("the console of a machine that never joined cannot be read")
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

// consoleOf reads a machine's console for the scaler.
func (a *app) consoleOf(ctx context.Context, id cluster.InstanceID) (string, error) {
	return clients.Console(ctx, a.cfg, string(id))
}
