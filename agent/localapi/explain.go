package localapi

import (
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/template"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// Explanation is the engine's, with what other services say of the thing.
type Explanation struct {
	decision.Explanation
	// Reaper is the nodecleaner's verdict on a node; nil for anything else.
	Reaper *reaper.Verdict `json:"reaper,omitempty"`
	// AnswersAs is the Node as which the machine of a Node that is not Ready answers now.
	AnswersAs cluster.NodeName `json:"answersAs,omitempty"`
}

// Verdict is the reaper's verdict where it has one.
func Verdict(v reaper.Verdict) *reaper.Verdict {
	if v.Rule == "" {
		return nil
	}
	return &v
}

// Explain asks the engine about one thing and adds what was learnt of a group's template.
func Explain(s cluster.Snapshot, m decision.Memory, p decision.Policy, corrections map[string]template.Correction, kind, name string) Explanation {
	x := Explanation{Explanation: plan.Explain(s, m, p, decision.Query{Kind: kind, Name: name})}
	withNumbers(&x.Explanation, &s)
	if kind == "node" {
		x.silent(&s, cluster.NodeName(name))
	}
	if x.Group != nil {
		x.Group.Template.Learnt = corrections[x.Group.Template.Spec].Describe()
	}
	return x
}

// silent adds why a Node may not be heard of although its machine runs.
func (x *Explanation) silent(s *cluster.Snapshot, name cluster.NodeName) {
	at := slices.IndexFunc(s.Nodes, func(n *cluster.Node) bool { return n.Name == name })
	if at < 0 {
		return
	}
	if x.AnswersAs = nojoin.Renamed(s.Nodes, s.Nodes[at]); x.AnswersAs != "" {
		x.Summary = nojoin.RenamedText(name, x.AnswersAs) + " (" + nojoin.RenamedRemedy + "); " + x.Summary
		return
	}
	if s.Nodes[at].Ready != cluster.StatusUnknown {
		return
	}
	if _, in := nojoin.Find(s, s.Nodes[at].ProviderID); in != nil && in.Phase == cluster.PhaseRunning {
		x.Summary += "; " + nojoin.Silent
	}
}

// serveExplain answers GET /explain?kind=pod&name=default/web-0.
func (s *Server) serveExplain(w http.ResponseWriter, r *http.Request) {
	kind, name := r.FormValue("kind"), r.FormValue("name")
	if kind == "" || name == "" {
		http.Error(w, "ask /explain?kind=pod|node|group|csr|instance&name=NAME", http.StatusBadRequest)
		return
	}
	if kind == "csr" {
		s.serveCSR(w, r, name)
		return
	}
	s.seen(kind == "group" || kind == "instance", s.serveKnown)(w, r)
}

// serveKnown answers from what the agent has read.
func (s *Server) serveKnown(w http.ResponseWriter, r *http.Request) {
	kind, name := r.FormValue("kind"), r.FormValue("name")
	if kind == "instance" {
		look := s.Observer.ReadOnlySnapshot()
		writeJSON(w, s.Known(&look, name))
		return
	}
	x := Explain(s.Observer.ReadOnlySnapshot(), s.Memory(), s.Policy(time.Now()), s.Observer.Corrections(), kind, name)
	if kind == "node" && s.Cleaner != nil {
		x.Reaper = Verdict(s.Cleaner.Explain(name))
	}
	writeJSON(w, x)
}

// serveCSR answers for one certificate request.
func (s *Server) serveCSR(w http.ResponseWriter, r *http.Request, name string) {
	if s.Signer == nil {
		http.Error(w, "certificates are not approved here: "+config.Prefix+"_CSR_ENABLED is false", http.StatusNotFound)
		return
	}
	x, err := s.Signer.Explain(r.Context(), name)
	switch {
	case apierrors.IsNotFound(err):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, apierror.Text(err), http.StatusInternalServerError)
	default:
		writeJSON(w, x)
	}
}
