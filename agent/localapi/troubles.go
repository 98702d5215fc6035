package localapi

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/trouble"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// troubles are what is wrong now.
func (s *Server) troubles(st *Status, hindered bool, machines []fleet.Machine, now time.Time) []trouble.Trouble {
	f := trouble.Facts{Now: now, Hindered: hindered, Why: st.Why, Stale: st.Stale, Cloud: st.Cloud, Settings: st.Settings, Late: st.Late, Held: st.Held, Backoff: s.Memory().Backoff, Machines: machines}
	if s.Signer != nil {
		f.Alarm, f.Certificates = s.Signer.Alarm(), heldRequests(s.Signer.Recent(), s.Signer.Names())
	}
	if s.Cleaner != nil {
		for _, b := range s.Cleaner.Breakers() {
			f.Breakers = append(f.Breakers, trouble.Breaker(b))
		}
	}
	return trouble.List(f)
}

// heldRequests are those of the newest verdicts whose request is held and still there. judged is the
// newest first, of which the first of a request counts, and the oldest says since when.
func heldRequests(judged []csrsigner.Judged, waiting []string) (out []trouble.Certificate) {
	there := map[string]bool{}
	for _, name := range waiting {
		there[name] = true
	}
	at := map[string]int{}
	for _, j := range judged {
		if i, seen := at[j.Request]; seen {
			if i >= 0 && j.Do == rules.Later.String() {
				out[i].Since = j.At
			}
			continue
		}
		at[j.Request] = -1
		if there[j.Request] && j.Do == rules.Later.String() {
			at[j.Request] = len(out)
			out = append(out, trouble.Certificate{Request: j.Request, Node: j.Node, Kind: j.Kind, Rule: j.Rule, Why: j.Why, Since: j.At})
		}
	}
	return out
}
