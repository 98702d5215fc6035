package asg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// reading is one group while Groups puts it together.
type reading struct {
	source asgtypes.AutoScalingGroup
	tags   map[string]string
	group  cluster.NodeGroup
	// machines are what EC2 tells of its machines, by EC2 ID; never changed.
	machines map[string]machine
	spot     bool // it has machines that AWS may take back
	outdated bool // it has machines that differ from what it starts next
}

// stale notes why the group's facts are not whole; the first reason stays.
func (r *reading) stale(err error) {
	if r.group.Stale == "" {
		r.group.Stale = err.Error()
	}
}

// warn adds a warning; "" is none.
func (r *reading) warn(text string) {
	if text != "" {
		r.group.Warnings = append(r.group.Warnings, text)
	}
}

// patience is how long Groups waits for templates and failures once it has the machines.
const patience = 5 * time.Second

// Groups reads all groups. See provider.Provider. It makes one call per page of groups
// (100) and rule, one per page of instances (1,000; up to 200 groups in one filter), one
// per 200 launch templates that are named by $Latest or $Default, one per launch template
// that has a new version or a machine of a version not seen before, one per group that has fewer machines than its desired capacity
// (activitiesAtOnce at most), one for all spot machines, and once a minute one per group
// that has machines of an older kind (two groups at most).
//
// As far as provider.WithRepeated allows, EC2 lists only those machines of a group at rest
// that do not run.
//
// Narrowed by provider.WithOnly, it reads the named groups alone, 100 in a call, their
// machines where Auto Scaling tells something new of them, and the scaling activities of
// those that lack machines. All else is as the last whole read found it.
func (p *Provider) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	at := p.now()
	found, err := p.listed(ctx)
	if found == nil {
		return nil, err
	}
	readings := make([]*reading, 0, len(found))
	for _, source := range found {
		readings = append(readings, p.begin(source, at))
	}

	var (
		wg    sync.WaitGroup
		parts [3][]error
	)
	// Templates and failures may be late by patience at most: a join or a drain needs the
	// machines and must not wait for a call that hangs.
	beside, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	wg.Go(func() {
		parts[0] = p.readInstances(ctx, readings)
		time.AfterFunc(patience, func() { giveUp(awsapi.ErrLate) })
	})
	var templates []template.Resolved
	wg.Go(func() { templates, parts[1] = p.templates.Resolve(beside, found) })
	var failures []failuresOf
	wg.Go(func() { failures, parts[2] = p.readFailures(beside, readings) })
	wg.Wait()

	p.readSpot(ctx, readings)
	p.setPrices(ctx, readings, templates)
	p.startedFrom(readings, provider.Only(ctx) == nil)
	for i, r := range readings {
		r.group.Template, r.group.Quota = templates[i].Template, templates[i].Quota
		r.group.Warnings = append(r.group.Warnings, templates[i].Warnings...)
		r.group.Exposed = templates[i].Exposed
		if templates[i].Err != nil {
			r.group.TemplateStale = templates[i].Err.Error()
		}
		r.group.Failures = failures[i].list
		if failures[i].err != nil {
			r.group.FailuresStale = failures[i].err.Error()
		}
		r.drift(templates[i].Startable)
	}
	p.readRefreshes(ctx, readings)
	errs := []error{err}
	for _, part := range parts {
		errs = append(errs, part...)
	}
	out := make([]cluster.NodeGroup, len(readings))
	for i, r := range readings {
		slices.Sort(r.group.Warnings)
		out[i] = r.group
	}
	return out, errors.Join(errs...)
}

// begin fills in the fields that the group itself has.
func (p *Provider) begin(source asgtypes.AutoScalingGroup, at time.Time) *reading {
	r := &reading{source: source, tags: map[string]string{}}
	for _, tag := range source.Tags {
		r.tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	g := &r.group
	g.ID = cluster.GroupID(aws.ToString(source.AutoScalingGroupName))
	g.Target = int(aws.ToInt32(source.DesiredCapacity))
	g.ReadAt = at
	var warn string
	g.Min, g.Max, warn = p.bounds(source)
	if warn != "" {
		g.Warnings = append(g.Warnings, warn)
	}
	g.Paused = paused(source)
	g.Warnings = append(g.Warnings, hazards(source)...)
	p.setPool(r)
	options, warnings := parseOptions(r.tags)
	g.Options = options
	g.Warnings = append(g.Warnings, warnings...)
	return r
}

// bounds are the group's own, narrowed by those that the configuration gives for
// it. AWS itself refuses a desired capacity outside its own bounds.
func (p *Provider) bounds(source asgtypes.AutoScalingGroup) (lo, hi int, warning string) {
	lo, hi = int(aws.ToInt32(source.MinSize)), int(aws.ToInt32(source.MaxSize))
	for _, n := range p.names {
		if string(n.id) != aws.ToString(source.AutoScalingGroupName) || n.min < 0 {
			continue
		}
		if n.min < lo || n.max > hi {
			warning = fmt.Sprintf("AUTOSCALER_AWS_GROUPS gives %d:%d, the group itself allows %d:%d; the narrower bounds hold", n.min, n.max, lo, hi)
		}
		wantLo, wantHi := max(lo, n.min), min(hi, n.max)
		if wantLo > wantHi {
			return lo, hi, fmt.Sprintf("AUTOSCALER_AWS_GROUPS gives %d:%d, the group itself allows %d:%d: no size fits both, the group's own bounds hold", n.min, n.max, lo, hi)
		}
		return wantLo, wantHi, warning
	}
	return lo, hi, ""
}

// paused is the reason why AWS starts no machines in the group now; empty: it does.
func paused(source asgtypes.AutoScalingGroup) string {
	if status := aws.ToString(source.Status); status != "" {
		return "the group is being deleted: " + status
	}
	for _, process := range source.SuspendedProcesses {
		if aws.ToString(process.ProcessName) == "Launch" {
			reason := aws.ToString(process.SuspensionReason)
			if reason == "" {
				reason = "no reason given"
			}
			return "its Launch process is suspended: " + reason
		}
	}
	return ""
}

// hazards are settings with which AWS may end a machine that runs work, behind the
// scaler's back (kubernetes/autoscaler#1744, #10147).
func hazards(source asgtypes.AutoScalingGroup) []string {
	var out []string
	if !aws.ToBool(source.NewInstancesProtectedFromScaleIn) {
		out = append(out, "new instances are not protected from scale-in: AWS may end a running machine when the desired capacity changes; set NewInstancesProtectedFromScaleIn on the group")
	}
	suspended := slices.ContainsFunc(source.SuspendedProcesses, func(s asgtypes.SuspendedProcess) bool {
		return aws.ToString(s.ProcessName) == "AZRebalance"
	})
	if len(source.AvailabilityZones) > 1 && !suspended {
		out = append(out, "AZRebalance is not suspended and the group spans several zones: AWS may end a running machine to balance them; suspend the AZRebalance process")
	}
	if slices.ContainsFunc(source.SuspendedProcesses, func(s asgtypes.SuspendedProcess) bool {
		return aws.ToString(s.ProcessName) == "ReplaceUnhealthy" || aws.ToString(s.ProcessName) == "HealthCheck"
	}) {
		out = append(out, "its HealthCheck or ReplaceUnhealthy process is suspended: a machine that dies stays in the group, and no other comes in its place; resume the process")
	}
	if aws.ToBool(source.CapacityRebalance) {
		out = append(out, "CapacityRebalance is on: AWS may replace a running spot machine without a drain, unless a lifecycle hook lets it wait (autoscaling:EC2_INSTANCE_TERMINATING)")
	}
	return out
}

// invalid builds an error of kind Invalid for a write.
func invalid(op string, id cluster.GroupID, remedy, format string, args ...any) error {
	return &provider.Error{Op: op, Group: id, Kind: provider.Invalid, Err: fmt.Errorf(format, args...), Remedy: remedy}
}
