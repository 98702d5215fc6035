package localapi

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// Where the page and its samples are.
const (
	PagePath    = "/page"
	HistoryPath = "/history"
)

// servePage answers GET /page.
func (s *Server) servePage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", page.Policy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(page.Render(s.page(time.Now()))) // the client is gone when this fails
}

// servePageTo answers a browser that knows the agent by an address, as localhost or by its
// Node's name. Any other name may be one that a foreign web site gave to this address, so
// that its scripts can read what is here (DNS rebinding).
func (s *Server) servePageTo(w http.ResponseWriter, r *http.Request) {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && host != "localhost" && !strings.EqualFold(host, s.Node) {
		http.Error(w, "the page is not served under this name: ask by the address, as localhost, or by the name of the Node", http.StatusMisdirectedRequest)
		return
	}
	s.servePage(w, r)
}

// page gathers what the page shows.
func (s *Server) page(now time.Time) page.Data {
	machines := s.machines(now)
	st := s.statusOf(machines)
	d := page.Data{At: now, Version: st.Version, Node: st.Node, Since: st.Since, Acting: st.Acting, StandsBy: st.StandsBy, Why: st.Why, Troubles: st.Troubles,
		Nodes: st.Nodes, Ready: st.Ready, Pods: st.Pods, Pending: st.Pending, History: s.History.View(now), Machines: machines}
	d.NoCluster, d.NoGroups = slices.Contains(st.Unread, UnreadCluster), slices.Contains(st.Unread, UnreadGroups)
	for i := range st.Groups {
		g := &st.Groups[i]
		d.Groups = append(d.Groups, page.Group{Name: g.ID, Min: g.Min, Target: g.Target, Max: g.Max, Machines: g.Instances, Drifted: g.Drifted, Remark: g.Remark()})
	}
	for i := range st.Rollouts {
		r := &st.Rollouts[i]
		d.Rollouts = append(d.Rollouts, page.Rollout{Group: string(r.Group), State: r.State, Machines: r.Machines, Replaced: r.Replaced, Next: r.Next, Remark: r.Remark()})
	}
	for _, h := range st.Held {
		if h.Kind == "pod" {
			d.Waiting = append(d.Waiting, waiting(h))
		}
	}
	d.Leaving = leaving(d.Machines, s.Memory())
	d.Verdicts, d.Requests = s.verdicts()
	if s.Signer != nil {
		d.Alarm = s.Signer.Alarm()
		for _, j := range s.Signer.Recent() {
			d.Judged = append(d.Judged, page.Judged(j))
		}
	}
	kept, _ := nodecleaner.Manifests(s.Config.StateDir) // a file that cannot be read hides none of the others
	for _, k := range kept {
		d.Reaped = append(d.Reaped, page.Reaped{Node: k.Name, At: k.DeletedAt, Why: k.Why})
	}
	return d
}

func waiting(h decision.Held) page.Waiting {
	w := page.Waiting{Name: h.Name, Count: max(h.Count, 1), Rule: h.Rule, Why: h.Why}
	for _, r := range h.Groups {
		w.Groups = append(w.Groups, page.Refusal{Name: r.Name, Rule: r.Rule, Why: r.Why})
	}
	return w
}

// leaving lists the machines that are drained or end, the longest first. A machine of which nothing
// remembers when that began stands first.
func leaving(machines []fleet.Machine, m decision.Memory) (out []page.Leaving) {
	for i := range machines {
		n := &machines[i]
		if n.State != fleet.Draining {
			continue
		}
		l := page.Leaving{Node: n.Name, Group: n.Group, Since: m.Draining[cluster.NodeName(n.Name)], Pods: n.Pods, Why: n.Exactly}
		if n.Why != "" {
			l.Why = n.Rule + ": " + n.Why
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b page.Leaving) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Node, b.Node)) })
	return out
}

// verdicts are those on certificate requests since the start, as the metrics count them.
func (s *Server) verdicts() (out []page.Verdict, waiting int) {
	families, err := s.Metrics.Registry().Gather()
	if err != nil {
		return nil, 0
	}
	for _, f := range families {
		switch f.GetName() {
		case "autoscaler_csr_pending_count":
			waiting = int(f.GetMetric()[0].GetGauge().GetValue())
		case "autoscaler_csr_decisions_total":
			for _, m := range f.GetMetric() {
				v := page.Verdict{Count: int(m.GetCounter().GetValue())}
				for _, l := range m.GetLabel() {
					switch l.GetName() {
					case "do":
						v.Do = l.GetValue()
					case "rule":
						v.Rule = l.GetValue()
					}
				}
				out = append(out, v)
			}
		}
	}
	return out, waiting
}
