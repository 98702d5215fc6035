package attest

import (
	"net/netip"
	"sync"
	"time"
)

// Asked is the last answer to a machine that asked for a token; without a rule it got one.
type Asked struct {
	Rule, Why string
	At        time.Time
}

// keptAsked is for how many machines the last answer is kept.
const keptAsked = 4096

// asked keeps the last answers, for explanations alone: by instance where the machine has proven
// which one it is, and by source. A flood of sources makes it forget, and costs no more memory.
type asked struct {
	mu      sync.Mutex
	answers map[string]Asked
}

func (a *asked) note(instance, remote string, answer Asked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.answers) >= keptAsked || a.answers == nil {
		a.answers = map[string]Asked{}
	}
	if instance != "" {
		a.answers[instance] = answer
	}
	if of, ok := sourceOf(remote); ok {
		a.answers[of.String()] = answer
	}
}

// LastAsked is the last answer to an instance ("i-..."), else to one of its addresses.
func (s *Server) LastAsked(instance string, addresses []netip.Addr) (answer Asked, ok bool) {
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	if answer, ok = s.asked.answers[instance]; ok {
		return answer, true
	}
	for _, addr := range addresses {
		of, sound := sourceOf(netip.AddrPortFrom(addr, 0).String())
		if last, found := s.asked.answers[of.String()]; sound && found && last.At.After(answer.At) {
			answer, ok = last, true
		}
	}
	return answer, ok
}
