package nojoin

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestConsolesOfMachinesThatNeverJoined: what is told of a machine that is given up says
// where it stopped; one whose console cannot be read is given up all the same, and nothing
// else is asked for.
func TestConsolesOfMachinesThatNeverJoined(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	var asked []string
	entry := log.WithField("service", "scaler")
	read := Console(func(_ context.Context, id cluster.InstanceID) (string, error) {
		asked = append(asked, string(id))
		return "autoscaler-agent: phase=start\nautoscaler-agent: phase=failed reason=no-space\n", nil
	})
	plan := decision.Plan{Actions: []decision.Action{
		decision.Terminate{Instance: "late", Rule: decision.RuleNoJoin, Why: "it never came"},
		decision.Terminate{Instance: "empty", Node: "n", Rule: "D1", Why: "it is empty"},
	}}
	nothing := func(id cluster.InstanceID) Known { return Known{Group: "workers", ID: id} }
	got := read.Explain(t.Context(), plan, nothing, entry)
	why := got.Actions[0].(decision.Terminate).Why
	if !strings.HasPrefix(why, "it never came; ") || !strings.Contains(why, "the disk is full") || len(asked) != 1 {
		t.Errorf("%q, asked %v", why, asked)
	}
	if plan.Actions[0].(decision.Terminate).Why != "it never came" || got.Actions[1] != plan.Actions[1] {
		t.Error("the plan that is recorded was changed")
	}
	read = func(context.Context, cluster.InstanceID) (string, error) { return "", errors.New("not authorized") }
	got = read.Explain(t.Context(), plan, nothing, entry)
	if why := got.Actions[0].(decision.Terminate).Why; !strings.Contains(why, "no certificate request came") {
		t.Errorf("without a console: %q", why)
	}
}
