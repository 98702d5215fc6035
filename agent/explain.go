package agent

import (
	"context"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// Explanation is the engine's, with what other services say of the thing.
type Explanation struct {
	plan.Explanation
	// Reaper is the nodecleaner's verdict on a node; nil for anything else.
	Reaper *ReaperVerdict `json:"reaper,omitempty"`
}

// The engine's own words for what the commands print.
type (
	Judgement  = plan.Judgement
	Verdict    = plan.Verdict
	PlanData   = plan.Data
	PodFacts   = plan.PodFacts
	NodeFacts  = plan.NodeFacts
	GroupFacts = plan.GroupFacts
	Blocker    = plan.Blocker
	// ReaperVerdict is the nodecleaner's word on a Node.
	ReaperVerdict = nodecleaner.Verdict
)

// DryExplain looks at the cluster and the cloud once, as DryRound does, and explains
// one thing. Kind is "pod", "node" or "group".
func DryExplain(ctx context.Context, cfg Config, log *logrus.Logger, kind, name string) (Explanation, error) {
	look, err := dryLook(ctx, cfg, log)
	if err != nil {
		return Explanation{}, err
	}
	x := explain(look.snapshot, look.memory, look.policy, look.lessons, kind, name)
	if kind == "node" && cfg.Nodecleaner.Enabled {
		x.Reaper = dryVerdict(cfg, look, name, log)
	}
	return x, nil
}

// dryVerdict is the nodecleaner's verdict on one look at the world: by what the running
// agent wrote down last, without its view of Leases and volumes.
func dryVerdict(cfg Config, look look, name string, log *logrus.Logger) *nodecleaner.Verdict {
	memory, err := nodecleaner.Peek(cfg.StateDir)
	if err != nil {
		log.WithField("why", err.Error()).Warn("the nodecleaner's ledger was not read: it looks as if nothing had been seen")
	}
	in := nodecleaner.Input{Now: look.snapshot.Now, Groups: look.snapshot.Groups}
	for _, n := range look.snapshot.Nodes {
		in.Nodes = append(in.Nodes, *n)
	}
	memory.LastRound = time.Time{} // the agent may be stopped: that is no reason to freeze an explanation
	return verdict(nodecleaner.Explain(in, memory, cfg.Nodecleaner.Policy(), cluster.NodeName(name)))
}

func verdict(v nodecleaner.Verdict) *nodecleaner.Verdict {
	if v.Rule == "" {
		return nil
	}
	return &v
}

func explain(s cluster.Snapshot, m plan.Memory, p plan.Policy, lessons map[string]observe.Lesson, kind, name string) Explanation {
	x := Explanation{Explanation: plan.Explain(s, m, p, plan.Query{Kind: kind, Name: name})}
	if x.Group != nil {
		x.Group.Template.Learnt = lessons[x.Group.Template.Spec].Tells()
	}
	return x
}

// serveExplain answers GET /explain?kind=pod&name=default/web-0.
func (a *running) serveExplain(w http.ResponseWriter, r *http.Request) {
	kind, name := r.FormValue("kind"), r.FormValue("name")
	if kind == "" || name == "" {
		http.Error(w, "ask /explain?kind=pod|node|group&name=NAME", http.StatusBadRequest)
		return
	}
	x := explain(a.observer.Look(), a.scaler.remembered(), a.policy(time.Now()), a.observer.Lessons(), kind, name)
	if kind == "node" && a.cleaner != nil {
		x.Reaper = verdict(a.cleaner.Explain(name))
	}
	writeJSON(w, x)
}

// remembered is the memory after the last round.
func (s *scaler) remembered() plan.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}
