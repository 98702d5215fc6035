package wrap_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
)

// voice is a cloud that says what it is told to say.
type voice struct {
	provider.Provider
	said map[cluster.InstanceID]cluster.Testimony
	err  error
}

func (v voice) Instances(context.Context, ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	return v.said, v.err
}

// TestJoinedInstances: of several clouds an instance exists for all when it exists for one,
// and what one of them does not know is not known, unless it is another one's.
func TestJoinedInstances(t *testing.T) {
	say := func(e cluster.Existence) map[cluster.InstanceID]cluster.Testimony {
		return map[cluster.InstanceID]cluster.Testimony{"i": {Existence: e, Why: "so"}}
	}
	left := map[cluster.InstanceID]cluster.Testimony{}
	down := errors.New("down")
	for name, c := range map[string]struct {
		a, b voice
		want cluster.Existence
		err  bool
	}{
		"the other leaves it out":           {voice{said: say(cluster.InstanceNotFound)}, voice{said: left}, cluster.InstanceNotFound, false},
		"the other is down and leaves it":   {voice{said: say(cluster.InstanceTerminated)}, voice{said: left, err: down}, cluster.InstanceTerminated, true},
		"the other is down and may have it": {voice{said: say(cluster.InstanceTerminated)}, voice{said: say(""), err: down}, "", true},
		"it exists for one":                 {voice{said: say(cluster.InstanceNotFound)}, voice{said: say(cluster.InstanceExists)}, cluster.InstanceExists, false},
		"it exists, and the other is down":  {voice{said: say(""), err: down}, voice{said: say(cluster.InstanceExists)}, cluster.InstanceExists, true},
		"a read by ID and none":             {voice{said: say(cluster.InstanceUnclaimed)}, voice{said: say(cluster.InstanceTerminated)}, cluster.InstanceTerminated, false},
		"nobody's":                          {voice{said: left}, voice{said: left}, "", false},
	} {
		for _, parts := range []map[string]provider.Provider{{"a": c.a, "b": c.b}, {"b": c.a, "a": c.b}} {
			said, err := provider.Ask(ctx, wrap.Join(parts), "i")
			if one := said["i"]; one.Existence != c.want || one.Why == "" || (err != nil) != c.err {
				t.Errorf("%s: %+v %v", name, one, err)
			}
			if err != nil && !strings.Contains(err.Error(), ": ask for instances") {
				t.Errorf("%s: the provider is not named: %v", name, err)
			}
		}
	}
}

// TestAskThroughDecorators: each hands the question on; a provider that cannot be asked,
// or that cannot be made, knows nothing.
func TestAskThroughDecorators(t *testing.T) {
	c := fake.New(time.Now())
	id := c.AddLoose()
	var counted string
	for name, p := range map[string]provider.Provider{
		"timeout":  wrap.Timeout(c, time.Minute),
		"count":    wrap.Count(c, func(method string, _ time.Duration, _ error) { counted = method }),
		"deferred": wrap.Deferred(func() (provider.Provider, error) { return c, nil }),
	} {
		if said, err := provider.Ask(ctx, p, id); err != nil || said[id].Existence != cluster.InstanceExists {
			t.Errorf("%s: %+v %v", name, said, err)
		}
	}
	if counted != "instances" {
		t.Errorf("counted as %q", counted)
	}
	for name, p := range map[string]provider.Provider{
		"no witness": struct{ provider.Provider }{c},
		"not made":   wrap.Deferred(func() (provider.Provider, error) { return nil, errors.New("not yet") }),
	} {
		if said, _ := provider.Ask(ctx, p, id); said[id].Existence != cluster.ExistenceUnknown || said[id].Why == "" {
			t.Errorf("%s: %+v", name, said)
		}
	}
}
