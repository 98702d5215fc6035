package csrsigner

import (
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// keptVerdicts is how many of the newest verdicts the page shows.
const keptVerdicts = 30

// Judged is one verdict on one request, for the page.
type Judged struct {
	At            time.Time
	Request, Node string
	Kind          string // "client certificate" or "serving certificate"
	Do, Rule, Why string
}

// remember keeps a verdict that the journal has, too.
func (s *Service) remember(req rules.Request, v rules.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) == keptVerdicts {
		s.recent = slices.Delete(s.recent, 0, 1)
	}
	s.recent = append(s.recent, Judged{time.Now(), req.Name, rules.Clip(req.Node(), 4*rules.NameBytes), wordsFor(req.Signer).journal, v.Do.String(), v.Rule, v.Why})
}

// Recent are the newest verdicts since the start, the newest first.
func (s *Service) Recent() []Judged {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.recent)
	slices.Reverse(out)
	return out
}
