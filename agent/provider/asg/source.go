package asg

import (
	"cmp"
	"maps"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// origin is all that a group's machines differ by in what they were started from.
type origin struct {
	launchTemplate, version, image, typ, subnet string
	known                                       bool // the contents of the version are known
}

// sources keeps what machines were started from. Machines of one origin share one map, from one
// read to the next: who compares two reads of thousands of machines compares pointers.
type sources struct {
	mu       sync.Mutex
	byOrigin map[origin]cluster.Spec
}

// startedFrom fills in what each member was started from: the contents of its version of the
// launch template, and what EC2 itself tells of the machine (its image is the one that an alias
// meant that day). What an operator changed of a running machine, as its security groups, does
// not count: aws/karpenter-provider-aws#6913. A whole read forgets the origins of no machine.
func (p *Provider) startedFrom(readings []*reading, whole bool) {
	p.sources.mu.Lock()
	defer p.sources.mu.Unlock()
	used := map[origin]cluster.Spec{}
	for _, r := range readings {
		members := make(map[string]cluster.Spec, len(r.source.Instances))
		origins := make(map[string]cluster.Origin, len(r.source.Instances))
		for i := range r.source.Instances {
			m := &r.source.Instances[i]
			contents := p.templates.Started(m.LaunchTemplate)
			o := originOf(m, r.machines[aws.ToString(m.InstanceId)], contents != nil)
			spec, ok := p.sources.byOrigin[o]
			if !ok {
				if spec, ok = used[o]; !ok {
					spec = o.spec(contents)
				}
			}
			used[o], members[aws.ToString(m.InstanceId)] = spec, spec
			origins[aws.ToString(m.InstanceId)] = cluster.Origin{Template: o.launchTemplate, Version: o.version}
		}
		for i := range r.group.Instances {
			in := &r.group.Instances[i]
			in.Source, in.Origin = members[in.ID.Last()], origins[in.ID.Last()]
		}
	}
	if whole || p.sources.byOrigin == nil {
		p.sources.byOrigin = used
	} else {
		maps.Copy(p.sources.byOrigin, used)
	}
}

func originOf(m *asgtypes.Instance, of machine, known bool) origin {
	o := origin{image: of.image, typ: cmp.Or(aws.ToString(m.InstanceType), of.instance.Type), subnet: of.subnet, known: known}
	if t := m.LaunchTemplate; t != nil {
		o.launchTemplate, o.version = cmp.Or(aws.ToString(t.LaunchTemplateId), aws.ToString(t.LaunchTemplateName)), aws.ToString(t.Version)
	}
	return o
}

// spec lays what is known of the machine itself over its launch template's contents.
func (o origin) spec(contents cluster.Spec) cluster.Spec {
	out := maps.Clone(contents)
	if out == nil {
		out = cluster.Spec{}
	}
	for name, value := range map[string]string{template.PropertyImage: o.image, template.PropertyType: o.typ, template.PropertySubnet: o.subnet} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}
