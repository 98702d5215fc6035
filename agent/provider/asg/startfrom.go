package asg

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

var _ provider.Starter = (*Provider)(nil)

// StartFrom sets the version of the group's launch template. See provider.Starter. Of a mixed instances policy all is kept but the
// versions: of the launch template itself and of overrides that have the same one.
func (p *Provider) StartFrom(ctx context.Context, id cluster.GroupID, o cluster.Origin, dry bool) (command string, changed bool, err error) {
	const op = "start from"
	unlock, err := p.locks.Lock(ctx, op, id)
	if err != nil {
		return "", false, err
	}
	defer unlock()
	g, err := p.one(ctx, op, id)
	if err != nil {
		return "", false, err
	}
	in := &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(string(id))}
	form := ""
	switch m := g.MixedInstancesPolicy; {
	case m != nil && m.LaunchTemplate != nil && m.LaunchTemplate.LaunchTemplateSpecification != nil:
		in.MixedInstancesPolicy, changed = mixedFrom(m, o)
		text, err := awsJSON(in.MixedInstancesPolicy)
		if err != nil {
			return "", false, fmt.Errorf("write the mixed instances policy of group %s: %w", id, err)
		}
		form = "--mixed-instances-policy " + quote(text)
	case g.LaunchTemplate != nil:
		in.LaunchTemplate, changed = startFrom(g.LaunchTemplate, o)
		form = "--launch-template " + quote("LaunchTemplateId="+o.Template+",Version="+o.Version)
	default:
		return "", false, invalid(op, id, "move the group to a launch template", "it has none")
	}
	command = fmt.Sprintf("aws autoscaling update-auto-scaling-group --region %s --auto-scaling-group-name %s %s", p.region, quote(string(id)), form)
	if dry || !changed {
		return command, changed, nil
	}
	if _, err := p.client.UpdateAutoScalingGroup(ctx, in, once); err != nil {
		return command, false, awsapi.Classify(op, id, awsapi.ActionUpdateGroup, err)
	}
	return command, true, nil
}

// quote makes one word of the shell's of any text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// startFrom is a reference to an origin, and whether it is another one than before.
func startFrom(was *asgtypes.LaunchTemplateSpecification, o cluster.Origin) (*asgtypes.LaunchTemplateSpecification, bool) {
	same := aws.ToString(was.LaunchTemplateId) == o.Template && aws.ToString(was.Version) == o.Version
	return &asgtypes.LaunchTemplateSpecification{LaunchTemplateId: aws.String(o.Template), Version: aws.String(o.Version)}, !same
}

// mixedFrom is a mixed instances policy that starts machines from an origin.
func mixedFrom(was *asgtypes.MixedInstancesPolicy, o cluster.Origin) (*asgtypes.MixedInstancesPolicy, bool) {
	out, t := *was, *was.LaunchTemplate
	out.LaunchTemplate, t.Overrides = &t, slices.Clone(t.Overrides)
	specs := []**asgtypes.LaunchTemplateSpecification{&t.LaunchTemplateSpecification}
	named := aws.ToString(t.LaunchTemplateSpecification.LaunchTemplateId) == o.Template
	for i := range t.Overrides {
		if s := &t.Overrides[i].LaunchTemplateSpecification; *s != nil {
			specs, named = append(specs, s), named || aws.ToString((*s).LaunchTemplateId) == o.Template
		}
	}
	changed := false
	for i, s := range specs {
		if aws.ToString((*s).LaunchTemplateId) == o.Template || i == 0 && !named {
			to, differs := startFrom(*s, o)
			*s, changed = to, changed || differs
		} else if aws.ToString((*s).LaunchTemplateId) != "" { // it is read with its name, and AWS takes the one or the other
			*s = &asgtypes.LaunchTemplateSpecification{LaunchTemplateId: (*s).LaunchTemplateId, Version: (*s).Version}
		}
	}
	return &out, changed
}

// awsJSON writes a value of the SDK as the AWS command line reads it: without what is not set.
func awsJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return "", err
	}
	text, err = json.Marshal(given(tree))
	return string(text), err
}

// given is a JSON value without members that are null or empty.
func given(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil || member == "" {
				delete(v, name)
				continue
			}
			v[name] = given(member)
		}
	case []any:
		for i := range v {
			v[i] = given(v[i])
		}
	}
	return v
}
