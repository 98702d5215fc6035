package decision

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestPledges holds the lists against the object of groups by pod that records have.
func TestPledges(t *testing.T) {
	p := Reservations{{Group: "b", Pods: []cluster.PodKey{"ns/2", "ns/3"}}, {Group: "a", Pods: []cluster.PodKey{"ns/1"}}, {Group: "b", Machine: 3, Pods: []cluster.PodKey{"ns/0"}}}
	data, err := json.Marshal(Memory{Reservations: p})
	if want := `{"promised":{"ns/0":["b",3],"ns/1":"a","ns/2":"b","ns/3":"b"}}`; err != nil || string(data) != want {
		t.Fatalf("written as %s, %v; want %s", data, err, want)
	}
	var back Memory
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !back.Reservations.Equal(p) || !p.Equal(back.Reservations) {
		t.Errorf("read back as %v, want the same as %v", back.Reservations, p)
	}
	other := slices.Clone(p)
	if other[2].Machine = 4; p.Equal(other) {
		t.Error("what is on another machine is equal")
	}
	for _, wrong := range []string{`{"p":["b"]}`, `{"p":["b",-1]}`, `{"p":["b",1,2]}`, `{"p":[1,"b"]}`, `{"p":3}`} {
		if err := json.Unmarshal([]byte(wrong), &back.Reservations); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
	if p.Equal(p[:2]) || p.Equal(nil) || !Reservations(nil).Equal(Reservations{}) {
		t.Error("what differs is equal, or what is empty is not")
	}
	for pod, group := range map[cluster.PodKey]cluster.GroupID{"ns/0": "b", "ns/1": "a", "ns/9": ""} {
		if got := p.Of(pod); got != group {
			t.Errorf("%s counts on %q, want %q", pod, got, group)
		}
	}
}
