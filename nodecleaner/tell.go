package nodecleaner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// tell reports the changes of each held Node and of the breakers.
func (s *Service) tell(plan reaper.Plan) {
	held := map[cluster.NodeName]string{}
	for _, d := range plan.Delete {
		held[d.Node] = s.told[d.Node] // deleteOne reports these
	}
	for _, h := range plan.Held {
		if n, err := s.lister.Get(string(h.Node)); err == nil && time.Since(n.CreationTimestamp.Time) < youngFor && s.told[h.Node] == "" && !h.Would {
			continue // it is only joining; a later round tells it if it goes on
		}
		held[h.Node] = h.Rule
		if s.told[h.Node] == h.Rule {
			continue
		}
		s.count("nodecleaner_held_total", "rule", h.Rule)
		entry := s.log.WithFields(logrus.Fields{"node": h.Node, "rule": h.Rule, "why": h.Why})
		if h.Would {
			entry.Warn("node would be deleted")
			s.event(h.Node, "", corev1.EventTypeNormal, "NodeWouldBeDeleted", h.Rule+": "+h.Why)
			continue
		}
		entry.Info("node is not ready and is kept")
	}
	s.told = held
	s.tellBreakers(plan)
	s.measure(plan)
}

// tellBreakers reports each breaker once when it opens and once when it closes, with a
// Warning Event on every Node that it holds.
func (s *Service) tellBreakers(plan reaper.Plan) {
	open := map[string]string{}
	var line []string
	for _, b := range plan.Breakers {
		open[b.Rule] = b.Why
		line = append(line, b.Rule+": "+b.Why)
		if s.open[b.Rule] != "" {
			continue
		}
		s.log.WithFields(logrus.Fields{"rule": b.Rule, "why": b.Why}).Warn("node deletion is stopped by a breaker")
		s.count("nodecleaner_breakers_total", "rule", b.Rule)
		for _, h := range plan.Held {
			if h.Rule == b.Rule {
				s.event(h.Node, "", corev1.EventTypeWarning, "NodeCleanerBreaker", h.Rule+": "+h.Why)
			}
		}
	}
	for _, h := range plan.Held {
		if h.Rule == "M2" {
			line = append(line, "M2: "+h.Why)
			break
		}
	}
	for rule := range s.open {
		if open[rule] == "" {
			s.log.WithField("rule", rule).Info("node deletion goes on: the breaker is closed")
		}
	}
	s.open = open
	s.mu.Lock()
	s.status, s.breakers = strings.Join(line, "; "), plan.Breakers
	s.mu.Unlock()
}

// Status is one line about the rules that stop deletions now, for STATUS=; empty: none.
func (s *Service) Status() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == "" {
		return ""
	}
	return fmt.Sprintf("node deletion is stopped: %s", s.status)
}

// Breakers are the breakers that stop deletions now.
func (s *Service) Breakers() []reaper.Breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.breakers)
}

// measure sets the gauges: Nodes by the rule that holds them, and breakers that are
// open.
func (s *Service) measure(plan reaper.Plan) {
	if s.deps.Metrics == nil {
		return
	}
	nodes := map[string]int{}
	for _, h := range plan.Held {
		nodes[h.Rule]++
		s.gauged[h.Rule] = true
	}
	for rule := range s.gauged {
		s.deps.Metrics.Gauge("nodecleaner_held_nodes", float64(nodes[rule]), "rule", rule)
	}
	for _, rule := range reaper.Breakers() {
		value := 0.0
		if s.open[rule] != "" {
			value = 1
		}
		s.deps.Metrics.Gauge("nodecleaner_breaker_open", value, "rule", rule)
	}
}

func (s *Service) count(name string, labels ...string) {
	if s.deps.Metrics != nil {
		s.deps.Metrics.Count(name, labels...)
	}
}
