package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

var (
	ctx    = context.Background()
	byTag  = asg.Config{ClusterName: "demo"}
	tagged = map[string]string{tagEnabled: "", tagCluster: ""}
)

// put adds a group with the discovery tags and those given.
func (w *world) put(t *testing.T, g aws.Group, tags map[string]string) {
	t.Helper()
	g.Tags = map[string]string{}
	for _, list := range []map[string]string{tagged, tags} {
		for k, v := range list {
			g.Tags[k] = v
		}
	}
	if g.LaunchTemplate == "" {
		g.LaunchTemplate = "worker"
	}
	if err := w.PutGroup(g); err != nil {
		t.Fatal(err)
	}
}

// groups reads and wants no error.
func groups(t *testing.T, p provider.Provider) map[cluster.GroupID]cluster.NodeGroup {
	t.Helper()
	list, err := p.Groups(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := map[cluster.GroupID]cluster.NodeGroup{}
	for _, g := range list {
		out[g.ID] = g
	}
	return out
}

// TestASGCallsPerRead counts: what a read costs must not creep up.
func TestASGCallsPerRead(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	groups(t, p)
	for _, want := range []struct {
		when string
		do   func()
		n    map[string]int
	}{
		{"at rest", func() {}, map[string]int{
			"autoscaling:DescribeAutoScalingGroups": 1, "ec2:DescribeInstances": 1, "ec2:DescribeLaunchTemplates": 1}},
		{"one group short", func() {
			w.Quota(t, true)
			w.SetTarget(providertest.Workers, 4)
		}, map[string]int{
			"autoscaling:DescribeAutoScalingGroups": 1, "ec2:DescribeInstances": 1, "ec2:DescribeLaunchTemplates": 1,
			"autoscaling:DescribeScalingActivities": 1}},
	} {
		want.do()
		w.ResetCalls()
		groups(t, p)
		if got := w.Counts(); len(got) != len(want.n) {
			t.Errorf("%s: calls %v, want %v", want.when, got, want.n)
		} else {
			for call, n := range want.n {
				if got[call] != n {
					t.Errorf("%s: %d times %s, want %d", want.when, got[call], call, n)
				}
			}
		}
	}
	w.ResetCalls()
	if err := p.Resize(ctx, providertest.Workers, 4, 6); err != nil {
		t.Fatal(err)
	}
	if got := w.Counts(); got["autoscaling:DescribeAutoScalingGroups"] != 1 || got["autoscaling:SetDesiredCapacity"] != 1 || len(got) != 2 {
		t.Errorf("a resize made calls %v", got)
	}
}

func TestASGManyGroupsAndPages(t *testing.T) {
	opts := options()
	opts.MaxPage = 3
	w := empty(t, opts)
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "worker", InstanceType: "m5.large"})
	for i := range 10 {
		w.put(t, aws.Group{Name: "g" + string(rune('a'+i)), Max: 5, Desired: 1}, nil)
	}
	w.settle(t)
	p := w.connect(t, byTag)
	all := groups(t, p)
	for id, g := range all {
		if len(g.Instances) != 1 || g.Instances[0].Phase != cluster.PhaseRunning {
			t.Errorf("%s has instances %+v", id, g.Instances)
		}
	}
	if len(all) != 10 {
		t.Errorf("%d groups of 10", len(all))
	}
	w.fault("page", true, aws.Fault{Service: "autoscaling", Kind: aws.PartialPage})
	list, err := p.Groups(ctx)
	if len(list) != 3 || provider.KindOf(err) != provider.Transient || !strings.Contains(err.Error(), "unknown, not gone") {
		t.Errorf("page 2 of groups failed: %d groups, %v", len(list), err)
	}
	w.fault("page", true, aws.Fault{Service: "ec2", Action: "DescribeInstances", Kind: aws.PartialPage})
	list, err = p.Groups(ctx)
	if len(list) != 10 || provider.KindOf(err) != provider.Transient {
		t.Errorf("page 2 of instances failed: %d groups, %v", len(list), err)
	}
	for _, g := range list {
		if g.Stale == "" {
			t.Errorf("%s may lack instances and is not stale", g.ID)
		}
	}
}

// TestASGDiscoveryRulesAreAlternatives is Cluster Autoscaler's defect: it merges
// several rules into one that nothing meets.
func TestASGDiscoveryRulesAreAlternatives(t *testing.T) {
	w := newWorld(t)
	for name, tags := range map[string]map[string]string{"a": {"team": "red", "x": "1"}, "b": {"team": "blue"}, "c": {"team": "green"}, "d": {"team": "red"}} {
		if err := w.PutGroup(aws.Group{Name: name, Max: 1, LaunchTemplate: "worker", Tags: tags}); err != nil {
			t.Fatal(err)
		}
	}
	var rules asg.Discovery
	if err := rules.Decode("asg:tag=team=red,x asg:tag=team=blue"); err != nil {
		t.Fatal(err)
	}
	p := w.connect(t, asg.Config{AutoDiscovery: rules, Groups: []string{"1:2:workers"}})
	got := groups(t, p)
	if len(got) != 3 || got["a"].ID == "" || got["b"].ID == "" || got["workers"].Min != 1 || got["workers"].Max != 2 {
		t.Errorf("got %v", got)
	}
	if err := p.Resize(ctx, "c", 0, 1); provider.KindOf(err) != provider.NotFound {
		t.Errorf("a group that is not ours was resized: %v", err)
	}
	if err := p.Resize(ctx, "workers", 2, 3); provider.KindOf(err) != provider.Invalid {
		t.Errorf("configured bounds do not hold: %v", err)
	}
}

func TestASGLostAnswers(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	w.fault("lost", true, aws.Fault{Action: "SetDesiredCapacity", Kind: aws.AnswerLost})
	if err := p.Resize(ctx, providertest.Workers, 2, 4); provider.KindOf(err) != provider.Transient {
		t.Errorf("lost answer: %v", err)
	}
	w.fault("lost", false, aws.Fault{})
	if err := p.Resize(ctx, providertest.Workers, 2, 4); err != nil {
		t.Errorf("the same resize again: %v", err)
	}
	w.settle(t)
	victim := w.Alive(providertest.Workers)[0]
	w.fault("lost", true, aws.Fault{Action: "TerminateInstanceInAutoScalingGroup", Kind: aws.AnswerLost})
	next := w.Alive(providertest.Workers)[1] // it is not asked for while the first one's end has no answer
	errs := provider.Errors(p.Delete(ctx, providertest.Workers, victim, next))
	if len(errs) != 2 || errs[0].Kind != provider.Transient || errs[1].Kind != provider.Busy || errs[1].Instance != next {
		t.Errorf("lost answer: %v", errs)
	}
	w.fault("lost", false, aws.Fault{})
	for range 2 {
		if err := p.Delete(ctx, providertest.Workers, victim); err != nil {
			t.Errorf("the same deletion again: %v", err)
		}
		w.settle(t)
	}
	if got := w.Target(providertest.Workers); got != 3 {
		t.Errorf("target %d after one deletion from 4", got)
	}
}

// TestASGErrorsAreClearAndFast: each way in which AWS cannot be used ends in an
// error of the right kind with a remedy, soon.
func TestASGErrorsAreClearAndFast(t *testing.T) {
	for name, c := range map[string]struct {
		break_ func(*testing.T, *world)
		config asg.Config
		kind   provider.Kind
		words  string
	}{
		"throttled":    {func(t *testing.T, w *world) { w.Throttle(t, true) }, byTag, provider.Transient, "Throttling"},
		"5xx":          {func(t *testing.T, w *world) { w.Inject(aws.Fault{Kind: aws.Unavailable503}) }, byTag, provider.Transient, ""},
		"reset":        {func(t *testing.T, w *world) { w.Inject(aws.Fault{Kind: aws.ConnectionReset}) }, byTag, provider.Transient, ""},
		"closed":       {func(t *testing.T, w *world) { w.Close() }, byTag, provider.Transient, ""},
		"expired":      {func(t *testing.T, w *world) { w.Expire(t, true) }, byTag, provider.Denied, "the credentials have expired"},
		"revoked":      {func(t *testing.T, w *world) { w.RevokeKey(w.keys.AccessKeyID) }, byTag, provider.Denied, "does not know this access key"},
		"bad secret":   {func(t *testing.T, w *world) { t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong") }, byTag, provider.Denied, "the secret key is wrong"},
		"wrong region": {func(t *testing.T, w *world) {}, asg.Config{ClusterName: "demo", Region: "eu-west-9"}, provider.Denied, "the region is wrong: check AUTOSCALER_AWS_REGION"},
		"forbidden": {func(t *testing.T, w *world) { w.Inject(aws.Fault{Kind: aws.Forbidden}) }, byTag, provider.Denied,
			"allow autoscaling:DescribeAutoScalingGroups"},
		"no credentials": {func(t *testing.T, w *world) { t.Setenv("AWS_ACCESS_KEY_ID", ""); t.Setenv("AWS_SECRET_ACCESS_KEY", "") }, byTag, provider.Denied,
			"no usable AWS credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.break_(t, w)
			p := w.connect(t, c.config)
			start := time.Now()
			list, err := p.Groups(ctx)
			if took := time.Since(start); took > 30*time.Second { // an SDK that retries goes on for minutes
				t.Errorf("took %s", took)
			}
			if list != nil || provider.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%d groups, kind %q: %v", len(list), provider.KindOf(err), err)
			}
			t.Log(err)
			if check := p.Check(ctx); provider.KindOf(check) != c.kind {
				t.Errorf("Check: %v", check)
			}
		})
	}
}

func TestASGCheckWantsAGroup(t *testing.T) {
	newWorld(t)
	w := empty(t, options())
	err := w.connect(t, byTag).Check(ctx)
	if provider.KindOf(err) != provider.NotFound || !strings.Contains(err.Error(), "no Auto Scaling group in us-east-1") {
		t.Errorf("%v", err)
	}
	if list, err := w.connect(t, byTag).Groups(ctx); list == nil || len(list) != 0 || err != nil {
		t.Errorf("no groups are a whole read: %v, %v", list, err)
	}
}

func TestASGWithoutARegion(t *testing.T) {
	empty(t, options())
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	_, err := asg.New(ctx, asg.Config{ClusterName: "demo", Timeout: time.Second}, reservation)
	var e *provider.Error
	if !errors.As(err, &e) || !strings.Contains(e.Remedy, "AUTOSCALER_AWS_REGION") {
		t.Errorf("%v", err)
	}
	t.Log(err)
}

func TestASGOnAnInstance(t *testing.T) {
	w := newWorld(t)
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "leader", InstanceType: "m5.large", InstanceProfile: "leader"})
	if err := w.PutGroup(aws.Group{Name: "leaders", Max: 1, Desired: 1, LaunchTemplate: "leader"}); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	i, _ := w.Instance(shortID(w.Alive("leaders")[0]))
	env, err := w.EnvOn(i.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_EC2_METADATA_DISABLED", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if name != "AWS_REGION" && name != "AWS_DEFAULT_REGION" {
			t.Setenv(name, value)
		}
	}
	p := w.connect(t, byTag)
	if p.Region() != w.Region() {
		t.Errorf("region %q from the metadata service", p.Region())
	}
	if err := p.Check(ctx); err != nil {
		t.Error(err)
	}
	if got := groups(t, p); len(got) != 2 {
		t.Errorf("%d groups", len(got))
	}
}

// TestASGStartFrom: a group with a mixed instances policy is told to start an earlier version; its distribution and its types stay, and
// machines say what they were started from.
func TestASGStartFrom(t *testing.T) {
	w := newWorld(t)
	p := w.connect(t, byTag)
	started := groups(t, p)[providertest.Workers].Instances[0].Origin
	if started.Version != "1" || !strings.HasPrefix(started.Template, "lt-") {
		t.Fatalf("a machine was started from %+v", started)
	}
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "worker", InstanceType: "m5.large"})
	_, err := w.admin.UpdateAutoScalingGroup(t.Context(), &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: sdk.String(string(providertest.Workers)),
		MixedInstancesPolicy: &asgtypes.MixedInstancesPolicy{
			LaunchTemplate: &asgtypes.LaunchTemplate{
				LaunchTemplateSpecification: &asgtypes.LaunchTemplateSpecification{LaunchTemplateName: sdk.String("worker"), Version: sdk.String("$Latest")},
				Overrides:                   []asgtypes.LaunchTemplateOverrides{{InstanceType: sdk.String("m5.large")}, {InstanceType: sdk.String("m5.xlarge")}}},
			InstancesDistribution: &asgtypes.InstancesDistribution{OnDemandPercentageAboveBaseCapacity: sdk.Int32(100)}}})
	must(t, err)
	command, changed, err := p.StartFrom(ctx, providertest.Workers, started, false)
	if err != nil || !changed || !strings.Contains(command, `"Version":"1"`) {
		t.Fatalf("%v, changed %v: %s", err, changed, command)
	}
	answer, err := w.admin.DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{string(providertest.Workers)}})
	must(t, err)
	policy := answer.AutoScalingGroups[0].MixedInstancesPolicy
	if s := policy.LaunchTemplate.LaunchTemplateSpecification; sdk.ToString(s.Version) != "1" || len(policy.LaunchTemplate.Overrides) != 2 || sdk.ToInt32(policy.InstancesDistribution.OnDemandPercentageAboveBaseCapacity) != 100 {
		t.Errorf("the policy is %+v of version %s", policy, sdk.ToString(s.Version))
	}
	if _, changed, err := p.StartFrom(ctx, providertest.Workers, started, false); err != nil || changed {
		t.Errorf("again: %v, changed %v", err, changed)
	}
	if _, _, err := p.StartFrom(ctx, "foreign", started, false); provider.KindOf(err) != provider.NotFound {
		t.Errorf("a group that is not ours: %v", err)
	}
}
