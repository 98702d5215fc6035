package flight

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestRecordKeepsChangesWithinBudget(t *testing.T) {
	r := New(2000)
	for i := range 100 {
		for range 3 { // the same plan again is not a new round
			s := cluster.Snapshot{Nodes: []*cluster.Node{{Name: cluster.NodeName(fmt.Sprint("n", i))}}}
			if err := r.Record(s, nil, nil, fmt.Sprint("plan ", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var b bytes.Buffer
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 2000 {
		t.Errorf("kept %d bytes, budget 2000", b.Len())
	}
	rounds, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if len(rounds) == 0 || rounds[len(rounds)-1].Plan != "plan 99" || rounds[len(rounds)-1].Snapshot.Nodes[0].Name != "n99" {
		t.Fatalf("last round = %+v, want plan 99", rounds)
	}
	for i := 1; i < len(rounds); i++ {
		if rounds[i].Plan == rounds[i-1].Plan {
			t.Errorf("rounds %d and %d have one plan", i-1, i)
		}
	}
}
