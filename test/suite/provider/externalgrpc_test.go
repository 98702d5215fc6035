package provider_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fakeworld"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	plugin "github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/externalgrpc"
)

// TestExternalGRPC runs the suite over the wire: a plug-in on gRPC's own library in
// front of the fake cloud. Once as plug-ins are written today, with the facts that the
// agent likes to have, once as they were before Kubernetes 1.35, with an operator's
// inventory in groups.yaml, over TCP, TLS and a socket; and once with reads that repeat what they
// may.
func TestExternalGRPC(t *testing.T) {
	const tellsNoSource = "the protocol does not tell what a machine was started from"
	cannot := map[string]string{
		"SourceIsTold": tellsNoSource, "SourceAfterAChange": tellsNoSource, "SourceThroughRotation": tellsNoSource, "SourceTellsUserData": tellsNoSource,
		"DeleteMoreThanSurplus": "for two minutes more machines than the target may be a list that is old (TestExternalGRPCOldList)",
		"PausedGroup":           "the protocol has no word for a group in which nothing is started; a plug-in says it by the error of a raise",
	}
	repeats := maps.Clone(cannot)
	repeats["TemplateChanges"] = "a template may be repeated (TestExternalGRPCRepeats)"
	repeats["TemplateCannotBeRead"] = "a template is not read then"
	for _, how := range []struct {
		name        string
		old, repeat bool
		cannot      map[string]string
	}{
		{"today's layout", false, false, cannot},
		{"the layout before 1.35", true, false, cannot},
		{"with repeated facts", false, true, repeats},
	} {
		t.Run(how.name, func(t *testing.T) {
			providertest.Suite{
				New: func(t testing.TB) (provider.Provider, providertest.World) {
					w := newPlugin(t, plugin.Options{Old: how.old})
					if how.repeat {
						return repeatingPlugin{w.connect(t)}, w
					}
					return w.connect(t), w
				},
				Cannot: how.cannot,
				Settle: func(t testing.TB, w providertest.World) { fakeworld.Settle(t, w.(*pluginWorld).World) },
			}.Run(t)
		})
	}
}

// repeatingPlugin reads as the agent's inventory does.
type repeatingPlugin struct{ *externalgrpc.Provider }

func (p repeatingPlugin) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	return p.Provider.Groups(provider.WithRepeated(ctx, time.Hour))
}

// TestExternalGRPCRepeats: a template is repeated as long as the caller allows it, and not where
// it could not be read.
func TestExternalGRPCRepeats(t *testing.T) {
	w := newPlugin(t, plugin.Options{})
	p := w.connect(t)
	memory := func(age time.Duration) int64 {
		t.Helper()
		groups, err := p.Groups(provider.WithRepeated(t.Context(), age))
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(groups, func(g cluster.NodeGroup) bool { return g.ID == providertest.Workers })
		return groups[at].Template.Capacity.Memory
	}
	before := memory(time.Hour)
	w.ChangeTemplate(t)
	if m := memory(time.Hour); m != before {
		t.Errorf("an hour old at most: %d, want %d", m, before)
	}
	if m := memory(time.Nanosecond); m == before {
		t.Errorf("a template that is too old is repeated")
	}
	w.BreakTemplate(t, true)
	if _, err := p.Groups(t.Context()); err == nil {
		t.Error("a template is repeated though the caller does not allow it")
	}
	if _, err := p.Groups(provider.WithRepeated(t.Context(), time.Hour)); err == nil {
		t.Error("an older template is repeated after one that could not be read")
	}
}

// pluginWorld is the fake cloud with a plug-in before it.
type pluginWorld struct {
	fakeworld.World
	server *plugin.Server
	old    bool
	stops  map[string]func()
}

var _ providertest.World = (*pluginWorld)(nil)

func newPlugin(t testing.TB, o plugin.Options) *pluginWorld {
	t.Helper()
	cloud, inner := fakeworld.New(t)
	o.Cloud = cloud
	server, err := plugin.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return &pluginWorld{World: inner.(fakeworld.World), server: server, old: o.Old, stops: map[string]func(){}}
}

// connect makes a provider for a plug-in without TLS.
func (w *pluginWorld) connect(t testing.TB, opts ...externalgrpc.Option) *externalgrpc.Provider {
	t.Helper()
	return connectPlugin(t, externalgrpc.Config{Address: w.server.Address(), Insecure: true, Timeout: await.Limit},
		append(opts, externalgrpc.WithSection(w.inventory))...)
}

func connectPlugin(t testing.TB, c externalgrpc.Config, opts ...externalgrpc.Option) *externalgrpc.Provider {
	t.Helper()
	p, err := externalgrpc.New(c, reservation, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// inventory is what the operator of a plug-in that tells no names writes.
func (w *pluginWorld) inventory() json.RawMessage {
	if !w.old {
		return nil
	}
	type machine struct {
		ID        string   `json:"instance"`
		NodeName  string   `json:"node"`
		Names     []string `json:"names"`
		Addresses []string `json:"addresses"`
		Type      string   `json:"type"`
	}
	var list []machine
	for _, g := range []cluster.GroupID{providertest.Workers, providertest.Others} {
		for _, id := range w.Alive(g) {
			n := w.Node(id)
			list = append(list, machine{string(id), string(n.Name), []string{string(n.Name) + ".internal"}, n.Addresses[:1], "metal.small"})
		}
	}
	text, err := json.Marshal(map[string]any{"instances": list})
	if err != nil {
		panic(err)
	}
	return text
}

// fault arms or disarms one fault by name.
func (w *pluginWorld) fault(name string, on bool, f plugin.Fault) {
	if stop := w.stops[name]; stop != nil {
		stop()
		delete(w.stops, name)
	}
	if on {
		w.stops[name] = w.server.Inject(f)
	}
}

func (w *pluginWorld) Throttle(_ testing.TB, on bool) {
	w.fault("throttle", on, plugin.Fault{Code: codes.ResourceExhausted, Text: "too many calls"})
}

func (w *pluginWorld) Expire(_ testing.TB, on bool) {
	w.fault("expire", on, plugin.Fault{Code: codes.Unauthenticated, Text: "the token has expired"})
}

// ExpireAfter implements providertest.ExpireAfter.
func (w *pluginWorld) ExpireAfter(_ testing.TB, calls int) {
	w.fault("expire", true, plugin.Fault{Code: codes.Unauthenticated, Text: "the token has expired", Spare: calls})
}

// ChangeTemplate implements providertest.ChangeTemplate: the protocol knows a template by
// what it says.
func (w *pluginWorld) ChangeTemplate(testing.TB) {
	w.Edit(providertest.Workers, func(g *cluster.NodeGroup) { g.Template.Capacity.Memory, g.Template.Allocatable.Memory = 16<<30, 15<<30 })
}

func (w *pluginWorld) RefuseDeletes(_ testing.TB, on bool) {
	w.fault("refuse", on, plugin.Fault{Method: "NodeGroupDeleteNodes", Code: codes.PermissionDenied, Text: "not yours"})
}

func (w *pluginWorld) BreakTemplate(_ testing.TB, on bool) {
	w.fault("template", on, plugin.Fault{Method: "NodeGroupTemplateNodeInfo", Group: string(providertest.Workers), Code: codes.Unavailable, Text: "throttled"})
}

func (w *pluginWorld) BreakRead(_ testing.TB, on bool) {
	w.fault("break", on, plugin.Fault{Method: "NodeGroupNodes", Group: string(providertest.Workers), Code: codes.Internal, Text: "half a page"})
}
