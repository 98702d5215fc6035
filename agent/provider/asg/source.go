package asg

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/template"
)

// origin is all that a group's machines differ by in what they were started from.
type origin struct{ launchTemplate, version, image, typ, subnet string }

// startedFrom fills in what each member was started from: the contents of its version of the
// launch template, and what EC2 itself tells of the machine (its image is the one that an alias
// meant that day). What an operator changed of a running machine, as its security groups, does
// not count: aws/karpenter-provider-aws#6913. Machines of one origin share one map.
func (p *Provider) startedFrom(r *reading) {
	shared := map[origin]cluster.Spec{}
	sources := make(map[string]cluster.Spec, len(r.source.Instances))
	for i := range r.source.Instances {
		m := &r.source.Instances[i]
		id := aws.ToString(m.InstanceId)
		known := r.machines[id]
		o := origin{image: known.image, typ: aws.ToString(m.InstanceType), subnet: known.subnet}
		if o.typ == "" {
			o.typ = known.instance.Type
		}
		if t := m.LaunchTemplate; t != nil {
			o.launchTemplate, o.version = aws.ToString(t.LaunchTemplateId)+aws.ToString(t.LaunchTemplateName), aws.ToString(t.Version)
		}
		if _, ok := shared[o]; !ok {
			shared[o] = o.spec(p.templates.Started(m.LaunchTemplate))
		}
		sources[id] = shared[o]
	}
	for i := range r.group.Instances {
		in := &r.group.Instances[i]
		in.Source = sources[in.ID.Last()]
	}
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
