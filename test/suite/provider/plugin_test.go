package provider_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc"
)

// TestPlugIn plays with a plug-in that is configured by AUTOSCALER_EXTERNALGRPC_*, as an
// agent is, in the group AUTOSCALER_TEST_PLUGIN_GROUP: it has one machine made and
// ended. Without that variable it is skipped. docs/providers/externalgrpc.md tells authors of it.
func TestPlugIn(t *testing.T) {
	group := cluster.GroupID(os.Getenv("AUTOSCALER_TEST_PLUGIN_GROUP"))
	if group == "" {
		t.Skip("AUTOSCALER_TEST_PLUGIN_GROUP names no group of a plug-in")
	}
	var c struct{ ExternalGRPC externalgrpc.Config }
	if err := envconfig.Process("AUTOSCALER", &c); err != nil {
		t.Fatal(err)
	}
	patience, err := time.ParseDuration(cmp.Or(os.Getenv("AUTOSCALER_TEST_PLUGIN_PATIENCE"), "10m"))
	if err != nil {
		t.Fatal(err)
	}
	playPlugIn(t, connectPlugin(t, c.ExternalGRPC, externalgrpc.WithSection(func() json.RawMessage { return nil })), group, patience)
}

// plugIn is a plug-in under test.
type plugIn struct {
	testing.TB
	p        provider.Provider
	group    cluster.GroupID
	patience time.Duration
}

// playPlugIn asks of a plug-in what the contract asks of every cloud, as far as it can
// be seen from outside.
func playPlugIn(t testing.TB, p provider.Provider, group cluster.GroupID, patience time.Duration) {
	t.Helper()
	s := plugIn{t, p, group, patience}
	ctx := context.Background()
	before := s.read()
	if before.Min < 0 || before.Max <= before.Target {
		t.Fatalf("the group has bounds %d..%d and target %d: the test needs room for one machine", before.Min, before.Max, before.Target)
	}
	if before.Template.Unknown != "" {
		t.Logf("note: %s", before.Template.Unknown)
	}
	for _, w := range before.Warnings {
		t.Logf("note: %s", w)
	}
	n := before.Target
	s.kind("lower than the instances", p.Resize(ctx, group, n, n-1), provider.Invalid)
	s.kind("above the maximum", p.Resize(ctx, group, n, before.Max+1), provider.Invalid)
	s.kind("a group that is not there", p.Resize(ctx, "no-such-group", 0, 1), provider.NotFound)
	s.kind("an instance that is not there", p.Delete(ctx, group, "nonsense"), provider.NotFound)

	s.ok("one more", p.Resize(ctx, group, n, n+1))
	if got := s.read().Target; got != n+1 {
		t.Errorf("right after a raise to %d NodeGroupTargetSize says %d", n+1, got)
	}
	s.ok("the same once more", p.Resize(ctx, group, n, n+1))
	s.kind("on old facts", p.Resize(ctx, group, n, n+2), provider.Conflict)

	had := ids(before)
	var born cluster.Instance
	s.until("a new machine runs", func(g cluster.NodeGroup) bool {
		for _, i := range g.Instances {
			if !slices.Contains(had, i.ID) && i.Phase == cluster.PhaseRunning {
				born = i
			}
		}
		return born.ID != ""
	})
	for what, missing := range map[string]bool{"node_names": len(born.NodeNames) == 0, "addresses": len(born.Addresses) == 0, "created": born.Created.IsZero()} {
		if missing {
			t.Logf("note: the plug-in tells no %s of %s: its serving certificate waits for a person, or for groups.yaml", what, born.ID)
		}
	}
	s.ok("delete", p.Delete(ctx, group, born.ID))
	if got := s.read().Target; got != n {
		t.Errorf("right after a deletion NodeGroupTargetSize says %d, want %d", got, n)
	}
	s.ok("delete again", p.Delete(ctx, group, born.ID))
	s.until("it is gone", func(g cluster.NodeGroup) bool { return !slices.Contains(ids(g), born.ID) })
	s.ok("delete what is gone", p.Delete(ctx, group, born.ID))
	after := s.read()
	if after.Target != n || !slices.Equal(ids(after), had) {
		t.Errorf("in the end target %d and instances %v, at first %d and %v", after.Target, ids(after), n, had)
	}
}

func ids(g cluster.NodeGroup) []cluster.InstanceID {
	var out []cluster.InstanceID
	for _, i := range g.Instances {
		out = append(out, i.ID)
	}
	slices.Sort(out)
	return out
}

func (s plugIn) read() cluster.NodeGroup {
	s.Helper()
	groups, err := readPlugin(s, s.p)
	g, ok := groups[s.group]
	if err != nil || !ok {
		s.Fatalf("group %s: %v", s.group, err)
	}
	return g
}

func (s plugIn) ok(what string, err error) {
	s.Helper()
	if err != nil {
		s.Errorf("%s: %v", what, err)
	}
}

func (s plugIn) kind(what string, err error, want provider.Kind) {
	s.Helper()
	if err == nil || provider.KindOf(err) != want {
		s.Errorf("%s: %v, want %s", what, err, want)
	}
}

func (s plugIn) until(what string, ok func(cluster.NodeGroup) bool) {
	s.Helper()
	deadline := time.Now().Add(s.patience)
	for !ok(s.read()) {
		if time.Now().After(deadline) {
			s.Fatalf("%s: not in %s: %+v", what, s.patience, s.read())
		}
		<-time.After(s.patience / 600)
	}
}
