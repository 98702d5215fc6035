package asg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/pool"
)

// shownWithin is how long a group that has just been made may be missing in what Auto Scaling lists
// ("eventual consistency", EC2 Auto Scaling User Guide). Until then it is counted on as it was made.
const shownWithin = 2 * time.Minute

// pools are the pools of groups.yaml, and their groups that the cloud does not have yet.
type pools struct {
	section func() json.RawMessage // nil: there is none

	mu      sync.Mutex
	raw     string
	list    []pool.Pool
	missing map[cluster.GroupID]asgtypes.AutoScalingGroup // by the last whole read
	wanted  map[string]map[cluster.GroupID]bool           // by pool whose types are known
	made    map[cluster.GroupID]time.Time
}

// WithSection has groups made for the pools of a section of groups.yaml, as section tells it at the time of a read.
func WithSection(section func() json.RawMessage) Option {
	return func(p *Provider) { p.pools.section = section }
}

// read returns the pools that are in force; one whose section is wrong never comes into force.
func (p *pools) read() []pool.Pool {
	if p.section == nil {
		return nil
	}
	raw := p.section()
	p.mu.Lock()
	defer p.mu.Unlock()
	if string(raw) != p.raw {
		p.raw, p.list = string(raw), nil
		if len(raw) > 0 {
			if s, err := pool.Parse(raw); err == nil {
				p.list = s.Pools
			}
		}
	}
	return p.list
}

// addPools adds the groups of the pools that a whole read has not found.
func (p *Provider) addPools(ctx context.Context, found []asgtypes.AutoScalingGroup) ([]asgtypes.AutoScalingGroup, error) {
	list := p.pools.read() // empty where groups.yaml has no pool any more: p.pools.missing is set anew below
	there := make(map[cluster.GroupID]bool, len(found))
	for _, g := range found {
		there[cluster.GroupID(aws.ToString(g.AutoScalingGroupName))] = true
	}
	var errs []error
	missing, wanted := map[cluster.GroupID]asgtypes.AutoScalingGroup{}, map[string]map[cluster.GroupID]bool{}
	for i := range list {
		groups, err := p.groupsOf(ctx, &list[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ids := map[cluster.GroupID]bool{}
		wanted[list[i].Name] = ids
		for _, g := range groups {
			id := cluster.GroupID(aws.ToString(g.AutoScalingGroupName))
			if ids[id] = true; there[id] {
				continue
			}
			made := p.pools.asMade(id, g, p.now())
			missing[id], found = made, append(found, made)
		}
	}
	p.pools.mu.Lock()
	p.pools.missing, p.pools.wanted = missing, wanted
	p.pools.mu.Unlock()
	return found, errors.Join(errs...)
}

// addMissing adds the groups of pools that a read of named groups has not found.
func (p *Provider) addMissing(found []asgtypes.AutoScalingGroup, ids []cluster.GroupID) []asgtypes.AutoScalingGroup {
	for _, g := range found {
		p.pools.found(cluster.GroupID(aws.ToString(g.AutoScalingGroupName)))
	}
	for _, id := range ids {
		if g, ok := p.pools.of(id); ok {
			found = append(found, p.pools.asMade(id, g, p.now()))
		}
	}
	return found
}

func (p *Provider) groupsOf(ctx context.Context, of *pool.Pool) ([]asgtypes.AutoScalingGroup, error) {
	if len(p.rules) == 0 {
		return nil, &provider.Error{Op: "read", Kind: provider.Invalid, Err: fmt.Errorf("pool %s: groups that are made are found by their tags, and no tags are configured", of.Name), Remedy: "set AUTOSCALER_AWS_CLUSTER_NAME"}
	}
	types, err := p.templates.MatchTypes(ctx, of.Requirements(), of.Arch)
	if err != nil {
		err.Err = fmt.Errorf("pool %s: %w", of.Name, err.Err)
		return nil, err
	}
	groups, wrong := of.Groups(types, p.rules[0].tags())
	if wrong != nil {
		return nil, &provider.Error{Op: "read", Kind: provider.Invalid, Err: fmt.Errorf("pool %s: %w", of.Name, wrong), Remedy: "correct the pool in groups.yaml"}
	}
	return groups, nil
}

// tags are tags that satisfy the rule.
func (r tagRule) tags() map[string]string {
	out := map[string]string{}
	for _, m := range r {
		out[m.key] = m.value
		if m.anyValue {
			out[m.key] = "owned"
		}
	}
	return out
}

// asMade is a group of a pool as it is until Auto Scaling lists it.
func (p *pools) asMade(id cluster.GroupID, g asgtypes.AutoScalingGroup, now time.Time) asgtypes.AutoScalingGroup {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.made[id]; ok && now.Sub(at) >= shownWithin {
		delete(p.made, id) // it was deleted, or never made
	} else if ok {
		g.DesiredCapacity = p.missing[id].DesiredCapacity
	}
	return g
}

// of is the group of a pool that the last whole read has not found.
func (p *pools) of(id cluster.GroupID) (asgtypes.AutoScalingGroup, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.missing[id]
	return g, ok
}

// found notes that Auto Scaling lists a group.
func (p *pools) found(id cluster.GroupID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.missing, id)
	delete(p.made, id)
}

// makeGroup makes a group of a pool with its first machines.
func (p *Provider) makeGroup(ctx context.Context, op string, id cluster.GroupID, g asgtypes.AutoScalingGroup, machines int) error {
	_, err := p.client.CreateAutoScalingGroup(ctx, pool.Create(g, machines), once)
	if err != nil {
		e := awsapi.Classify(op, id, awsapi.ActionCreateGroup, err)
		if e.Kind == provider.NotFound { // ValidationError, which other calls answer where a group is not there
			e.Kind, e.Remedy = provider.Invalid, "correct the pool in groups.yaml: its subnets, launch template and version"
		}
		return awsapi.Unsure(e)
	}
	g.DesiredCapacity = aws.Int32(int32(machines))
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	if p.pools.made == nil {
		p.pools.made = map[cluster.GroupID]time.Time{}
	}
	p.pools.made[id], p.pools.missing[id] = p.now(), g
	return nil
}

// setPool says which pool a group is of, and holds one that its pool names no more.
func (p *Provider) setPool(r *reading) {
	name := r.tags[pool.Tag]
	if name == "" {
		return
	}
	for _, of := range p.pools.read() {
		if of.Name == name {
			r.group.Pool, r.group.PoolMax = name, of.Max
		}
	}
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	_, r.group.Declared = p.pools.missing[r.group.ID]
	ids, known := p.pools.wanted[name]
	switch {
	case r.group.Paused != "":
	case r.group.Pool == "":
		r.group.Paused = fmt.Sprintf("groups.yaml has no pool %s any more", name)
	case known && !ids[r.group.ID]:
		r.group.Paused = fmt.Sprintf("pool %s of groups.yaml names its type, zone or capacity no more", name)
	}
}
