package provider_test

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestASGStartUnderBuckets: the first read of 200 groups, each with a launch template of its
// own that it names by $Latest, is whole under EC2's token buckets; a read after a new version
// of one asks for the contents of that one.
func TestASGStartUnderBuckets(t *testing.T) {
	opts := options()
	opts.Buckets = true
	w := empty(t, opts)
	const n = 200
	put := func(i int) {
		w.PutLaunchTemplate(aws.LaunchTemplate{Name: fmt.Sprintf("lt-%d", i), InstanceType: "m5.large", UserData: fmt.Sprintf("#!/bin/sh\n: %d", i)})
	}
	for i := range n {
		put(i)
		if err := w.PutGroup(aws.Group{Name: fmt.Sprintf("g%d", i), Max: 3, LaunchTemplate: fmt.Sprintf("lt-%d", i), Version: "$Latest",
			Tags: map[string]string{tagEnabled: "", tagCluster: ""}}); err != nil {
			t.Fatal(err)
		}
	}
	p := w.connect(t, asg.Config{ClusterName: "demo"})
	w.ResetCalls()
	total := func() (all int) {
		for _, k := range w.Counts() {
			all += k
		}
		return all
	}
	specs := map[string]bool{}
	for range 2 {
		list, err := p.Groups(ctx)
		if err != nil || len(list) != n {
			t.Fatalf("%d groups, %v; throttled %v", len(list), err, w.Throttled())
		}
		clear(specs)
		for _, g := range list {
			if g.Stale+g.TemplateStale+g.Template.Unknown != "" {
				t.Errorf("%+v", g)
			}
			specs[g.Template.Spec] = true
		}
	}
	if got := total(); len(specs) != n || got > 12 || len(w.Throttled()) > 0 {
		t.Errorf("%d specs after %d calls in two reads: %v, throttled %v", len(specs), got, w.Counts(), w.Throttled())
	}
	put(7)
	w.ResetCalls()
	list, err := p.Groups(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fresh := 0
	for _, g := range list {
		if !specs[g.Template.Spec] {
			fresh++
		}
	}
	if got := w.Counts()["ec2:DescribeLaunchTemplateVersions"]; fresh != 1 || got != 1 {
		t.Errorf("%d groups with a new spec after %d reads of contents, want 1 and 1: %v", fresh, got, w.Counts())
	}
}
