package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// Explanation is the engine's, with what other services say of the thing.
type Explanation struct {
	decision.Explanation
	// Reaper is the nodecleaner's verdict on a node; nil for anything else.
	Reaper *ReaperVerdict `json:"reaper,omitempty"`
}

// The engine's own words for what the commands print.
type (
	Judgement  = decision.Judgement
	Verdict    = decision.Verdict
	PlanData   = decision.Data
	PodFacts   = decision.PodFacts
	NodeFacts  = decision.NodeFacts
	GroupFacts = decision.GroupFacts
	Blocker    = decision.Blocker
	// ReaperVerdict is the nodecleaner's word on a Node.
	ReaperVerdict = reaper.Verdict
)

// CSRExplanation is csrsigner's own judgement of one certificate request.
type CSRExplanation = csrsigner.Explanation

// CSRStep is one rule of such a judgement.
type CSRStep = rules.Step

// DryExplainCSR judges a certificate request once with clients of its own, as the running
// agent would, and decides nothing.
func DryExplainCSR(ctx context.Context, cfg Config, log *logrus.Logger, name string) (CSRExplanation, error) {
	config, err := restConfig(cfg, true)
	if err != nil {
		return CSRExplanation{}, err
	}
	client, _, err := newClients(cfg, config)
	if err != nil {
		return CSRExplanation{}, err
	}
	settings, err := groups.Open(cfg.GroupsFile, sections(), log.WithField("service", "groups"))
	if err != nil {
		return CSRExplanation{}, err
	}
	cloud, err := cfg.Parts.provider(ctx, cfg, settings.Section)
	if err != nil {
		return CSRExplanation{}, fmt.Errorf("provider %s: %w", cfg.Provider, err)
	}
	a := &running{cfg: cfg, log: log.WithField("service", "agent"), rest: config, client: client, settings: settings, gate: election.New(cfg.Lease, election.Deps{})}
	if a.identity, err = cfg.identity(); err != nil {
		return CSRExplanation{}, err
	}
	a.factory = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(convert.Strip))
	a.inventory = inventory.New(cloud, cfg.Observe.Fast, cfg.Observe.Slow, cfg.Observe.Timeout, log.WithField("service", "inventory"))
	signer, err := cfg.Parts.signer(a)
	if err != nil {
		return CSRExplanation{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	a.factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), signer.Start(ctx)...) {
		return CSRExplanation{}, errors.New("read the cluster: the lists of Nodes and certificate requests did not come in time")
	}
	return signer.Explain(ctx, name)
}

// DryExplain looks at the cluster and the cloud once, as DryRound does, and explains
// one thing. Kind is "pod", "node" or "group".
func DryExplain(ctx context.Context, cfg Config, log *logrus.Logger, kind, name string) (Explanation, error) {
	look, err := dryLook(ctx, cfg, log)
	if err != nil {
		return Explanation{}, err
	}
	x := explain(look.snapshot, look.memory, look.policy, look.corrections, kind, name)
	if kind == "node" && cfg.Nodecleaner.Enabled {
		x.Reaper = dryVerdict(cfg, look, name, log)
	}
	return x, nil
}

// dryVerdict is the nodecleaner's verdict on one look at the world: by what the running
// agent wrote down last, without its view of Leases and volumes.
func dryVerdict(cfg Config, look look, name string, log *logrus.Logger) *reaper.Verdict {
	memory, err := nodecleaner.Peek(cfg.StateDir)
	if err != nil {
		log.WithField("why", err.Error()).Warn("the nodecleaner's ledger was not read: it looks as if nothing had been seen")
	}
	in := reaper.Input{Now: look.snapshot.Now, Groups: look.snapshot.Groups}
	for _, n := range look.snapshot.Nodes {
		in.Nodes = append(in.Nodes, *n)
	}
	memory.LastRound = time.Time{} // the agent may be stopped: that is no reason to freeze an explanation
	return verdict(reaper.Explain(in, memory, cfg.Nodecleaner.Policy(), cluster.NodeName(name)))
}

func verdict(v reaper.Verdict) *reaper.Verdict {
	if v.Rule == "" {
		return nil
	}
	return &v
}

func explain(s cluster.Snapshot, m decision.Memory, p decision.Policy, corrections map[string]template.Correction, kind, name string) Explanation {
	x := Explanation{Explanation: plan.Explain(s, m, p, decision.Query{Kind: kind, Name: name})}
	if x.Group != nil {
		x.Group.Template.Learnt = corrections[x.Group.Template.Spec].Describe()
	}
	return x
}

// serveExplain answers GET /explain?kind=pod&name=default/web-0.
func (a *running) serveExplain(w http.ResponseWriter, r *http.Request) {
	kind, name := r.FormValue("kind"), r.FormValue("name")
	if kind == "" || name == "" {
		http.Error(w, "ask /explain?kind=pod|node|group|csr&name=NAME", http.StatusBadRequest)
		return
	}
	if kind == "csr" {
		a.serveCSR(w, r, name)
		return
	}
	x := explain(a.observer.ReadOnlySnapshot(), a.scaler.remembered(), a.policy(time.Now()), a.observer.Corrections(), kind, name)
	if kind == "node" && a.cleaner != nil {
		x.Reaper = verdict(a.cleaner.Explain(name))
	}
	writeJSON(w, x)
}

// serveCSR answers for one certificate request.
func (a *running) serveCSR(w http.ResponseWriter, r *http.Request, name string) {
	if a.signer == nil {
		http.Error(w, "certificates are not approved here: "+Prefix+"_CSR_ENABLED is false", http.StatusNotFound)
		return
	}
	x, err := a.signer.Explain(r.Context(), name)
	switch {
	case apierrors.IsNotFound(err):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		writeJSON(w, x)
	}
}

// remembered is the memory after the last round.
func (s *scaler) remembered() decision.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}
