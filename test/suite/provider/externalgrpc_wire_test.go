package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fakeworld"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	plugin "github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/externalgrpc"
)

// readPlugin reads all groups by name; the error is the read's.
func readPlugin(t testing.TB, p provider.Provider) (map[cluster.GroupID]cluster.NodeGroup, error) {
	t.Helper()
	groups, err := p.Groups(context.Background())
	out := map[cluster.GroupID]cluster.NodeGroup{}
	for _, g := range groups {
		out[g.ID] = g
	}
	return out, err
}

func TestExternalGRPCOverASocket(t *testing.T) {
	w := newPlugin(t, plugin.Options{Network: "unix", Address: filepath.Join(t.TempDir(), "p.sock")})
	if groups, err := readPlugin(t, w.connect(t)); err != nil || len(groups) != 2 {
		t.Errorf("%d groups, %v", len(groups), err)
	}
}

// TestExternalGRPCUnimplemented: a plug-in that has only what it must.
func TestExternalGRPCUnimplemented(t *testing.T) {
	w := newPlugin(t, plugin.Options{})
	for _, method := range []string{"NodeGroupTemplateNodeInfo", "NodeGroupGetOptions", "PricingNodePrice"} {
		w.server.Inject(plugin.Fault{Method: method, Code: codes.Unimplemented})
	}
	// Refresh does its work and says that there is none: what follows must be asked all the same.
	w.server.Inject(plugin.Fault{Method: "Refresh", Code: codes.Unimplemented, After: true})
	groups, err := readPlugin(t, w.connect(t))
	g := groups[providertest.Workers]
	if err != nil || g.Stale != "" || g.Target != 2 || len(g.Instances) != 2 || g.Options != (cluster.Options{}) || g.Price != 0 {
		t.Errorf("%+v, %v", g, err)
	}
	if !strings.Contains(g.Template.Unknown, "groups.yaml") {
		t.Errorf("template %+v", g.Template)
	}
	p := w.connect(t)
	if err := p.Resize(context.Background(), providertest.Workers, 2, 3); err != nil {
		t.Error(err)
	}
	w.server.Inject(plugin.Fault{Method: "NodeGroupNodes", Code: codes.Unimplemented})
	groups, err = readPlugin(t, p)
	if groups[providertest.Workers].Stale == "" || provider.KindOf(err) != provider.Invalid || !strings.Contains(err.Error(), "NodeGroupNodes") {
		t.Errorf("without a method that must be there: %v", err)
	}
}

// TestExternalGRPCAnotherService: what answers is not a plug-in.
func TestExternalGRPCAnotherService(t *testing.T) {
	w := newPlugin(t, plugin.Options{})
	w.server.Inject(plugin.Fault{Code: codes.Unimplemented, Text: "unknown service"})
	groups, err := w.connect(t).Groups(context.Background())
	if list := provider.Errors(err); groups != nil || len(list) != 1 || list[0].Kind != provider.Invalid || !strings.Contains(list[0].Remedy, "ADDRESS") {
		t.Errorf("%v", err)
	}
}

// TestExternalGRPCPrice: of an hour of the template; a plug-in without is not asked in
// every round.
func TestExternalGRPCPrice(t *testing.T) {
	w := newPlugin(t, plugin.Options{Price: 0.25})
	groups, err := readPlugin(t, w.connect(t))
	if err != nil || groups[providertest.Workers].Price != 0.25 {
		t.Errorf("%v, %v", groups[providertest.Workers].Price, err)
	}
	w = newPlugin(t, plugin.Options{})
	p := w.connect(t)
	for range 5 {
		if _, err := readPlugin(t, p); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.server.Calls("PricingNodePrice"); n > 2 { // both groups may ask before the first answer
		t.Errorf("asked %d times", n)
	}
}

// TestExternalGRPCOptions: what a plug-in changes of the defaults it was given holds, in
// both layouts; what it gives back, and a zero, say nothing.
func TestExternalGRPCOptions(t *testing.T) {
	half, ten, no := 0.5, 10*time.Minute, false
	defaults := externalgrpc.WithDefaults(cluster.Options{ScaleDownUtilization: &half, ScaleDownGPUUtilization: &half,
		ScaleDownUnneededTime: &ten, ScaleDownUnreadyTime: &ten, MaxNodeProvisionTime: &ten, IgnoreDaemonSetsUtilization: &no})
	for _, old := range []bool{false, true} {
		w := newPlugin(t, plugin.Options{Old: old, Options: func(group string, d *protos.NodeGroupAutoscalingOptions) *protos.NodeGroupAutoscalingOptions {
			switch group {
			case string(providertest.Others):
				return d
			}
			if d.GetScaleDownUnneededDuration().AsDuration().Truncate(time.Second) != ten || d.GetScaleDownUtilizationThreshold() != half {
				t.Errorf("the defaults are %v", d)
			}
			return &protos.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.7, ScaleDownGpuUtilizationThreshold: half, IgnoreDaemonSetsUtilization: true,
				ScaleDownUnneededDuration: durationpb.New(90 * time.Second), MaxNodeProvisionDuration: durationpb.New(ten)}
		}})
		groups, err := readPlugin(t, w.connect(t, defaults))
		if err != nil {
			t.Fatal(err)
		}
		o := groups[providertest.Workers].Options
		if o.ScaleDownUtilization == nil || *o.ScaleDownUtilization != 0.7 || o.ScaleDownUnneededTime == nil || *o.ScaleDownUnneededTime != 90*time.Second ||
			o.IgnoreDaemonSetsUtilization == nil || !*o.IgnoreDaemonSetsUtilization || o.ScaleDownGPUUtilization != nil || o.ScaleDownUnreadyTime != nil || o.MaxNodeProvisionTime != nil {
			t.Errorf("old %t: %+v", old, o)
		}
		if o := groups[providertest.Others].Options; o != (cluster.Options{}) {
			t.Errorf("old %t: a plug-in that gives the defaults back says %+v", old, o)
		}
	}
	w := newPlugin(t, plugin.Options{Options: func(string, *protos.NodeGroupAutoscalingOptions) *protos.NodeGroupAutoscalingOptions { return nil }})
	if groups, err := readPlugin(t, w.connect(t, defaults)); err != nil || groups[providertest.Workers].Options != (cluster.Options{}) {
		t.Errorf("a plug-in that says nothing: %v", err)
	}
}

// TestExternalGRPCOptionsOfTheWrapper: Cluster Autoscaler's own wrapper hands its cloud
// defaults that stand in the wrong places, and the cloud gives them back.
func TestExternalGRPCOptionsOfTheWrapper(t *testing.T) {
	own, gpu, short, long := 0.4, 0.6, 10*time.Minute, 20*time.Minute
	defaults := externalgrpc.WithDefaults(cluster.Options{ScaleDownUtilization: &own, ScaleDownGPUUtilization: &gpu,
		ScaleDownUnneededTime: &short, ScaleDownUnreadyTime: &long, MaxNodeProvisionTime: &short})
	for _, old := range []bool{false, true} {
		w := newPlugin(t, plugin.Options{Old: old, Options: func(group string, d *protos.NodeGroupAutoscalingOptions) *protos.NodeGroupAutoscalingOptions {
			out := &protos.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: d.GetScaleDownGpuUtilizationThreshold(), ScaleDownGpuUtilizationThreshold: d.GetScaleDownGpuUtilizationThreshold(),
				ScaleDownUnneededDuration: d.GetScaleDownUnneededDuration(), ScaleDownUnreadyDuration: d.GetScaleDownUnneededDuration(), MaxNodeProvisionDuration: d.GetMaxNodeProvisionDuration()}
			if group == string(providertest.Others) { // wishes that happen to be the other default
				out.ScaleDownUtilizationThreshold, out.ScaleDownUnreadyDuration = gpu, durationpb.New(short)
			}
			return out
		}})
		groups, err := readPlugin(t, w.connect(t, defaults))
		if err != nil {
			t.Fatal(err)
		}
		if o := groups[providertest.Workers].Options; o != (cluster.Options{}) {
			t.Errorf("old %t: the defaults in the wrong places are taken for wishes: %+v", old, o)
		}
		if o := groups[providertest.Others].Options; o.ScaleDownUtilization == nil || *o.ScaleDownUtilization != gpu || o.ScaleDownUnreadyTime == nil || *o.ScaleDownUnreadyTime != short {
			t.Errorf("old %t: a wish is taken for a default: %+v", old, o)
		}
	}
}

// TestExternalGRPCOldList: the plug-in lists machines from before another agent had one
// ended, beside today's target. It is not ended a second time, which would lower the
// target below the machines that live; nor is a target lowered by such a list.
func TestExternalGRPCOldList(t *testing.T) {
	w := newPlugin(t, plugin.Options{})
	alive := w.Alive(providertest.Workers)
	var was []*protos.Instance
	w.fault("list", true, plugin.Fault{Method: "NodeGroupNodes", Group: string(providertest.Workers), Change: func(answer any) {
		list := answer.(*protos.NodeGroupNodesResponse)
		if was == nil {
			was = list.Instances
		}
		list.Instances = was
	}})
	first := w.connect(t)
	must(t, first.Delete(ctx, providertest.Workers, alive[0]))
	if got := w.Target(providertest.Workers); got != 1 {
		t.Fatalf("target %d, want 1", got)
	}
	second := w.connect(t) // another leader, or this one after a restart
	if err := second.Delete(ctx, providertest.Workers, alive[0]); provider.KindOf(err) != provider.Conflict {
		t.Errorf("the deletion by an old list: %v", err)
	}
	if got := w.Target(providertest.Workers); got != 1 {
		t.Errorf("target %d, and one machine lives", got)
	}
	w.SetTarget(providertest.Workers, 4)
	if err := second.Resize(ctx, providertest.Workers, 4, 2); provider.KindOf(err) != provider.Invalid {
		t.Errorf("a target is lowered by an old list: %v", err)
	}
}

// TestExternalGRPCInstanceStates: states and error classes become phases and causes.
func TestExternalGRPCInstanceStates(t *testing.T) {
	const creating, running, deleting = protos.InstanceStatus_instanceCreating, protos.InstanceStatus_instanceRunning, protos.InstanceStatus_instanceDeleting
	for _, c := range []struct {
		state protos.InstanceStatus_InstanceState
		code  string
		text  string
		class int32
		phase cluster.Phase
		cause cluster.Cause
	}{
		{protos.InstanceStatus_unspecified, "", "", 0, cluster.PhaseRunning, ""},
		{running, "", "", 0, cluster.PhaseRunning, ""},
		{running, "Repair", "disk", 99, cluster.PhaseRunning, ""},
		{creating, "", "", 0, cluster.PhasePending, ""},
		{deleting, "Stuck", "", 1, cluster.PhaseDeleting, ""},
		{creating, "QUOTA_EXCEEDED", "CPUS", 1, cluster.PhaseFailed, cluster.CauseQuota},
		{creating, "VcpuLimitExceeded", "", 1, cluster.PhaseFailed, cluster.CauseQuota},
		{creating, "ZONE_RESOURCE_POOL_EXHAUSTED", "", 1, cluster.PhaseFailed, cluster.CauseCapacity},
		{creating, "PERMISSIONS_ERROR", "", 99, cluster.PhaseFailed, cluster.CauseRefused},
		{creating, "InvalidImage", "no such image", 99, cluster.PhaseFailed, cluster.CauseInvalid},
		{creating, "Oops", "", 99, cluster.PhaseFailed, cluster.CauseOther},
		{7, "", "", 0, cluster.PhaseUnknown, ""},
	} {
		w := newPlugin(t, plugin.Options{})
		w.server.Inject(plugin.Fault{Method: "NodeGroupNodes", Group: string(providertest.Workers), Change: func(answer any) {
			i := answer.(*protos.NodeGroupNodesResponse).Instances[0]
			i.Status = &protos.InstanceStatus{InstanceState: c.state, ErrorInfo: &protos.InstanceErrorInfo{ErrorCode: c.code, ErrorMessage: c.text, InstanceErrorClass: c.class}}
		}})
		groups, err := readPlugin(t, w.connect(t))
		if err != nil {
			t.Fatal(err)
		}
		g := groups[providertest.Workers]
		i := g.Instances[0]
		if i.Phase != c.phase || (i.Failure == nil) != (c.cause == "") || len(g.Failures) > 1 {
			t.Errorf("%v %s: phase %q, failure %v", c.state, c.code, i.Phase, i.Failure)
		}
		if f := i.Failure; f != nil && (f.Cause != c.cause || f.At.IsZero() || !strings.HasPrefix(f.Text, c.code)) {
			t.Errorf("%v %s: failure %+v, want %s", c.state, c.code, f, c.cause)
		}
	}
}

// TestExternalGRPCLies: what a plug-in cannot mean makes a group stale, with a word.
func TestExternalGRPCLies(t *testing.T) {
	for what, c := range map[string]struct {
		fault plugin.Fault
		want  string
	}{
		"negative target": {plugin.Fault{Method: "NodeGroupTargetSize", Group: "workers", Change: func(a any) { a.(*protos.NodeGroupTargetSizeResponse).TargetSize = -1 }}, "target of -1"},
		"bounds": {plugin.Fault{Method: "NodeGroups", Change: func(a any) {
			for _, g := range a.(*protos.NodeGroupsResponse).NodeGroups {
				if g.Id == "workers" {
					g.MinSize, g.MaxSize = 5, 2
				}
			}
		}}, "bounds 5..2"},
		"instance of another group": {plugin.Fault{Method: "NodeGroupNodes", Group: "workers", Change: func(a any) { a.(*protos.NodeGroupNodesResponse).Instances[0].Id = "fake:///zone-1/vm-1" }}, "as well"},
		"template without a size": {plugin.Fault{Method: "NodeGroupTemplateNodeInfo", Group: "workers", Change: func(a any) {
			a.(*protos.NodeGroupTemplateNodeInfoResponse).NodeBytes = []byte("no node")
		}}, "NodeGroupTemplateNodeInfo"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newPlugin(t, plugin.Options{})
			w.server.Inject(c.fault)
			groups, err := readPlugin(t, w.connect(t))
			if g := groups[providertest.Workers]; g.Stale+g.TemplateStale == "" || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("stale %q, template stale %q, %v", g.Stale, g.TemplateStale, err)
			}
			if what != "instance of another group" && groups[providertest.Others].Stale != "" {
				t.Errorf("the other group suffers: %s", groups[providertest.Others].Stale)
			}
		})
	}
	t.Run("a name twice", func(t *testing.T) {
		w := newPlugin(t, plugin.Options{})
		w.server.Inject(plugin.Fault{Method: "NodeGroups", Change: func(a any) {
			r := a.(*protos.NodeGroupsResponse)
			r.NodeGroups = append(r.NodeGroups, &protos.NodeGroup{Id: "workers", MaxSize: 3})
		}})
		groups, err := readPlugin(t, w.connect(t))
		if _, ok := groups[providertest.Workers]; ok || err == nil || len(groups) != 1 {
			t.Errorf("%v, %v", groups, err)
		}
	})
	t.Run("an instance twice and one without an ID", func(t *testing.T) {
		w := newPlugin(t, plugin.Options{})
		w.server.Inject(plugin.Fault{Method: "NodeGroupNodes", Group: "workers", Change: func(a any) {
			r := a.(*protos.NodeGroupNodesResponse)
			r.Instances = append(r.Instances, r.Instances[0], &protos.Instance{})
		}})
		groups, err := readPlugin(t, w.connect(t))
		if g := groups[providertest.Workers]; err != nil || len(g.Instances) != 2 || len(g.Warnings) != 2 {
			t.Errorf("%+v, %v", g, err)
		}
	})
	t.Run("fewer instances than there are", func(t *testing.T) {
		// A plug-in that lists half of its instances, asked to end one of the other half:
		// nothing goes that it does not list.
		w := newPlugin(t, plugin.Options{})
		alive := w.Alive(providertest.Workers)
		w.server.Inject(plugin.Fault{Method: "NodeGroupNodes", Group: "workers", Change: func(a any) {
			r := a.(*protos.NodeGroupNodesResponse)
			r.Instances = r.Instances[:1]
		}})
		p := w.connect(t)
		if err := p.Delete(context.Background(), providertest.Workers, alive[1]); provider.KindOf(err) != provider.NotFound {
			t.Errorf("%v", err)
		}
		if got := w.Alive(providertest.Workers); len(got) != 2 {
			t.Errorf("alive: %v", got)
		}
	})
}

// TestExternalGRPCSlow: a plug-in that hangs costs one deadline, and the next call a new
// connection.
func TestExternalGRPCSlow(t *testing.T) {
	w := newPlugin(t, plugin.Options{})
	p := connectPlugin(t, externalgrpc.Config{Address: w.server.Address(), Insecure: true, Timeout: 500 * time.Millisecond})
	stop := w.server.Inject(plugin.Fault{Method: "NodeGroups", Delay: time.Minute})
	start := time.Now()
	groups, err := p.Groups(context.Background())
	if groups != nil || provider.KindOf(err) != provider.Transient || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 30*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
	if err := p.Resize(context.Background(), providertest.Workers, 2, 3); provider.KindOf(err) != provider.Transient || w.Target(providertest.Workers) != 2 {
		t.Errorf("%v", err)
	}
	stop()
	if groups, err := readPlugin(t, p); err != nil || len(groups) != 2 {
		t.Errorf("%d groups, %v", len(groups), err)
	}
}

// TestExternalGRPCLostAnswer: the plug-in did what it was told, and nobody heard it. The
// next round reads what is so, and repeats nothing.
func TestExternalGRPCLostAnswer(t *testing.T) {
	w := newPlugin(t, plugin.Options{})
	p := w.connect(t)
	alive := w.Alive(providertest.Workers)
	stop := w.server.Inject(plugin.Fault{Method: "NodeGroupIncreaseSize", Code: codes.Unavailable, After: true})
	if err := p.Resize(context.Background(), providertest.Workers, 2, 4); provider.KindOf(err) != provider.Transient {
		t.Errorf("%v", err)
	}
	if err := p.Resize(context.Background(), providertest.Workers, 2, 4); err != nil || w.Target(providertest.Workers) != 4 {
		t.Errorf("%v, target %d", err, w.Target(providertest.Workers))
	}
	stop()
	fakeworld.Settle(t, w.World)
	stop = w.server.Inject(plugin.Fault{Method: "NodeGroupDeleteNodes", Code: codes.Unavailable, After: true})
	if err := p.Delete(context.Background(), providertest.Workers, alive[0]); provider.KindOf(err) != provider.Transient {
		t.Errorf("%v", err)
	}
	stop()
	if err := p.Delete(context.Background(), providertest.Workers, alive[0]); err != nil || w.Target(providertest.Workers) != 3 {
		t.Errorf("%v, target %d", err, w.Target(providertest.Workers))
	}
}

// TestExternalGRPCStillListed: a plug-in that goes on listing as running what it was
// told to end is not told again, for that would lower the target twice.
func TestExternalGRPCStillListed(t *testing.T) {
	w := newPlugin(t, plugin.Options{})
	p := w.connect(t)
	alive := w.Alive(providertest.Workers)
	w.server.Inject(plugin.Fault{Method: "NodeGroupNodes", Group: "workers", Change: func(a any) {
		for _, i := range a.(*protos.NodeGroupNodesResponse).Instances {
			i.Status.InstanceState = protos.InstanceStatus_instanceRunning
		}
	}})
	for range 3 {
		if err := p.Delete(context.Background(), providertest.Workers, alive[0]); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.server.Calls("NodeGroupDeleteNodes"); n != 1 || w.Target(providertest.Workers) != 1 {
		t.Errorf("told %d times, target %d", n, w.Target(providertest.Workers))
	}
	groups, err := readPlugin(t, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range groups[providertest.Workers].Instances {
		if i.ID == alive[0] && i.Phase != cluster.PhaseDeleting {
			t.Errorf("phase %q", i.Phase)
		}
	}
}

// TestExternalGRPCErrors: codes of a write become kinds.
func TestExternalGRPCErrors(t *testing.T) {
	for code, want := range map[codes.Code]provider.Kind{
		codes.ResourceExhausted: provider.Exhausted, codes.Aborted: provider.Conflict, codes.FailedPrecondition: provider.Invalid,
		codes.InvalidArgument: provider.Invalid, codes.NotFound: provider.NotFound, codes.PermissionDenied: provider.Denied,
		codes.Unauthenticated: provider.Denied, codes.Unavailable: provider.Transient, codes.Internal: provider.Transient,
		codes.Unknown: provider.Other, codes.DeadlineExceeded: provider.Transient, codes.Unimplemented: provider.Invalid, codes.Code(77): provider.Other,
	} {
		w := newPlugin(t, plugin.Options{})
		w.server.Inject(plugin.Fault{Method: "NodeGroupIncreaseSize", Code: code, Text: "because 100% of it is gone"})
		err := w.connect(t).Resize(context.Background(), providertest.Workers, 2, 4)
		if provider.KindOf(err) != want || !strings.Contains(err.Error(), "because 100% of it is gone") || w.Target(providertest.Workers) != 2 {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// TestExternalGRPCRestart: a plug-in that was restarted is found again.
func TestExternalGRPCRestart(t *testing.T) {
	w := newPlugin(t, plugin.Options{})
	p := w.connect(t)
	if _, err := readPlugin(t, p); err != nil {
		t.Fatal(err)
	}
	address := w.server.Address()
	w.server.Close()
	if groups, err := p.Groups(context.Background()); groups != nil || provider.KindOf(err) != provider.Transient {
		t.Errorf("%v", err)
	}
	cloud, _ := fakeworld.New(t)
	again, err := plugin.Start(plugin.Options{Cloud: cloud, Network: "tcp", Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if groups, err := readPlugin(t, p); err != nil || len(groups) != 2 {
		t.Errorf("%d groups, %v", len(groups), err)
	}
}

// TestExternalGRPCTemplates: what the agent makes of a plug-in's Node.
func TestExternalGRPCTemplates(t *testing.T) {
	cloud := fake.New(time.Now())
	full := cluster.Resources{MilliCPU: 4000, Memory: 16 << 30, EphemeralStorage: 100 << 30, Pods: 58, Extended: map[string]int64{"nvidia.com/gpu": 2}}
	less := cluster.Resources{MilliCPU: 3900, Memory: 15 << 30, EphemeralStorage: 90 << 30, Pods: 50, Extended: map[string]int64{"nvidia.com/gpu": 2}}
	labels := map[string]string{"kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "arm64", "node.kubernetes.io/instance-type": "metal.small"}
	taints := []cluster.Taint{{Key: "b", Effect: "NoSchedule"}, {Key: "a", Value: "1", Effect: "NoExecute"}}
	cloud.AddGroup(cluster.NodeGroup{ID: "exact", Max: 3, Template: cluster.Template{Capacity: full, Allocatable: less, Labels: labels, Taints: taints}})
	cloud.AddGroup(cluster.NodeGroup{ID: "capacity", Max: 3, Template: cluster.Template{Capacity: full, Allocatable: full}})
	cloud.AddGroup(cluster.NodeGroup{ID: "empty", Max: 3})
	server, err := plugin.Start(plugin.Options{Cloud: cloud})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	groups, err := readPlugin(t, connectPlugin(t, externalgrpc.Config{Address: server.Address(), Insecure: true}))
	if err != nil {
		t.Fatal(err)
	}
	exact := groups["exact"].Template
	if exact.Allocatable.MilliCPU != 3900 || exact.Allocatable.Memory != 15<<30 || exact.Allocatable.Pods != 50 || exact.Allocatable.EphemeralStorage != 90<<30 ||
		exact.Capacity.Extended["nvidia.com/gpu"] != 2 || exact.Allocatable.Extended["nvidia.com/gpu"] != 2 {
		t.Errorf("%+v", exact)
	}
	if exact.Labels["kubernetes.io/arch"] != "arm64" || exact.Labels["kubernetes.io/hostname"] != "" || len(exact.Taints) != 2 || exact.Taints[0].Key != "a" {
		t.Errorf("%+v", exact)
	}
	if c := groups["capacity"]; c.Template.Allocatable.MilliCPU != 3930 || c.Template.Allocatable.Memory != 16<<30-600<<20 || c.Template.Allocatable.Pods != 58 || len(c.Warnings) != 2 {
		t.Errorf("%+v, %v", c.Template, c.Warnings)
	}
	if e := groups["empty"]; e.Template.Unknown == "" || e.Stale != "" {
		t.Errorf("%+v", e)
	}
}

// TestExternalGRPCInventory: what an operator lists comes before what a plug-in says,
// and what neither says stays empty: a certificate request of such a machine is held.
func TestExternalGRPCInventory(t *testing.T) {
	w := newPlugin(t, plugin.Options{})
	alive := w.Alive(providertest.Workers)
	p := connectPlugin(t, externalgrpc.Config{Address: w.server.Address(), Insecure: true}, externalgrpc.WithSection(func() json.RawMessage {
		return fmt.Appendf(nil, `{"instances": [{"instance": %q, "node": "rack-7", "names": ["rack-7.example"], "addresses": ["192.0.2.77"], "zone": "cellar"}]}`, alive[0])
	}))
	w.server.Inject(plugin.Fault{Method: "NodeGroupNodes", Change: func(a any) {
		for _, i := range a.(*protos.NodeGroupNodesResponse).Instances {
			if i.Id == string(alive[1]) {
				i.Machine = nil
			}
		}
	}})
	groups, err := readPlugin(t, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range groups[providertest.Workers].Instances {
		switch i.ID {
		case alive[0]:
			if fmt.Sprint(i.NodeNames, i.Names, i.Addresses, i.Zone) != "[rack-7] [rack-7 rack-7.example] [192.0.2.77]cellar" || i.Created.IsZero() {
				t.Errorf("%+v", i)
			}
		case alive[1]:
			if len(i.NodeNames)+len(i.Names)+len(i.Addresses) > 0 || !i.Created.IsZero() {
				t.Errorf("%+v", i)
			}
		}
	}
}
