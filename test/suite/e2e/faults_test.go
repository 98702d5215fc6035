package e2e

import (
	"strings"
	"testing"
)

// TestWrongConfiguration: each mistake ends in one clear message that names the
// setting and the remedy, in `check` and in the journal of `run`.
func TestWrongConfiguration(t *testing.T) {
	t.Parallel() // they mostly wait
	s := newScene(t, nil)
	for _, tc := range []struct {
		name  string
		env   []string
		words []string
	}{
		{"min above max", []string{"AUTOSCALER_AWS_GROUPS=5:2:workers"}, []string{"AUTOSCALER_AWS_GROUPS", "5:2:workers", "min"}},
		{"unknown variable", []string{"AUTOSCALER_SCALING_UNEEDED_FOR=1m"}, []string{"AUTOSCALER_SCALING_UNEEDED_FOR", "AUTOSCALER_SCALING_UNNEEDED_FOR"}},
		{"not a duration", []string{"AUTOSCALER_SCALING_UNNEEDED_FOR=soon"}, []string{"AUTOSCALER_SCALING_UNNEEDED_FOR", "soon"}},
		{"unknown provider", []string{"AUTOSCALER_PROVIDER=gce"}, []string{"AUTOSCALER_PROVIDER", "gce", "asg"}},
		{"wrong region", []string{"AWS_REGION=us-west-7"}, []string{"region"}},
		{"wrong secret", []string{"AWS_SECRET_ACCESS_KEY=wrong"}, []string{"signature"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, code := s.check(tc.env...)
			found := false
			for line := range strings.Lines(out) {
				found = found || containsAll(line, tc.words)
			}
			if code == 0 || !found {
				t.Errorf("check ended with %d and no line with %q:\n%s", code, tc.words, out)
			}
			p, err := s.w.StartAgent(t.Context(), s.binary, tc.env...)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			run := &scene{t: t, w: s.w, agent: nil}
			run.until("a journal line", func() bool {
				for line := range strings.Lines(p.Tail(200)) {
					if containsAll(line, tc.words) {
						return true
					}
				}
				return false
			})
		})
	}
}
