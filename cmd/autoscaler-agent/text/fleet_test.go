package text

import (
	"regexp"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
)

// TestFleet: each machine has a letter and its tenths, by group and zone, in lines that fit; colour adds nothing
// that the letters do not say.
func TestFleet(t *testing.T) {
	machine := func(group, zone, state string, cpu, memory int) fleet.Box {
		return fleet.Box{Count: 1, Machine: fleet.Machine{Group: group, Zone: zone, State: state, CPU: cpu, Memory: memory, GPU: fleet.Unknown}}
	}
	list := []fleet.Box{machine("workers", "a", fleet.Sick, 12, 70), machine("workers", "a", fleet.Ready, 99, 3), machine("workers", "b", fleet.Upcoming, fleet.Unknown, fleet.Unknown), machine("", "", fleet.Ready, 100, 0)}
	list[1].Count = 7
	var plain, coloured strings.Builder
	Fleet(&plain, list, 200, false)
	want := `
fleet:  ! 1 sick   U 1 upcoming   R 8 ready
beside each letter, the tenths of what the machine offers that its pods request (of cpu, memory or GPU, the fullest); 10 machines are drawn as 4
  workers
    a  !7 R9
    b  U-
  of no node group
    R+
`
	if plain.String() != want {
		t.Errorf("%s\nwant\n%s", plain.String(), want)
	}
	Fleet(&coloured, list, 200, true)
	if got := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured.String(), ""); got != want || coloured.Len() <= len(want) {
		t.Errorf("coloured: %q", coloured.String())
	}
	for _, s := range fleet.States {
		if fleetColours[s.Name] == "" {
			t.Errorf("%s has no colour", s.Name)
		}
	}
	var many strings.Builder
	crowd := make([]fleet.Box, 100)
	for i := range crowd {
		crowd[i] = machine("workers", "eu-west-1a", fleet.Ready, 50, 50)
	}
	Fleet(&many, crowd, 60, false)
	if n := strings.Count(many.String(), "R5"); n != 100 {
		t.Errorf("%d machines", n)
	}
	for line := range strings.Lines(many.String()) {
		if len(line) > 61 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	var none strings.Builder
	if Fleet(&none, nil, 60, true); none.Len() > 0 {
		t.Errorf("of no machine: %q", none.String())
	}
}
