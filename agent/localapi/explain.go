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
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
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
		if x.AnswersAs = nojoin.Renamed(s.Nodes, cluster.NodeName(name)); x.AnswersAs != "" {
			x.Summary = nojoin.RenamedText(cluster.NodeName(name), x.AnswersAs) + " (" + nojoin.RenamedRemedy + "); " + x.Summary
		}
	}
	if x.Group != nil {
		x.Group.Template.Learnt = corrections[x.Group.Template.Spec].Describe()
	}
	return x
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
	if kind == "instance" {
		look := s.Observer.ReadOnlySnapshot()
		writeJSON(w, s.Known(&look, name))
		return
	}
	look := s.Observer.ReadOnlySnapshot()
	x := Explain(look, s.Memory(), s.Policy(time.Now()), s.Observer.Corrections(), kind, name)
	if kind == "node" && s.Cleaner != nil {
		x.Reaper = Verdict(s.Cleaner.Explain(name))
	}
	if kind == "node" && s.Signer != nil {
		x.asksInVain(look.Nodes, cluster.NodeName(name), s.Signer.Recent())
	}
	writeJSON(w, x)
}

// asksInVain tells of a Node that is not Ready while a certificate request of its kubelet is held or
// denied: a machine whose host name was changed asks under another name. recent has the newest first.
func (x *Explanation) asksInVain(nodes []*cluster.Node, name cluster.NodeName, recent []csrsigner.Judged) {
	at := slices.IndexFunc(nodes, func(n *cluster.Node) bool { return n.Name == name && n.Ready != cluster.StatusTrue })
	if at < 0 || x.AnswersAs != "" {
		return
	}
	for _, j := range recent {
		if j.Node != string(name) {
			continue
		}
		r := nojoin.Request{Name: j.Request, Node: j.Node, Kind: j.Kind, Do: j.Do, Rule: j.Rule, Why: j.Why, At: j.At}
		if r.Held() && j.At.After(nodes[at].ReadySince) {
			x.Summary = "its machine asks for a certificate since it went silent: " + r.String() + "; " + x.Summary
		}
		return
	}
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
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		writeJSON(w, x)
	}
}
