package asg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/lifecycle"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// drift compares a group's machines with what it starts next. A type that is not
// started any more is worth a warning; an older version is a sign that an instance
// refresh may be under way.
func (r *reading) drift(next template.Startable) {
	drifted, _ := r.group.Drifted()
	r.outdated = r.outdated || drifted > 0
	if len(next.Types) == 0 {
		return
	}
	other, n := map[string]bool{}, 0
	for _, m := range r.source.Instances {
		if t := aws.ToString(m.InstanceType); t != "" && lifecycle.Counted(m.LifecycleState) && !next.Types[t] {
			other[t] = true
			n++
		}
		if t := m.LaunchTemplate; t != nil && aws.ToString(t.LaunchTemplateId) != "" {
			r.outdated = r.outdated || !next.Versions[aws.ToString(t.LaunchTemplateId)+"/"+aws.ToString(t.Version)]
		}
	}
	if n > 0 {
		r.outdated = true
		r.warn(fmt.Sprintf("%d of its machines have an instance type that the group does not start any more (%s): new machines are not judged by them, and they leave when nothing needs them or an instance refresh replaces them",
			n, strings.Join(slices.Sorted(maps.Keys(other)), ", ")))
	}
}

// readRefreshes notes instance refreshes in groups whose machines differ from what they start next. A narrowed read asks about
// none.
func (p *Provider) readRefreshes(ctx context.Context, readings []*reading) {
	var outdated []cluster.GroupID
	for _, r := range readings {
		if r.outdated {
			outdated = append(outdated, r.group.ID)
		}
	}
	if provider.Only(ctx) == nil {
		p.refreshes.Ask(ctx, p.client, outdated, p.now())
	}
	for _, r := range readings {
		if r.outdated {
			fact := p.refreshes.Of(r.group.ID)
			r.warn(fact.Warning)
			r.group.Replacing, r.group.ReplacingStale = fact.Replacing, fact.Stale
		}
	}
}
