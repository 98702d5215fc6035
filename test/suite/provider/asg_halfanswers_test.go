package provider_test

import (
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestASGMemberThatEC2NeverLists: its launch is not known, and no read after the other
// makes it look as if it had just been launched.
func TestASGMemberThatEC2NeverLists(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	w.StaleService("ec2", time.Hour)
	must(t, p.Resize(ctx, providertest.Workers, 2, 3))
	w.settle(t)
	for range 2 {
		ghosts := 0
		for _, in := range groups(t, p)[providertest.Workers].Instances {
			if in.Phase == cluster.PhasePending {
				ghosts++
				if !in.Created.IsZero() {
					t.Errorf("%s is told as created at %s, and nobody said so", in.ID, in.Created)
				}
			}
		}
		if ghosts != 1 {
			t.Errorf("%d members that EC2 does not list, want one", ghosts)
		}
	}
}

// TestASGDeleteOfWhatHasEnded: an instance that is not of the group (it was detached, and
// is of another one now), and has ended, is a deletion that has happened, whatever its
// tags say.
func TestASGDeleteOfWhatHasEnded(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	id := w.Foreign(t)
	if err := p.Delete(ctx, providertest.Workers, id); provider.KindOf(err) != provider.NotFound {
		t.Errorf("it lives, outside the group: %v", err)
	}
	must(t, w.TerminateInstance(shortID(id)))
	if err := p.Delete(ctx, providertest.Workers, id); err != nil {
		t.Errorf("it has ended: %v", err)
	}
}

// TestASGWhatIsDeniedIsAskedForOnce: images and types that AWS refuses to tell of are
// not asked for on every read.
func TestASGWhatIsDeniedIsAskedForOnce(t *testing.T) {
	for _, action := range []string{"DescribeImages", "DescribeInstanceTypes"} {
		t.Run(action, func(t *testing.T) {
			w := newWorld(t)
			w.fault("denied", true, aws.Fault{Service: "ec2", Action: action, Kind: aws.Forbidden})
			p := w.connect(t, byTag)
			_, _ = p.Groups(ctx)
			first := w.Counts()["ec2:"+action]
			if first == 0 {
				t.Fatal("nothing was asked for")
			}
			for range 3 {
				_, _ = p.Groups(ctx)
			}
			if got := w.Counts()["ec2:"+action]; got != first {
				t.Errorf("%d calls in the first read, and %d more in three others", first, got-first)
			}
			// What is only throttled is asked for again, and so is what has not been asked for.
			w.fault("denied", true, aws.Fault{Service: "ec2", Action: action, Kind: aws.Throttle})
			p = w.connect(t, byTag)
			_, _ = p.Groups(ctx)
			w.fault("denied", false, aws.Fault{})
			if g := groups(t, p)[providertest.Workers]; g.TemplateStale != "" || g.Template.Unknown != "" {
				t.Errorf("after the throttling: %q %q", g.TemplateStale, g.Template.Unknown)
			}
		})
	}
}

// TestASGTemplatesThatHang: whoever waits for the machines does not wait for calls that
// are beside the point.
func TestASGTemplatesThatHang(t *testing.T) {
	w := newWorld(t)
	w.fault("slow", true, aws.Fault{Action: "DescribeLaunchTemplate*", Kind: aws.Slow, Delay: time.Minute})
	c := byTag
	c.Timeout = 2 * time.Minute
	p := w.connect(t, c)
	limit := 30 * time.Second // the calls would take a minute
	began := time.Now()
	list, err := p.Groups(ctx)
	if took := time.Since(began); took > limit || provider.KindOf(err) != provider.Transient {
		t.Errorf("after %s: %v", took, err)
	}
	for _, g := range list {
		if g.Stale != "" || len(g.Instances) == 0 || g.TemplateStale == "" {
			t.Errorf("%s: stale %q, %d instances, template stale %q", g.ID, g.Stale, len(g.Instances), g.TemplateStale)
		}
	}
}

// TestASGReadBesideAHalfOne: a read that waits for a template does not lose those that it counts on to another read, whose list of
// groups is half of it (the simulation found it: a nil launch template ended the agent).
func TestASGReadBesideAHalfOne(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	if _, err := p.Groups(ctx); err != nil {
		t.Fatal(err)
	}
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "a-new", InstanceType: "m5.large", UserData: "#!/bin/sh\n"})
	g, _ := w.Group(string(providertest.Workers))
	g.Name, g.LaunchTemplate, g.Version, g.Min, g.Desired = "a-new", "a-new", "$Latest", 0, 0 // half a list begins with it
	must(t, w.PutGroup(g.Group))
	w.Inject(aws.Fault{Action: "DescribeLaunchTemplateVersions", Kind: aws.Slow, Delay: time.Second, Times: 1})
	done := make(chan []cluster.NodeGroup)
	go func() {
		list, _ := p.Groups(ctx)
		done <- list
	}()
	await.True(t, "the first read waits", func() bool { return w.Struck(aws.Slow) == 1 })
	w.Inject(aws.Fault{Action: "DescribeAutoScalingGroups", Kind: aws.ShortList, Times: 1})
	if half, err := p.Groups(ctx); err != nil || len(half) == 0 {
		t.Fatalf("half a list: %d groups, %v", len(half), err)
	}
	for _, g := range <-done {
		if g.Template.Unknown != "" {
			t.Errorf("%s: %s", g.ID, g.Template.Unknown)
		}
	}
}
