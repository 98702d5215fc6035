package text

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

func TestNodes(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	var b strings.Builder
	Nodes(&b, decision.Nodes{At: now, ControlPlane: "v1.36.3", Nodes: []decision.NodeRow{
		{Node: "leader", State: decision.NodeReady, Created: now.Add(-400 * time.Hour), Kubelet: "v1.36.3"},
		{Group: "workers", Node: "a", Instance: "aws:///x/i-1", State: decision.NodeReady, Created: now.Add(-3 * time.Hour), Kubelet: "v1.34.1", MinorsBehind: 2,
			Drift: []cluster.Difference{{Property: "image", Is: "ami-1", Wanted: "ami-2"}, {Property: "user data", Is: "sha256:1", Wanted: "sha256:2"}}, Rule: "D6", Held: "pod default/x blocks"},
		{Group: "workers", Instance: "aws:///x/i-2", State: decision.NodeUpcoming},
	}})
	want := `GROUP    NODE    AGE  KUBELET             STATE     DRIFT     HELD
-        leader  16d  v1.36.3             ready     -         -
workers  a       3h   v1.34.1 (2 behind)  ready     image +1  D6
workers  i-2     -    -                   upcoming  -         -
API server v1.36.3; 1 of 3 machines differ from what their groups start today
  a: image: ami-1, wanted ami-2; and 1 more
  a: pod default/x blocks
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if Nodes(&b, decision.Nodes{}); b.String() != "there is no machine\n" {
		t.Errorf("%q", b.String())
	}
}
