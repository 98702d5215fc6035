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
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
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

// CSRExplanation is csrsigner's own judgement of one certificate request.
type CSRExplanation = csrsigner.Explanation

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
	a := &running{cfg: cfg, log: log.WithField("service", "agent"), rest: config, client: client, settings: settings, gate: &gate{cfg: cfg.Lease}}
	if a.identity, err = cfg.identity(); err != nil {
		return CSRExplanation{}, err
	}
	a.factory = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(observe.Strip))
	a.inventory = observe.NewInventory(cloud, cfg.Observe.Fast, cfg.Observe.Slow, cfg.Observe.Timeout, log.WithField("service", "inventory"))
	signer := cfg.Parts.signer(a)
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
		http.Error(w, "ask /explain?kind=pod|node|group|csr&name=NAME", http.StatusBadRequest)
		return
	}
	if kind == "csr" {
		a.serveCSR(w, r, name)
		return
	}
	writeJSON(w, explain(a.observer.Look(), a.scaler.remembered(), a.policy(time.Now()), a.observer.Lessons(), kind, name))
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
func (s *scaler) remembered() plan.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}
