package wrap_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fakeworld"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
)

var ctx = context.Background()

// TestDecoratorsKeepTheContract runs the suite through the whole stack.
func TestDecoratorsKeepTheContract(t *testing.T) {
	providertest.Suite{Settle: fakeworld.Settle, New: func(t testing.TB) (provider.Provider, providertest.World) {
		p, w := fakeworld.New(t)
		return wrap.Count(wrap.Timeout(p, time.Minute), func(string, time.Duration, error) {}), w
	}}.Run(t)
}

// slow answers when its context ends.
type slow struct{}

func (slow) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (slow) Resize(ctx context.Context, _ cluster.GroupID, _, _ int) error {
	<-ctx.Done()
	return ctx.Err()
}
func (slow) Delete(ctx context.Context, _ cluster.GroupID, _ ...cluster.InstanceID) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestTimeoutCutsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := wrap.Timeout(slow{}, 7*time.Second)
		_, err := p.Groups(ctx)
		for what, err := range map[string]error{"groups": err, "resize": p.Resize(ctx, "g", 1, 2), "delete": p.Delete(ctx, "g", "i")} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestCountSeesEveryCall(t *testing.T) {
	c := fake.New(time.Now())
	var got []string
	p := wrap.Count(c, func(method string, _ time.Duration, err error) {
		got = append(got, method+" "+provider.KindOf(err).String())
	})
	p.Groups(ctx)
	p.Resize(ctx, "none", 0, 1)
	p.Delete(ctx, "none", "i")
	if s := strings.Join(got, ", "); s != "groups other, resize not found, delete not found" {
		t.Error(s)
	}
}
