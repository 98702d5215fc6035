package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// look runs plan and the explanations, and compares them.
func (s *scene) look(ctx context.Context, want *Look) (buys map[string]int, err error) {
	before := s.said.Len()
	if buys, err = s.decide(ctx, want); err != nil {
		return nil, err
	}
	for _, what := range s.c.Explain {
		text, err := s.explain(ctx, what)
		if err != nil {
			return nil, err
		}
		for _, part := range want.Explain[what] {
			if !strings.Contains(text, part) {
				s.fault("explain %s: it does not say %q", what, part)
			}
		}
	}
	said := s.said.String()[before:]
	for _, part := range want.Says {
		if !strings.Contains(said, part) {
			s.fault("says: nothing says %q", part)
		}
	}
	for _, part := range want.Never {
		if strings.Contains(said, part) {
			s.fault("never: it says %q", part)
		}
	}
	return buys, nil
}

// decide runs plan, prints and compares it, and returns the targets that it wants.
func (s *scene) decide(ctx context.Context, want *Look) (buys map[string]int, err error) {
	out, log, err := s.t.command(ctx, s.env, "plan", "--output", "json")
	if err != nil {
		return nil, err
	}
	s.warnings(log)
	var d decision.Data
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		return nil, fmt.Errorf("plan --output json: %w\n%s", err, out)
	}
	var lines []string
	goes := map[string]bool{}
	grown := map[string]int{}
	buys = map[string]int{}
	for _, a := range d.Actions {
		lines = append(lines, a.Text)
		switch a.Kind {
		case "grow":
			buys[string(a.Group)], grown[string(a.Group)] = *a.To, *a.To-*a.From
		case "cordon", "evict", "terminate":
			goes[string(a.Node)] = true
		}
	}
	for _, h := range d.Held {
		lines = append(lines, report.HeldText(h))
		if h.Rule == decision.RuleUnneededFor {
			goes[h.Name] = true
		}
	}
	if len(lines) == 0 {
		lines = []string{"nothing to do and nothing held"}
	}
	s.say("plan:")
	for _, line := range lines {
		s.say("  %s", line)
	}
	if want == nil {
		return buys, nil
	}
	for _, part := range want.Plan {
		if !strings.Contains(strings.Join(lines, "\n"), part) {
			s.fault("plan: it does not say %q", part)
		}
	}
	if want.Buys != nil && !maps.Equal(*want.Buys, grown) {
		s.fault("buys: %v, want %v", grown, *want.Buys)
	}
	return buys, s.compareGoes(ctx, goes, want)
}

func (s *scene) compareGoes(ctx context.Context, goes map[string]bool, want *Look) error {
	for _, list := range []struct {
		nodes  []string
		leaves bool
	}{{want.Goes, true}, {want.Stays, false}} {
		for _, what := range list.nodes {
			name, err := s.nodeName(ctx, strings.TrimPrefix(what, "node "))
			if err != nil {
				return err
			}
			if goes[name] != list.leaves {
				s.fault("goes: %s, %s: %t, want %t", what, name, goes[name], list.leaves)
			}
		}
	}
	if len(goes) < want.GoesLeast {
		s.fault("goes: %d nodes, want %d at least", len(goes), want.GoesLeast)
	}
	return nil
}

// warnings prints the log lines of a command.
func (s *scene) warnings(text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "reading the cluster") {
			s.say("  log: %s", line)
		}
	}
}

// explain runs explain on one thing of the case's list.
func (s *scene) explain(ctx context.Context, what string) (string, error) {
	kind, name, _ := strings.Cut(what, " ")
	switch kind {
	case "pod":
		pod, err := s.pod(ctx, name)
		if err != nil {
			return "", fmt.Errorf("explain %s: %w", what, err)
		}
		name = pod.Namespace + "/" + pod.Name
	case "node":
		var err error
		if name, err = s.nodeName(ctx, name); err != nil {
			return "", fmt.Errorf("explain %s: %w", what, err)
		}
	}
	out, _, err := s.t.command(ctx, s.env, "explain", "--dry", kind, name)
	if err != nil {
		return "", err
	}
	s.say("explain %s:", what)
	for line := range strings.Lines(out) {
		s.say("  %s", strings.TrimRight(line, "\n"))
	}
	return out, nil
}

// bound prints which pods kube-scheduler has bound: their numbers, or each where the case asks.
func (s *scene) bound(ctx context.Context) error {
	pods, err := s.pods(ctx)
	if err != nil {
		return err
	}
	if s.c.Pods {
		for _, p := range pods {
			where := p.Spec.NodeName
			if where == "" {
				where = "waits"
				for _, c := range p.Status.Conditions {
					if c.Message != "" {
						where += ": " + c.Message
					}
				}
			}
			s.say("  pod %s: %s", p.Name, where)
		}
		return nil
	}
	on := map[string]int{}
	all := map[string]int{}
	for _, p := range pods {
		app := appOf(p)
		all[app]++
		if p.Spec.NodeName != "" {
			on[app]++
		}
	}
	for _, app := range slices.Sorted(maps.Keys(all)) {
		s.say("  %s: %d of %d pods are bound", app, on[app], all[app])
	}
	return nil
}

// compare compares the end with the case's expectation.
func (s *scene) compare(ctx context.Context, want *Want, before []corev1.Pod) error {
	targets := map[string]int{}
	for _, g := range s.c.Groups {
		targets[g.Name] = g.Desired
	}
	if want.Target != nil {
		maps.Copy(targets, *want.Target)
		for _, g := range s.cloud.Groups() {
			if g.Desired != targets[g.Name] {
				s.fault("target: group %s ends with %d machines, want %d", g.Name, g.Desired, targets[g.Name])
			}
		}
	}
	pods, err := s.pods(ctx)
	if err != nil {
		return err
	}
	for _, prefix := range slices.Sorted(maps.Keys(want.Bound)) {
		n := 0
		for _, p := range pods {
			if strings.HasPrefix(p.Name, prefix) && p.Spec.NodeName != "" {
				n++
			}
		}
		if n != want.Bound[prefix] {
			s.fault("bound: %d pods of %s, want %d", n, prefix, want.Bound[prefix])
		}
	}
	for _, old := range before {
		kept := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == old.UID })
		asked := slices.ContainsFunc(want.Kept, func(prefix string) bool { return strings.HasPrefix(old.Name, prefix) })
		if asked && !kept {
			s.fault("kept: pod %s is gone", old.Name)
		}
	}
	for _, g := range s.cloud.Groups() {
		s.say("group %s: %d machines", g.Name, g.Desired)
	}
	return nil
}
