package agent

import (
	"context"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// The engine's own words for what the commands print.
type (
	Explanation = plan.Explanation
	Judgement   = plan.Judgement
	Verdict     = plan.Verdict
	PlanData    = plan.Data
	PodFacts    = plan.PodFacts
	NodeFacts   = plan.NodeFacts
	GroupFacts  = plan.GroupFacts
	Blocker     = plan.Blocker
)

// DryExplain looks at the cluster and the cloud once, as DryRound does, and explains
// one thing. Kind is "pod", "node" or "group".
func DryExplain(ctx context.Context, cfg Config, log *logrus.Logger, kind, name string) (Explanation, error) {
	look, err := dryLook(ctx, cfg, log)
	if err != nil {
		return Explanation{}, err
	}
	return explain(look.snapshot, look.memory, look.policy, look.lessons, kind, name), nil
}

func explain(s cluster.Snapshot, m plan.Memory, p plan.Policy, lessons map[string]observe.Lesson, kind, name string) Explanation {
	x := plan.Explain(s, m, p, plan.Query{Kind: kind, Name: name})
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
	writeJSON(w, explain(a.observer.Look(), a.scaler.remembered(), a.policy(time.Now()), a.observer.Lessons(), kind, name))
}

// remembered is the memory after the last round.
func (s *scaler) remembered() plan.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}
