package asg

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

const (
	lives   = "i-0aaaaaaaaaaaaaaa1"
	dead    = "i-0aaaaaaaaaaaaaaa2"
	lost    = "i-0aaaaaaaaaaaaaaa3"
	lost2   = "i-0aaaaaaaaaaaaaaa4"
	silent  = "i-0aaaaaaaaaaaaaaa5"
	foreign = "i-0aaaaaaaaaaaaaaa6"
)

// byID is an EC2 that answers as the real one does: a call that names an instance which it
// does not know fails, and names those.
type byID struct {
	*script
	calls [][]string
	fail  error
	names func(missing []string) string // the words about them
}

func (b *byID) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	b.calls = append(b.calls, slices.Clone(in.InstanceIds))
	if b.fail != nil {
		return nil, b.fail
	}
	var missing []string
	out := &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{}}}
	for _, id := range in.InstanceIds {
		one := ec2types.Instance{InstanceId: &id, State: &ec2types.InstanceState{}}
		switch id {
		case lives:
			one.State.Name = "stopped"
		case dead:
			one.State.Name = "terminated"
		case lost, lost2, foreign:
			missing = append(missing, id)
			continue
		case silent:
			continue
		default:
			one.State = nil
		}
		out.Reservations[0].Instances = append(out.Reservations[0].Instances, one)
	}
	if len(missing) > 0 {
		return nil, code("InvalidInstanceID.NotFound", b.names(missing))
	}
	return out, nil
}

// TestInstances: each instance is told by what EC2 itself says of it; one of another
// region, of which this region's EC2 would answer NotFound, is not asked for.
func TestInstances(t *testing.T) {
	named := func(missing []string) string {
		if len(missing) == 1 {
			return "The instance ID '" + missing[0] + "' does not exist"
		}
		return "The instance IDs '" + strings.Join(missing, ", ") + "' do not exist"
	}
	for name, c := range map[string]struct {
		names func([]string) string
		fail  error
		calls int
		want  map[cluster.InstanceID]cluster.Existence
		err   bool
	}{
		"each": {names: named, calls: 2, want: map[cluster.InstanceID]cluster.Existence{
			id(lives): cluster.InstanceExists, id(dead): cluster.InstanceTerminated, id(lost): cluster.InstanceNotFound, id(lost2): cluster.InstanceNotFound,
			id(silent): "", id("i-0aaaaaaaaaaaaaaa9"): "", // without a state
			"aws:///eu-west-1-lax-1a/" + lives: cluster.InstanceExists, // a local zone
			"aws:///us-east-1a/" + foreign:     "", "aws:///eu-west-11a/" + foreign: "", "aws:///eu-west-1/" + foreign: "", "aws:////" + foreign: "",
			"aws:///eu-west-1a/i-0": "", "aws:///eu-west-1a/" + lost + "/x": "", "aws://" + lost: ""}},
		"one by one": {names: func(missing []string) string { return named(missing[:1]) }, calls: 3, want: map[cluster.InstanceID]cluster.Existence{
			id(lives): cluster.InstanceExists, id(lost): cluster.InstanceNotFound, id(lost2): cluster.InstanceNotFound}},
		"it names none": {names: func([]string) string { return "some instance does not exist" }, calls: 1, err: true, want: map[cluster.InstanceID]cluster.Existence{
			id(lives): "", id(lost): ""}},
		"it names others": {names: func([]string) string { return named([]string{foreign}) }, calls: 1, err: true, want: map[cluster.InstanceID]cluster.Existence{
			id(lives): "", id(lost): ""}},
		"malformed": {fail: code("InvalidInstanceID.Malformed", "Invalid id: \""+lost+"\""), calls: 2, err: true, want: map[cluster.InstanceID]cluster.Existence{
			id(lives): "", id(lost): ""}},
		"denied": {fail: code("UnauthorizedOperation", "about "+lost), calls: 1, err: true, want: map[cluster.InstanceID]cluster.Existence{id(lost): ""}},
	} {
		s, p := stage()
		b := &byID{script: s, names: c.names, fail: c.fail}
		p.client.Compute = b
		var ids []cluster.InstanceID
		for one := range c.want {
			ids = append(ids, one)
		}
		said, err := p.Instances(background, append(ids, "openstack:///"+lost)...)
		for one, want := range c.want {
			if got := said[one]; got.Existence != want || want == "" && got.Why == "" {
				t.Errorf("%s: %s is %+v, want %q", name, one, got, want)
			}
		}
		if len(said) != len(c.want) || len(b.calls) != c.calls || (err != nil) != c.err {
			t.Errorf("%s: %d answers, %d calls %v, error %v", name, len(said), len(b.calls), b.calls, err)
		}
		for _, call := range b.calls {
			if slices.Contains(call, foreign) {
				t.Errorf("%s: an instance of another region was asked for: %v", name, call)
			}
		}
	}
}
